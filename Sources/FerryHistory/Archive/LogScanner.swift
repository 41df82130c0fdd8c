import FerryCore
import FerryRuntime

/// Reads an archive's log line by line and checks what binds it together: numbers, seals, and the chain of segments.
///
/// Not safe to share. Every error names the file, the line and the byte.
final class LogScanner {
  struct Line {
    let seq: Int64
    /// Nil for a segment's first and last line.
    let record: Record?
    let place: Place
  }

  struct Place: Hashable, Sendable, CustomStringConvertible {
    var file: String
    var line: Int
    /// Of the line's beginning.
    var offset: Int64

    var description: String { "\(file), line \(line) (byte \(offset))" }
  }

  private static let lineEnd: [UInt8] = [0x0a]

  private let files: ArchiveFiles
  private let checkpoint: Checkpoint?
  private var numbers: ArraySlice<Int>
  private var reader: LineReader?
  private var place = Place(file: "", line: 0, offset: 0)
  private var digest = IncrementalDigest(.sha256)
  private var isSealed = true
  private var number: Int
  /// Of the last line; nil before the first.
  private var seq: Int64?
  /// Digest of the segment before; nil where it was not read.
  private(set) var chainHead: String?
  private var isFirst = true

  /// Begins with a later segment than the first when `from` says so: the chain up to it is not checked.
  init(_ files: ArchiveFiles, from first: Int = 1) throws(FerryError) {
    self.files = files
    checkpoint = try files.checkpoint()
    number = first - 1
    let last = checkpoint?.segment ?? .max
    numbers = try files.segments().filter { $0 >= first && $0 <= last }[...]
  }

  /// Nil at the end of the log.
  func next() throws(FerryError) -> Line? {
    while true {
      if reader == nil {
        guard try openNext() else { return nil }
      }
      if let line = try nextInSegment() { return line }
      reader = nil
    }
  }

  private func openNext() throws(FerryError) -> Bool {
    place = Place(file: ArchiveLayout.segment(number + 1), line: 1, offset: 0)
    guard let next = numbers.popFirst() else {
      if let checkpoint, checkpoint.segment > number { throw fault("The file is missing.") }
      return false
    }
    guard next == number + 1 else {
      throw fault("The file is missing: the log goes on in \(ArchiveLayout.segment(next)).")
    }
    guard let file = try files.open(place.file) else { throw fault("The file is missing.") }
    number = next
    isSealed = false
    digest = IncrementalDigest(.sha256)
    let isOpenSegment = checkpoint.map { $0.segment == next && !$0.isSealed } ?? false
    if isOpenSegment, let checkpoint, file.size < checkpoint.offset {
      throw fault("The file is shorter than \(ArchiveLayout.checkpoint) says.")
    }
    reader = LineReader(file, upTo: isOpenSegment ? checkpoint?.offset ?? .max : .max)
    return true
  }

  private func nextInSegment() throws(FerryError) -> Line? {
    guard let reader else { return nil }
    place.line = reader.count + 1
    place.offset = reader.offset
    let line: (bytes: [UInt8], isWhole: Bool)?
    do throws(FerryError) { line = try reader.next() } catch { throw fault(error.message) }
    guard let line else {
      try endSegment()
      return nil
    }
    guard line.isWhole else { throw fault("The line is cut off.") }
    guard !isSealed else { throw fault("There is a line after the seal.") }
    let parsed = try parse(line.bytes)
    digest.update(line.bytes)
    digest.update(Self.lineEnd)
    return parsed
  }

  private func endSegment() throws(FerryError) {
    // An open archive ends without a seal, and only its last segment does.
    guard isSealed || checkpoint.map({ $0.segment == number && !$0.isSealed }) ?? false else {
      throw fault("The segment ends without its seal: it was cut off.")
    }
    guard seq != nil, place.line > 1 else { throw fault("The segment is empty.") }
    chainHead = isSealed ? Crypto.hex(digest.current()) : chainHead
  }

  private func parse(_ bytes: [UInt8]) throws(FerryError) -> Line {
    if place.line > 1, let (seq, record) = Record.quick(line: bytes), let seq { return try line(seq, record) }
    let seq: Int64
    var record: Record?
    do throws(FerryError) {
      var (fields, isLossy) = try Record.fields(line: bytes)
      guard let number = try fields.integer("seq") else { throw FieldReader.missing("seq") }
      seq = number
      let kind = fields.rest["kind"]?.string
      if place.line == 1, kind != "segment" { throw FerryError(.badData, "A segment begins with its own record.") }
      switch kind {
      case "segment": try check(segment: &fields)
      case "seal": try check(seal: &fields)
      default: record = try Record(&fields, isLossy: isLossy)
      }
    } catch { throw fault(error.message) }
    return try line(seq, record)
  }

  private func line(_ seq: Int64, _ record: Record?) throws(FerryError) -> Line {
    if let before = self.seq ?? (number == 1 ? 0 : nil), seq != before + 1 {
      throw fault("Its number is \(seq) and should be \(before + 1): lines are missing or in another order.")
    }
    self.seq = seq
    return Line(seq: seq, record: record, place: place)
  }

  private func check(segment fields: inout FieldReader) throws(FerryError) {
    guard place.line == 1 else { throw FerryError(.badData, "A segment begins within another.") }
    guard try fields.count("n") == number else { throw FerryError(.badData, "It is not the segment \(number).") }
    let previous = try fields.string("prev")
    if number == 1 || !isFirst {
      guard previous == chainHead else {
        throw FerryError(
          .badData,
          "The segment before it is not the one that it follows: that was changed, replaced or put elsewhere.")
      }
    }
    isFirst = false
  }

  private func check(seal fields: inout FieldReader) throws(FerryError) {
    guard try fields.count("records") == place.line - 1 else {
      throw FerryError(.badData, "The seal counts other lines than there are.")
    }
    guard try fields.string("sha256") == Crypto.hex(digest.current()) else {
      throw FerryError(.badData, "The seal does not fit: the segment was changed after it was sealed.")
    }
    isSealed = true
  }

  private func fault(_ reason: String) -> FerryError { FerryError(.badData, "\(place): \(reason)") }

  // MARK: Digests

  /// Of the segment before `number`, as that one says.
  static func previousDigest(of number: Int, in folder: String) throws(FerryError) -> String {
    let path = "\(folder)/\(ArchiveLayout.segment(number))"
    let file = try DiskFile(path)
    let reader = LineReader(OpenFile(size: 0) { (limit) throws(FerryError) in try file.read(upTo: limit) })
    var fields = try Record.fields(line: try reader.next()?.bytes ?? []).reader
    guard let digest = try fields.string("prev"), ArchiveLayout.isDigest(digest) else {
      throw FerryError(.badData, "\(path) does not say which segment it follows.")
    }
    return digest
  }

  static func digest(of path: String) throws(FerryError) -> String {
    let file = try DiskFile(path)
    var digest = IncrementalDigest(.sha256)
    while let piece = try file.read(upTo: 1 << 20) { digest.update(piece) }
    return Crypto.hex(digest.finish())
  }
}
