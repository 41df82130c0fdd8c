package import FerryCore
import FerryRuntime
package import FerryStorage

/// A stable JSON document: one message's way, as `ferry explain` and `GET /api/trace` tell it. Holds ids, times and
/// reasons, never a text.
package struct RelayTrace: Codable, Sendable {
  package struct Attempt: Codable, Sendable {
    package var time: String
    package var error: String
  }

  package struct Sent: Codable, Sendable {
    /// The number by which `ferry dead` knows it.
    package var id: Int64
    package var bridge: BridgeName
    package var to: Address
    /// `pending`, `sending` (the outcome is not known yet), `settled`, `dead`, or `waiting` for the message that it is
    /// about.
    package var state: String
    /// How often it was tried, the one that succeeded included.
    package var attempts: Int
    /// When its state last changed.
    package var updated: String
    package var error: String?
    /// The last failures, oldest first.
    package var failures: [Attempt]
  }

  package struct Skipped: Codable, Sendable {
    package var bridge: BridgeName
    package var why: String
  }

  package struct Received: Codable, Sendable {
    package var address: Address
    package var key: EventKey
    package var kind: String
    /// When it happened, by the source's clock, and when it was journaled, by ours.
    package var time: String
    package var accepted: String
    package var deliveries: [Sent]
    /// Bridges that listen to this address and do not carry such an event.
    package var skipped: [Skipped]
  }

  package struct Copy: Codable, Sendable {
    package var bridge: BridgeName
    package var address: Address
    package var id: MessageID
    package var part: Int
    package var revision: Int
    package var deleted: Bool
    /// The key of the send that wrote it.
    package var key: SendKey
  }

  package struct Rule: Codable, Sendable {
    package var name: BridgeName
    package var mirror: [String]
    package var author: String
    /// What is done where a destination cannot edit or delete.
    package var edits: String
    package var deletes: String
  }

  package struct Message: Codable, Sendable {
    package var address: Address
    package var message: MessageID?
    package var bridges: [Rule]
    package var events: [Received]
    package var copies: [Copy]
  }

  package var id: String
  package var messages: [Message]

  /// `bridges` are those configured now, for the rules. Throws `notFound` when the journal does not know the id.
  package init(
    of id: String, at address: Address?, in journal: Journal, _ bridges: [Bridge]
  ) async throws(FerryError) {
    self.id = id
    messages = try await journal.trace(id, at: address).map { Message($0, bridges) }
    guard messages.isEmpty else { return }
    throw FerryError(
      .notFound,
      "The journal knows nothing of \"\(id)\"\(address.map { " at \($0)" } ?? ""): it was not received, "
        + "is an echo, was forgotten after relay.retention, or belongs to another address.")
  }
}

extension RelayTrace.Message {
  init(_ trace: MessageTrace, _ bridges: [Bridge]) {
    address = trace.address
    message = trace.message
    events = trace.received.map { RelayTrace.Received($0, bridges) }
    copies = trace.copies.map { link in
      RelayTrace.Copy(
        bridge: link.bridge, address: link.destination, id: link.copy, part: link.part, revision: link.revision,
        deleted: link.isDeleted,
        key: Stamp(
          bridge: link.bridge, origin: link.source, id: link.origin, revision: link.revision, part: link.part
        ).key)
    }
    let involved = Set(events.flatMap { $0.deliveries.map(\.bridge) + $0.skipped.map(\.bridge) } + copies.map(\.bridge))
    self.bridges = bridges.filter { involved.contains($0.name) }.map { RelayTrace.Rule($0) }
  }
}

extension RelayTrace.Rule {
  init(_ bridge: Bridge) {
    name = bridge.name
    mirror = Bridge.Mirrored.allCases.filter { bridge.mirror.contains($0) }.map(\.rawValue)
    author = bridge.author.text
    edits = bridge.editFallback.rawValue
    deletes = bridge.deleteFallback.rawValue
  }
}

extension RelayTrace.Received {
  init(_ received: MessageTrace.Received, _ bridges: [Bridge]) {
    address = received.address
    key = received.key
    kind = received.kind
    time = received.time.iso8601
    accepted = received.accepted.iso8601
    deliveries = received.deliveries.map { RelayTrace.Sent($0) }
    let carried = Set(deliveries.map(\.bridge))
    let listening = bridges.filter { $0.routes[received.address] != nil && !carried.contains($0.name) }
    skipped = listening.map { bridge in
      let isMirrored = Bridge.Mirrored(kindName: received.kind).map { bridge.mirror.contains($0) } ?? false
      return RelayTrace.Skipped(
        bridge: bridge.name,
        why: isMirrored
          ? "it came before this bridge listened here"
          : "the bridge does not mirror \(Bridge.Mirrored(kindName: received.kind)?.rawValue ?? received.kind)")
    }
  }
}

extension RelayTrace.Sent {
  init(_ sent: MessageTrace.Sent) {
    id = sent.delivery
    bridge = sent.lane.bridge
    to = sent.lane.destination
    let isUnderWay = sent.state == .settled || sent.state == .sending
    attempts = sent.failedAttempts + (isUnderWay ? 1 : 0)
    updated = sent.updated.iso8601
    error = sent.lastError
    failures = sent.failures.map { RelayTrace.Attempt(time: $0.time.iso8601, error: $0.error) }
    state =
      switch sent.state {
      case .pending: "pending"
      case .sending: "sending"
      case .settled: "settled"
      case .dead: "dead"
      case .waiting: "waiting"
      }
  }
}
