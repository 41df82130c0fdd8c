import FerryCore
import FerryRuntime
import Glibc

/// The open segment of an archive's log.
///
/// Not safe to share: it belongs to its `ArchiveWriter`.
final class SegmentWriter {
  let number: Int
  private let file: DiskFile
  private var digest = IncrementalDigest(.sha256)
  private var buffer: [UInt8] = []
  /// Bytes, those in the buffer included.
  private(set) var size: Int64 = 0
  private(set) var lines = 0

  private static let bufferSize = 256 << 10

  /// A new segment, with its first line.
  init(number: Int, seq: Int64, previous: String?, in folder: String) throws(FerryError) {
    self.number = number
    file = try DiskFile("\(folder)/\(ArchiveLayout.segment(number))", flags: O_RDWR | O_CREAT | O_TRUNC)
    var json = JSONWriter()
    json.begin()
    json.name("seq")
    json.value(seq)
    json.member("kind", "segment")
    json.name("n")
    json.value(Int64(number))
    json.name("prev")
    if let previous { json.value(previous) } else { json.raw("null") }
    json.end()
    try write(json.utf8)
  }

  /// One that was written before, cut off at `size`.
  init(number: Int, size: Int64, lines: Int, in folder: String) throws(FerryError) {
    self.number = number
    self.lines = lines
    file = try DiskFile("\(folder)/\(ArchiveLayout.segment(number))", flags: O_RDWR)
    guard try file.size() >= size else {
      throw FerryError(
        .badData, "\(file.path) is shorter than its checkpoint says: it was damaged. Export into a new archive.")
    }
    while self.size < size, let piece = try file.read(upTo: Int(min(size - self.size, 1 << 20))) {
      digest.update(piece)
      self.size += Int64(piece.count)
    }
    try file.truncate(to: size)
  }

  func write(_ line: [UInt8]) throws(FerryError) {
    buffer.append(contentsOf: line)
    buffer.append(0x0a)
    size += Int64(line.count) + 1
    lines += 1
    if buffer.count >= Self.bufferSize { try flush() }
  }

  func sync() throws(FerryError) {
    try flush()
    Failpoint.beforeSync.pass()
    try file.sync()
  }

  /// Writes the last line. Returns the digest of the whole file.
  func seal(seq: Int64) throws(FerryError) -> String {
    try flush()
    var json = JSONWriter()
    json.begin()
    json.name("seq")
    json.value(seq)
    json.member("kind", "seal")
    json.name("records")
    json.value(Int64(lines))
    json.member("sha256", Crypto.hex(digest.current()))
    json.end()
    try write(json.utf8)
    try sync()
    return Crypto.hex(digest.current())
  }

  private func flush() throws(FerryError) {
    guard !buffer.isEmpty else { return }
    try file.write(buffer)
    digest.update(buffer)
    buffer.removeAll(keepingCapacity: true)
    Failpoint.betweenWrites.pass()
  }
}
