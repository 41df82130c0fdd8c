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
  private var counted: [Counted: (round: Int, time: Timestamp)] = [:]

  /// Texts, or events, that are remembered.
  var count: Int { max(rounds.count, counted.count) }

  /// How often a message that comes in with an event has gone round; zero for one that is new.
  mutating func round(
    of text: String, by author: UserID, at place: Address, in bridge: BridgeName, event: EventKey, now: Timestamp
  ) -> Int {
    let event = Counted(bridge: bridge, place: place, event: event)
    if let known = counted[event] { return known.round }
    let round = count(text, Carrier(place: place, author: author), bridge, now)
    if counted.count >= Self.capacity { counted = counted.filter { $0.value.time >= now.advanced(by: .zero - Self.window) } }
    if counted.count >= Self.capacity { counted = [:] }
    counted[event] = (round, now)
    return round
  }

  private mutating func count(_ text: String, _ me: Carrier, _ bridge: BridgeName, _ now: Timestamp) -> Int {
    let variants = Self.variants(of: text)
    guard let whole = variants.first else { return 0 }
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
    return next.carriers.contains(next.origin) ? next.number / 10 : next.number
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
