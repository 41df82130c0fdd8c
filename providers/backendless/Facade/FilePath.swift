import FerryTransport

/// A path of the file service, checked: no way leads out of it, and each part is a plain name.
struct FilePath: Hashable, Sendable {
  let parts: [String]

  static let root = FilePath(checked: [])

  private init(checked parts: [String]) { self.parts = parts }

  /// From parts that are decoded already. Empty ones, from doubled slashes, do not count.
  init(_ segments: some Sequence<String>) throws(Fault) {
    let parts = segments.filter { !$0.isEmpty }
    guard parts.count <= 32, parts.allSatisfy(Self.isName) else { throw .badPath }
    self.parts = parts
  }

  init(_ text: String) throws(Fault) { try self.init(text.split(separator: "/").map(String.init)) }

  var name: String { parts.last ?? "" }
  /// The folder it is in; that of the root is the root.
  var folder: FilePath { FilePath(checked: Array(parts.dropLast())) }
  var text: String { parts.joined(separator: "/") }
  /// As it stands in a URL.
  var encoded: String { parts.map { PercentEncoding.encode($0) }.joined(separator: "/") }

  func appending(_ name: String) throws(Fault) -> FilePath { try FilePath(parts + [name]) }

  func isInside(_ other: FilePath) -> Bool { parts.count > other.parts.count && parts.starts(with: other.parts) }

  private static func isName(_ name: String) -> Bool {
    name != "." && name != ".." && name.utf8.count <= 255
      && !name.utf8.contains { $0 < 0x20 || $0 == 0x7f || $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }
  }
}
