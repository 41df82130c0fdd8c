import FerryChat
import FerryCore
import FerryRuntime
import FerryTransport

extension Bodies {
  /// What happened in the past, oldest first. Times are milliseconds since 1970: there are many.
  enum Import {
    struct Item: Sendable {
      var kind: Wire.Event.Kind?
      var key: String?
      var time: Int64?
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
    var items: [PastItem] = []
    for item in try Bodies.Import.items(bytes) { items.append(try item.past()) }
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

extension Bodies.Import {
  /// Read member by member: `JSONDecoder` would take half of the time of an import, and a tree a quarter.
  static func items(_ bytes: [UInt8]) throws(FerryError) -> [Item] {
    let read: Result<[Item], JSONReader.Fault> = bytes.withUnsafeBufferPointer { bytes in
      do throws(JSONReader.Fault) {
        return .success(try items(bytes))
      } catch {
        return .failure(error)
      }
    }
    guard case .success(let items) = read else {
      throw FerryError(.badRequest, "Send a JSON object with \"items\", a list.")
    }
    return items
  }

  private static func items(_ bytes: UnsafeBufferPointer<UInt8>) throws(JSONReader.Fault) -> [Item] {
    var json = JSONReader(bytes)
    var items: [Item] = []
    var isThere = false
    try json.enterObject()
    while let name = try json.nextName() {
      guard name == "items" else {
        _ = try json.value()
        continue
      }
      isThere = true
      try json.enterList()
      while try json.nextElement() { items.append(try Item(&json)) }
    }
    try json.end()
    guard isThere else { throw JSONReader.Fault(offset: 0, reason: "there are no items") }
    return items
  }
}

extension Bodies.Import.Item {
  /// Members of the wrong type count as missing.
  init(_ json: inout JSONReader) throws(JSONReader.Fault) {
    guard json.isAtObject else {
      _ = try json.value()
      return
    }
    try json.enterObject()
    while let name = try json.nextName() {
      switch name {
      case "key": key = try json.text()
      case "time": time = try json.integer()
      case "kind": kind = try json.text().flatMap { Wire.Event.Kind(rawValue: $0) }
      case "by": by = try Wire.Author(&json)
      case "text": text = try json.text()
      case "format": format = try json.text().flatMap { TextFormat(rawValue: $0) }
      case "revision": revision = try json.integer().flatMap { Int(exactly: $0) }
      case "stamp": stamp = try Stamp(&json)
      case "of": of = try json.text()
      case "id": id = try json.text()
      case "edited": edited = try json.integer()
      case "attachments": attachments = try json.value().array.map { $0.map(\.wireAttachment) }
      case "reply_to": reply_to = try json.text()
      case "reply_to_id": reply_to_id = try json.text()
      case "mentions": mentions = try json.value().array.map { $0.compactMap(\.string) }
      case "action": action = try json.value().bool
      case "system": system = try json.text()
      case "state": state = try json.text().flatMap { ReadMark.State(rawValue: $0) }
      case "emoji": emoji = try json.text()
      case "added": added = try json.value().bool
      default: _ = try json.value()
      }
    }
  }

  func past() throws(FerryError) -> PastItem {
    guard let kind, let key, let time else {
      throw FerryError(.badRequest, "An imported item needs a \"kind\", a \"key\" and a \"time\".")
    }
    return PastItem(key: SendKey(key), time: try Self.timestamp(time), kind: try past(kind), stamp: stamp)
  }

  private func past(_ kind: Wire.Event.Kind) throws(FerryError) -> PastItem.Kind {
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
    guard let value else { throw FerryError(.badRequest, "An imported \(kind?.rawValue ?? "item") needs \"\(name)\".") }
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
