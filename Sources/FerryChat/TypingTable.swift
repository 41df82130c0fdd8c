import FerryCore
import FerryRuntime

/// Who is typing where, and until when.
struct TypingTable: Sendable {
  private struct Key: Hashable {
    let room: ExactName
    let user: ExactName
  }

  /// More are not remembered, nor told: nobody can watch that many, but somebody can send them.
  private static let limit = 10_000

  private var typing: [Key: (typing: Typing, told: Timestamp, due: Timestamp)] = [:]

  var nextDue: Timestamp? { typing.values.map(\.due).min() }

  /// What to tell: nothing when it was told within the last second (G6).
  mutating func begin(_ new: Typing, at now: Timestamp, until due: Timestamp) -> Typing? {
    let key = Key(room: ExactName(new.channel.rawValue), user: ExactName(new.by.id.rawValue))
    if let known = typing[key], now < known.told.advanced(by: .seconds(1)) {
      typing[key]?.due = due
      return nil
    }
    guard typing.count < Self.limit || typing[key] != nil else { return nil }
    typing[key] = (new, now, due)
    return new
  }

  /// What to tell: nothing when the user was not typing there.
  mutating func end(_ user: UserID, in room: ChannelID) -> Typing? {
    if typing.isEmpty { return nil }
    let key = Key(room: ExactName(room.rawValue), user: ExactName(user.rawValue))
    return typing.removeValue(forKey: key).map { Self.ended($0.typing) }
  }

  mutating func expire(at now: Timestamp) -> [Typing] {
    let due = typing.filter { $0.value.due <= now }
    for key in due.keys { typing[key] = nil }
    return due.values.map { Self.ended($0.typing) }
  }

  private static func ended(_ typing: Typing) -> Typing {
    var ended = typing
    ended.on = false
    return ended
  }
}
