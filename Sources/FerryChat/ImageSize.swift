import FerryCore

/// The size of a picture, read from its first bytes and nothing else: nothing is decoded.
enum ImageSize {
  /// Nil for what is no PNG, JPEG, GIF or WebP, or does not say its size in `head`.
  ///
  /// Sources: https://www.w3.org/TR/png-3/#11IHDR, https://www.w3.org/Graphics/GIF/spec-gif89a.txt (18),
  /// https://www.w3.org/Graphics/JPEG/itu-t81.pdf (B.2.2), https://www.rfc-editor.org/rfc/rfc9649 (2.3 to 2.5)
  static func of(_ head: [UInt8]) -> Attachment.Pixels? {
    let bytes = Bytes(all: head)
    let size: (width: Int, height: Int)? =
      switch ImageType.of(head) {
      case "image/png":
        head.dropFirst(12).starts(with: Array("IHDR".utf8)) ? pair(bytes.big32(16), bytes.big32(20)) : nil
      case "image/gif": pair(bytes.little16(6), bytes.little16(8))
      case "image/jpeg": jpeg(bytes)
      case "image/webp": webp(bytes)
      default: nil
      }
    guard let size, size.width > 0, size.height > 0 else { return nil }
    return Attachment.Pixels(width: size.width, height: size.height)
  }

  /// Walks from marker to marker until the frame's header.
  private static func jpeg(_ bytes: Bytes) -> (width: Int, height: Int)? {
    var at = 2
    while let mark = bytes[at], let kind = bytes[at + 1] {
      guard mark == 0xff else { return nil }
      switch kind {
      case 0xff: at += 1  // padding
      case 0x01, 0xd0...0xd8: at += 2  // markers without a segment
      case 0xc0...0xc3, 0xc5...0xc7, 0xc9...0xcb, 0xcd...0xcf: return pair(bytes.big16(at + 7), bytes.big16(at + 5))
      case 0xd9, 0xda: return nil
      default:
        guard let length = bytes.big16(at + 2), length >= 2 else { return nil }
        at += 2 + length
      }
    }
    return nil
  }

  private static func webp(_ bytes: Bytes) -> (width: Int, height: Int)? {
    switch bytes[15] {
    case UInt8(ascii: " "):
      return pair(bytes.little16(26).map { $0 & 0x3fff }, bytes.little16(28).map { $0 & 0x3fff })
    case UInt8(ascii: "L"):
      guard let low = bytes.little16(21), let high = bytes.little16(23) else { return nil }
      let bits = high << 16 | low
      return (1 + bits & 0x3fff, 1 + bits >> 14 & 0x3fff)
    case UInt8(ascii: "X"):
      guard let width = bytes.little24(24), let height = bytes.little24(27) else { return nil }
      return (width + 1, height + 1)
    default: return nil
    }
  }

  private static func pair(_ width: Int?, _ height: Int?) -> (width: Int, height: Int)? {
    guard let width, let height else { return nil }
    return (width, height)
  }

  /// Reads that are nil beyond the end.
  private struct Bytes {
    let all: [UInt8]

    subscript(index: Int) -> UInt8? { all.indices.contains(index) ? all[index] : nil }

    func big16(_ at: Int) -> Int? { number([at, at + 1]) }
    func big32(_ at: Int) -> Int? { number([at, at + 1, at + 2, at + 3]) }
    func little16(_ at: Int) -> Int? { number([at + 1, at]) }
    func little24(_ at: Int) -> Int? { number([at + 2, at + 1, at]) }

    private func number(_ places: [Int]) -> Int? {
      var number = 0
      for place in places {
        guard let byte = self[place] else { return nil }
        number = number << 8 | Int(byte)
      }
      return number
    }
  }
}
