package import FerryCore
import FerryRuntime
import Glibc

/// Writes an archive, a folder, on a thread of its own because disks block.
///
/// What was appended is durable after `commit` or `finish`. An archive that was not finished, or to which more is to be
/// added, is opened again: what was appended after the last `commit` is cut off. After an error it must be opened again.
///
/// Source: the page "The archive format" in this target's catalog.
package actor ArchiveWriter: RecordSink {
  private let folder: String
  private let limits: SegmentLimits
  private let loop: LoopExecutor
  /// Held, and with it the lock, while the archive is open.
  private var lock: DiskFile?
  /// What is certain.
  private var checkpoint: Checkpoint
  private var seq: Int64
  private var segment: SegmentWriter?
  /// Digests of the sealed segments, the first one first.
  private var sealed: [String]
  private var hasBroken = false
  private var foldersToSync: Set<String> = []

  package nonisolated let header: ArchiveHeader
  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// Opens the archive in `folder`, or makes it with `header`; of one that exists the header stays.
  ///
  /// Throws `conflict` when another process writes to it, `badData` when it is damaged or the folder holds something
  /// else, `unsupported` for a newer version.
  package init(folder: String, header: ArchiveHeader, limits: SegmentLimits = SegmentLimits()) throws(FerryError) {
    let opened = try OpenedArchive(folder: folder, header: header)
    self.folder = folder
    self.limits = limits
    self.header = opened.header
    lock = opened.lock
    checkpoint = opened.checkpoint
    seq = opened.checkpoint.seq
    sealed = opened.sealed
    segment = opened.segment
    loop = try LoopExecutor(name: "ferry-archive")
  }

  deinit { loop.stop() }

  // MARK: Adding

  package func append(_ records: [Record]) throws(FerryError) {
    try guarded { () throws(FerryError) in
      for record in records {
        let segment = try openSegment()
        try segment.write(record.line(seq: seq + 1))
        seq += 1
        if segment.size >= limits.bytes || segment.lines >= limits.records { try seal() }
      }
    }
  }

  package func addBlob(_ bytes: ByteStream, limit: Int64) async throws(FerryError) -> (sha256: String, size: Int64) {
    if let size = bytes.size, size > limit { throw Self.tooLarge(limit) }
    let temporary = "\(folder)/\(ArchiveLayout.incoming)/\(Crypto.randomHex(bytes: 16))"
    let file = try DiskFile(temporary, flags: O_WRONLY | O_CREAT | O_EXCL)
    var isKept = false
    defer { if !isKept { unlink(temporary) } }
    var digest = IncrementalDigest(.sha256)
    var size: Int64 = 0
    while let piece = try await bytes.next() {
      size += Int64(piece.count)
      guard size <= limit else { throw Self.tooLarge(limit) }
      digest.update(piece)
      try file.write(piece)
    }
    let sha256 = Crypto.hex(digest.finish())
    let path = "\(folder)/\(ArchiveLayout.blob(sha256))"
    guard !DiskFile.exists(path) else { return (sha256, size) }
    try file.sync()
    Failpoint.beforeBlobRename.pass()
    try DiskFile.makeFolder("\(folder)/\(ArchiveLayout.blobs)/\(sha256.prefix(2))")
    guard rename(temporary, path) == 0 else { throw DiskFile.failure(path) }
    isKept = true
    foldersToSync.insert("\(folder)/\(ArchiveLayout.blobs)/.")
    foldersToSync.insert(path)
    return (sha256, size)
  }

  /// Whether its bytes are here already.
  package func hasBlob(_ sha256: String) -> Bool {
    ArchiveLayout.isDigest(sha256) && DiskFile.exists("\(folder)/\(ArchiveLayout.blob(sha256))")
  }

  // MARK: Making durable

  /// What was written down with the last commit about a channel; nil when there was none.
  package func place(of channel: ChannelID) -> String? { checkpoint.places[channel.rawValue] }

  /// Makes everything appended so far durable, together with where the export of a channel stands.
  package func commit(_ place: String, of channel: ChannelID) throws(FerryError) {
    try commit(places: [channel.rawValue: place])
  }

  /// Makes everything appended so far durable.
  package func commit() throws(FerryError) { try commit(places: [:]) }

  private func commit(places: [String: String]) throws(FerryError) {
    try guarded { () throws(FerryError) in
      for path in foldersToSync { try DiskFile.syncFolder(of: path) }
      foldersToSync = []
      try segment?.sync()
      var next = checkpoint
      next.seq = seq
      next.segment = segment?.number ?? sealed.count
      next.offset = segment?.size ?? 0
      next.lines = segment?.lines ?? 0
      next.isSealed = segment == nil
      next.places.merge(places) { $1 }
      Failpoint.beforeCheckpoint.pass()
      try DiskFile.replace("\(folder)/\(ArchiveLayout.checkpoint)", with: next.json())
      Failpoint.afterCheckpoint.pass()
      checkpoint = next
    }
  }

  /// Seals the log and makes the folder a bag that others can check. Nothing is written after it.
  ///
  /// Returns the digest of the last segment: only who keeps it elsewhere can tell that the end was cut off.
  @discardableResult
  package func finish() throws(FerryError) -> String? {
    guard lock != nil else { return sealed.last }
    if segment != nil { try guarded { () throws(FerryError) in try seal() } }
    try commit()
    try guarded { () throws(FerryError) in
      try BagWriter(folder: folder, header: header, segments: sealed, places: checkpoint.places).write()
      Failpoint.beforeClosing.pass()
      let path = "\(folder)/\(ArchiveLayout.checkpoint)"
      guard unlink(path) == 0 || errno == ENOENT else { throw DiskFile.failure(path) }
      rmdir("\(folder)/\(ArchiveLayout.incoming)")
      try DiskFile.syncFolder(of: path)
    }
    lock = nil
    return sealed.last
  }

  private func openSegment() throws(FerryError) -> SegmentWriter {
    if let segment { return segment }
    let segment = try SegmentWriter(number: sealed.count + 1, seq: seq + 1, previous: sealed.last, in: folder)
    seq += 1
    foldersToSync.insert("\(folder)/\(ArchiveLayout.log)/.")
    self.segment = segment
    return segment
  }

  private func seal() throws(FerryError) {
    guard let segment else { return }
    sealed.append(try segment.seal(seq: seq + 1))
    seq += 1
    self.segment = nil
  }

  /// After a failure the state here is not that of the disk.
  private func guarded(_ body: () throws(FerryError) -> Void) throws(FerryError) {
    guard !hasBroken, lock != nil else {
      throw FerryError(
        .storage, "Writing to \(folder) has ended after an earlier fault. Start again: it goes on where it was.",
        retry: .now)
    }
    do throws(FerryError) { try body() } catch {
      hasBroken = true
      throw error
    }
  }

  private static func tooLarge(_ limit: Int64) -> FerryError {
    FerryError(.tooLarge, "The attachment is larger than the limit of \(limit) bytes.")
  }
}
