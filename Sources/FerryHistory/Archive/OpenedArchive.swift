import FerryCore
import FerryRuntime
import Glibc

/// An archive's folder made ready for writing: made if it is new, and cut at its checkpoint.
struct OpenedArchive {
  let header: ArchiveHeader
  let lock: DiskFile
  let checkpoint: Checkpoint
  let sealed: [String]
  let segment: SegmentWriter?

  init(folder: String, header: ArchiveHeader) throws(FerryError) {
    let isNew = !DiskFile.exists(folder)
    if isNew { try DiskFile.makeFolder(folder) }
    lock = try DiskFile(folder, flags: O_RDONLY | O_DIRECTORY)
    guard lock.lock() else {
      throw FerryError(.conflict, "\(folder) is being written to by another Ferry. Wait until it has finished.")
    }
    let headerPath = "\(folder)/\(ArchiveLayout.header)"
    if !DiskFile.exists(headerPath) {
      let strangers = try DiskFile.names(in: folder).map(\.name).filter {
        !["data", ArchiveLayout.incoming].contains($0)
      }
      guard strangers.isEmpty else {
        throw FerryError(
          .badData, "\(folder) is no archive, and there is something in it already. Name an empty or a new folder.")
      }
      for name in ["data", ArchiveLayout.log, ArchiveLayout.blobs] { try DiskFile.makeFolder("\(folder)/\(name)") }
      try DiskFile.replace(headerPath, with: header.json())
      if isNew { try DiskFile.syncFolder(of: folder) }
    }
    try DiskFile.makeFolder("\(folder)/\(ArchiveLayout.incoming)")
    for (name, _) in try DiskFile.names(in: "\(folder)/\(ArchiveLayout.incoming)") {
      unlink("\(folder)/\(ArchiveLayout.incoming)/\(name)")
    }
    self.header = try ArchiveHeader(json: try DiskFile.contents(of: headerPath, limit: 1 << 20))
    checkpoint = try Self.checkpoint(folder)
    sealed = try Self.sealed(folder, checkpoint)
    try Self.removeSegments(after: checkpoint.segment, folder)
    segment =
      checkpoint.isSealed
      ? nil
      : try SegmentWriter(number: checkpoint.segment, size: checkpoint.offset, lines: checkpoint.lines, in: folder)
  }

  /// Of an open archive as it is; of a closed one, made from its last segment, and written first of all.
  private static func checkpoint(_ folder: String) throws(FerryError) -> Checkpoint {
    let path = "\(folder)/\(ArchiveLayout.checkpoint)"
    if DiskFile.exists(path) { return try Checkpoint(json: try DiskFile.contents(of: path, limit: 16 << 20)) }
    var checkpoint = Checkpoint()
    if DiskFile.exists("\(folder)/\(ArchiveLayout.manifest)") {
      let numbers = try Self.segments(in: folder)
      checkpoint.segment = numbers.last ?? 0
      if checkpoint.segment > 0 {
        let scanner = try LogScanner(try ArchiveFiles(folder), from: checkpoint.segment)
        while let line = try scanner.next() { checkpoint.seq = line.seq }
      }
      let places = "\(folder)/\(ArchiveLayout.places)"
      if DiskFile.exists(places) {
        checkpoint.places = try Checkpoint(json: try DiskFile.contents(of: places, limit: 16 << 20)).places
      }
    }
    try DiskFile.replace(path, with: checkpoint.json())
    return checkpoint
  }

  static func segments(in folder: String) throws(FerryError) -> [Int] {
    try DiskFile.names(in: "\(folder)/\(ArchiveLayout.log)").compactMap { name, isFolder in
      guard isFolder == false, name.hasSuffix(".jsonl"), let number = Int(name.dropLast(6)), number > 0,
        ArchiveLayout.segment(number) == "\(ArchiveLayout.log)/\(name)"
      else { return nil }
      return number
    }.sorted()
  }

  /// Each segment's first line names the digest of the one before; the last one's is computed.
  private static func sealed(_ folder: String, _ checkpoint: Checkpoint) throws(FerryError) -> [String] {
    var sealed: [String] = []
    let count = checkpoint.isSealed ? checkpoint.segment : checkpoint.segment - 1
    guard count > 0 else { return [] }
    for number in 1...count {
      let digest =
        number < checkpoint.segment
        ? try LogScanner.previousDigest(of: number + 1, in: folder)
        : try LogScanner.digest(of: "\(folder)/\(ArchiveLayout.segment(number))")
      sealed.append(digest)
    }
    return sealed
  }

  private static func removeSegments(after last: Int, _ folder: String) throws(FerryError) {
    for number in try segments(in: folder) where number > last {
      let path = "\(folder)/\(ArchiveLayout.segment(number))"
      guard unlink(path) == 0 else { throw DiskFile.failure(path) }
    }
  }
}
