import FerryChat
import FerryCore

/// How rows of the chat table, published messages and messages of the chat are one and the same.
///
/// A message is known by the row's `objectId`, which is its client id in the room. So a row that is saved and then
/// published is one message, whichever came first, however often either is repeated. What becomes of the row becomes of
/// the message, in the same transaction, and the other way round.
struct ChatRows: Sendable {
  let fields: ChatFields
  let appID: String

  /// Rows of a message, by the message's id.
  private static let linked = "linked"

  struct Content {
    let text: String
    let author: Author
    let attachments: [Attachment]
  }

  // MARK: Rows

  /// A row of the chat table was made or changed: so is its message. Writes into the row where its message is.
  func saved(_ row: inout Row, _ transaction: ChatTransaction) throws {
    let content = try content(of: row.values, user: owner(of: row), transaction)
    if let place = row.place {
      let room = channel(of: row) ?? place.room
      if room == place.room { return try edit(place, as: row, to: content, transaction) }
      // Into another channel it moves as a new message.
      try deleted(row, transaction)
      row.place = nil
    }
    guard let room = channel(of: row), let content else { return }
    let mark = FerryMark(row.values[FerryMark.name])
    switch notice(content, mark) {
    case .joined: return try came(content.author, to: room, mark?.stamp, transaction)
    case .left: return try went(content.author, from: room, mark?.stamp, transaction)
    case nil: break
    }
    try link(&row, to: try post(content, as: row.id, to: room, transaction), transaction)
  }

  func deleted(_ row: Row, _ transaction: ChatTransaction) throws {
    guard let place = row.place else { return }
    let (id, room) = (MessageID(place.message), ChannelID(place.room))
    let rows = try linked(place, transaction)
    let others = rows.filter { $0 != row.id }
    guard let message = try transaction.message(id, in: room), message.deleted == nil, !others.isEmpty else {
      try transaction.remove(place.message, from: Self.linked)
      guard try transaction.message(id, in: room) != nil else { return }
      return try transaction.delete(id, in: room, by: .owner)
    }
    // One part of a message that has several: the text, or one of the files.
    var change = Change()
    if isText(row) {
      change.text = ""
    } else {
      let files =
        try rows.first.flatMap { try self.row($0, transaction) }.map(isText) == true ? rows.dropFirst() : rows[...]
      var attachments = message.message.attachments
      if let index = files.firstIndex(of: row.id).map({ $0 - files.startIndex }), index < attachments.count {
        attachments.remove(at: index)
      }
      change.attachments = attachments
    }
    try transaction.put(others, as: place.message, in: Self.linked)
    try transaction.edit(id, in: room, to: change, by: .owner)
  }

  private func edit(
    _ place: Row.Place, as row: Row, to content: Content?, _ transaction: ChatTransaction
  ) throws {
    let (id, room) = (MessageID(place.message), ChannelID(place.room))
    guard let message = try transaction.message(id, in: room), message.deleted == nil else { return }
    let rows = try linked(place, transaction)
    // Of a message that has several parts, the first row has the text; the others' files stay what they are.
    guard rows.count <= 1 || (rows.first == row.id && isText(row)) else { return }
    let attachments = rows.count <= 1 ? content?.attachments ?? [] : nil
    try transaction.edit(id, in: room, to: Change(text: content?.text ?? "", attachments: attachments), by: .owner)
  }

  private func linked(_ place: Row.Place, _ transaction: ChatTransaction) throws -> [String] {
    try transaction.value([String].self, of: place.message, in: Self.linked) ?? []
  }

  private func row(_ id: String, _ transaction: ChatTransaction) throws -> Row? {
    try transaction.value(Row.self, of: id, in: TableWriter.collection(fields.table))
  }

  private func isText(_ row: Row) -> Bool { fields.text.contains { row.values[$0]?.string?.isEmpty == false } }

  private func link(_ row: inout Row, to message: ChatMessage, _ transaction: ChatTransaction) throws {
    row.place = Row.Place(room: message.room.rawValue, message: message.message.id.rawValue)
    try transaction.put([row.id], as: message.message.id.rawValue, in: Self.linked)
  }

  // MARK: Published messages

