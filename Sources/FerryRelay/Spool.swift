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
  /// What was fetched lately, under these rules.
  private let known = Locked([Origin: File]())

  private final class Usage: Sendable {
    let bytes = Locked(Int64(0))
    /// Seconds since 1970.
    let nextTrim = Locked(0)
  }

  /// An attachment by the place that it has in a message.
  struct Origin: Hashable, Sendable {
    let source: Address
    let message: MessageID
    let revision: Int
    let index: Int
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
    try DiskFile.makeFolder(folder, failure: Self.failure)
    var bytes: Int64 = 0
    for file in try files() {
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

  /// Unless somebody has stored the same again meanwhile, and is about to send it or to give out a link to it.
  func remove(_ file: Entry) {
    usage.bytes.withLock { bytes in
      guard let now = entry(file.name), now.used == file.used, unlink(path(of: file.name)) == 0 else { return }
      bytes -= now.size
    }
  }

  /// What the folder holds.
  package var bytes: Int64 { usage.bytes.withLock { $0 } }

  package func path(of sha256: String) -> String { "\(folder)/\(sha256)" }

  /// Streams the bytes to disk, in memory no more than a piece. The limit is checked against the declared size
  /// before, and enforced while they arrive.
  package func store(_ bytes: ByteStream, declaredType: String) async throws(FerryError) -> File {
    if let size = bytes.size, size > limit { throw tooLarge(size) }
    let temporary = "\(folder)/incoming-\(Crypto.randomHex(bytes: 8))"
    let file = try DiskFile(temporary, flags: O_WRONLY | O_CREAT | O_EXCL, failure: Self.failure)
    defer { unlink(temporary) }
    var writer = SpoolWriter(stripsLocation: stripsLocation)
    while let piece = try await bytes.next() {
      guard writer.received + Int64(piece.count) <= limit else { throw tooLarge(writer.received + Int64(piece.count)) }
      try file.write(try writer.feed(piece))
    }
    if let declared = bytes.size, declared != writer.received {
      throw FerryError(
        .unavailable, "The attachment ended after \(writer.received) of \(declared) bytes.", retry: .now)
    }
    try file.write(try writer.finish())
    try file.sync()
    let stored = File(sha256: writer.sha256, size: writer.written, mediaType: writer.mediaType ?? declaredType)
    guard keep(temporary, as: stored) else { throw Self.failure(temporary) }
    try DiskFile.syncFolder(of: path(of: stored.sha256), failure: Self.failure)
    return stored
  }

  /// Gives a file its name, and counts it when there was none of that name: as one step, like `remove`.
  private func keep(_ temporary: String, as file: File) -> Bool {
    usage.bytes.withLock { bytes in
      let isNew = !DiskFile.exists(path(of: file.sha256))
      guard rename(temporary, path(of: file.sha256)) == 0 else { return false }
      if isNew { bytes += file.size }
      return true
    }
  }

  /// What was fetched from there lately and is still here; it counts as wanted again.
  func file(from origin: Origin) -> File? {
    guard let file = known.withLock({ $0[origin] }) else { return nil }
    return utimes(path(of: file.sha256), nil) == 0 ? file : nil
  }

  func remember(_ file: File, from origin: Origin) {
    known.withLock { known in
      // They are for other destinations and for further attempts, so soon asked for or not at all.
      if known.count >= Self.mostKnown { known = [:] }
      known[origin] = file
    }
  }

  private static let mostKnown = 1024

  /// The stored bytes, in pieces of 64 KiB.
  package func read(_ file: File) throws(FerryError) -> ByteStream {
    let stored = try DiskFile(path(of: file.sha256), failure: Self.failure)
    return ByteStream(size: file.size, mediaType: file.mediaType) { () throws(FerryError) in
      try stored.read(upTo: 65_536)
    }
  }

  private func tooLarge(_ size: Int64) -> FerryError {
    FerryError(.tooLarge, "The attachment has \(size) bytes or more; the limit is \(limit).")
  }

  @Sendable static func failure(_ path: String) -> FerryError {
    FerryError(
      .storage, "The file \(path) could not be written or read. Check the disk's space and permissions.", retry: .now,
      cause: String(cString: strerror(errno)))
  }
}
