package import FerryCore
import FerryStorage

extension ChatTransaction {
  /// As `ChatService.post`.
  package func post(_ drafts: [Draft], to room: ChannelID, by caller: Caller) throws -> [Posted] {
    try post(try chat.checked(drafts, to: room, by: caller, at: now), to: room)
  }

  package func post(_ draft: Draft, to room: ChannelID, by caller: Caller) throws -> Posted {
    try post([draft], to: room, by: caller)[0]
  }

  func post(_ ready: [ChatService.Checked], to room: ChannelID) throws -> [Posted] {
    let row = try ChatService.rowMakingRoom(room, at: now, connection)
    var posted: [Posted] = []
    var events: [LoggedEvent] = []
    for new in ready {
      let (message, event) = try insert(new.message, clientID: new.clientID, to: room, row: row)
      posted.append(message)
      if let event { events.append(event) }
    }
    publish(events, of: room, typingEnds: ready.map(\.message.author.id))
    return posted
  }

  /// As `ChatService.edit`.
  @discardableResult
  package func edit(_ id: MessageID, in room: ChannelID, to change: Change, by caller: Caller) throws -> ChatMessage {
    try check(change, caller)
    let row = try ChatService.existingRow(of: room, connection)
    var stored = try ChatService.liveMessage(id, in: room, row: row, connection)
    guard caller.mayChange(messageOf: stored.message.author.id) else { throw ChatService.notYours }
    if let seen = change.revision, seen != stored.message.revision {
      throw FerryError(.conflict, "The message is at revision \(stored.message.revision) by now. Read it again.")
    }
    let before = stored.message
    stored.message.text = change.text ?? before.text
    stored.message.format = change.format ?? before.format
    stored.message.author = change.author ?? before.author
    stored.message.time = change.time ?? before.time
    stored.message.attributes = change.attributes ?? before.attributes
    if let attachments = change.attachments { stored.message.attachments = try known(attachments) }
    guard stored.message.differsVisibly(from: before) else { return stored }
    stored.message.revision += 1
    stored.message.edited = now
    try connection.execute(
      """
      UPDATE messages
      SET author = ?, author_name = ?, author_avatar = ?, text = ?, format = ?, time = ?, extra = ?, revision = ?, edited = ?
      WHERE id = ?
      """, .text(stored.message.author.id.rawValue), .text(stored.message.author.name),
      SQLValue(stored.message.author.avatar), .text(stored.message.text), .text(stored.message.format.rawValue),
      .integer(stored.message.time.milliseconds), try MessageRow.extra(stored.message),
      SQLValue(stored.message.revision), .integer(now.milliseconds), SQLValue(MessageRow.number(id)))
    try skipPosition(inRoom: row)
    // The event is whoever edited it now; the stored message stays whoever posted it.
    var told = stored
    told.message.stamp = change.stamp
    try log(.edited(told.message), stored: told, of: room, row: row)
    return stored
  }

  /// As `ChatService.delete`.
  package func delete(
    _ id: MessageID, in room: ChannelID, by caller: Caller, as author: Author? = nil, stamp: Stamp? = nil
  ) throws {
    try chat.check(stamp, caller)
    if let author { try limits.check(author) }
    let named = author == nil && caller.user == nil ? nil : try caller.author(author)
    let row = try ChatService.existingRow(of: room, connection)
    let stored = try ChatService.message(id, in: room, row: row, connection)
    guard caller.mayChange(messageOf: stored.message.author.id) else { throw ChatService.notYours }
    if stored.deleted != nil { return }
    try connection.execute(
      "UPDATE messages SET text = '', extra = NULL, deleted = ? WHERE id = ?", .integer(now.milliseconds),
      SQLValue(MessageRow.number(id)))
    try connection.execute("DELETE FROM reactions WHERE message = ?", SQLValue(MessageRow.number(id)))
    try skipPosition(inRoom: row)
    try log(.deleted(Deletion(id: id, by: named, stamp: stamp)), before: stored, of: room, row: row)
  }

  // MARK: Reading

  /// One message, deleted or not, or nil when the room or the message does not exist.
  package func message(_ id: MessageID, in room: ChannelID) throws -> ChatMessage? {
    guard let row = try ChatService.row(of: room, connection), let number = MessageRow.number(id) else { return nil }
    return try connection.first(
      "SELECT \(MessageRow.columns) FROM messages WHERE messages.id = ? AND room = ?", .integer(number), .integer(row)
    ) { try MessageRow.message($0, room: room) }
  }

  /// The room of a message, deleted or not; nil when there is no such message.
  package func room(ofMessage id: MessageID) throws -> ChannelID? {
    guard let number = MessageRow.number(id) else { return nil }
    return try connection.first(
      "SELECT rooms.name FROM messages JOIN rooms ON rooms.id = messages.room WHERE messages.id = ?", .integer(number)
    ) { ChannelID($0.text(0)) }
  }

  /// Messages that are not deleted, in the order asked for; none when the room does not exist. `after` and `before` are
  /// ids and exclusive.
  package func liveMessages(
    in room: ChannelID, order: HistoryOrder, after: MessageID? = nil, before: MessageID? = nil, limit: Int
  ) throws -> [ChatMessage] {
    guard let row = try ChatService.row(of: room, connection) else { return [] }
    let direction = order == .oldestFirst ? "ASC" : "DESC"
    return try connection.rows(
      """
      SELECT \(MessageRow.columns) FROM messages
      WHERE room = ? AND messages.id > ? AND messages.id < ? AND deleted IS NULL
      ORDER BY messages.id \(direction) LIMIT ?
      """, .integer(row), .integer(after.flatMap(MessageRow.number) ?? 0),
      .integer(before.flatMap(MessageRow.number) ?? .max), SQLValue(max(limit, 0))
    ) { try MessageRow.message($0, room: room) }
  }

