import FerryCore
import Glibc

/// The lines of a file, in whatever pieces it comes. Not safe to share.
final class LineReader {
  private let read: (Int) throws(FerryError) -> [UInt8]?
  /// Bytes that may still come.
  private var left: Int64
  private var buffer: [UInt8] = []
  private var start = 0
  private var isAtEnd = false
  /// Of the next line, from the file's beginning.
  private(set) var offset: Int64 = 0
  /// Lines read so far.
  private(set) var count = 0

  /// The line was found to be too long; `skipLine` passes over it.
  private(set) var isWithinLine = false

  private static let pieceSize = 256 << 10

  /// Reads up to `end` bytes of the file.
  init(_ file: OpenFile, upTo end: Int64 = .max) {
    read = file.read
    left = end
  }

  /// The next line without its end; nil at the end of the file. `isWhole` is false for one that no line end follows.
  ///
  /// Throws `badData` for a line longer than may be.
  func next() throws(FerryError) -> (bytes: [UInt8], isWhole: Bool)? {
    var searched = start
    while true {
      if let end = newline(from: searched) {
        let line = Array(buffer[start..<end])
        start = end + 1
        offset += Int64(line.count) + 1
        count += 1
        return (line, true)
      }
      guard buffer.count - start <= Record.longestLine else {
        isWithinLine = true
        throw FerryError(.badData, "The line is longer than \(Record.longestLine >> 20) MiB.")
      }
      if isAtEnd {
        guard start < buffer.count else { return nil }
        let line = Array(buffer[start...])
        start = buffer.count
        offset += Int64(line.count)
        count += 1
        return (line, false)
      }
      searched = buffer.count - start
      buffer.removeSubrange(..<start)
      start = 0
      try fill()
    }
  }

  /// Passes over the rest of a line that was too long.
  func skipLine() throws(FerryError) {
    isWithinLine = false
    while true {
      if let end = newline(from: start) {
        offset += Int64(end - start) + 1
        start = end + 1
        count += 1
        return
      }
      offset += Int64(buffer.count - start)
      buffer = []
      start = 0
      if isAtEnd { return }
      try fill()
    }
  }

  private func fill() throws(FerryError) {
    let limit = Int(min(Int64(Self.pieceSize), left))
    guard limit > 0, let piece = try read(limit) else {
      isAtEnd = true
      return
    }
    left -= Int64(piece.count)
    if buffer.isEmpty { buffer = piece } else { buffer += piece }
  }

  private func newline(from position: Int) -> Int? {
    buffer.withUnsafeBytes { bytes in
      guard position < bytes.count, let base = bytes.baseAddress,
        let found = memchr(base + position, 0x0a, bytes.count - position)
      else { return nil }
      return found - UnsafeMutableRawPointer(mutating: base)
    }
  }
}
