import FerryCore
import FerryRuntime

/// Ferry's messages and events as the data of the app's events on one channel.
struct EventWriter: Sendable {
  let profile: Profile
  let channel: String
  /// Who Ferry is at the service, for apps that know their users.
  var user: AccountUser?
  /// How long the data may be, in bytes.
  var limit = Limits.dataBytes

  var fields: FieldNames { profile.fields }

  // MARK: Messages

  /// A message, new or as it now reads. `now` is its time where it has none of its own and the app needs one.
  ///
  /// Links that do not fit go without their description, then not at all, and the text says how many.
  func message(_ message: OutgoingMessage, id: MessageID, now: Timestamp) throws(FerryError) -> String {
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
    var text = JSON.text(of: data(message, id, images, now: now))
    if text.utf8.count > limit, !images.isEmpty {
      text = JSON.text(of: data(message, id, images, areDescribed: false, now: now))
      if text.utf8.count > limit { text = fewerImages(message, id, images, now: now) }
    }
    return try fitted(text)
  }

  /// With as many of the images as fit, and a note about the others.
  private func fewerImages(
    _ message: OutgoingMessage, _ id: MessageID, _ images: [FerryField.Image], now: Timestamp
  ) -> String {
    func text(_ count: Int) -> String {
      var shortened = message
      let note = "[\(images.count - count) of \(images.count) images did not fit]"
      shortened.text = message.text.isEmpty ? note : "\(message.text)\n\(note)"
      return JSON.text(of: data(shortened, id, Array(images.prefix(count)), areDescribed: false, now: now))
    }
    var (fits, tooMany) = (0, images.count)
    while tooMany - fits > 1 {
      let middle = (fits + tooMany) / 2
      if text(middle).utf8.count <= limit { fits = middle } else { tooMany = middle }
    }
    return text(fits)
  }

  private func data(
    _ message: OutgoingMessage, _ id: MessageID, _ images: [FerryField.Image], areDescribed: Bool = true,
    now: Timestamp
  ) -> JSONValue {
    let author = message.author.shortened
    var ferry = FerryField(stamp: message.stamp, key: message.key)
    ferry.senderID = author.id.rawValue == author.name ? nil : author.id.rawValue
    if profile.preset == .chatify { ferry.senderName = author.name }
    var data: [String: JSONValue] = [:]
    data.put(profile.value(of: id), at: fields.id[0])
    data.put(sender(author), at: fields.sender[0])
    let text = profile.html ? html(message, id, images) : message.text
    data.put(.string(text), at: fields.text[0])
    data.put(message.time.map { .string($0.iso8601) }, at: fields.time[0])
    data["reply_to"] = message.replyTo.map(profile.value(of:))
    if let first = images.first {
      data.put(.string(first.url), at: fields.image[0])
      if images.count > 1 { data["images"] = .array(images.map { .string($0.url) }) }
      if areDescribed { ferry.images = images }
    }
    switch profile.preset {
    case .nextjsMessenger:
      // The app shows the time without asking whether there is one.
      data.put(.string((message.time ?? now).iso8601), at: fields.time[0])
      data["conversationId"] = .string(channel)
      data["senderId"] = .string(author.id.rawValue)
      data["seen"] = []
      if message.text.isEmpty, !images.isEmpty { data.put(.null, at: fields.text[0]) }
    case .chatify: data["to_id"] = counterpart
    case .anonymousChat, .laravelEcho, nil: break
    }
    data[FerryField.name] = Self.value(of: ferry)
    return .object(data)
  }

  /// As the app names who did something: by name, by id, or both.
  private func sender(_ author: Author) -> JSONValue {
    switch profile.preset {
    case .nextjsMessenger, .laravelEcho:
      [
        "id": profile.ids == .integer ? Self.number(author.id.rawValue) : .string(author.id.rawValue),
        "name": .string(author.name),
      ]
    case .chatify: Self.number(user?.id ?? author.id.rawValue)
    case .anonymousChat, nil: .string(author.name)
    }
  }

  /// Ids of the app's users are numbers where they look like it.
  private static func number(_ id: String) -> JSONValue {
    guard let number = Int64(id), String(number) == id else { return .string(id) }
    return .integer(number)
  }

  /// Whose channel this is: the name ends with the user's id.
  private var counterpart: JSONValue { Self.number(String(channel.split(separator: ".").last ?? "")) }

  /// The card that the app's pages put among the others.
  private func html(_ message: OutgoingMessage, _ id: MessageID, _ images: [FerryField.Image]) -> String {
    var html = #"<div class="message-card" data-id="\#(HTMLText.escaped(id.rawValue))">"#
    html += #"<div class="message-card-content">"#
    if user != nil {
      // One account writes for many, and the app shows its name.
      html += #"<b class="\#(HTMLText.author)">\#(HTMLText.escapedContent(message.author.shortened.name))</b>"#
    }
    html += #"<div class="message \#(HTMLText.verbatim)" style="white-space:pre-wrap">"#
    html += HTMLText.escapedContent(message.text) + "</div>"
    for image in images {
      let url = HTMLText.escaped(image.url)
      html += #"<div class="image-wrapper"><img class="image-file chat-image" src="\#(url)"></div>"#
    }
    return html + "</div></div>"
  }

  // MARK: Everything else

