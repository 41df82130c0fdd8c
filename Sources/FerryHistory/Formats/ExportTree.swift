import FerryCore
import FerryRuntime
import Glibc

/// The files of another service's export: a folder, or a zip that is read in place. Not safe to share.
///
/// A zip is read front to back: asking for files in its order costs one pass.
final class ExportTree {
  let path: String
  /// Relative to the tree's root, sorted. Links are not among them.
  let names: [String]
  private let container: Container?
  private let entries: [String: Container.Entry]
  private var handle: ContainerHandle?

  init(_ path: String) throws(FerryError) {
    self.path = path
    var status = stat()
    guard stat(path, &status) == 0 else { throw DiskFile.failure(path) }
    if status.st_mode & S_IFMT == S_IFDIR {
      container = nil
      entries = [:]
      names = try Self.names(in: path)
    } else {
      let container = try Container(path)
      self.container = container
      entries = Dictionary(container.entries.map { ($0.name, $0) }) { $1 }
      names = entries.keys.sorted()
    }
  }

  private static func names(in path: String) throws(FerryError) -> [String] {
    var names: [String] = []
    var folders = [""]
    while let folder = folders.popLast() {
      for (name, isFolder) in try DiskFile.names(in: "\(path)/\(folder)") {
        if isFolder == true { folders.append("\(folder)\(name)/") }
        if isFolder == false { names.append(folder + name) }
      }
    }
    return names.sorted()
  }

  /// Where a file lies in the zip; 0 in a folder.
  func order(of name: String) -> Int { entries[name]?.ordinal ?? 0 }

  /// Of a zip, a file that was opened before cannot be read on, unless it was opened `alone`.
  func open(_ name: String, alone: Bool = false) throws(FerryError) -> OpenFile? {
    guard let container else {
      guard DiskFile.exists("\(path)/\(name)") else { return nil }
      let file = try DiskFile("\(path)/\(name)")
      return OpenFile(size: try file.size()) { (limit) throws(FerryError) in try file.read(upTo: limit) }
    }
    guard let entry = entries[name] else { return nil }
    let handle: ContainerHandle
    if let open = self.handle, open.ordinal < entry.ordinal, !alone {
      handle = open
    } else {
      handle = try ContainerHandle(path, container.kind)
      if !alone { self.handle = handle }
    }
    while handle.ordinal < entry.ordinal {
      guard try handle.next() != nil else { throw FerryError(.badData, "\(path) was changed while it was read.") }
    }
    let limit = Container.Limits().bytes
    var left = entry.size >= 0 ? entry.size : limit
    return OpenFile(size: entry.size) { (count) throws(FerryError) in
      guard let piece = try handle.read(upTo: count) else { return nil }
      left -= Int64(piece.count)
      guard left >= 0 else {
        throw FerryError(.tooLarge, "\(name) in \(container.path) is larger than the zip says.")
      }
      return piece
    }
  }
}