  /// A message was published: it is a message of the room if it reads like one, and no other message than that of the
  /// row that it is.
  func published(_ publication: Publication, _ transaction: ChatTransaction) throws {
    let members: [String: JSONValue]
    switch publication.message {
    case .string(let text): members = [fields.text.first ?? "text": .string(text)]
    case .object(let object): members = object
    default: return
    }
    guard
      let content = try content(of: members, user: publication.user, publisher: publication.publisherID, transaction)
    else { return }
    let mark = FerryMark(publication.headers[FerryMark.name].map(JSONValue.string))
    switch notice(content, mark) {
    case .joined: return try came(content.author, to: publication.channel, mark?.stamp, transaction)
    case .left: return try went(content.author, from: publication.channel, mark?.stamp, transaction)
    case nil: break
    }
    let id = (try? Row.id(in: members)) ?? nil
    let collection = TableWriter.collection(fields.table)
    if let id, var row = try transaction.value(Row.self, of: id, in: collection) {
      if row.place?.room == publication.channel { return }
      let message = try post(content, as: id, to: publication.channel, transaction)
      guard row.place == nil else { return }
      try link(&row, to: message, transaction)
      try transaction.put(row, as: id, in: collection)
    } else {
      _ = try post(content, as: id ?? publication.id, to: publication.channel, transaction)
    }
  }

  private func post(
    _ content: Content, as id: String, to room: String, _ transaction: ChatTransaction
  ) throws -> ChatMessage {
    let draft = Draft(
      clientID: SendKey(id), author: content.author, text: content.text, attachments: content.attachments)
    return try transaction.post(draft, to: ChannelID(room), by: .owner).message
  }

  // MARK: Notices

  /// Apps say so with an ordinary message, which is none of the chat's. A copy of somebody's message is none of these,
  /// whatever it says.
  private func notice(_ content: Content, _ mark: FerryMark?) -> FerryMark.Notice? {
    if let notice = mark?.notice { return notice }
    guard mark?.stamp == nil, content.attachments.isEmpty, fields.joinNotice != nil else { return nil }
    return content.text == fields.joinNotice ? .joined : nil
  }

  private func notice(
    _ text: String, _ kind: FerryMark.Notice, _ membership: Membership, _ room: ChannelID
  ) -> Publication {
    var mark = FerryMark(stamp: membership.stamp, by: membership.member)
    mark.notice = kind
    let message: JSONValue = .object([
      "___class": .string(fields.table), fields.sender.first ?? "userName": .string(membership.member.name),
      fields.text.first ?? "messageText": .string(text),
    ])
    return Publication(
      id: Publication.newID(), channel: room.rawValue, message: message, publisherID: membership.member.name,
      headers: [FerryMark.name: mark.text])
  }

  private func came(_ member: Author, to room: String, _ stamp: Stamp?, _ transaction: ChatTransaction) throws {
    try transaction.join(member, ChannelID(room), by: .owner, stamp: stamp)
  }

  private func went(_ member: Author, from room: String, _ stamp: Stamp?, _ transaction: ChatTransaction) throws {
    do { try transaction.leave(member.id, ChannelID(room), by: .owner, stamp: stamp) } catch let error as FerryError
      where error.code == .notFound
    {
      return
    }
  }

  // MARK: Messages of the chat

  /// The rows that a message written elsewhere becomes: the clients of this service show a text or a picture, so each
  /// has a row of its own.
  func rows(for message: ChatMessage, _ transaction: ChatTransaction) throws -> [(
    columns: [String: JSONValue], picture: Publication.Picture?
  )] {
    var common: [String: JSONValue] = [:]
    common[fields.channel.first ?? "channel"] = .string(message.room.rawValue)
    common[fields.sender.first ?? "userName"] = .string(message.message.author.name)
    var rows: [(columns: [String: JSONValue], picture: Publication.Picture?)] = []
    let attachments = message.message.attachments
    if !message.message.text.isEmpty || attachments.isEmpty {
      var columns = common
      columns[fields.text.first ?? "messageText"] = .string(message.message.text)
      rows.append((columns, nil))
    }
    let field = fields.image.first ?? "pictureUrl"
    for attachment in attachments {
      var columns = common
      switch attachment.reference {
      case .url(let url):
        columns[field] = .string(url)
        rows.append((columns, nil))
      case .provider(let sha256):
        let path = try FileTree.keepPicture(attachment, sha256: sha256, transaction)
        rows.append((columns, Publication.Picture(field: field, path: path)))
      }
    }
    return rows
  }

