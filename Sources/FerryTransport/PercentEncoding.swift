/// Percent-encoding of URLs (RFC 3986, 2.1).
package enum PercentEncoding {
  /// Every byte but letters, digits and `-._~` is encoded.
  package static func encode(_ text: some StringProtocol) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var bytes: [UInt8] = []
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: "~"):
        bytes.append(byte)
      default:
        bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// A broken escape stays as it is, and bytes that are not UTF-8 become U+FFFD. A plus sign means a space only in
  /// queries and forms.
  package static func decode(_ text: some StringProtocol, plusIsSpace: Bool = false) -> String {
    let source = Array(text.utf8)
    guard source.contains(UInt8(ascii: "%")) || (plusIsSpace && source.contains(UInt8(ascii: "+"))) else {
      return String(text)
    }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(source.count)
    var index = 0
    while index < source.count {
      let byte = source[index]
      if byte == UInt8(ascii: "%"), index + 2 < source.count, let high = digit(source[index + 1]),
        let low = digit(source[index + 2])
      {
        bytes.append(high << 4 | low)
        index += 3
      } else {
        bytes.append(plusIsSpace && byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
        index += 1
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The pairs of a query or a form, decoded, in order.
  package static func pairs(_ text: some StringProtocol) -> [(name: String, value: String)] {
    text.split(separator: "&").map { item in
      let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      return (
        name: decode(parts[0], plusIsSpace: true), value: parts.count > 1 ? decode(parts[1], plusIsSpace: true) : ""
      )
    }
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