  func deletion(_ id: MessageID, by author: Author?, _ stamp: Stamp?) throws(FerryError) -> String {
    var data = base(id: id, FerryField(stamp: stamp))
    if let author { data.put(sender(author.shortened), at: fields.sender[0]) }
    return try fitted(data)
  }

  /// The text is what the simplest clients show.
  func typing(_ typing: Typing) throws(FerryError) -> String {
    let author = typing.by.shortened
    var ferry = FerryField(stamp: typing.stamp)
    ferry.senderID = author.id.rawValue
    var data: [String: JSONValue] = ["typing": .bool(typing.on)]
    data.put(sender(author), at: fields.sender[0])
    switch profile.preset {
    case .chatify:
      data["to_id"] = counterpart
      ferry.senderName = author.name
    case .laravelEcho: data["name"] = .string(author.name)
    case .anonymousChat, .nextjsMessenger, nil:
      if typing.on { data.put(.string("\(author.name) is typing..."), at: fields.text[0]) }
    }
    data[FerryField.name] = Self.value(of: ferry)
    return try fitted(data)
  }

  func mark(_ mark: ReadMark) throws(FerryError) -> String {
    let reader = mark.by?.shortened
    var ferry = FerryField(stamp: mark.stamp)
    if profile.preset == .chatify { ferry.senderName = reader?.name }
    var data = base(id: mark.upTo, ferry)
    // The app that has numbers in its messages has strings in its receipts, and falls over anything else.
    if profile.preset == .anonymousChat { data.put(.string(mark.upTo.rawValue), at: fields.id[0]) }
    if let reader { data.put(sender(reader), at: fields.sender[0]) }
    if profile.preset == .chatify {
      data["seen"] = true
      data["to_id"] = counterpart
    }
    return try fitted(data)
  }

  /// A read, told by the message's row with one more who has seen it.
  func row(_ row: JSONValue, readBy reader: Author, _ stamp: Stamp?) throws(FerryError) -> String {
    let reader = reader.shortened
    var data = row.object ?? [:]
    var ferry = FerryField(stamp: stamp)
    ferry.reader = reader
    let seen: JSONValue = ["id": .string(reader.id.rawValue), "name": .string(reader.name)]
    data["seen"] = .array((data["seen"]?.array ?? []) + [seen])
    data[FerryField.name] = Self.value(of: ferry)
    return try fitted(data)
  }

  func reaction(_ reaction: Reaction) throws(FerryError) -> String {
    var data = base(id: reaction.message, FerryField(stamp: reaction.stamp))
    data.put(sender(reaction.by.shortened), at: fields.sender[0])
    data["emoji"] = .string(reaction.emoji)
    data["added"] = .bool(reaction.added)
    return try fitted(data)
  }

  func membership(_ membership: Membership) throws(FerryError) -> String {
    let member = membership.member.shortened
    var ferry = FerryField(stamp: membership.stamp)
    ferry.senderID = member.id.rawValue
    if profile.preset == .chatify { ferry.senderName = member.name }
    var data: [String: JSONValue] = [FerryField.name: Self.value(of: ferry)]
    data.put(sender(member), at: fields.sender[0])
    return try fitted(data)
  }

  private func base(id: MessageID, _ ferry: FerryField) -> [String: JSONValue] {
    var data: [String: JSONValue] = [FerryField.name: Self.value(of: ferry)]
    data.put(profile.value(of: id), at: fields.id[0])
    return data
  }

  private func fitted(_ data: [String: JSONValue]) throws(FerryError) -> String {
    try fitted(JSON.text(of: JSONValue.object(data)))
  }

  private func fitted(_ text: String) throws(FerryError) -> String {
    guard text.utf8.count <= limit else {
      throw FerryError(
        .tooLarge,
        "The event is \(text.utf8.count) bytes with names and links, and may have \(limit). Shorten it.")
    }
    return text
  }
}

extension EventWriter {
  private static func value(of ferry: FerryField) -> JSONValue {
    var value: [String: JSONValue] = [:]
    value["bridge"] = ferry.bridge.map(JSONValue.string)
    value["origin"] = ferry.origin.map(JSONValue.string)
    value["id"] = ferry.id.map(JSONValue.string)
    value["revision"] = ferry.revision.map { .integer(Int64($0)) }
    value["part"] = ferry.part.map { .integer(Int64($0)) }
    value["key"] = ferry.key.map(JSONValue.string)
    value["sender_id"] = ferry.senderID.map(JSONValue.string)
    value["sender_name"] = ferry.senderName.map(JSONValue.string)
    value["reader"] = ferry.reader.map { ["id": .string($0.id.rawValue), "name": .string($0.name)] }
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
}

extension Author {
  /// Longest name and id, in bytes as JSON, that go into an event. Other services allow longer ones than would leave
  /// room for a text.
  private static let longest = 256

  fileprivate var shortened: Author {
    Author(id: UserID(Self.shortened(id.rawValue)), name: Self.shortened(name), avatar: avatar)
  }

  /// Whole, or the beginning, between characters where one is not too long itself.
  private static func shortened(_ text: String) -> String {
    guard JSONText.width(of: text) > longest else { return text }
    let mark = "\u{2026}"
    var (beginning, left) = ("", longest - mark.utf8.count)
    for character in text {
      left -= JSONText.width(of: String(character))
      guard left >= 0 else { break }
      beginning.append(character)
    }
    return beginning + mark
  }
}
