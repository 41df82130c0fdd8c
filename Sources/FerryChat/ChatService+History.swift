package import FerryCore
import FerryStorage

extension ChatService {
  /// One message, deleted or not. Throws `notFound` when the room never had it.
  package func message(_ id: MessageID, in room: ChannelID) async throws(FerryError) -> ChatMessage {
    try await database.read { connection in
      let row = try Self.existingRow(of: room, connection)
      return try Self.withReactions([try Self.message(id, in: room, row: row, connection)], connection)[0]
    }
  }

  /// The message posted under a client id; nil when there was none, or the room does not exist.
  package func message(byClientID clientID: SendKey, in room: ChannelID) async throws(FerryError) -> ChatMessage? {
    try await messages(byClientIDs: [clientID], in: room).first
  }

  /// Those of the messages that were posted, in the order of the client ids; at most as many as a batch has.
  package func messages(
    byClientIDs clientIDs: [SendKey], in room: ChannelID
  ) async throws(FerryError) -> [ChatMessage] {
    guard clientIDs.count <= limits.batch else {
      throw FerryError(.badRequest, "Ask for at most \(limits.batch) client ids at once.")
    }
    return try await database.read { connection in
      guard let row = try Self.row(of: room, connection) else { return [] }
      let found = try clientIDs.compactMap { try Self.message(clientID: $0, in: room, row: row, connection) }
      return try Self.withReactions(found, connection)
    }
  }

  /// One page of a room's messages, tombstones included, in the order asked for.
  ///
  /// `after` and `before` are ids and exclusive, and need not be of messages that exist. `containing` leaves those whose
  /// text has it, in upper or lower case where it is of ASCII letters.
  package func history(
    of room: ChannelID, order: HistoryOrder, after: MessageID? = nil, before: MessageID? = nil,
    containing part: String? = nil, limit: Int
  ) async throws(FerryError) -> MessagePage {
    let limit = limits.checkPage(limit)
    let after = try bound(after, "after") ?? 0
    let before = try bound(before, "before") ?? .max
    let pattern = part.map(Self.pattern)
    return try await database.read { connection in
      let row = try Self.existingRow(of: room, connection)
      let direction = order == .oldestFirst ? "ASC" : "DESC"
      var messages = try connection.rows(
        """
        SELECT \(MessageRow.columns) FROM messages
        WHERE room = ?1 AND messages.id > ?2 AND messages.id < ?3
          AND (?4 IS NULL OR (deleted IS NULL AND text LIKE ?4 ESCAPE '\\'))
        ORDER BY messages.id \(direction) LIMIT ?5
        """, .integer(row), .integer(after), .integer(before), SQLValue(pattern), SQLValue(limit + 1)
      ) { try MessageRow.message($0, room: room) }
      let isLast = messages.count <= limit
      if !isLast { messages.removeLast() }
      messages = try Self.withReactions(messages, connection)
      return MessagePage(messages: messages, next: isLast ? nil : messages.last?.message.id)
    }
  }

  /// What LIKE takes for "contains", with `\` before what it would take for a wildcard.
  private static func pattern(_ part: String) -> String {
    "%" + part.map { "%_\\".contains($0) ? "\\\($0)" : String($0) }.joined() + "%"
  }

  private func bound(_ id: MessageID?, _ what: String) throws(FerryError) -> Int64? {
    guard let id else { return nil }
    guard let number = MessageRow.number(id) else {
      throw FerryError(.badRequest, "\"\(what)\" is not the id of a message.")
    }
    return number
  }

  // MARK: Pieces for reads and writes

  static func message(_ id: MessageID, in room: ChannelID, row: Int64, _ connection: Connection) throws -> ChatMessage {
    guard let number = MessageRow.number(id),
      let found = try connection.first(
        "SELECT \(MessageRow.columns) FROM messages WHERE messages.id = ? AND room = ?", .integer(number),
        .integer(row), map: { try MessageRow.message($0, room: room) })
    else { throw MessageRow.noMessage(id) }
    return found
  }

  /// As above, and not deleted.
  static func liveMessage(
    _ id: MessageID, in room: ChannelID, row: Int64, _ connection: Connection
  ) throws -> ChatMessage {
    let found = try message(id, in: room, row: row, connection)
    guard found.deleted == nil else { throw FerryError(.notFound, "The message \"\(id)\" has been deleted.") }
    return found
  }

  static func message(
    clientID: SendKey, in room: ChannelID, row: Int64, _ connection: Connection
  ) throws -> ChatMessage? {
    try connection.first(
      "SELECT \(MessageRow.columns) FROM messages WHERE room = ? AND client_id = ?", .integer(row),
      .text(clientID.rawValue)
    ) { try MessageRow.message($0, room: room) }
  }

  static func withReactions(_ messages: [ChatMessage], _ connection: Connection) throws -> [ChatMessage] {
    try messages.map { message in
      var message = message
      let rows = try connection.rows(
        "SELECT emoji, user, name, avatar FROM reactions WHERE message = ? ORDER BY time, emoji, user",
        SQLValue(MessageRow.number(message.message.id))
      ) { ($0.text(0), Author(id: UserID($0.text(1)), name: $0.text(2), avatar: $0.optionalText(3))) }
      for (emoji, user) in rows {
        if let index = message.reactions.firstIndex(where: { $0.emoji == emoji }) {
          message.reactions[index].users.append(user)
        } else {
          message.reactions.append(ReactionSummary(emoji: emoji, users: [user]))
        }
      }
      return message
    }
  }
}
