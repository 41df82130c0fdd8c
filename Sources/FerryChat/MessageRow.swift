import FerryCore
import FerryRuntime
import FerryStorage

/// A row of `messages` as a `ChatMessage` and back.
enum MessageRow {
  /// What most messages lack, in one column.
  struct Extra: Decodable {
    var attachments: [Wire.Attachment]?
    var mentions: [String]?
    var attributes: JSONValue?

    init?(_ attachments: [Attachment], _ mentions: [UserID], _ attributes: JSONValue?) {
      if attachments.isEmpty, mentions.isEmpty, attributes == nil { return nil }
      self.attachments = attachments.isEmpty ? nil : attachments.map(Wire.Attachment.init)
      self.mentions = mentions.isEmpty ? nil : mentions.map(\.rawValue)
      self.attributes = attributes
    }

    /// The same members as its `Encodable` writes.
    func json() throws(FerryError) -> String {
      var json = JSONWriter()
      json.begin()
      try json.member("attachments", encoding: attachments)
      try json.member("mentions", encoding: mentions)
      json.member("attributes", attributes)
      json.end()
      return json.text
    }
  }

  static let columns = """
    messages.id, client_id, author, author_name, author_avatar, text, format, time, revision, edited, deleted,
    reply_to, extra, stamp, position
    """

  /// The first 15 columns of the row are `columns`.
  static func message(_ row: Row, room: ChannelID) throws -> ChatMessage {
    var message = Message(
      id: MessageID(String(row.integer(0))),
      author: Author(id: UserID(row.text(2)), name: row.text(3), avatar: row.optionalText(4)), text: row.text(5),
      format: TextFormat(rawValue: row.text(6)) ?? .plain, time: Timestamp(milliseconds: row.integer(7)),
      revision: Int(row.integer(8)), edited: row.optionalInteger(9).map(Timestamp.init(milliseconds:)),
      replyTo: row.optionalInteger(11).map { MessageID(String($0)) })
    if let json = row.optionalText(12) {
      let extra = try Wire.value(Extra.self, from: json.utf8)
      message.attachments = try (extra.attachments ?? []).map { try $0.attachment() }
      message.mentions = (extra.mentions ?? []).map { UserID($0) }
      message.attributes = extra.attributes
    }
    if let json = row.optionalText(13) { message.stamp = try Wire.value(Stamp.self, from: json.utf8) }
    return ChatMessage(
      message: message, room: room, clientID: row.optionalText(1).map { SendKey($0) },
      deleted: row.optionalInteger(10).map(Timestamp.init(milliseconds:)), position: row.integer(14))
  }

  static func extra(_ message: Message) throws -> SQLValue {
    let extra = Extra(message.attachments, message.mentions, message.attributes)
    return SQLValue(try extra.map { try $0.json() })
  }

  static func stamp(_ message: Message) -> SQLValue {
    guard let stamp = message.stamp else { return .null }
    var json = JSONWriter(capacity: 128)
    json.value(stamp)
    return .text(json.text)
  }

  /// Ids are the rows' numbers, written in the one way this service writes them.
  static func number(_ id: MessageID) -> Int64? {
    guard let number = Int64(id.rawValue), String(number) == id.rawValue, number > 0 else { return nil }
    return number
  }

  static func noMessage(_ id: MessageID) -> FerryError {
    FerryError(.notFound, "There is no message \"\(id)\" in this room.")
  }
}
