import FerryCore

/// The elements of a JSON array in a file, one at a time, whatever the file's size. Not safe to share.
final class JSONElements {
  struct Element {
    /// Byte in the file.
    let offset: Int64
    let bytes: [UInt8]
  }

  private let file: OpenFile
  private var buffer: [UInt8] = []
  private var position = 0
  /// Of the buffer's first byte.
  private var base: Int64 = 0
  private var hasBegun = false
  private var hasEnded = false

  init(_ file: OpenFile) { self.file = file }

  /// Nil after the last. Throws `badData` with the byte at which the file is no array, or ends.
  func next() throws(FerryError) -> Element? {
    guard !hasEnded else { return nil }
    if !hasBegun {
      // Some editors begin a file with a mark of its encoding.
      if try byte() == 0xef {
        position += 1
        if try byte() == 0xbb { position += 1 }
        if try byte() == 0xbf { position += 1 }
      }
      guard try skipSpace() == UInt8(ascii: "[") else { throw fault("this is no JSON array") }
      hasBegun = true
      position += 1
    }
    var first = try skipSpace()
    if first == UInt8(ascii: ",") {
      position += 1
      first = try skipSpace()
    }
    guard let first else { throw fault("the file ends within the array") }
    if first == UInt8(ascii: "]") {
      hasEnded = true
      return nil
    }
    return try element()
  }

  private func element() throws(FerryError) -> Element {
    buffer.removeSubrange(..<position)
    base += Int64(position)
    position = 0
    var depth = 0
    var isInString = false
    while let byte = try byte() {
      position += 1
      switch byte {
      case UInt8(ascii: "\\") where isInString: position += 1
      case UInt8(ascii: "\""): isInString.toggle()
      case _ where isInString: break
      case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        depth -= 1
        if depth < 0 {
          position -= 1
          return taken()
        }
      case UInt8(ascii: ",") where depth == 0:
        position -= 1
        return taken()
      default: break
      }
      guard position <= Record.longestLine else {
        hasEnded = true
        throw fault("an element is larger than \(Record.longestLine >> 20) MiB")
      }
    }
    hasEnded = true
    throw fault("the file ends within an element")
  }

  private func taken() -> Element { Element(offset: base, bytes: Array(buffer[..<min(position, buffer.count)])) }

  private func skipSpace() throws(FerryError) -> UInt8? {
    while let byte = try byte() {
      guard [0x20, 0x09, 0x0a, 0x0d].contains(byte) else { return byte }
      position += 1
    }
    return nil
  }

  private func byte() throws(FerryError) -> UInt8? {
    while position >= buffer.count {
      guard let piece = try file.read(128 << 10) else { return nil }
      buffer += piece
    }
    return buffer[position]
  }

  private func fault(_ reason: String) -> FerryError {
    hasEnded = true
    return FerryError(.badData, "byte \(base + Int64(position)): \(reason)")
  }
}
