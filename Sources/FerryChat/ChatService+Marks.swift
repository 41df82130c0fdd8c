package import FerryCore
import FerryStorage

/// Reactions, and how far who has read.
extension ChatService {
  /// Puts a reaction on a message or takes it off. What is so already tells nobody.
  package func react(_ reaction: Reaction, in room: ChannelID, by caller: Caller) async throws(FerryError) {
    try await write { try $0.react(reaction, in: room, by: caller) }
  }

  /// Moves a user's mark. Marks only move forward; what is so already tells nobody.
  package func mark(_ mark: ReadMark, in room: ChannelID, by caller: Caller) async throws(FerryError) {
    try await write { try $0.mark(mark, in: room, by: caller) }
  }

  /// Where everybody stands.
  package func marks(in room: ChannelID) async throws(FerryError) -> [ReadMark] {
    try await database.read { connection in
      let row = try Self.existingRow(of: room, connection)
      return try connection.rows(
        "SELECT user, name, avatar, message, state FROM reads WHERE room = ? ORDER BY user, state", .integer(row)
      ) { row in
        ReadMark(
          upTo: MessageID(String(row.integer(3))), by: Self.author(row),
          state: ReadMark.State(rawValue: row.text(4)) ?? .read)
      }
    }
  }
}

extension ChatTransaction {
  /// As `ChatService.react`.
  package func react(_ reaction: Reaction, in room: ChannelID, by caller: Caller) throws {
    try limits.checkEmoji(reaction.emoji)
    var told = reaction
    told.by = try caller.author(reaction.by)
    try limits.check(told.by)
    try chat.check(told.stamp, caller)
    let row = try ChatService.existingRow(of: room, connection)
    _ = try ChatService.liveMessage(told.message, in: room, row: row, connection)
    let message = SQLValue(MessageRow.number(told.message))
    if told.added {
      try connection.execute(
        """
        INSERT INTO reactions(message, emoji, user, name, avatar, time) VALUES (?, ?, ?, ?, ?, ?)
        ON CONFLICT DO NOTHING
        """, message, .text(told.emoji), .text(told.by.id.rawValue), .text(told.by.name),
        SQLValue(told.by.avatar), .integer(now.milliseconds))
    } else {
      try connection.execute(
        "DELETE FROM reactions WHERE message = ? AND emoji = ? AND user = ?", message, .text(told.emoji),
        .text(told.by.id.rawValue))
    }
    if connection.changes > 0 { try log(.reacted(told), of: room, row: row) }
  }

  /// As `ChatService.mark`.
  package func mark(_ mark: ReadMark, in room: ChannelID, by caller: Caller) throws {
    let reader = try caller.author(mark.by)
    try limits.check(reader)
    try chat.check(mark.stamp, caller)
    var told = mark
    told.by = reader
    let row = try ChatService.existingRow(of: room, connection)
    _ = try ChatService.message(told.upTo, in: room, row: row, connection)
    try connection.execute(
      """
      INSERT INTO reads(room, user, state, name, avatar, message, time) VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT(room, user, state)
      DO UPDATE SET name = excluded.name, avatar = excluded.avatar, message = excluded.message, time = excluded.time
      WHERE excluded.message > message
      """, .integer(row), .text(reader.id.rawValue), .text(told.state.rawValue), .text(reader.name),
      SQLValue(reader.avatar), SQLValue(MessageRow.number(told.upTo)), .integer(now.milliseconds))
    if connection.changes > 0 { try log(.read(told), of: room, row: row) }
  }
}
