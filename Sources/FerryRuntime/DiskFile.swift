package import FerryCore
import Glibc

/// An open file, closed with its last reference.
///
/// Blocks for as long as the disk does; any task may call it. Throws what `failure` makes of `errno`.
package final class DiskFile: Sendable {
  /// Says what went wrong with a path, by `errno`.
  package typealias Failure = @Sendable (_ path: String) -> FerryError

  package let path: String
  private let descriptor: Int32
  private let failure: Failure

  /// `flags` are those of open(2). A link at the end of the path is refused unless `followsLinks`.
  package init(
    _ path: String, flags: Int32 = O_RDONLY, followsLinks: Bool = false, failure: @escaping Failure = DiskFile.failure
  ) throws(FerryError) {
    self.path = path
    self.failure = failure
    descriptor = open(path, flags | O_CLOEXEC | (followsLinks ? 0 : O_NOFOLLOW), 0o600)
    guard descriptor >= 0 else { throw failure(path) }
  }

  deinit { close(descriptor) }

  package func write(_ bytes: [UInt8]) throws(FerryError) {
    var written = 0
    while written < bytes.count {
      let count = bytes.withUnsafeBytes { buffer in
        Glibc.write(descriptor, buffer.baseAddress?.advanced(by: written), buffer.count - written)
      }
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw failure(path) }
      written += count
    }
  }

  /// The next bytes; nil at the end.
  package func read(upTo limit: Int) throws(FerryError) -> [UInt8]? {
    while true {
      var count = 0
      let bytes = [UInt8](unsafeUninitializedCapacity: limit) { buffer, initialized in
        count = Glibc.read(descriptor, buffer.baseAddress, limit)
        initialized = max(count, 0)
      }
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw failure(path) }
      return count == 0 ? nil : bytes
    }
  }

  /// The next bytes to be read are the first.
  package func rewind() throws(FerryError) { guard lseek(descriptor, 0, SEEK_SET) == 0 else { throw failure(path) } }

  /// No folder, pipe or device.
  package func isRegular() throws(FerryError) -> Bool {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw failure(path) }
    return status.st_mode & S_IFMT == S_IFREG
  }

  package func sync() throws(FerryError) { guard fsync(descriptor) == 0 else { throw failure(path) } }

  package func truncate(to size: Int64) throws(FerryError) {
    guard ftruncate(descriptor, off_t(size)) == 0, lseek(descriptor, off_t(size), SEEK_SET) >= 0 else {
      throw failure(path)
    }
  }

  package func size() throws(FerryError) -> Int64 {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw failure(path) }
    return Int64(status.st_size)
  }

  /// False when another process has it.
  package func lock() -> Bool { flock(descriptor, LOCK_EX | LOCK_NB) == 0 }

  // MARK: Whole files and folders

  package static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

  package static func contents(of path: String, limit: Int) throws(FerryError) -> [UInt8] {
    let file = try DiskFile(path)
    var bytes: [UInt8] = []
    while let piece = try file.read(upTo: 64 << 10) {
      bytes += piece
      guard bytes.count <= limit else {
        throw FerryError(.badData, "\(path) is larger than \(limit) bytes, which no such file is.")
      }
    }
    return bytes
  }

  /// Writes a file so that after a crash it is there whole or as it was before.
  package static func replace(_ path: String, with bytes: [UInt8]) throws(FerryError) {
    let temporary = path + ".new"
    let file = try DiskFile(temporary, flags: O_WRONLY | O_CREAT | O_TRUNC)
    try file.write(bytes)
    try file.sync()
    guard rename(temporary, path) == 0 else { throw failure(path) }
    try syncFolder(of: path)
  }

  package static func syncFolder(
    of path: String, failure: @escaping Failure = DiskFile.failure
  ) throws(FerryError) {
    try DiskFile(folder(of: path), flags: O_RDONLY | O_DIRECTORY, failure: failure).sync()
  }

  /// The folder that a path lies in.
  package static func folder(of path: String) -> String {
    guard let end = path.lastIndex(of: "/") else { return "." }
    return end == path.startIndex ? "/" : String(path[..<end])
  }

  /// Also those that it lies in. Nobody else may read what is made.
  package static func makeFolder(
    _ path: String, failure: Failure = DiskFile.folderFailure
  ) throws(FerryError) {
    var made = ""
    for step in path.split(separator: "/", omittingEmptySubsequences: false) {
      made += step
      if !made.isEmpty, !exists(made), mkdir(made, 0o700) != 0, errno != EEXIST {
        throw failure(path)
      }
      made += "/"
    }
  }

  @Sendable package static func folderFailure(_ path: String) -> FerryError {
    switch errno {
    case ENOSPC, EDQUOT: failure(path)
    case let code: FerryError(.storage, "The folder \(path) cannot be made: \(String(cString: strerror(code))).")
    }
  }

  /// The names in a folder, sorted, and whether each is a folder, a file, or neither (nil). What goes meanwhile may be
  /// left out.
  package static func names(
    in folder: String, failure: Failure = DiskFile.failure
  ) throws(FerryError) -> [(name: String, isFolder: Bool?)] {
    guard let directory = opendir(folder) else { throw failure(folder) }
    defer { closedir(directory) }
    var names: [(name: String, isFolder: Bool?)] = []
    while let entry = readdir(directory) {
      let name = withUnsafePointer(to: entry.pointee.d_name) {
        $0.withMemoryRebound(to: UInt8.self, capacity: 256) { String(decodingCString: $0, as: UTF8.self) }
      }
      guard name != ".", name != ".." else { continue }
      var status = stat()
      guard lstat("\(folder)/\(name)", &status) == 0 else {
        if errno == ENOENT { continue }
        throw failure("\(folder)/\(name)")
      }
      let kind = status.st_mode & S_IFMT
      names.append((name, kind == S_IFDIR ? true : kind == S_IFREG ? false : nil))
    }
    return names.sorted { $0.name < $1.name }
  }

  @Sendable package static func failure(_ path: String) -> FerryError {
    switch errno {
    case ENOENT: FerryError(.notFound, "There is no \(path).")
    case ENOSPC, EDQUOT:
      FerryError(.storage, "The disk is full. Make room, then try again.", retry: .now)
    case ELOOP, ENOTDIR: FerryError(.badData, "\(path) is a link or no folder, which is not followed.")
    default:
      FerryError(.storage, "\(path) cannot be read or written.", retry: .now, cause: String(cString: strerror(errno)))
    }
  }
}
