package import FerryCore
import FerryRuntime

/// What an archive says of itself: written first and never changed.
package struct ArchiveHeader: Hashable, Sendable {
  /// Major and minor. Another major number is refused, a higher minor one is read.
  package var version: String
  /// A UUID.
  package var id: String
  package var created: Timestamp
  package var tool: String
  /// An address or the name of a format; never credentials.
  package var source: String
  package var since: Timestamp?
  package var until: Timestamp?
  /// What was asked for beyond the usual.
  package var include: [String]
  /// What a reader must know to understand it.
  package var requires: [String]
  /// The archive that this one replaces.
  package var supersedes: String?
  package var extra: [String: JSONValue]

  package init(
    id: String = ArchiveHeader.newID(), created: Timestamp, tool: String = "ferry", source: String,
    since: Timestamp? = nil, until: Timestamp? = nil, include: [String] = [], supersedes: String? = nil
  ) {
    version = ArchiveLayout.version
    self.id = id
    self.created = created
    self.tool = tool
    self.source = source
    self.since = since
    self.until = until
    self.include = include
    requires = []
    self.supersedes = supersedes
    extra = [:]
  }

  /// Random. Source: RFC 9562, 5.4.
  package static func newID() -> String {
    var bytes = Crypto.randomBytes(16)
    bytes[6] = bytes[6] & 0x0f | 0x40
    bytes[8] = bytes[8] & 0x3f | 0x80
    let digits = Array(Crypto.hex(bytes))
    return [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(digits[$0]) }.joined(separator: "-")
  }

  func json() -> [UInt8] {
    var json = JSONWriter()
    json.begin()
    json.member("format", ArchiveLayout.format)
    json.member("version", version)
    json.member("id", id)
    json.member("created", created.iso8601)
    json.member("tool", tool)
    json.member("source", source)
    if since != nil || until != nil {
      json.name("range")
      json.begin()
      json.member("since", since?.iso8601)
      json.member("until", until?.iso8601)
      json.end()
    }
    json.name("include")
    json.value(.array(include.map { .string($0) }))
    json.name("requires")
    json.value(.array(requires.map { .string($0) }))
    json.member("supersedes", supersedes)
    json.sorted(members: extra)
    json.end()
    return json.utf8 + [0x0a]
  }

  /// Throws `badData` for what is no archive, and `unsupported` for one that this version must not read.
  init(json: [UInt8]) throws(FerryError) {
    var fields: FieldReader
    do throws(FerryError) {
      fields = try Record.fields(line: json).reader
      guard try fields.string("format") == ArchiveLayout.format else {
        throw FerryError(.badData, "Its format is not \"\(ArchiveLayout.format)\".")
      }
      version = try fields.needString("version")
      guard version.split(separator: ".").first == ArchiveLayout.version.split(separator: ".").first else {
        throw FerryError(
          .unsupported, "It is of version \(version); this Ferry reads version 1. Use a newer Ferry.")
      }
      requires = try fields.users("requires")?.map(\.rawValue) ?? []
      if let need = requires.first {
        throw FerryError(.unsupported, "It needs \"\(need)\", which this Ferry does not know. Use a newer one.")
      }
      id = try fields.string("id") ?? ""
      created = try fields.needTime("created")
      tool = try fields.string("tool") ?? ""
      source = try fields.string("source") ?? ""
      var range = try fields.object("range")
      since = try range?.time("since")
      until = try range?.time("until")
      include = try fields.users("include")?.map(\.rawValue) ?? []
      supersedes = try fields.string("supersedes")
    } catch {
      throw FerryError(error.code, "\(ArchiveLayout.header) cannot be read. \(error.message)")
    }
    extra = fields.rest
  }
}
