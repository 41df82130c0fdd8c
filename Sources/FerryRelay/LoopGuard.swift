import FerryCore
import FerryRuntime

/// Notices what other software carries round in a circle: two systems that mirror the same channels, where the other one
/// takes off the stamps and gives every copy an id of its own, so that neither stamp nor link tells that it is ours (G5).
///
/// A pure value. A message is in its nth round when its text, or its text less what bridges put before it, is that of one
/// accepted at most ten seconds earlier in its (n-1)th round, and all rounds were brought by the same one or two authors.
/// Where one of these wrote it in the first place, it is more likely that somebody repeats something: ten such rounds
/// count as one. Rounds are not known across a restart: a loop is then counted anew. An event that is looked at again,
/// because what was done with it could not be written down, is in the round that it was in before.
struct LoopGuard: Sendable {
  /// How often a message has come in.
  struct Pass: Sendable, Equatable {
    /// Zero for one that is new.
    let round: Int
    /// Nobody who brings it back wrote it in the first place: other software does.
    let isForeign: Bool
  }

  /// What the reason of a message begins with that has stopped its lanes.
  static let stops = "conflict: Stopped: other software"

  /// Why a message is not carried on that has gone round too often.
  static func reason(_ pass: Pass, limit: Int) -> String {
    pass.isForeign
      ? "\(stops) carries messages round in a loop; this one came back \(limit) times. End that, then retry or drop this."
      : "conflict: This was said over and over \(limit) times, as in a loop that other software closes."
  }

  private struct Carrier: Hashable {
    let place: Address
    let author: UserID
  }

  private struct Round: Sendable {
    var number: Int
    var time: Timestamp
    /// Who wrote it, and who brought it back since.
    let origin: Carrier
    var carriers: Set<Carrier> = []
  }

  private struct Key: Hashable {
    let bridge: BridgeName
    let text: String
  }

  private struct Counted: Hashable {
    let bridge: BridgeName
    let place: Address
    let event: EventKey
  }

  static let window = Duration.seconds(10)
  private static let capacity = 4096
  /// Longer texts are compared by their ends, where what others put before them does not show.
  private static let compared = 100

  private var rounds: [Key: Round] = [:]
  /// The rounds of single events, by their messages' times.
  private var counted: [Counted: (pass: Pass, time: Timestamp)] = [:]

  /// Texts, or events, that are remembered.
  var count: Int { max(rounds.count, counted.count) }

  /// How often a message that comes in with an event has gone round.
  mutating func round(
    of text: String, by author: UserID, at place: Address, in bridge: BridgeName, event: EventKey, now: Timestamp
  ) -> Pass {
    let event = Counted(bridge: bridge, place: place, event: event)
    if let known = counted[event] { return known.pass }
    let pass = count(text, Carrier(place: place, author: author), bridge, now)
    if counted.count >= Self.capacity {
      counted = counted.filter { $0.value.time >= now.advanced(by: .zero - Self.window) }
    }
    if counted.count >= Self.capacity { counted = [:] }
    counted[event] = (pass, now)
    return pass
  }

  private mutating func count(_ text: String, _ me: Carrier, _ bridge: BridgeName, _ now: Timestamp) -> Pass {
    let variants = Self.variants(of: text)
    guard let whole = variants.first else { return Pass(round: 0, isForeign: false) }
    let oldest = now.advanced(by: .zero - Self.window)
    let last = variants.compactMap { rounds[Key(bridge: bridge, text: $0)] }.filter { $0.time >= oldest }
      .max { $0.number < $1.number }
    var next = Round(number: 0, time: now, origin: me)
    if let last {
      let carriers = last.carriers.union([me])
      // Somebody else says the same: that is how people talk.
      if carriers.count <= 2 {
        next = Round(number: last.number + 1, time: now, origin: last.origin, carriers: carriers)
      }
    }
    if rounds.count >= Self.capacity { forget(before: oldest) }
    // Only as a whole: many messages of a program differ in their beginnings alone.
    rounds[Key(bridge: bridge, text: whole)] = next
    let isForeign = !next.carriers.contains(next.origin)
    return Pass(round: isForeign ? next.number : next.number / 10, isForeign: isForeign)
  }

  private mutating func forget(before oldest: Timestamp) {
    rounds = rounds.filter { $0.value.time >= oldest }
    if rounds.count >= Self.capacity { rounds = [:] }
  }

  /// The text, and what is left of it without one, two or three marks of the kind `<name> `, `name: ` or `[name] `.
  private static func variants(of text: String) -> [String] {
    var rest = text.suffix(compared)
    var variants: [String] = []
    for _ in 0..<4 {
      let trimmed = rest.drop { $0.isWhitespace }
      guard !trimmed.isEmpty else { break }
      variants.append(String(trimmed))
      guard let end = trimmed.prefix(80).firstIndex(where: { ":>]".contains($0) }) else { break }
      rest = trimmed[trimmed.index(after: end)...]
    }
    return variants
  }
}
