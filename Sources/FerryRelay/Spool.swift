package import FerryCore
import FerryRuntime
import Glibc

/// Attachments on their way, in files named by their SHA-256: each is fetched once however many destinations it has.
package struct Spool: Sendable, Equatable {
  let folder: String
  private let limit: Int64
  private let budget: Int64
  private let stripsLocation: Bool
  /// Bytes in the folder, shared by all copies of this value.
  private let usage: Usage

  private final class Usage: Sendable {
    let bytes = Locked(Int64(0))
    /// Seconds since 1970.
    let nextTrim = Locked(0)
  }

  package struct File: Hashable, Sendable {
    package let sha256: String
    package let size: Int64
    /// By content for the common image types, and as declared for all else.
    package let mediaType: String
  }

  /// `limit` bytes a file at most; `trim` keeps at most `budget` bytes. With `stripsLocation` images lose what says where
  /// they were made.
  package init(
    folder: String, limit: Int64, budget: Int64 = .max, stripsLocation: Bool = false
  ) throws(FerryError) {
    self.folder = folder
    self.limit = limit
    self.budget = budget
    self.stripsLocation = stripsLocation
    usage = Usage()
    guard mkdir(folder, 0o700) == 0 || errno == EEXIST else { throw Self.failure("made", folder) }
    var bytes: Int64 = 0
    for file in files() {
      // What was being written when the last process ended.
      if file.isWhole { bytes += file.size } else { unlink("\(folder)/\(file.name)") }
    }
    let found = bytes
    usage.bytes.withLock { $0 = found }
  }

  private init(_ other: Spool, limit: Int64, budget: Int64, stripsLocation: Bool) {
    folder = other.folder
    usage = other.usage
    self.limit = limit
    self.budget = budget
    self.stripsLocation = stripsLocation
  }

  /// The same folder under other rules.
  package func with(limit: Int64, budget: Int64, stripsLocation: Bool) -> Spool {
    Spool(self, limit: limit, budget: budget, stripsLocation: stripsLocation)
  }

  package static func == (left: Spool, right: Spool) -> Bool {
    left.folder == right.folder && left.limit == right.limit && left.budget == right.budget
      && left.stripsLocation == right.stripsLocation
  }

  var isOverBudget: Bool { bytes > budget }

  func isTimeToTrim(_ now: Int) -> Bool { usage.nextTrim.withLock { $0 <= now } }

  func waitWithTrimming(until time: Int) { usage.nextTrim.withLock { $0 = time } }

  func remove(_ file: Entry) {
    guard unlink(path(of: file.name)) == 0 else { return }
    usage.bytes.withLock { $0 -= file.size }
  }

  /// What the folder holds.
  package var bytes: Int64 { usage.bytes.withLock { $0 } }

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
    var writer = SpoolWriter(stripsLocation: stripsLocation)
    while let piece = try await bytes.next() {
      guard writer.received + Int64(piece.count) <= limit else { throw tooLarge(writer.received + Int64(piece.count)) }
      try Self.write(try writer.feed(piece), to: descriptor, temporary)
    }
    if let declared = bytes.size, declared != writer.received {
      throw FerryError(
        .unavailable, "The attachment ended after \(writer.received) of \(declared) bytes.", retry: .now)
    }
    try Self.write(try writer.finish(), to: descriptor, temporary)
    let sha256 = writer.sha256
    let isNew = access(path(of: sha256), F_OK) != 0
    guard fsync(descriptor) == 0, rename(temporary, path(of: sha256)) == 0 else {
      throw Self.failure("written", temporary)
    }
    if isNew { usage.bytes.withLock { $0 += writer.written } }
    return File(sha256: sha256, size: writer.written, mediaType: writer.mediaType ?? declaredType)
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
