import FerryCore
import FerryRuntime
import Glibc

/// A folder of files named by the SHA-256 of their bytes, on a thread of its own because disks block.
actor FileShelf {
  struct Kept: Sendable {
    let sha256: String
    let size: Int64
    /// The first bytes, from which the type is told.
    let head: [UInt8]
  }

  private let folder: String
  private let loop: LoopExecutor

  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// Makes the folder and throws away what an earlier process left unfinished in it.
  init(folder: String) throws(FerryError) {
    self.folder = folder
    loop = try LoopExecutor(name: "ferry-files")
    for path in [folder, folder + "/unfinished"] where mkdir(path, 0o700) != 0 && errno != EEXIST {
      let cause = String(cString: strerror(errno))
      loop.stop()
      throw FerryError(
        .storage, "The folder \(path) cannot be made. Check that the folder above it exists and may be written.",
        cause: cause)
    }
    if let directory = opendir(folder + "/unfinished") {
      while let entry = readdir(directory) {
        let name = withUnsafePointer(to: entry.pointee.d_name) {
          $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != ".", name != ".." { unlink(folder + "/unfinished/" + name) }
      }
      closedir(directory)
    }
  }

  nonisolated func close() { loop.stop() }

  /// 64 lower-case hexadecimal digits: no path can be made of it.
  static func isName(_ text: String) -> Bool {
    text.utf8.count == 64
      && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
  }

  func store(_ stream: ByteStream, limit: Int64, expectedSHA256: String?) async throws(FerryError) -> Kept {
    if let size = stream.size, size > limit { throw Self.tooLarge(limit) }
    let temporary = "\(folder)/unfinished/\(Crypto.randomHex(bytes: 16))"
    let file = try Self.file(temporary, flags: O_WRONLY | O_CREAT | O_EXCL)
    var isKept = false
    defer { if !isKept { unlink(temporary) } }

    var digest = IncrementalDigest(.sha256)
    var size: Int64 = 0
    var head: [UInt8] = []
    while let piece = try await stream.next() {
      if Task.isCancelled { throw .cancelled(didNotAct: true) }
      size += Int64(piece.count)
      guard size <= limit else { throw Self.tooLarge(limit) }
      if head.count < ImageType.headLength { head += piece.prefix(ImageType.headLength - head.count) }
      digest.update(piece)
      try file.write(piece)
    }
    if let declared = stream.size, declared != size {
      throw FerryError(.badRequest, "The file has \(size) bytes, not the \(declared) that were declared.")
    }
    let sha256 = Crypto.hex(digest.finish())
    if let expectedSHA256, expectedSHA256 != sha256 {
      throw FerryError(.badRequest, "The bytes have another SHA-256 than was declared. They were damaged on the way.")
    }
    try file.sync()
    let path = "\(folder)/\(sha256)"
    guard rename(temporary, path) == 0 else { throw Self.failure(path) }
    isKept = true
    try Self.file(folder, flags: O_RDONLY | O_DIRECTORY).sync()
    return Kept(sha256: sha256, size: size, head: head)
  }

  func open(_ sha256: String, mediaType: String) throws(FerryError) -> ByteStream {
    guard Self.isName(sha256) else { throw FerryError(.notFound, "There is no such file.") }
    let file = try Self.file("\(folder)/\(sha256)")
    return ByteStream(size: try file.size(), mediaType: mediaType) { [self] () async throws(FerryError) in
      try await read(file)
    }
  }

  private func read(_ file: DiskFile) throws(FerryError) -> [UInt8]? { try file.read(upTo: 128 * 1024) }

  private static func tooLarge(_ limit: Int64) -> FerryError {
    FerryError(.tooLarge, "The file is larger than the limit of \(limit) bytes.")
  }

  private static func file(_ path: String, flags: Int32 = O_RDONLY) throws(FerryError) -> DiskFile {
    try DiskFile(path, flags: flags, followsLinks: true, failure: failure)
  }

  /// Clients are told, so it names no path.
  @Sendable private static func failure(_: String) -> FerryError {
    switch errno {
    case ENOENT: FerryError(.notFound, "There is no such file.")
    case ENOSPC, EDQUOT:
      FerryError(.storage, "The disk is full. Make room and send the file again.", retry: .now)
    default:
      FerryError(
        .storage, "A file in Ferry's folder cannot be read or written.", retry: .now,
        cause: String(cString: strerror(errno)))
    }
  }
}
