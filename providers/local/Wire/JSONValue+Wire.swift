import FerryChat
import FerryCore

/// Parts of what goes over the wire, where `JSONDecoder` would take most of the time of an import or an export. Members
/// of the wrong type count as missing.
extension JSONValue {
  var author: Author? {
    guard let id = self["id"]?.string else { return nil }
    return Author(id: UserID(id), name: self["name"]?.string ?? id, avatar: self["avatar"]?.string)
  }

  var stamp: Stamp? {
    guard let bridge = self["bridge"]?.string, let origin = self["origin"]?.string.flatMap({ Address($0) }),
      let id = self["id"]?.string
    else { return nil }
    return Stamp(
      bridge: BridgeName(bridge), origin: origin, id: MessageID(id), revision: self["revision"]?.int ?? 0,
      part: self["part"]?.int ?? 0)
  }

  var wireAttachment: Wire.Attachment {
    var file = Wire.Attachment(
      Attachment(
        name: self["name"]?.string ?? "file", mediaType: self["type"]?.string ?? "application/octet-stream",
        size: self["size"]?.integer, sha256: self["sha256"]?.string, reference: .url("")))
    file.file = self["file"]?.string
    file.url = self["url"]?.string
    file.width = self["width"]?.int
    file.height = self["height"]?.int
    return file
  }

  private var int: Int? { integer.flatMap { Int(exactly: $0) } }
}
