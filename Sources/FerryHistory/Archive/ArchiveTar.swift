package import FerryCore
import FerryRuntime
import Glibc

/// Packs a finished archive's folder into one tar, in one pass, so that whoever reads it meets every blob before the
/// segment that names it.
package struct ArchiveTar: Sendable {
  /// Writes `path`, which appears when it is whole. The folder stays.
  ///
  /// Throws `conflict` for an archive that was not finished, and `storage`.
  package static func pack(_ folder: String, into path: String) async throws(FerryError) {
    let packer = try Packer(folder)
    try await packer.pack(into: path)
  }
}

/// On a thread of its own because disks block.
private actor Packer {
  private let folder: String
  private let files: ArchiveFiles
  private let loop: LoopExecutor
  private var written: Set<String> = []

  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  init(_ folder: String) throws(FerryError) {
    self.folder = folder
    files = try ArchiveFiles(folder)
    guard !files.contains(ArchiveLayout.checkpoint) else {
      throw FerryError(.conflict, "\(folder) was not finished. Run its export again to the end; then it can be packed.")
    }
    loop = try LoopExecutor(name: "ferry-tar")
  }

  deinit { loop.stop() }

  func pack(into path: String) throws(FerryError) {
    let temporary = path + ".part"
    var isWhole = false
    defer { if !isWhole { unlink(temporary) } }
    let name = path.split(separator: "/").last.map(String.init) ?? "archive"
    let root = name.hasSuffix(".tar") ? String(name.dropLast(4)) : name
    let file = try DiskFile(temporary, flags: O_RDWR | O_CREAT | O_TRUNC)
    let tar = try PackedFile(temporary, .tar)
    let time = try files.header().created
    func add(_ name: String) throws(FerryError) {
      guard written.insert(name).inserted, let file = try files.open(name) else { return }
      try tar.add("\(root)/\(name)", file, time: time)
    }
    try add(ArchiveLayout.header)
    for number in try files.segments() {
      let segment = ArchiveLayout.segment(number)
      for sha256 in try digests(in: segment) { try add(ArchiveLayout.blob(sha256)) }
      try add(segment)
    }
    // Blobs that no record names, and last the manifests.
    for name in try files.names() where name.hasPrefix("data/") { try add(name) }
    for name in try files.names() { try add(name) }
    try tar.finish()
    try file.sync()
    guard rename(temporary, path) == 0 else { throw DiskFile.failure(path) }
    isWhole = true
    try DiskFile.syncFolder(of: path)
  }

  /// The blobs that a segment's lines may name, in their order. A text cannot be taken for one: its quotation marks are
  /// escaped.
  private func digests(in segment: String) throws(FerryError) -> [String] {
    guard let file = try files.open(segment) else { return [] }
    let reader = LineReader(file)
    let mark = Array("\"sha256\":\"".utf8)
    var digests: [String] = []
    while let (line, _) = try reader.next() {
      var start = 0
      while let found = Self.find(mark, in: line, from: start) {
        start = found + mark.count
        let digest = String(decoding: line[start..<min(start + 64, line.count)], as: UTF8.self)
        if ArchiveLayout.isDigest(digest) { digests.append(digest) }
      }
    }
    return digests
  }

  private static func find(_ mark: [UInt8], in line: [UInt8], from start: Int) -> Int? {
    line.withUnsafeBytes { bytes in
      guard let base = bytes.baseAddress, let first = mark.first else { return nil }
      var position = start
      while position + mark.count <= bytes.count,
        let found = memchr(base + position, Int32(first), bytes.count - mark.count - position + 1)
      {
        if memcmp(found, mark, mark.count) == 0 { return found - UnsafeMutableRawPointer(mutating: base) }
        position = found - UnsafeMutableRawPointer(mutating: base) + 1
      }
      return nil
    }
  }
}
