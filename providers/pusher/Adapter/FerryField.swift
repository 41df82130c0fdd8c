import FerryCore

/// What Ferry adds to an event's data, under one name that other clients ignore.
///
/// What the relay writes carries its stamp. What a person posts carries the key of the send alone and is anybody's
/// message to a relay.
struct FerryField: Sendable, Codable {
  static let name = "ferry"

  struct Image: Sendable, Codable {
    var name: String
    var type: String
    var size: Int64?
    var sha256: String?
    var url: String
  }

  var bridge: String?
  var origin: String?
  var id: String?
  var revision: Int?
  var part: Int?
  /// Which send this was, where there is no stamp to say so; for telling whether a lost request arrived.
  var key: String?
  var senderID: String?
  /// Where the app's own field does not hold the name.
  var senderName: String?
  /// Who has read the message, where reads are told by writing the message again.
  var reader: Author?
  var images: [Image]?

  enum CodingKeys: String, CodingKey {
    case bridge, origin, id, revision, part, key, reader, images
    case senderID = "sender_id"
    case senderName = "sender_name"
  }

  init(stamp: Stamp?, key: SendKey? = nil) {
    bridge = stamp?.bridge.rawValue
    origin = stamp?.origin.description
    id = stamp?.id.rawValue
    revision = stamp?.revision
    part = stamp?.part
    // A stamp says it already.
    if key != stamp?.key { self.key = key?.rawValue }
  }

  /// Nil when there is none, or something else under the name.
  init?(_ data: JSONValue) {
    guard case .object(let field)? = data[Self.name] else { return nil }
    bridge = field["bridge"]?.string
    origin = field["origin"]?.string
    id = field["id"]?.text
    revision = field["revision"]?.integer.flatMap(Int.init(exactly:))
    part = field["part"]?.integer.flatMap(Int.init(exactly:))
    key = field["key"]?.string
    senderID = field["sender_id"]?.text
    senderName = field["sender_name"]?.string
    reader = field["reader"].flatMap(EventReader.author)
    images = field["images"]?.array?.compactMap(Image.init)
  }

  /// Which send this was.
  var sendKey: SendKey? { key.map { SendKey($0) } ?? stamp?.key }

  var stamp: Stamp? {
    guard let bridge, let origin = origin.flatMap({ Address($0) }), let id else { return nil }
    return Stamp(
      bridge: BridgeName(bridge), origin: origin, id: MessageID(id), revision: revision ?? 0, part: part ?? 0)
  }
}

extension FerryField.Image {
  init?(_ value: JSONValue) {
    guard let url = value["url"]?.string else { return nil }
    self.url = url
    name = value["name"]?.string ?? AttachmentName.name(ofURL: url)
    type = value["type"]?.string ?? AttachmentName.mediaType(ofURL: url)
    size = value["size"]?.integer
    sha256 = value["sha256"]?.string
  }
}

/// What a link alone tells about a file.
enum AttachmentName {
  static func name(ofURL url: String) -> String {
    let path = url.prefix { $0 != "?" && $0 != "#" }
    let last = path.split(separator: "/").last.map(String.init) ?? ""
    return last.isEmpty || path.hasSuffix("/") ? "image" : last
  }

  static func mediaType(ofURL url: String) -> String {
    let name = name(ofURL: url).lowercased()
    return types.first { name.hasSuffix($0.ending) }?.type ?? "application/octet-stream"
  }

  private static let types: [(ending: String, type: String)] = [
    (".png", "image/png"), (".jpg", "image/jpeg"), (".jpeg", "image/jpeg"), (".gif", "image/gif"),
    (".webp", "image/webp"), (".heic", "image/heic"), (".svg", "image/svg+xml"), (".mp4", "video/mp4"),
    (".pdf", "application/pdf"),
  ]
}
