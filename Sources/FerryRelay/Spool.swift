package import FerryCore
import FerryRuntime
import Glibc

/// Attachments on their way, in files named by their SHA-256: each is fetched once however many destinations it has.
package struct Spool: Sendable, Equatable {
  private let folder: String
  private let limit: Int64

  package struct File: Hashable, Sendable {
    package let sha256: String
    package let size: Int64
    /// By content for the common image types, and as declared for all else.
    package let mediaType: String
  }

  /// `limit` bytes a file at most.
  package init(folder: String, limit: Int64) throws(FerryError) {
    self.folder = folder
    self.limit = limit
    guard mkdir(folder, 0o700) == 0 || errno == EEXIST else { throw Self.failure("made", folder) }
  }

  /// The same folder with another limit.
  package func with(limit: Int64) throws(FerryError) -> Spool { try Spool(folder: folder, limit: limit) }

  package func path(of sha256: String) -> String { "\(folder)/\(sha256)" }

  /// Streams the bytes to disk, in memory no more than a piece. The limit is checked against the declared size
  /// before, and enforced while they arrive.
  package func store(_ bytes: ByteStream, declaredType: String) async throws(FerryError) -> File {
    if let size = bytes.size, size > limit { throw tooLarge(size) }
    let temporary = "\(folder)/incoming-\(Crypto.randomHex(bytes: 8))"
    let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Self.failure("made", temporary) }
    defer {
      close(descriptor)
      unlink(temporary)
    }
    var digest = IncrementalDigest(.sha256)
    var size: Int64 = 0
    var head: [UInt8] = []
    while let piece = try await bytes.next() {
      size += Int64(piece.count)
      guard size <= limit else { throw tooLarge(size) }
      if head.count < 16 { head += piece.prefix(16) }
      digest.update(piece)
      try Self.write(piece, to: descriptor, temporary)
    }
    if let declared = bytes.size, declared != size {
      throw FerryError(
        .unavailable, "The attachment ended after \(size) of \(declared) bytes.", retry: .now)
    }
    let sha256 = Crypto.hex(digest.finish())
    guard fsync(descriptor) == 0, rename(temporary, path(of: sha256)) == 0 else {
      throw Self.failure("written", temporary)
    }
    return File(sha256: sha256, size: size, mediaType: Self.mediaType(of: head) ?? declaredType)
  }

  /// The stored bytes, from `offset` on, in pieces of 64 KiB.
  package func read(_ file: File) throws(FerryError) -> ByteStream {
    let path = path(of: file.sha256)
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw Self.failure("opened", path) }
    let reader = FileReader(descriptor: descriptor)
    return ByteStream(size: file.size, mediaType: file.mediaType) { () throws(FerryError) in
      guard let piece = reader.next() else { throw Self.failure("read", path) }
      return piece.isEmpty ? nil : piece
    }
  }

  private static func write(_ piece: [UInt8], to descriptor: Int32, _ path: String) throws(FerryError) {
    var offset = 0
    while offset < piece.count {
      let written = piece.withUnsafeBytes { bytes in
        Glibc.write(descriptor, bytes.baseAddress.map { $0 + offset }, bytes.count - offset)
      }
      if written < 0 {
        if errno == EINTR { continue }
        throw failure("written", path)
      }
      offset += written
    }
  }

  private func tooLarge(_ size: Int64) -> FerryError {
    FerryError(.tooLarge, "The attachment has \(size) bytes or more; the limit is \(limit).")
  }

  private static func failure(_ verb: String, _ path: String) -> FerryError {
    FerryError(
      .storage, "The file \(path) could not be \(verb). Check the disk's space and permissions.", retry: .now,
      cause: String(cString: strerror(errno)))
  }

  /// The type that the first bytes prove, or nil.
  static func mediaType(of head: [UInt8]) -> String? {
    if head.starts(with: [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]) { return "image/png" }
    if head.starts(with: [0xff, 0xd8, 0xff]) { return "image/jpeg" }
    if head.starts(with: Array("GIF8".utf8)) { return "image/gif" }
    if head.starts(with: Array("RIFF".utf8)), head.dropFirst(8).starts(with: Array("WEBP".utf8)) {
      return "image/webp"
    }
    return nil
  }
}

/// An open file read in pieces, closed when nobody reads it any more.
private final class FileReader: Sendable {
  private let descriptor: Int32

  init(descriptor: Int32) { self.descriptor = descriptor }
  deinit { close(descriptor) }

  /// Empty at the end, nil on failure.
  func next() -> [UInt8]? {
    while true {
      var count = 0
      let piece = [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, initialized in
        count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
        initialized = max(count, 0)
      }
      if count >= 0 { return piece }
      if errno != EINTR { return nil }
    }
  }
}