  /// The last message whose position is not beyond one; nil when there is none.
  package func message(atOrBefore position: Int64, in room: ChannelID) throws -> ChatMessage? {
    guard let row = try ChatService.row(of: room, connection) else { return nil }
    return try connection.first(
      """
      SELECT \(MessageRow.columns) FROM messages WHERE room = ? AND position <= ?
      ORDER BY messages.id DESC LIMIT 1
      """, .integer(row), .integer(position)
    ) { try MessageRow.message($0, room: room) }
  }

  /// How many messages that are not deleted come after a position.
  package func countMessages(after position: Int64, in room: ChannelID) throws -> Int {
    guard let row = try ChatService.row(of: room, connection) else { return 0 }
    let last = try message(atOrBefore: position, in: room).flatMap { MessageRow.number($0.message.id) } ?? 0
    return try connection.first(
      "SELECT COUNT(*) FROM messages WHERE room = ? AND id > ? AND deleted IS NULL", .integer(row), .integer(last)
    ) { Int($0.integer(0)) } ?? 0
  }

  // MARK: Pieces

  /// A message with a revision is written as it reads by then.
  func insert(
    _ new: Message, clientID: SendKey?, to room: ChannelID, row: Int64
  ) throws -> (posted: Posted, event: LoggedEvent?) {
    if let clientID, let first = try ChatService.message(clientID: clientID, in: room, row: row, connection) {
      return (Posted(message: first, isRepeat: true), nil)
    }
    var message = new
    message.attachments = try known(message.attachments)
    let replyTo = try message.replyTo.map { try number($0, inRoom: row) }
    let position = try nextPosition(inRoom: row)
    try connection.execute(
      """
      INSERT INTO messages(
        room, client_id, author, author_name, author_avatar, text, format, time, reply_to, extra, stamp, position,
        revision, edited)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """, .integer(row), SQLValue(clientID?.rawValue), .text(message.author.id.rawValue),
      .text(message.author.name), SQLValue(message.author.avatar), .text(message.text),
      .text(message.format.rawValue), .integer(message.time.milliseconds), SQLValue(replyTo),
      try MessageRow.extra(message), MessageRow.stamp(message), .integer(position), SQLValue(message.revision),
      SQLValue(message.edited?.milliseconds))
    message.id = MessageID(String(connection.lastInsertedID))
    let stored = ChatMessage(message: message, room: room, clientID: clientID, position: position)
    let event = try append(.posted(message), stored: stored, to: room, row: row)
    return (Posted(message: stored, isRepeat: false), event)
  }

  /// The position of the next message of a room.
  func nextPosition(inRoom row: Int64) throws -> Int64 {
    try connection.first(
      "SELECT position + skips + 1 FROM messages WHERE room = ? ORDER BY id DESC LIMIT 1", .integer(row)
    ) { $0.integer(0) } ?? 0
  }

  /// Counts an edit or a deletion: the next message's position leaves out a number.
  private func skipPosition(inRoom row: Int64) throws {
    try connection.execute(
      """
      UPDATE messages SET skips = skips + 1
      WHERE id = (SELECT id FROM messages WHERE room = ? ORDER BY id DESC LIMIT 1)
      """, .integer(row))
  }

  private func check(_ change: Change, _ caller: Caller) throws(FerryError) {
    if let text = change.text { try limits.checkText(text) }
    if let attachments = change.attachments { try limits.check(attachments) }
    if let attributes = change.attributes { try chat.check(attributes) }
    if let author = change.author {
      try caller.checkMayActAsAnybody("author")
      try limits.check(author)
    }
    if change.time != nil { try caller.checkMayActAsAnybody("time") }
    try chat.check(change.stamp, caller)
  }

  /// The number of a message that is replied to.
  private func number(_ id: MessageID, inRoom row: Int64) throws -> Int64 {
    let number = MessageRow.number(id)
    let known = try connection.first(
      "SELECT 1 FROM messages WHERE id = ? AND room = ?", SQLValue(number), .integer(row)
    ) { _ in true }
    guard let number, known == true else {
      throw FerryError(.badRequest, "The message replied to is not in this room.")
    }
    return number
  }

  /// Attachments with what is known of stored files in place of what was claimed.
  private func known(_ attachments: [Attachment]) throws -> [Attachment] {
    try attachments.map { attachment in
      guard case .provider(let sha256) = attachment.reference else { return attachment }
      guard let file = try ChatService.file(sha256, connection) else {
        throw FerryError(.badRequest, "The file \(sha256) is not here. Upload it first.")
      }
      var known = attachment
      known.mediaType = file.mediaType
      known.size = file.size
      known.sha256 = sha256
      known.pixels = file.pixels
      return known
    }
  }
}

extension Message {
  /// Whether a reader would see a difference. Byte by byte: two spellings of one letter differ.
  fileprivate func differsVisibly(from other: Message) -> Bool {
    !text.utf8.elementsEqual(other.text.utf8) || format != other.format || attachments != other.attachments
      || !author.id.rawValue.utf8.elementsEqual(other.author.id.rawValue.utf8) || author != other.author
      || time != other.time || attributes != other.attributes
  }
}
