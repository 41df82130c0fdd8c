package import FerryCore

/// One ordered queue of deliveries: a bridge's sends to one address.
package struct LaneID: Hashable, Sendable, CustomStringConvertible {
  package let bridge: BridgeName
  package let destination: Address

  package init(bridge: BridgeName, destination: Address) {
    self.bridge = bridge
    self.destination = destination
  }

  package var description: String { "\(bridge)>\(destination)" }
}

/// One event on its way to one destination.
package struct Delivery: Sendable {
  package enum State: Int64, Sendable {
    case pending = 0
    /// Handed to the provider: its outcome is unknown until it is settled.
    case sending = 1
    case settled = 2
    case dead = 3
    /// An edit, delete, read or reaction that came before its message.
    case waiting = 4
  }

  package let id: Int64
  package let lane: LaneID
  package let state: State
  package let attempts: Int
  /// When its state last changed.
  package let updated: Timestamp
  package let source: Address
  package let event: Event

  package init(
    id: Int64, lane: LaneID, state: State, attempts: Int, updated: Timestamp, source: Address, event: Event
  ) {
    self.id = id
    self.lane = lane
    self.state = state
    self.attempts = attempts
    self.updated = updated
    self.source = source
    self.event = event
  }
}

/// The durable record that `copy` at `destination` is (part of) a copy of `origin`.
package struct Link: Hashable, Sendable {
  package var bridge: BridgeName
  package var source: Address
  package var origin: MessageID
  package var destination: Address
  package var copy: MessageID
  package var part: Int
  package var revision: Int
  package var isDeleted: Bool

  package init(
    bridge: BridgeName, source: Address, origin: MessageID, destination: Address, copy: MessageID, part: Int = 0,
    revision: Int = 0, isDeleted: Bool = false
  ) {
    self.bridge = bridge
    self.source = source
    self.origin = origin
    self.destination = destination
    self.copy = copy
    self.part = part
    self.revision = revision
    self.isDeleted = isDeleted
  }
}

/// A delivery that is done with, and the links to be remembered for it.
package struct Settlement: Sendable {
  package var delivery: Int64
  package var links: [Link]

  package init(delivery: Int64, links: [Link] = []) {
    self.delivery = delivery
    self.links = links
  }
}

/// What became of a batch of events.
package struct Acceptance: Sendable {
  package var accepted = 0
  package var duplicates = 0
  /// Written by Ferry itself.
  package var echoes = 0
  /// Those that cannot be written as JSON at all, and were left out.
  package var unwritable: [EventKey] = []
  /// How many became dead letters at once, by the reason.
  package var refused: [String: Int] = [:]
  /// About messages that were pruned.
  package var forgotten = 0
  /// The keys of those that are new and go somewhere.
  package var keys: [EventKey] = []
  /// Lanes that have new deliveries.
  package var lanes: Set<LaneID> = []
}

/// A file that Ferry serves under a link.
package struct ServedFile: Hashable, Sendable {
  /// Unguessable; part of the link.
  package let token: String
  package let sha256: String
  package let name: String
  package let mediaType: String
  package let size: Int64
}

/// How many deliveries of a lane are in which state.
package struct LaneCounts: Hashable, Sendable {
  /// What is to be delivered; nil when nothing is.
  package var queue: LaneQueue?
  package var waiting = 0
  package var dead = 0

  package init() {}

  package var pending: Int { queue?.pending ?? 0 }
  /// When the oldest event that is to be delivered was accepted.
  package var oldest: Timestamp? { queue?.oldest }
}

/// A delivery that cannot succeed by itself.
package struct DeadLetter: Sendable {
  package let delivery: Int64
  package let lane: LaneID
  package let source: Address
  package let key: EventKey
  package let reason: String
}
