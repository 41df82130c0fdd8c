package import FerryCore

/// What waits in a lane. The lane delivers in order, so its first delivery tells how it is doing.
package struct LaneQueue: Sendable, Hashable {
  package let pending: Int
  /// When the oldest of them was accepted.
  package let oldest: Timestamp
  /// How often the first was tried, why that failed last, and when its state last changed.
  package let attempts: Int
  package let error: String?
  package let tried: Timestamp
}

/// Which dead letters are meant. What is nil lets everything through.
package struct DeadFilter: Sendable, Hashable {
  private let bridgeName: BridgeName?
  private let destination: Address?
  private let text: String?

  /// `text` is looked for in the reason, the event's key and the message's id, whatever their case.
  package init(bridge: BridgeName? = nil, destination: Address? = nil, text: String? = nil) {
    bridgeName = bridge
    self.destination = destination
    self.text = text.flatMap { $0.isEmpty ? nil : $0 }
  }

  /// With the values as numbers 2 to 5.
  static let condition = """
    (?2 IS NULL OR d.bridge = ?2) AND (?3 IS NULL OR (d.account = ?3 AND d.channel = ?4)) AND (?5 IS NULL OR
    instr(lower(coalesce(d.error, '') || ' ' || e.key || ' ' || coalesce(e.message, '') || ' ' || e.account || ':' || e.channel),
    lower(?5)))
    """

  var bridge: SQLValue { SQLValue(bridgeName?.rawValue) }
  var account: SQLValue { SQLValue(destination?.account.rawValue) }
  var channel: SQLValue { SQLValue(destination?.channel.rawValue) }
  var words: SQLValue { SQLValue(text) }
}

/// A delivery that failed for good, as the console lists it.
package struct DeadLetterDetail: Sendable {
  package let id: Int64
  package let lane: LaneID
  package let source: Address
  package let key: EventKey
  package let kind: String
  package let message: MessageID?
  package let attempts: Int
  package let reason: String
  package let died: Timestamp
  package let accepted: Timestamp
}

/// An accepted event and how far its deliveries are.
package struct EventSummary: Sendable {
  package let id: Int64
  package let source: Address
  package let kind: String
  package let message: MessageID?
  package let key: EventKey
  package let accepted: Timestamp
  package let deliveries: Int
  package let settled: Int
  package let dead: Int
}

/// What became of one message.
package struct MessageFate: Sendable {
  package struct Leg: Sendable {
    package let lane: LaneID
    package let state: Delivery.State
    package let attempts: Int
    package let error: String?
    package let updated: Timestamp
  }

  package let accepted: Timestamp
  package let legs: [Leg]
}
