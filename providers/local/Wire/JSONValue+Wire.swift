import FerryChat
import FerryCore
import FerryRuntime

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

/// As above, without a tree. What is not of this shape is passed over.
extension Wire.Author {
  init?(_ json: inout JSONReader) throws(JSONReader.Fault) {
    guard json.isAtObject else {
      _ = try json.value()
      return nil
    }
    var id: String?
    var name: String?
    var avatar: String?
    try json.enterObject()
    while let member = try json.nextName() {
      switch member {
      case "id": id = try json.text()
      case "name": name = try json.text()
      case "avatar": avatar = try json.text()
      default: _ = try json.value()
      }
    }
    guard let id else { return nil }
    self.init(Author(id: UserID(id), name: name ?? id, avatar: avatar))
  }
}

extension Stamp {
  init?(_ json: inout JSONReader) throws(JSONReader.Fault) {
    guard json.isAtObject else {
      _ = try json.value()
      return nil
    }
    var bridge: String?
    var origin: String?
    var id: String?
    var revision: Int64?
    var part: Int64?
    try json.enterObject()
    while let member = try json.nextName() {
      switch member {
      case "bridge": bridge = try json.text()
      case "origin": origin = try json.text()
      case "id": id = try json.text()
      case "revision": revision = try json.integer()
      case "part": part = try json.integer()
      default: _ = try json.value()
      }
    }
    guard let bridge, let origin = origin.flatMap({ Address($0) }), let id else { return nil }
    self.init(
      bridge: BridgeName(bridge), origin: origin, id: MessageID(id),
      revision: revision.flatMap { Int(exactly: $0) } ?? 0,
      part: part.flatMap { Int(exactly: $0) } ?? 0)
  }
}
