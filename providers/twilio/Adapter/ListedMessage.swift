import FerryCore

/// A message as Twilio tells it, in a list or in a webhook. Read leniently: what it has no use for may be missing or odd.
struct ListedMessage: Hashable, Sendable {
  var sid: String
  /// Empty when it is not said.
  var conversation: String
  /// Increases, with holes.
  var index: Int64
  var author: String
  /// Nil when the author is no participant.
  var participant: String?
  var body: String
  /// JSON text.
  var attributes: String
  var media: [Attachment]
  var created: Timestamp
  var updated: Timestamp?
  /// Whether the dates are to the millisecond, as in webhooks, or to the second.
  var isExact: Bool
  /// How far it got at phones: `delivered` and `read`, each none, some or all.
  var delivered: String?
  var read: String?

  /// Beyond this an index is not believed.
  private static let highestIndex: Int64 = 1 << 53

  /// Nil for what is no message.
  init?(json value: JSONValue) {
    guard let sid = value["sid"]?.string, !sid.isEmpty, let index = Self.index(value["index"]?.text) else { return nil }
    self.sid = sid
    self.index = index
    conversation = value["conversation_sid"]?.string ?? ""
    author = value["author"]?.text ?? ""
    participant = value["participant_sid"]?.string
    body = Self.text(ofBody: value["body"]?.text ?? "")
    attributes = value["attributes"]?.string ?? "{}"
    media = (value["media"]?.array ?? []).compactMap {
      Self.attachment($0, sid: "sid", type: "content_type", size: "size", name: "filename")
    }
    let created = value["date_created"]?.string.flatMap { TwilioDate.parse($0) }
    updated = value["date_updated"]?.string.flatMap { TwilioDate.parse($0) }
    self.created = created ?? updated ?? Timestamp(milliseconds: 0)
    isExact = false
    delivered = value["delivery"]?["delivered"]?.string
    read = value["delivery"]?["read"]?.string
  }

  init?(form: Form) {
    guard let sid = form["MessageSid"], !sid.isEmpty, let index = Self.index(form["Index"]) else { return nil }
    self.sid = sid
    self.index = index
    conversation = form["ConversationSid"] ?? ""
    author = form["Author"] ?? ""
    participant = form["ParticipantSid"]
    body = Self.text(ofBody: form["Body"] ?? "")
    attributes = form["Attributes"] ?? "{}"
    let list = form["Media"].flatMap { JSONText.value($0) }?.array ?? []
    media = list.compactMap {
      Self.attachment($0, sid: "Sid", type: "ContentType", size: "Size", name: "Filename")
    }
    let created = form["DateCreated"].flatMap { TwilioDate.parse($0) }
    updated = form["DateUpdated"].flatMap { TwilioDate.parse($0) }
    self.created = created ?? updated ?? Timestamp(milliseconds: 0)
    isExact = true
  }

  private static func index(_ text: String?) -> Int64? {
    text.flatMap { Int64($0) }.flatMap { (0...highestIndex).contains($0) ? $0 : nil }
  }

  private static func attachment(
    _ value: JSONValue, sid: String, type: String, size: String, name: String
  ) -> Attachment? {
    guard let id = value[sid]?.string ?? value["MediaSid"]?.string, !id.isEmpty else { return nil }
    let bytes = value[size]?.text.flatMap { Int64($0) }
    return Attachment(
      name: value[name]?.string ?? "file", mediaType: value[type]?.string ?? "application/octet-stream",
      size: bytes.flatMap { $0 >= 0 ? $0 : nil }, reference: .provider(id))
  }

  // MARK: Empty texts

  /// Twilio takes no message without text (50503); elsewhere people do send empty ones. A zero-width space stands for
  /// nothing.
  private static let nothing = "\u{200B}"

  static func body(ofText text: String) -> String { text.isEmpty ? nothing : text }

  private static func text(ofBody body: String) -> String { body == nothing ? "" : body }

  // MARK: As ours

  /// Milliseconds of the last edit, 0 when there was none.
  var revision: Int {
    guard let updated, updated > created else { return 0 }
    return Int(updated.milliseconds)
  }

  var ferry: FerryAttributes? { FerryAttributes(attributes) }

  /// The message as Ferry carries it. `name` is the author's display name where that is not the author's own text.
  func message(name: String?, stamp: Stamp?, revision: Int) -> Message {
    let ferry = ferry
    let id = ferry?.author ?? author
    var message = Message(
      id: MessageID(sid), author: Author(id: UserID(id), name: name ?? author), text: body,
      format: ferry?.format ?? .plain, time: time(ferry), revision: revision,
      edited: revision > 0 ? edited(ferry, Timestamp(milliseconds: Int64(revision))) : nil, attachments: media,
      replyTo: ferry?.replyTo.map { MessageID($0) }, stamp: ferry?.stamp ?? stamp)
    if let sha256 = ferry?.sha256, message.attachments.count == 1 { message.attachments[0].sha256 = sha256 }
    var fields: [String: JSONValue] = ["index": .integer(index), "attributes": .string(attributes)]
    fields["participant_sid"] = participant.map { .string($0) }
    if ferry?.isAction == true { fields["action"] = true }
    fields["system"] = ferry?.system.map { .string($0) }
    message.attributes = .object(fields)
    return message
  }

  /// To the millisecond where Ferry wrote it down, as long as it fits the date that Twilio has.
  private func time(_ ferry: FerryAttributes?) -> Timestamp {
    guard let exact = ferry?.time, abs(exact.milliseconds - created.milliseconds) <= 120_000 else { return created }
    return exact
  }

  /// As `time`, of the last edit.
  private func edited(_ ferry: FerryAttributes?, _ shown: Timestamp) -> Timestamp {
    guard let exact = ferry?.edited, abs(exact.milliseconds - shown.milliseconds) <= 1000 else { return shown }
    return exact
  }

  /// When it was written, whatever date it bears: never too early.
  var inserted: Timestamp { max(created, updated ?? created, ferry?.sent ?? created) }

  /// The index in a message of ours made by `message(...)`.
  static func index(of message: Message) -> Int64? { message.attributes?["index"]?.integer }
}
