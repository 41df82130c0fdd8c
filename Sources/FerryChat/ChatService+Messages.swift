package import FerryCore
import FerryRuntime
import FerryStorage

extension ChatService {
  /// Writes messages in one transaction, in order, all or none, and returns them in that order.
  ///
  /// A draft whose client id was used before in the room writes nothing and yields the first message, as it now reads.
  /// Makes the room on first use.
  package func post(_ drafts: [Draft], to room: ChannelID, by caller: Caller) async throws(FerryError) -> [Posted] {
    try limits.checkID(room.rawValue, "room")
    guard !drafts.isEmpty, drafts.count <= limits.batch else {
      throw FerryError(.badRequest, "Post between 1 and \(limits.batch) messages at once.")
    }
    let now = clock.now()
    var messages: [(message: Message, clientID: SendKey?)] = []
    messages.reserveCapacity(drafts.count)
    for draft in drafts { messages.append((try checked(draft, by: caller, at: now), draft.clientID)) }
    let ready = messages
    return try await database.write { [self] connection in
      let row = try Self.rowMakingRoom(room, at: now, connection)
      var posted: [Posted] = []
      var events: [LoggedEvent] = []
      for (message, clientID) in ready {
        let new = try insert(message, clientID: clientID, to: room, row: row, at: now, connection)
        posted.append(new.posted)
        if let event = new.event { events.append(event) }
      }
      publish(events, of: room, typingEnds: ready.map(\.message.author.id), connection)
      return posted
    }
  }

  package func post(_ draft: Draft, to room: ChannelID, by caller: Caller) async throws(FerryError) -> Posted {
    try await post([draft], to: room, by: caller)[0]
  }

  /// Changes a message of the caller's, or anybody's for a moderator. A change that changes nothing is no revision.
  package func edit(
    _ id: MessageID, in room: ChannelID, to change: Change, by caller: Caller
  ) async throws(FerryError) -> ChatMessage {
    if let text = change.text { try limits.checkText(text) }
    if let attachments = change.attachments { try limits.check(attachments) }
    try check(change.stamp, caller)
    let now = clock.now()
    return try await database.write { [self] connection in
      let row = try Self.existingRow(of: room, connection)
      var stored = try Self.liveMessage(id, in: room, row: row, connection)
      guard caller.mayChange(messageOf: stored.message.author.id) else { throw Self.notYours }
      if let seen = change.revision, seen != stored.message.revision {
        throw FerryError(.conflict, "The message is at revision \(stored.message.revision) by now. Read it again.")
      }
      let before = stored.message
      stored.message.text = change.text ?? before.text
      stored.message.format = change.format ?? before.format
      if let attachments = change.attachments {
        stored.message.attachments = try Self.known(attachments, connection)
      }
      guard stored.message.differsVisibly(from: before) else { return stored }
      stored.message.revision += 1
      stored.message.edited = now
      try connection.execute(
        "UPDATE messages SET text = ?, format = ?, extra = ?, revision = ?, edited = ? WHERE id = ?",
        .text(stored.message.text), .text(stored.message.format.rawValue), try MessageRow.extra(stored.message),
        SQLValue(stored.message.revision), .integer(now.milliseconds), SQLValue(MessageRow.number(id)))
      // The event is whoever edited it now; the stored message stays whoever posted it.
      var told = stored
      told.message.stamp = change.stamp
      try log(.edited(told.message), stored: told, of: room, row: row, at: now, connection)
      return stored
    }
  }

  /// Leaves a tombstone. Deleting a tombstone succeeds and does nothing.
  package func delete(
    _ id: MessageID, in room: ChannelID, by caller: Caller, as author: Author? = nil, stamp: Stamp? = nil
  ) async throws(FerryError) {
    try check(stamp, caller)
    if let author { try limits.check(author) }
    let named = author == nil && caller.user == nil ? nil : try caller.author(author)
    let now = clock.now()
    try await database.write { [self] connection in
      let row = try Self.existingRow(of: room, connection)
      let stored = try Self.message(id, in: room, row: row, connection)
      guard caller.mayChange(messageOf: stored.message.author.id) else { throw Self.notYours }
      if stored.deleted != nil { return }
      try connection.execute(
        "UPDATE messages SET text = '', extra = NULL, deleted = ? WHERE id = ?", .integer(now.milliseconds),
        SQLValue(MessageRow.number(id)))
      try connection.execute("DELETE FROM reactions WHERE message = ?", SQLValue(MessageRow.number(id)))
      let deletion = Deletion(id: id, by: named, stamp: stamp)
      try log(.deleted(deletion), of: room, row: row, at: now, connection)
    }
  }

  // MARK: Pieces

  private static let notYours = FerryError(
    .forbidden, "Only the message's author or a moderator may change or delete it.")

  private func checked(_ draft: Draft, by caller: Caller, at now: Timestamp) throws(FerryError) -> Message {
    try limits.check(draft)
    if draft.time != nil { try caller.checkMayActAsAnybody("time") }
    if draft.stamp != nil { try caller.checkMayActAsAnybody("stamp") }
    if let attributes = draft.attributes, try Wire.json(attributes).utf8.count > limits.extraBytes {
      throw FerryError(.tooLarge, "The attributes are longer than \(limits.extraBytes) bytes.")
    }
    return Message(
      id: "", author: try caller.author(draft.author), text: draft.text, format: draft.format,
      time: draft.time ?? now, attachments: draft.attachments, replyTo: draft.replyTo, mentions: draft.mentions,
      stamp: draft.stamp, attributes: draft.attributes)
  }

  private func insert(
    _ new: Message, clientID: SendKey?, to room: ChannelID, row: Int64, at now: Timestamp, _ connection: Connection
  ) throws -> (posted: Posted, event: LoggedEvent?) {
    if let clientID, let first = try Self.message(clientID: clientID, in: room, row: row, connection) {
      return (Posted(message: first, isRepeat: true), nil)
    }
    var message = new
    message.attachments = try Self.known(message.attachments, connection)
    let replyTo = try message.replyTo.map { try Self.number($0, inRoom: row, connection) }
    try connection.execute(
      """
      INSERT INTO messages(room, client_id, author, author_name, author_avatar, text, format, time, reply_to, extra, stamp)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """, .integer(row), SQLValue(clientID?.rawValue), .text(message.author.id.rawValue),
      .text(message.author.name), SQLValue(message.author.avatar), .text(message.text),
      .text(message.format.rawValue), .integer(message.time.milliseconds), SQLValue(replyTo),
      try MessageRow.extra(message), try MessageRow.stamp(message))
    message.id = MessageID(String(connection.lastInsertedID))
    let stored = ChatMessage(message: message, room: room, clientID: clientID)
    let event = try Self.append(.posted(message), stored: stored, to: room, row: row, at: now, connection)
    return (Posted(message: stored, isRepeat: false), event)
  }

  /// The number of a message that is replied to.
  private static func number(_ id: MessageID, inRoom row: Int64, _ connection: Connection) throws -> Int64 {
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
  private static func known(_ attachments: [Attachment], _ connection: Connection) throws -> [Attachment] {
    try attachments.map { attachment in
      guard case .provider(let sha256) = attachment.reference else { return attachment }
      guard let file = try file(sha256, connection) else {
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
  }
}
