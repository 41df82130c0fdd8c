import FerryCore
import FerryRuntime

/// What single fields say.
extension EventReader {
  private var fields: FieldNames { profile.fields }

  /// In bytes as JSON. Longer than any id, and no more than what a stamp may carry to other services.
  private static let longestID = 512

  private static func isTooLong(_ id: String) -> Bool { JSONText.width(of: id) > longestID }

  func id(_ occurrence: Occurrence) -> MessageID? {
    let id = occurrence.data.first(fields.id) { value in
      value.text.flatMap { $0.isEmpty || Self.isTooLong($0) ? nil : $0 }
    }
    return (id ?? occurrence.html?.id.flatMap { Self.isTooLong($0) ? nil : $0 }).map { MessageID($0) }
  }

  func author(_ occurrence: Occurrence) -> Author? {
    let author = occurrence.data.first(fields.sender, Self.author(of:))
    let ferry = FerryField(occurrence.data)
    // The service vouches for who sent a client event.
    guard let id = occurrence.frame.userID ?? ferry?.senderID else { return author }
    return Author(id: UserID(id), name: ferry?.senderName ?? author?.name ?? id, avatar: author?.avatar)
  }

  /// A name or an id alone, or an object.
  static func author(of value: JSONValue) -> Author? {
    if let text = value.text { return text.isEmpty ? nil : Author(id: UserID(text), name: text) }
    guard let name = value.first(["name", "username", "userName", "id", "email"], \.text), !name.isEmpty else {
      return nil
    }
    let id = value.first(["id", "_id", "user_id", "email"], \.text) ?? name
    return Author(id: UserID(id), name: name, avatar: value.first(["avatar", "image"], link))
  }

  func attachments(_ occurrence: Occurrence, _ ferry: FerryField?) -> [Attachment] {
    if let images = ferry?.images, !images.isEmpty {
      return images.map { image in
        Attachment(
          name: image.name, mediaType: image.type, size: image.size, sha256: image.sha256, reference: .url(image.url))
      }
    }
    let data = occurrence.data
    var links = data["images"]?.array?.compactMap(Self.link) ?? []
    if let one = data.first(fields.image, Self.link), !links.contains(one) { links.insert(one, at: 0) }
    for image in occurrence.html?.images ?? [] where !links.contains(image) { links.append(image) }
    return links.map { url in
      Attachment(
        name: AttachmentName.name(ofURL: url), mediaType: AttachmentName.mediaType(ofURL: url), reference: .url(url))
    }
  }

  static func link(_ value: JSONValue) -> String? {
    guard let url = value.string ?? value["url"]?.string else { return nil }
    return url.hasPrefix("https://") || url.hasPrefix("http://") ? url : nil
  }

  /// What the app says beyond what Ferry understands. Anybody may publish, so what is nested too deep for the
  /// journal is left out: an event that can never be stored would hold up all others for ever.
  func attributes(_ data: JSONValue) -> JSONValue? {
    guard case .object(var members) = data else { return nil }
    members = members.filter { $0.value.depth < JSONValue.deepest }
    let known = [fields.id, fields.text, fields.sender, fields.time, fields.image]
    for name in known.joined() { members.take(at: name) }
    for name in [FerryField.name, "images", "reply_to", "replyTo"] { members[name] = nil }
    return members.isEmpty ? nil : .object(members)
  }

  // MARK: Times

  func time(_ occurrence: Occurrence) -> Timestamp? { occurrence.data.first(fields.time, Self.time(of:)) }

  /// ISO 8601, seconds or milliseconds. Nil for what is no time at which anybody wrote a message: before 1970 or
  /// after 9999, which other services refuse.
  static func time(of value: JSONValue) -> Timestamp? {
    let time: Timestamp? =
      switch value {
      case .string(let text): Timestamp(iso8601: text) ?? Double(text).flatMap(time(number:))
      case .integer(let number): time(number: Double(number))
      case .number(let number): time(number: number)
      default: nil
      }
    return time.flatMap { (0...253_402_300_799_999).contains($0.milliseconds) ? $0 : nil }
  }

  private static func time(number: Double) -> Timestamp? {
    // Seconds reach this in the year 5138, milliseconds passed it in 1973.
    let milliseconds = abs(number) < 1e11 ? number * 1000 : number
    guard abs(milliseconds) < 2.5e14 else { return nil }
    return Timestamp(milliseconds: Int64(milliseconds.rounded()))
  }
}

extension JSONValue {
  /// Yes or no, of whatever type: apps write 0 and 1, and "true".
  var flag: Bool? {
    switch self {
    case .bool(let value): value
    case .integer(let value): value != 0
    case .number(let value): value != 0
    case .string("true"), .string("1"): true
    case .string("false"), .string("0"), .string(""): false
    default: nil
    }
  }
}
