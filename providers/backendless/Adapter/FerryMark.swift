import FerryCore
import FerryRuntime

/// What Ferry adds to what it writes: JSON text in a header of a message and in a column of a row, a value in a
/// command's data.
///
/// What the relay writes carries its stamp. What a person posts carries none and is anybody's message to a relay.
struct FerryMark: Hashable, Sendable {
  /// The header's name.
  static let name = "ferry"

  struct Picture: Hashable, Sendable {
    var name: String
    var type: String
    var size: Int64?
    var sha256: String?
  }

  /// What kind of notice a message is, where its text alone would not tell.
  enum Notice: String, Sendable { case joined, left }

  var stamp: Stamp?
  /// Where it is not the name that is shown.
  var senderID: String?
  var picture: Picture?
  var replyTo: String?
  /// The message's id, where no row gives it one.
  var messageID: String?
  var notice: Notice?
  /// When an imported message got its text, and a sum of that text: the time is that of no later edit.
  var edited: Edit?
  /// The exact time of what was imported, where the row's own was moved to keep the order.
  var time: Int64?
  var exactTime: Timestamp? { time.map { Timestamp(milliseconds: $0) } }
  var isAction = false
  var system: String?

  struct Edit: Hashable, Sendable {
    var time: Int64
    var sum: String

    init(time: Int64, sum: String) {
      self.time = time
      self.sum = sum
    }

    init(_ time: Timestamp, of text: String) {
      self.init(time: time.milliseconds, sum: Self.sum(text))
    }

    func isOf(_ text: String) -> Bool { sum == Self.sum(text) }

    private static func sum(_ text: String) -> String { Crypto.hex(Crypto.digest(.sha256, of: text.utf8).prefix(6)) }
  }

  init(stamp: Stamp? = nil, by author: Author? = nil) {
    self.stamp = stamp
    senderID = author.flatMap { $0.id.rawValue == $0.name ? nil : $0.id.rawValue }
  }

  /// Nil when there is none, or something else in its place.
  init?(_ value: JSONValue?) {
    let value = value?.string.map { JSONText.value($0) ?? .null } ?? value
    guard case .object(let field)? = value else { return nil }
    if let bridge = field["bridge"]?.string, let origin = field["origin"]?.string.flatMap({ Address($0) }),
      let id = field["id"]?.text
    {
      stamp = Stamp(
        bridge: BridgeName(bridge), origin: origin, id: MessageID(id), revision: Self.number(field["revision"]),
        part: Self.number(field["part"]))
    }
    senderID = field["sender_id"]?.text
    replyTo = field["reply_to"]?.text
    messageID = field["message"]?.text
    notice = field["notice"]?.string.flatMap { Notice(rawValue: $0) }
    isAction = field["action"]?.bool ?? false
    time = field["time"]?.integer
    system = field["system"]?.string
    if let time = field["edited"]?.integer, let sum = field["edited_sum"]?.string {
      edited = Edit(time: time, sum: sum)
    }
    if let name = field["name"]?.string, let type = field["type"]?.string {
      picture = Picture(name: name, type: type, size: field["size"]?.integer, sha256: field["sha256"]?.string)
    }
  }

  private static func number(_ value: JSONValue?) -> Int { value?.integer.flatMap { Int(exactly: $0) } ?? 0 }

  var value: JSONValue {
    var value: [String: JSONValue] = [:]
    if let stamp {
      value["bridge"] = .string(stamp.bridge.rawValue)
      value["origin"] = .string(stamp.origin.description)
      value["id"] = .string(stamp.id.rawValue)
      if stamp.revision != 0 { value["revision"] = .integer(Int64(stamp.revision)) }
      if stamp.part != 0 { value["part"] = .integer(Int64(stamp.part)) }
    }
    value["sender_id"] = senderID.map(JSONValue.string)
    value["reply_to"] = replyTo.map(JSONValue.string)
    value["message"] = messageID.map(JSONValue.string)
    value["notice"] = notice.map { .string($0.rawValue) }
    if isAction { value["action"] = true }
    value["time"] = time.map(JSONValue.integer)
    value["system"] = system.map(JSONValue.string)
    value["edited"] = edited.map { .integer($0.time) }
    value["edited_sum"] = edited.map { .string($0.sum) }
    value["name"] = picture.map { .string($0.name) }
    value["type"] = picture.map { .string($0.type) }
    value["size"] = picture?.size.map(JSONValue.integer)
    value["sha256"] = picture?.sha256.map(JSONValue.string)
    return .object(value)
  }

  var isEmpty: Bool { value == .object([:]) }
  var text: String { JSON.text(of: value) }
}

/// What a link alone tells about a file.
enum PictureName {
  static func name(ofURL url: String) -> String {
    let path = url.prefix { $0 != "?" && $0 != "#" }
    let last = path.split(separator: "/").last.map(String.init) ?? ""
    return last.isEmpty || path.hasSuffix("/") ? "image" : last
  }

  static func mediaType(ofURL url: String) -> String {
    let name = name(ofURL: url).lowercased()
    return types.first { name.hasSuffix(".\($0.ending)") }?.type ?? "application/octet-stream"
  }

  /// The ending that goes with a type, or with a name; without a dot.
  static func ending(of name: String, _ mediaType: String) -> String {
    if let known = types.first(where: { $0.type == mediaType.lowercased() }) { return known.ending }
    guard let dot = name.lastIndex(of: ".") else { return "bin" }
    let ending = name[name.index(after: dot)...].lowercased()
    let isPlain = ending.utf8.allSatisfy {
      (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
    }
    return (1...8).contains(ending.utf8.count) && isPlain ? ending : "bin"
  }

  private static let types: [(ending: String, type: String)] = [
    ("png", "image/png"), ("jpg", "image/jpeg"), ("jpeg", "image/jpeg"), ("gif", "image/gif"), ("webp", "image/webp"),
    ("heic", "image/heic"), ("svg", "image/svg+xml"), ("mp4", "video/mp4"), ("pdf", "application/pdf"),
    ("txt", "text/plain"),
  ]
}
