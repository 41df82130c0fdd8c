import FerryCore
import FerryRuntime

/// Ferry's messages and events as the data of the app's events.
struct EventWriter: Sendable {
  let fields: FieldNames

  /// A message, new or as it now reads.
  func message(_ message: OutgoingMessage, id: MessageID) throws(FerryError) -> String {
    var ferry = FerryField(stamp: message.stamp, key: message.key)
    ferry.senderID = message.author.id.rawValue == message.author.name ? nil : message.author.id.rawValue
    var images: [FerryField.Image] = []
    for attachment in message.attachments {
      guard case .url(let url) = attachment.reference else {
        throw FerryError(.unsupported, "Pusher has no files: an attachment has to be a link.")
      }
      images.append(
        FerryField.Image(
          name: attachment.name, type: attachment.mediaType, size: attachment.size, sha256: attachment.sha256, url: url)
      )
    }
    var data = base(id: id, ferry)
    data[fields.sender[0]] = .string(message.author.name)
    data[fields.text[0]] = .string(message.text)
    data[fields.time[0]] = message.time.map { .string($0.iso8601) }
    data["reply_to"] = message.replyTo.map { .string($0.rawValue) }
    if let first = images.first {
      data[fields.image[0]] = .string(first.url)
      if images.count > 1 { data["images"] = .array(images.map { .string($0.url) }) }
      ferry.images = images
      data[FerryField.name] = Self.value(of: ferry)
    }
    return try Self.fitted(data)
  }

  func deletion(_ id: MessageID, by author: Author?, _ stamp: Stamp?) throws(FerryError) -> String {
    var data = base(id: id, FerryField(stamp: stamp))
    if let author { data[fields.sender[0]] = .string(author.name) }
    return try Self.fitted(data)
  }

  /// The text is what the simplest clients show.
  func typing(_ typing: Typing) throws(FerryError) -> String {
    var ferry = FerryField(stamp: typing.stamp)
    ferry.senderID = typing.by.id.rawValue
    var data: [String: JSONValue] = [FerryField.name: Self.value(of: ferry), "typing": .bool(typing.on)]
    data[fields.sender[0]] = .string(typing.by.name)
    if typing.on { data[fields.text[0]] = .string("\(typing.by.name) is typing...") }
    return try Self.fitted(data)
  }

  func mark(_ mark: ReadMark) throws(FerryError) -> String {
    var data = base(id: mark.upTo, FerryField(stamp: mark.stamp))
    if let reader = mark.by { data[fields.sender[0]] = .string(reader.name) }
    return try Self.fitted(data)
  }

  func reaction(_ reaction: Reaction) throws(FerryError) -> String {
    var data = base(id: reaction.message, FerryField(stamp: reaction.stamp))
    data[fields.sender[0]] = .string(reaction.by.name)
    data["emoji"] = .string(reaction.emoji)
    data["added"] = .bool(reaction.added)
    return try Self.fitted(data)
  }

  func membership(_ membership: Membership) throws(FerryError) -> String {
    var ferry = FerryField(stamp: membership.stamp)
    ferry.senderID = membership.member.id.rawValue
    let data: [String: JSONValue] = [
      FerryField.name: Self.value(of: ferry), fields.sender[0]: .string(membership.member.name),
    ]
    return try Self.fitted(data)
  }

  private func base(id: MessageID, _ ferry: FerryField) -> [String: JSONValue] {
    [fields.id[0]: .string(id.rawValue), FerryField.name: Self.value(of: ferry)]
  }

  private static func value(of ferry: FerryField) -> JSONValue {
    var value: [String: JSONValue] = [:]
    value["bridge"] = ferry.bridge.map(JSONValue.string)
    value["origin"] = ferry.origin.map(JSONValue.string)
    value["id"] = ferry.id.map(JSONValue.string)
    value["revision"] = ferry.revision.map { .integer(Int64($0)) }
    value["part"] = ferry.part.map { .integer(Int64($0)) }
    value["key"] = ferry.key.map(JSONValue.string)
    value["sender_id"] = ferry.senderID.map(JSONValue.string)
    value["images"] = ferry.images.map { images in
      .array(
        images.map { image in
          var value: [String: JSONValue] = ["name": .string(image.name), "type": .string(image.type)]
          value["url"] = .string(image.url)
          value["size"] = image.size.map(JSONValue.integer)
          value["sha256"] = image.sha256.map(JSONValue.string)
          return .object(value)
        })
    }
    return .object(value)
  }

  private static func fitted(_ data: [String: JSONValue]) throws(FerryError) -> String {
    let text = JSONText.text(of: JSONValue.object(data))
    guard text.utf8.count <= Limits.dataBytes else {
      throw FerryError(
        .tooLarge,
        "The event is \(text.utf8.count) bytes with names and links, and Pusher takes \(Limits.dataBytes). Shorten it.")
    }
    return text
  }
}
