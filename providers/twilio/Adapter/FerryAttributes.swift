import FerryCore
import FerryRuntime

/// What Ferry keeps in the attributes of what it writes, under one name that others ignore.
///
/// What the relay writes carries its stamp. What a person posts carries the key of the send alone and is anybody's
/// message to a relay.
struct FerryAttributes: Hashable, Sendable {
  static let name = "ferry"

  var stamp: Stamp?
  /// Which send this was; for telling whether a lost request arrived.
  var key: String?
  /// The author's id at the source; the message's author is a name for people.
  var author: String?
  /// The display name of a participant.
  var display: String?
  /// Of a participant: this is Ferry itself, and nobody for people to see.
  var isOwn = false
  /// To the millisecond, which Twilio's own dates lack.
  var time: Timestamp?
  /// When it was written, of what is dated back.
  var sent: Timestamp?
  /// When it got its text, to the millisecond, of what was imported.
  var edited: Timestamp?
  var isAction = false
  var system: String?
  var sha256: String?
  var replyTo: String?
  var format: TextFormat?
  /// Of a participant: the mark that Ferry set last, and its stamp.
  var read: ReadStamp?

  struct ReadStamp: Hashable, Sendable {
    var index: Int64
    var stamp: Stamp
  }

  init() {}

  // MARK: Reading

  /// Nil when the attributes are not Ferry's.
  init?(_ attributes: String) {
    // Most attributes are nobody's: no JSON is parsed for those.
    guard attributes.contains("\"\(Self.name)\""), let value = JSONText.value(attributes) else { return nil }
    self.init(value)
  }

  init?(_ attributes: JSONValue) {
    guard case .object(let field)? = attributes[Self.name] else { return nil }
    stamp = Self.stamp(in: .object(field))
    key = field["key"]?.string
    author = field["author"]?.string
    display = field["name"]?.string
    isOwn = field["own"]?.bool ?? false
    time = Self.timestamp(field["time"])
    sent = Self.timestamp(field["sent"])
    edited = Self.timestamp(field["edited"])
    isAction = field["action"]?.bool ?? false
    system = field["system"]?.string
    sha256 = field["sha256"]?.string
    replyTo = field["reply_to"]?.string
    format = field["format"]?.string.flatMap { TextFormat(rawValue: $0) }
    if let mark = field["read"], let index = mark["index"]?.integer, let stamp = Self.stamp(in: mark) {
      read = ReadStamp(index: index, stamp: stamp)
    }
  }

  /// Whoever names a bridge has Ferry's mark, even if the rest of it cannot be read: better not mirrored than for ever.
  private static func stamp(in field: JSONValue) -> Stamp? {
    guard let bridge = field["bridge"]?.string else { return nil }
    return Stamp(
      bridge: BridgeName(bridge),
      origin: field["origin"]?.string.flatMap { Address($0) } ?? Address(account: "unknown", channel: "unknown"),
      id: MessageID(field["id"]?.text ?? ""), revision: field["revision"]?.integer.flatMap { Int(exactly: $0) } ?? 0,
      part: field["part"]?.integer.flatMap { Int(exactly: $0) } ?? 0)
  }

  private static func timestamp(_ value: JSONValue?) -> Timestamp? {
    // The years that can be written.
    guard let milliseconds = value?.integer, (-62_135_596_800_000...253_402_300_799_999).contains(milliseconds) else {
      return nil
    }
    return Timestamp(milliseconds: milliseconds)
  }

  // MARK: Writing

  /// JSON text as Twilio takes it: UTF-8 without escapes. `others` stay as they are. Never longer than Twilio's limit
  /// by what is ours alone; whether `others` leave room is for the caller to look at.
  func text(beside others: [String: JSONValue] = [:]) -> String {
    var json = JSONWriter()
    json.begin()
    if let stamp { Self.write(stamp, to: &json) }
    json.member("key", key.map(Self.fitted))
    json.member("author", author.map(Self.fitted))
    json.member("name", display.map(Self.fitted))
    Self.write(time, as: "time", to: &json)
    Self.write(sent, as: "sent", to: &json)
    Self.write(edited, as: "edited", to: &json)
    for (name, flag) in [("own", isOwn), ("action", isAction)] where flag {
      json.name(escaping: name)
      json.value(true)
    }
    json.member("system", system.map(Self.fitted))
    json.member("sha256", sha256.map(Self.fitted))
    json.member("reply_to", replyTo.map(Self.fitted))
    json.member("format", format?.rawValue)
    if let read {
      json.name("read")
      json.begin()
      json.name("index")
      json.value(read.index)
      Self.write(read.stamp, to: &json)
      json.end()
    }
    json.end()
    let ours = "\"\(Self.name)\":\(json.text)}"
    guard !others.isEmpty else { return "{" + ours }
    return JSON.text(of: .object(others)).dropLast() + "," + ours
  }

  private static func write(_ stamp: Stamp, to json: inout JSONWriter) {
    json.member("bridge", fitted(stamp.bridge.rawValue))
    json.member("origin", fitted(stamp.origin.description))
    json.member("id", fitted(stamp.id.rawValue))
    if stamp.revision != 0 {
      json.name("revision")
      json.value(Int64(stamp.revision))
    }
    if stamp.part != 0 {
      json.name("part")
      json.value(Int64(stamp.part))
    }
  }

  private static func write(_ time: Timestamp?, as name: StaticString, to json: inout JSONWriter) {
    guard let time else { return }
    json.name(name)
    json.value(time.milliseconds)
  }

  /// Of ten such texts at most, so that all of them are within the 4 KB.
  private static let longest = 320

  /// The same for the same text always, so that what was sent under it is found again. A digest keeps apart what has
  /// become alike. Controls would be escaped, which Twilio does not take.
  static func fitted(_ text: String) -> String {
    // As nearly all are.
    if text.utf8.count <= longest, text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7f && $0 != 0x22 && $0 != 0x5c }) {
      return text
    }
    func isControl(_ scalar: Unicode.Scalar) -> Bool { scalar.value < 0x20 || scalar.value == 0x7f }
    func size(_ scalar: Unicode.Scalar) -> Int {
      scalar == "\"" || scalar == "\\" ? 2 : isControl(scalar) ? 6 : UTF8.width(scalar)
    }
    let scalars = text.unicodeScalars
    if scalars.reduce(0, { $0 + size($1) }) <= longest, !scalars.contains(where: isControl) { return text }
    let digest = Crypto.hex(Crypto.digest(.sha256, of: text.utf8).prefix(16))
    var short = ""
    var length = digest.utf8.count + 1
    for scalar in scalars {
      let plain: Unicode.Scalar = isControl(scalar) ? "_" : scalar
      length += size(plain)
      if length > longest { break }
      short.unicodeScalars.append(plain)
    }
    return "\(short)~\(digest)"
  }
}