  /// Something happened in the chat that did not come from here.
  func observed(_ event: ObservedEvent, _ writer: TableWriter) throws -> [Publication] {
    let transaction = writer.transaction
    switch event.event.kind {
    case .posted:
      guard let message = event.stored else { return [] }
      return try posted(message, writer)
    case .edited:
      guard let message = event.stored?.message, let row = try linkedRows(of: message.id, writer).first else {
        return []
      }
      let text = fields.text.first { row.values[$0] != nil } ?? fields.text.first ?? "messageText"
      guard row.values[text]?.string ?? "" != message.text else { return [] }
      _ = try writer.update(row, with: [text: .string(message.text)], in: fields.table, tellsChat: false)
    case .deleted(let deletion):
      for row in try linkedRows(of: deletion.id, writer) {
        try writer.delete(row, from: fields.table, tellsChat: false)
      }
      try transaction.remove(deletion.id.rawValue, from: Self.linked)
    case .joined(let membership):
      return fields.joinNotice.map { [notice($0, .joined, membership, event.event.channel)] } ?? []
    case .left(let membership):
      return fields.joinNotice == nil ? [] : [notice("left", .left, membership, event.event.channel)]
    case .read, .reacted: break
    }
    return []
  }

  private func posted(_ message: ChatMessage, _ writer: TableWriter) throws -> [Publication] {
    let transaction = writer.transaction
    var publications: [Publication] = []
    var ids: [String] = []
    let place = Row.Place(room: message.room.rawValue, message: message.message.id.rawValue)
    for (columns, picture) in try rows(for: message, transaction) {
      let row = try writer.create(columns, in: fields.table, owner: nil, picture: picture, place: place)
      ids.append(row.id)
      var shown = row.values
      shown["___class"] = .string(fields.table)
      publications.append(
        Publication(
          id: Publication.newID(), channel: message.room.rawValue, message: .object(shown),
          publisherID: message.message.author.name, picture: picture))
    }
    try transaction.put(ids, as: message.message.id.rawValue, in: Self.linked)
    return publications
  }

  private func linkedRows(of message: MessageID, _ writer: TableWriter) throws -> [Row] {
    let ids = try writer.transaction.value([String].self, of: message.rawValue, in: Self.linked) ?? []
    return try ids.compactMap { try writer.row($0, in: fields.table) }
  }

  // MARK: Reading members

  private func channel(of row: Row) -> String? {
    fields.channel.lazy.compactMap { row.values[$0]?.string }.first.flatMap { ChannelName.isValid($0) ? $0 : nil }
  }

  private func owner(of row: Row) -> UserReference? {
    row.values["ownerId"]?.string.map { UserReference(id: $0, name: "") }
  }

  /// Nil when there is neither a text nor a picture.
  private func content(
    of members: [String: JSONValue], user: UserReference?, publisher: String? = nil, _ transaction: ChatTransaction
  ) throws -> Content? {
    func first(_ names: [String]) -> String? {
      names.lazy.compactMap { members[$0]?.string }.first { !$0.isEmpty }
    }
    let text = first(fields.text) ?? ""
    let attachment = try first(fields.image).flatMap { try FileTree.attachment($0, appID: appID, transaction) }
    guard !text.isEmpty || attachment != nil else { return nil }
    let author = Self.author(
      user: user, name: first(fields.sender) ?? publisher ?? user?.name, otherwise: "anonymous")
    return Content(text: text, author: author, attachments: attachment.map { [$0] } ?? [])
  }

  /// Fit for the chat, whatever was sent.
  static func author(user: UserReference?, name: String?, otherwise: String) -> Author {
    let name = name.map { clean($0) }.flatMap { $0.isEmpty ? nil : $0 }
    let id = user?.id ?? name ?? otherwise
    return Author(id: UserID(clean(id)), name: name ?? clean(otherwise))
  }

  /// Without control characters, and as long as names may be.
  private static func clean(_ text: String) -> String {
    var clean = ""
    var bytes = 0
    for scalar in text.unicodeScalars where scalar.value >= 0x20 && scalar.value != 0x7f {
      bytes += UTF8.width(scalar)
      if bytes > 256 { break }
      clean.unicodeScalars.append(scalar)
    }
    return clean
  }
}
