import FerryCore
import FerryRuntime
import Glibc

/// The files of an archive, in a folder or in a tar.
struct ArchiveFiles: Sendable {
  let path: String
  /// By name, of a tar.
  private let entries: [String: Container.Entry]?

  /// Throws `badData` for what is no archive.
  init(_ path: String) throws(FerryError) {
    self.path = path
    var status = stat()
    guard stat(path, &status) == 0 else { throw DiskFile.failure(path) }
    if status.st_mode & S_IFMT == S_IFDIR {
      entries = nil
    } else {
      let container = try Container(path)
      guard container.kind == .tar else {
        throw FerryError(.badData, "\(path) is a zip file; an archive is a folder or a tar. Is it another format?")
      }
      entries = try Self.index(container)
    }
    guard contains(ArchiveLayout.header) else {
      throw FerryError(.badData, "\(path) is no archive of Ferry's: there is no \(ArchiveLayout.header) in it.")
    }
  }

  /// A bag in a tar lies in a folder of its own.
  private static func index(_ container: Container) throws(FerryError) -> [String: Container.Entry] {
    let header = container.entries.first {
      $0.name == ArchiveLayout.header || $0.name.hasSuffix("/\(ArchiveLayout.header)")
    }
    let root = header?.name.dropLast(ArchiveLayout.header.count) ?? ""
    var entries: [String: Container.Entry] = [:]
    for entry in container.entries {
      guard entry.name.hasPrefix(root) else {
        throw FerryError(.badData, "\(container.path) holds \(entry.name.debugDescription) beside the archive.")
      }
      entries[String(entry.name.dropFirst(root.count))] = entry
    }
    return entries
  }

  func contains(_ name: String) -> Bool {
    if let entries { return entries[name] != nil }
    return DiskFile.exists("\(path)/\(name)")
  }

  /// Reads pieces until nil. Nil when there is no such file.
  func open(_ name: String) throws(FerryError) -> OpenFile? {
    guard let entries else {
      guard DiskFile.exists("\(path)/\(name)") else { return nil }
      let file = try DiskFile("\(path)/\(name)")
      return OpenFile(size: try file.size()) { (limit) throws(FerryError) in try file.read(upTo: limit) }
    }
    guard let entry = entries[name] else { return nil }
    let handle = try ContainerHandle(path, .tar, position: entry.position)
    _ = try handle.next()
    return OpenFile(size: entry.size) { (limit) throws(FerryError) in try handle.read(upTo: limit) }
  }

  func contents(of name: String, limit: Int) throws(FerryError) -> [UInt8]? {
    guard let file = try open(name) else { return nil }
    var bytes: [UInt8] = []
    while let piece = try file.read(64 << 10) {
      bytes += piece
      guard bytes.count <= limit else { throw FerryError(.badData, "\(name) is larger than \(limit) bytes.") }
    }
    return bytes
  }

  /// All files, sorted. Links are named too: they are no files.
  func names() throws(FerryError) -> [String] {
    if let entries { return entries.keys.sorted() }
    var names: [String] = []
    var folders = [""]
    while let folder = folders.popLast() {
      for (name, isFolder) in try DiskFile.names(in: "\(path)/\(folder)") {
        if isFolder == true { folders.append("\(folder)\(name)/") } else { names.append(folder + name) }
      }
    }
    return names.sorted()
  }

  /// The numbers of the segments that are there.
  func segments() throws(FerryError) -> [Int] {
    guard let entries else { return try OpenedArchive.segments(in: path) }
    return entries.keys.compactMap { name in
      guard name.hasPrefix("\(ArchiveLayout.log)/"), name.hasSuffix(".jsonl"),
        let number = Int(name.dropLast(6).suffix(while: { $0 != "/" })), number > 0,
        ArchiveLayout.segment(number) == name
      else { return nil }
      return number
    }.sorted()
  }

  func checkpoint() throws(FerryError) -> Checkpoint? {
    guard let json = try contents(of: ArchiveLayout.checkpoint, limit: 16 << 20) else { return nil }
    return try Checkpoint(json: json)
  }
}

/// A file that is being read, front to back.
struct OpenFile {
  /// Bytes, as its folder or container says.
  let size: Int64
  /// At most so many bytes; nil at the end.
  let read: (_ limit: Int) throws(FerryError) -> [UInt8]?

  init(size: Int64, read: @escaping (_ limit: Int) throws(FerryError) -> [UInt8]?) {
    self.size = size
    self.read = read
  }
}

extension BidirectionalCollection {
  fileprivate func suffix(while predicate: (Element) -> Bool) -> SubSequence {
    var start = endIndex
    while start > startIndex, predicate(self[index(before: start)]) { start = index(before: start) }
    return self[start...]
  }
}
