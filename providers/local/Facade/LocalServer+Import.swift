import FerryChat
import FerryCore
import FerryRuntime
import FerryTransport

extension Bodies {
  /// What happened in the past, oldest first. Times are milliseconds since 1970: there are many.
  enum Import {
    struct Item: Sendable {
      var kind: Wire.Event.Kind
      var key: String
      var time: Int64
      /// The key under which the message was imported that this is about.
      var of: String?
      /// The same, by its id here; it goes first.
      var id: String?
      /// Who wrote or did it.
      var by: Wire.Author?
      var text: String?
      var format: TextFormat?
      var edited: Int64?
      var revision: Int?
      var attachments: [Wire.Attachment]?
      var reply_to: String?
      var reply_to_id: String?
      var mentions: [String]?
      var action: Bool?
      var system: String?
      var state: ReadMark.State?
      var emoji: String?
      var added: Bool?
      var stamp: Stamp?
    }
  }
}

extension LocalServer {
  func bring(_ request: HTTPRequest, into room: ChannelID, _ caller: Caller) async throws(FerryError) -> HTTPResponse {
    let bytes = try await request.body.collect(upTo: chat.limits.imported * chat.limits.textBytes * 2)
    // Without `JSONDecoder`, which would take half of the time of an import.
    let parsed = try? JSONReader.read(bytes).value
    guard let values = parsed?["items"]?.array else {
      throw FerryError(.badRequest, "Send a JSON object with \"items\", a list.")
    }
    var items: [PastItem] = []
    items.reserveCapacity(values.count)
    for value in values { items.append(try Bodies.Import.Item(value).past()) }
    let ids = try await chat.bring(items, into: room, by: caller)
    var json = JSONWriter(capacity: 24 * ids.count + 16)
    json.begin()
    json.name("ids")
    json.begin("[")
    for id in ids { if let id { json.value(id.rawValue) } else { json.raw("null") } }
    json.end("]")
    json.end()
    return .text(json.text, type: "application/json")
  }
}

extension Bodies.Import.Item {
  /// Members of the wrong type count as missing, but for those that every item needs.
  init(_ value: JSONValue) throws(FerryError) {
    guard case .object(let members) = value, let name = members["kind"]?.string,
      let kind = Wire.Event.Kind(rawValue: name), let key = members["key"]?.string, let time = members["time"]?.integer
    else { throw FerryError(.badRequest, "An imported item needs a \"kind\", a \"key\" and a \"time\".") }
    self.kind = kind
    self.key = key
    self.time = time
    of = members["of"]?.string
    id = members["id"]?.string
    by = members["by"]?.author.map { Wire.Author($0) }
    text = members["text"]?.string
    format = members["format"]?.string.flatMap { TextFormat(rawValue: $0) }
    edited = members["edited"]?.integer
    revision = members["revision"]?.integer.flatMap { Int(exactly: $0) }
    attachments = members["attachments"]?.array.map { $0.map(\.wireAttachment) }
    reply_to = members["reply_to"]?.string
    reply_to_id = members["reply_to_id"]?.string
    mentions = members["mentions"]?.array.map { $0.compactMap(\.string) }
    action = members["action"]?.bool
    system = members["system"]?.string
    state = members["state"]?.string.flatMap { ReadMark.State(rawValue: $0) }
    emoji = members["emoji"]?.string
    added = members["added"]?.bool
    stamp = members["stamp"]?.stamp
  }

  func past() throws(FerryError) -> PastItem {
    PastItem(
      key: SendKey(key), time: try Self.timestamp(time), kind: try pastKind(), stamp: stamp)
  }

  private func pastKind() throws(FerryError) -> PastItem.Kind {
    switch kind {
    case .message: return .message(try message())
    case .edit: return .edit(try reference(), try message())
    case .delete: return .delete(try reference(), by: by?.author)
    case .join: return .join(try need(by, "by").author)
    case .leave: return .leave(try need(by, "by").author)
    case .read: return .read(try reference(), by: by?.author, state: state ?? .read)
    case .reaction:
      return .reaction(
        try reference(), by: try need(by, "by").author, emoji: try need(emoji, "emoji"), added: added ?? true)
    }
  }

  private func message() throws(FerryError) -> PastMessage {
    var files: [OutgoingAttachment] = []
    for attachment in attachments ?? [] {
      let file = try attachment.attachment()
      files.append(
        OutgoingAttachment(
          name: file.name, mediaType: file.mediaType, size: file.size ?? 0, sha256: file.sha256 ?? "",
          reference: file.reference))
    }
    var edit: Timestamp?
    if let edited { edit = try Self.timestamp(edited) }
    let revision = revision ?? 0
    guard (0...Int(Int32.max)).contains(revision) else {
      throw FerryError(.badRequest, "The revision \(revision) is out of range.")
    }
    var reply: PastReference?
    if let reply_to { reply = PastReference(key: SendKey(reply_to), id: reply_to_id.map { MessageID($0) }) }
    return PastMessage(
      author: try need(by, "by").author, text: text ?? "", format: format ?? .plain, edited: edit, revision: revision,
      attachments: files, replyTo: reply, mentions: (mentions ?? []).map { UserID($0) },
      isAction: action ?? false, system: system)
  }

  private func reference() throws(FerryError) -> PastReference {
    PastReference(key: SendKey(try need(of, "of")), id: id.map { MessageID($0) })
  }

  private func need<T>(_ value: T?, _ name: String) throws(FerryError) -> T {
    guard let value else { throw FerryError(.badRequest, "An imported \(kind.rawValue) needs \"\(name)\".") }
    return value
  }

  /// The years 1600 to 9999, as everywhere in this API.
  private static func timestamp(_ milliseconds: Int64) throws(FerryError) -> Timestamp {
    guard (-11_676_096_000_000...253_402_300_799_999).contains(milliseconds) else {
      throw FerryError(.badRequest, "The time \(milliseconds) is out of range.")
    }
    return Timestamp(milliseconds: milliseconds)
  }
}
