import FerryCore
import FerryRuntime

/// Ferry's messages as the app's rows, messages and commands.
struct ChatWriter: Sendable {
  let fields: ChatFieldNames
  let messageClass: String

  /// The id of what is sent under `key`: the same on every retry, another in every channel. Looks like those that the
  /// service makes.
  static func objectID(_ key: SendKey, in channel: ChannelID) -> String {
    let text = "ferry\u{0}\(channel.rawValue)\u{0}\(key.rawValue)"
    let hex = Array(Crypto.hex(Crypto.digest(.sha256, of: text.utf8).prefix(16)).uppercased())
    var id = ""
    for (index, digit) in hex.enumerated() {
      if [8, 12, 16, 20].contains(index) { id.append("-") }
      id.append(digit)
    }
    return id
  }

  /// A message as a row that is not there yet.
  func row(_ message: OutgoingMessage, in channel: ChannelID, now: Timestamp) throws(FerryError) -> JSONValue {
    var row = try changes(message)
    let mark = mark(message)
    row[fields.ferry] = mark.isEmpty ? .null : .string(mark.text)
    row[fields.author[0]] = .string(message.author.name)
    row["objectId"] = .string(Self.objectID(message.key, in: channel))
    if let name = fields.channel { row[name] = .string(channel.rawValue) }
    row[fields.time] = .integer((message.time ?? now).milliseconds)
    return .object(row)
  }

  /// What an edit changes of a row: not its author. A person's edit leaves alone what Ferry noted, too, unless there is
  /// something to note.
  func changes(_ message: OutgoingMessage) throws(FerryError) -> [String: JSONValue] {
    let picture = try picture(of: message)
    var row: [String: JSONValue] = [fields.picture[0]: picture.map { .string($0) } ?? .null]
    // Apps that show pictures ask whether there is a text, an empty one included.
    row[fields.text[0]] = message.text.isEmpty && picture != nil ? .null : .string(message.text)
    if message.stamp != nil || picture != nil { row[fields.ferry] = .string(mark(message).text) }
    return row
  }

  /// A message that no row stands behind.
  func unsaved(_ message: OutgoingMessage, in channel: ChannelID) throws(FerryError) -> (JSONValue, FerryMark) {
    var content = try changes(message).filter { $0.value != .null }
    content[fields.author[0]] = .string(message.author.name)
    content[fields.ferry] = nil
    content["___class"] = .string(messageClass)
    content[fields.time] = message.time.map { .integer($0.milliseconds) }
    var mark = mark(message)
    mark.messageID = Self.objectID(message.key, in: channel)
    return (.object(content), mark)
  }

  /// A saved row as it is published: typed, as the app's clients expect it.
  func published(_ row: JSONValue) -> JSONValue {
    guard case .object(var members) = row else { return row }
    members["___class"] = .string(messageClass)
    return .object(members)
  }

  func mark(_ message: OutgoingMessage) -> FerryMark {
    var mark = FerryMark(stamp: message.stamp, by: message.author)
    mark.replyTo = message.replyTo?.rawValue
    mark.picture = message.attachments.first.map {
      FerryMark.Picture(
        name: $0.name, type: $0.mediaType, size: $0.size > 0 ? $0.size : nil,
        sha256: $0.sha256.isEmpty ? nil : $0.sha256)
    }
    return mark
  }

  private func picture(of message: OutgoingMessage) throws(FerryError) -> String? {
    guard message.attachments.count <= 1 else {
      throw FerryError(
        .unsupported, "A Backendless chat message has one picture at most; send the others by themselves.")
    }
    switch message.attachments.first?.reference {
    case .url(let url): return url
    case .provider(let url): return url
    case nil: return nil
    }
  }

  // MARK: Notices and commands

  func notice(_ text: String, _ kind: FerryMark.Notice, _ membership: Membership) -> (JSONValue, FerryMark) {
    var mark = FerryMark(stamp: membership.stamp, by: membership.member)
    mark.notice = kind
    let content: JSONValue = .object([
      "___class": .string(messageClass), fields.author[0]: .string(membership.member.name),
      fields.text[0]: .string(text),
    ])
    return (content, mark)
  }

  func typing(_ typing: Typing) -> JSONValue {
    .object([
      "user": .string(typing.by.name), "on": .bool(typing.on),
      FerryMark.name: FerryMark(stamp: typing.stamp, by: typing.by).value,
    ])
  }

  func read(_ mark: ReadMark) -> JSONValue {
    var data: [String: JSONValue] = [
      "objectId": .string(mark.upTo.rawValue), "state": .string(mark.state.rawValue),
      FerryMark.name: FerryMark(stamp: mark.stamp, by: mark.by).value,
    ]
    data["user"] = mark.by.map { .string($0.name) }
    return .object(data)
  }
}
