import CArchive
import FerryCore
import FerryRuntime
import Glibc

/// A tar or zip file, read entry by entry and never unpacked onto the disk.
///
/// Names are checked before anything is read: what could reach outside a folder, or stand for another entry, is refused.
struct Container: Sendable {
  enum Kind: Sendable { case tar, zip }

  struct Entry: Hashable, Sendable {
    let name: String
    /// Bytes; -1 where the file does not say.
    let size: Int64
    /// Where its header begins in a tar.
    let position: Int64
    /// Which one it is, counted from zero.
    let ordinal: Int
  }

  /// What is refused, so that a small file cannot fill memory or occupy us for ever.
  struct Limits: Sendable {
    var entries = 2_000_000
    /// Bytes of all entries together, when they are also more than `ratio` times the file's.
    var bytes: Int64 = 1 << 30
    var ratio: Int64 = 10
  }

  let path: String
  let kind: Kind
  /// The files in it, in its order.
  let entries: [Entry]

  init(_ path: String, limits: Limits = Limits()) throws(FerryError) {
    self.path = path
    kind = try Self.kind(of: path)
    let handle = try ContainerHandle(path, kind)
    var entries: [Entry] = []
    var names: Set<String> = []
    var bytes: Int64 = 0
    var ordinal = 0
    let size = try DiskFile(path).size()
    while let header = try handle.next() {
      defer { ordinal += 1 }
      guard ordinal < limits.entries else {
        throw FerryError(.tooLarge, "\(path) has more than \(limits.entries) entries, which are not read.")
      }
      let name = try Self.name(header.name, in: path)
      if header.isFolder { continue }
      guard header.isFile else {
        throw FerryError(.badData, "\(path) is refused: \(name.debugDescription) in it is a link or a device.")
      }
      // Swift compares strings by what they mean, so this also finds names that are composed differently.
      guard names.insert(name.lowercased()).inserted else {
        throw FerryError(.badData, "\(path) is refused: it holds \(name.debugDescription) twice.")
      }
      let (sum, isOver) = bytes.addingReportingOverflow(max(header.size, 0))
      bytes = sum
      if isOver || bytes > limits.bytes && bytes / limits.ratio > size {
        throw FerryError(
          .tooLarge, "\(path) is refused: unpacked it is more than \(limits.ratio) times as large, \(bytes) bytes.")
      }
      entries.append(Entry(name: name, size: header.size, position: header.position, ordinal: ordinal))
    }
    self.entries = entries
  }

  /// By its first bytes; nil-like errors name what can be read.
  private static func kind(of path: String) throws(FerryError) -> Kind {
    guard let head = try DiskFile(path).read(upTo: 512) else { throw FerryError(.badData, "\(path) is empty.") }
    if head.starts(with: [0x50, 0x4b, 3, 4]) || head.starts(with: [0x50, 0x4b, 5, 6]) { return .zip }
    if head.count > 262, head[257..<262].elementsEqual("ustar".utf8) { return .tar }
    throw FerryError(
      .badData, "\(path) is neither a tar nor a zip file. Unpack one that is compressed, and name the tar or folder.")
  }

  static func isContainer(_ path: String) -> Bool { (try? kind(of: path)) != nil }

  /// UTF-8 where it is, else the code page of the first PCs. A folder's name ends with a slash, which is dropped.
  static func name(_ bytes: [UInt8], in path: String) throws(FerryError) -> String {
    let text = String(validating: bytes, as: UTF8.self) ?? CodePage437.text(bytes)
    func refused(_ why: String) -> FerryError {
      FerryError(.badData, "\(path) is refused: the name \(text.debugDescription) in it \(why).")
    }
    guard !text.hasPrefix("/"), !text.contains("\\"), !text.unicodeScalars.contains(where: { $0.value < 0x20 }) else {
      throw refused("is no plain path")
    }
    if text.utf8.count > 1, text.utf8.dropFirst().first == UInt8(ascii: ":"),
      text.utf8.first.map({ Character(Unicode.Scalar($0)).isLetter }) == true
    {
      throw refused("begins with a drive")
    }
    var parts = text.split(separator: "/", omittingEmptySubsequences: false)
    if parts.last == "" { parts.removeLast() }
    if parts.first == "." { parts.removeFirst() }
    guard !parts.contains(".."), !parts.contains(""), !parts.contains(".") else { throw refused("leads elsewhere") }
    return parts.joined(separator: "/")
  }
}
