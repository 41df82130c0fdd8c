package import FerryCore

/// What one leg of a bridge, from one address to another, will keep, convert or drop: judged from the two capability
/// records alone.
package struct LegPlan: Codable, Sendable {
  package enum Outcome: String, Codable, Sendable { case kept, converted, dropped }

  package struct Item: Codable, Sendable, Hashable {
    package let what: String
    package let outcome: Outcome
    /// How, or why not; empty when there is nothing to say.
    package let how: String

    package init(what: String, outcome: Outcome, how: String) {
      self.what = what
      self.outcome = outcome
      self.how = how
    }
  }

  package let bridge: BridgeName
  package let from: Address
  package let to: Address
  package private(set) var items: [Item] = []

  package init(
    _ bridge: Bridge, from: Address, _ source: Capabilities, to: Address, _ destination: Capabilities
  ) {
    self.bridge = bridge.name
    self.from = from
    self.to = to
    let mirror = bridge.mirror
    guard source.receives else {
      add("everything", .dropped, source.absent["receive"] ?? "\(from.account) cannot be listened to")
      return
    }
    if mirror.contains(.messages) { planMessages(destination) } else { drop("messages") }
    planChanges(bridge, source, destination)
    if mirror.contains(.images) { planAttachments(destination) } else { drop("images") }
    plan(.typing, mirror, source.typing, destination.typing, source, destination)
    plan(.members, mirror, source.members, destination.members, source, destination)
    plan(.reads, mirror, source.reads, destination.reads, source, destination)
    plan(.reactions, mirror, source.reactions, destination.reactions, source, destination)
    planFaults(source, destination)
  }

  private mutating func add(_ what: String, _ outcome: Outcome, _ how: String = "") {
    items.append(Item(what: what, outcome: outcome, how: how))
  }

  /// The configuration says so.
  private mutating func drop(_ what: String) { add(what, .dropped, "not in the bridge's \"mirror\"") }

  private mutating func planMessages(_ destination: Capabilities) {
    var limits: [String] = []
    if let characters = destination.bodyCharacters { limits.append("\(characters) characters") }
    if let bytes = destination.bodyBytes { limits.append("\(bytes) bytes") }
    add("messages", .kept, limits.isEmpty ? "" : "split beyond \(limits.joined(separator: " or "))")
    if destination.keepsAuthor {
      add("authors", .kept)
    } else {
      add("authors", .converted, "written by Ferry's account")
    }
    if destination.keepsTime { add("times", .kept) } else { add("times", .converted, "the time of copying is shown") }
    if let rate = destination.sendsPerSecond {
      add("rate", .converted, "at most \(Self.number(rate)) messages a second; more wait in line")
    }
  }

  private mutating func planChanges(_ bridge: Bridge, _ source: Capabilities, _ destination: Capabilities) {
    let changes: [(Bridge.Mirrored, Bool, Bool, Bridge.Fallback)] = [
      (.edits, source.edits, destination.edits, bridge.editFallback),
      (.deletes, source.deletes, destination.deletes, bridge.deleteFallback),
    ]
    for (kind, told, done, fallback) in changes {
      if bridge.mirror.contains(kind), told, !done, fallback == .note {
        add(
          kind.rawValue, .converted,
          "a note is posted: \(destination.absent[kind.rawValue] ?? "\(to.account) has none")")
      } else {
        plan(kind, bridge.mirror, told, done, source, destination)
      }
    }
    if bridge.mirror.contains(.edits), destination.edits, let window = destination.editWindow {
      add("late edits", .dropped, "\(to.account) allows edits for \(Self.number(window)) s after posting")
    }
  }

  private mutating func planAttachments(_ destination: Capabilities) {
    switch destination.attachments {
    case .stored:
      var notes: [String] = []
      if let limit = destination.attachmentBytes { notes.append("up to \(limit) bytes, larger ones as a link") }
      if !destination.captions {
        notes.append("each in a message of its own")
      } else if let count = destination.attachmentsPerMessage {
        notes.append("\(count) in a message, more in messages of their own")
      }
      add("images", .kept, notes.joined(separator: "; "))
    case .link: add("images", .converted, "a link to the file, served by this relay")
    case .none: add("images", .converted, "a link in the text, served by this relay")
    }
  }

  private mutating func plan(
    _ kind: Bridge.Mirrored, _ mirror: Set<Bridge.Mirrored>, _ told: Bool, _ done: Bool, _ source: Capabilities,
    _ destination: Capabilities
  ) {
    let name = kind.rawValue
    if !mirror.contains(kind) {
      drop(name)
    } else if !told {
      add(name, .dropped, "\(from.account) does not tell of them\(Self.because(source.absent[name]))")
    } else if !done {
      add(name, .dropped, "\(to.account) cannot show them\(Self.because(destination.absent[name]))")
    } else {
      add(name, .kept)
    }
  }

  /// What becomes of outages.
  private mutating func planFaults(_ source: Capabilities, _ destination: Capabilities) {
    switch source.history {
    case .events: add("said while the relay was down", .kept)
    case .messages: add("said while the relay was down", .kept, "edits and deletes by comparing what is there")
    case .none:
      add(
        "said while the relay was down", .dropped,
        "\(from.account) keeps no history; the gap is reported with its times")
    }
    switch destination.certainty {
    case .always: add("sends with a lost answer", .kept, "\(to.account) is asked before anything is repeated")
    case .window(let seconds):
      add(
        "sends with a lost answer", .kept,
        "\(to.account) is asked before anything is repeated; after \(Self.number(seconds)) s it cannot tell, and a person decides"
      )
    case .none:
      add(
        "sends with a lost answer", .converted, "a dead letter each, for a person to decide: \(to.account) cannot tell")
    }
  }

  private static func because(_ reason: String?) -> String { reason.map { ": \($0)" } ?? "" }

  private static func number(_ value: Double) -> String {
    value == value.rounded() ? String(Int64(value)) : String(value)
  }
}

/// What several bridges do together that one who looks at each alone may not expect.
package enum BridgeWarnings {
  /// Pairs joined twice, and addresses from which copies do not travel on.
  package static func of(_ bridges: [Bridge]) -> [String] {
    var warnings: [String] = []
    var legs: [Leg: BridgeName] = [:]
    for bridge in bridges {
      for leg in legsOf(bridge) {
        if let other = legs.updateValue(bridge.name, forKey: leg) {
          warnings.append("\(leg.from) is copied to \(leg.to) twice: by \(other) and by \(bridge.name)")
        }
      }
    }
    for first in bridges {
      for second in bridges where second.name != first.name {
        let shared = Set(first.routes.values.joined()).intersection(second.routes.keys)
        for address in shared.sorted(by: { $0.description < $1.description }) {
          let origins = first.routes.filter { $0.value.contains(address) }.keys.filter { $0 != address }
          let ends = Set(second.routes[address] ?? []).subtracting(first.routes.values.joined()).subtracting(origins)
          guard !ends.isEmpty, !origins.isEmpty else { continue }
          warnings.append(
            "\(first.name) brings messages to \(address), and \(second.name) takes messages from there to "
              + ends.map(\.description).sorted().joined(separator: ", ")
              + ": copies are never copied again, so put all of them into one bridge if they should go on")
        }
      }
    }
    return warnings
  }

  private struct Leg: Hashable {
    let from: Address
    let to: Address
  }

  private static func legsOf(_ bridge: Bridge) -> [Leg] {
    bridge.routes.sorted { $0.key.description < $1.key.description }
      .flatMap { from, destinations in destinations.map { Leg(from: from, to: $0) } }
  }
}
