package import FerryCore
import FerryRuntime

/// Reads an archive, a folder or a tar, from its first record to its last, on a thread of its own because disks block.
///
/// The records come as they were written: of several with one id the last counts, which `FoldedRecords` sees to. The
/// chain is checked on the way. Of an open archive what was committed is read.
package actor ArchiveReader: RecordSource {
  private let files: ArchiveFiles
  private let scanner: LogScanner
  private let loop: LoopExecutor
  private var fault: FerryError?

  package nonisolated let header: ArchiveHeader
  /// It was not finished: there may be more to come.
  package nonisolated let isOpen: Bool
  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// Throws `notFound`, `badData` for what is no archive, `unsupported` for one of a newer version.
  package init(_ path: String) throws(FerryError) {
    files = try ArchiveFiles(path)
    header = try files.header()
    isOpen = files.contains(ArchiveLayout.checkpoint)
    scanner = try LogScanner(files)
    loop = try LoopExecutor(name: "ferry-archive")
  }

  deinit { loop.stop() }

  /// What was written down about a channel with the last commit; nil when there was none.
  package nonisolated func place(of channel: ChannelID) throws(FerryError) -> String? {
    if let checkpoint = try files.checkpoint() { return checkpoint.places[channel.rawValue] }
    guard let json = try files.contents(of: ArchiveLayout.places, limit: 16 << 20) else { return nil }
    return try Checkpoint(json: json).places[channel.rawValue]
  }

  package func next(limit: Int) throws(FerryError) -> [Record] { try numbered(limit: limit).map(\.record) }

  /// With each record's number in the log.
  package func numbered(limit: Int) throws(FerryError) -> [(seq: Int64, record: Record)] {
    if let fault { throw fault }
    var records: [(seq: Int64, record: Record)] = []
    do throws(FerryError) {
      while records.count < limit, let line = try scanner.next() {
        if let record = line.record { records.append((line.seq, record)) }
      }
    } catch {
      // What was read before it is handed out first.
      guard !records.isEmpty else { throw error }
      fault = error
    }
    return records
  }

  package nonisolated func blob(_ sha256: String) throws(FerryError) -> ByteStream? {
    guard ArchiveLayout.isDigest(sha256), files.contains(ArchiveLayout.blob(sha256)) else { return nil }
    let reader = try BlobReader(files, sha256)
    return ByteStream(size: reader.size) { () async throws(FerryError) in try await reader.next() }
  }
}

extension ArchiveFiles {
  func header() throws(FerryError) -> ArchiveHeader {
    try ArchiveHeader(json: try contents(of: ArchiveLayout.header, limit: 1 << 20) ?? [])
  }
}

/// One blob on its way out of an archive. Its digest is checked at the end.
private actor BlobReader {
  nonisolated let size: Int64
  private let name: String
  private let sha256: String
  private let file: OpenFile
  private var digest = IncrementalDigest(.sha256)
  private var isAtEnd = false

  init(_ files: ArchiveFiles, _ sha256: String) throws(FerryError) {
    name = ArchiveLayout.blob(sha256)
    self.sha256 = sha256
    guard let file = try files.open(name) else { throw FerryError(.notFound, "There is no \(name).") }
    self.file = file
    size = file.size
  }

  func next() throws(FerryError) -> [UInt8]? {
    guard !isAtEnd else { return nil }
    if let piece = try file.read(128 << 10) {
      digest.update(piece)
      return piece
    }
    isAtEnd = true
    guard Crypto.hex(digest.current()) == sha256 else {
      throw FerryError(.badData, "\(name): The bytes are not those that the name says: the file was changed.")
    }
    return nil
  }
}
