import FerryCore
import FerryRuntime

/// The app's rows and published messages as Ferry's, of whatever shape the app gives them.
struct ChatReader: Sendable {
  let fields: ChatFieldNames
  let messageClass: String
  let joinNotice: String?
  let isOwnFile: @Sendable (String) -> Bool

  enum Reading: Hashable, Sendable {
    case message(Said)
    /// Somebody says that they have come or gone. `id` names this one notice.
    case notice(FerryMark.Notice, Membership, id: String, time: Timestamp)
  }

  /// A message, and what is known of the row that it is.
  struct Said: Hashable, Sendable {
    var message: Message
    /// When the service says that the row was created and last changed; nil where there is no row.
    var created: Int64?
    var updated: Int64?

    var isRow: Bool { created != nil }
  }

  // MARK: What is published

  /// A frame of either receive path. Nil for what is nobody's chat.
  func published(_ frame: JSONValue, now: Timestamp) -> Reading? {
    let content = frame["message"] ?? frame["data"] ?? .null
    guard let messageID = frame["messageId"]?.text, isID(messageID) else { return nil }
    let time = Self.time(frame["timestamp"] ?? frame["publishedAt"]) ?? now
    let header = FerryMark(frame["headers"]?[FerryMark.name])
    let publisher = frame["publisherId"]?.text.flatMap { $0.isEmpty ? nil : $0 }
    switch content {
    case .object: return read(content, header: header, messageID: messageID, publisher: publisher, time: time)
    case .string, .integer, .number:
      guard let text = content.text else { return nil }
      let bare: JSONValue = .object([fields.text[0]: .string(text)])
      return read(bare, header: header, messageID: messageID, publisher: publisher, time: time)
    case .null, .bool, .array: return nil
    }
  }

  // MARK: Rows

  /// A row of the chat table. Nil for what is no message.
  func row(_ row: JSONValue) -> Reading? {
    guard let created = row["created"]?.integer, row["objectId"]?.text != nil else { return nil }
    return read(row, header: nil, messageID: nil, publisher: nil, time: Timestamp(milliseconds: created))
  }

  /// The channel that a row names; nil where it names none.
  func channel(of row: JSONValue) -> ChannelID? {
    fields.channel.flatMap { row[$0]?.text }.flatMap { $0.isEmpty ? nil : ChannelID($0) }
  }

  // MARK: Both

  private func read(
    _ content: JSONValue, header: FerryMark?, messageID: String?, publisher: String?, time: Timestamp
  ) -> Reading? {
    if let name = content["___class"]?.string, name != messageClass { return nil }
    let mark = header ?? FerryMark(content[fields.ferry])
    let objectID = content["objectId"]?.text.flatMap { isID($0) ? $0 : nil }
    guard let id = objectID ?? mark?.messageID.flatMap({ isID($0) ? $0 : nil }) ?? messageID else { return nil }
    let text = first(fields.text, in: content)
    let picture = first(fields.picture, in: content).flatMap { Self.isLink($0) ? $0 : nil }
    guard text != nil || picture != nil else { return nil }
    let author = author(of: content, mark, publisher)
    // Rows without a time of their own have the service's, in whole seconds.
    let created = objectID == nil ? nil : content["created"]?.integer
    let shown = Self.time(content[fields.time]) ?? created.flatMap { Self.time(.integer($0)) } ?? time
    let exact = mark?.time.flatMap { Self.time(.integer($0)) }
    // Never far from the row's own, which an app may have changed.
    let time = exact.flatMap { abs($0.milliseconds - shown.milliseconds) < 120_000 ? $0 : nil } ?? shown
    if picture == nil, let notice = notice(text, mark) {
      return .notice(notice, Membership(member: author, stamp: mark?.stamp), id: id, time: time)
    }
    var message = Message(id: MessageID(id), author: author, text: text ?? "", time: time)
    message.stamp = mark?.stamp
    message.replyTo = mark?.replyTo.map { MessageID($0) }
    message.attachments = picture.map { [attachment($0, mark)] } ?? []
    message.attributes = attributes(of: content, mark)
    let updated = created == nil ? nil : content["updated"]?.integer
    if let edit = mark?.edited, edit.isOf(message.text) {
      message.edited = Self.time(.integer(edit.time))
      message.revision = message.edited == nil ? 0 : Int(clamping: edit.time)
    } else if let updated, let edited = Self.time(.integer(updated)) {
      message.edited = edited
      message.revision = Int(clamping: updated)
    }
    return .message(Said(message: message, created: created, updated: updated))
  }

  /// The app's notice of coming is known by its text. That of going only by Ferry's mark: people do write "left". What
  /// the relay copied is a message whatever it says, unless the mark says otherwise.
  private func notice(_ text: String?, _ mark: FerryMark?) -> FerryMark.Notice? {
    if let notice = mark?.notice { return notice }
    return mark?.stamp == nil && joinNotice != nil && text == joinNotice ? .joined : nil
  }

  private func author(of content: JSONValue, _ mark: FerryMark?, _ publisher: String?) -> Author {
    let name = first(fields.author, in: content).flatMap { $0.isEmpty ? nil : $0 } ?? publisher ?? "unknown"
    return Author(id: UserID(mark?.senderID ?? name), name: name)
  }

  private func attachment(_ url: String, _ mark: FerryMark?) -> Attachment {
    Attachment(
      name: mark?.picture?.name ?? PictureName.name(ofURL: url),
      mediaType: mark?.picture?.type ?? PictureName.mediaType(ofURL: url), size: mark?.picture?.size,
      sha256: mark?.picture?.sha256, reference: isOwnFile(url) ? .provider(url) : .url(url))
  }

  /// What the app says beyond what Ferry understands. Anybody may publish, so what is nested too deep for the
  /// journal is left out: an event that can never be stored would hold up all others for ever.
  private func attributes(of content: JSONValue, _ mark: FerryMark?) -> JSONValue? {
    guard case .object(var members) = content else { return nil }
    for name in fields.author + fields.text + fields.picture { members[name] = nil }
    for name in [fields.channel, fields.time, fields.ferry, "objectId", "updated", "___class", "__meta"] {
      if let name { members[name] = nil }
    }
    members = members.filter { $0.value != .null && $0.value.depth < JSONValue.deepest }
    if mark?.isAction == true { members["action"] = true }
    if let system = mark?.system { members["system"] = .string(system) }
    return members.isEmpty ? nil : .object(members)
  }

  // MARK: Values

  /// Longer than any id, and no more than what a stamp may carry to other services.
  private static let longestID = 512

  private func isID(_ text: String) -> Bool { !text.isEmpty && text.utf8.count <= Self.longestID }

  /// The first of the aliases under which there is a text or a number.
  private func first(_ aliases: [String], in content: JSONValue) -> String? {
    aliases.lazy.compactMap { content[$0]?.text }.first
  }

  private static func isLink(_ text: String) -> Bool { text.hasPrefix("https://") || text.hasPrefix("http://") }

  /// Milliseconds since 1970. Nil for what is no time at which anybody wrote a message.
  static func time(_ value: JSONValue?) -> Timestamp? {
    let number: Int64? =
      switch value {
      case .integer(let number): number
      case .number(let number): Int64(exactly: number.rounded())
      case .string(let text): Int64(text)
      default: nil
      }
    guard let number, (1...253_402_300_799_999).contains(number) else { return nil }
    return Timestamp(milliseconds: number)
  }
}
