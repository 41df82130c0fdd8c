package import FerryCore
import FerryRuntime
import FoundationEssentials

/// JSON as the Channels protocol nests it: text inside strings inside text.
package enum JSONText {
  /// A string as a JSON string, quotes included.
  package static func quoted(_ text: String) -> String {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.utf8.count + 16)
    append(text, to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  static func append(_ text: String, to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "\""))
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""): bytes.append(contentsOf: #"\""#.utf8)
      case UInt8(ascii: "\\"): bytes.append(contentsOf: #"\\"#.utf8)
      case UInt8(ascii: "\n"): bytes.append(contentsOf: #"\n"#.utf8)
      case UInt8(ascii: "\r"): bytes.append(contentsOf: #"\r"#.utf8)
      case UInt8(ascii: "\t"): bytes.append(contentsOf: #"\t"#.utf8)
      case 0..<0x20:
        let digits = Array("0123456789abcdef".utf8)
        bytes.append(contentsOf: #"\u00"#.utf8)
        bytes.append(digits[Int(byte >> 4)])
        bytes.append(digits[Int(byte & 15)])
      default: bytes.append(byte)
      }
    }
    bytes.append(UInt8(ascii: "\""))
  }

  /// Any value as JSON text, names in order so that equal values give equal text.
  package static func text(of value: some Encodable) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // Fails only for numbers that JSON lacks; none is ever decoded from JSON.
    guard let data = try? encoder.encode(value) else { return "null" }
    return String(decoding: data, as: UTF8.self)
  }

  package static func bytes(of value: some Encodable) -> [UInt8] { Array(text(of: value).utf8) }

  /// Nil when the text is not JSON of that shape.
  package static func decode<Value: Decodable>(_ type: Value.Type, from text: String) -> Value? {
    try? JSON.decode(type, from: text.utf8)
  }

  package static func decode<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8]) -> Value? {
    try? JSON.decode(type, from: bytes)
  }

  // MARK: Sizes

  /// How many bytes a scalar takes within a JSON string as `quoted` writes it.
  package static func width(of scalar: Unicode.Scalar) -> Int {
    switch scalar {
    case "\"", "\\", "\n", "\r", "\t": 2
    case "\u{0}"..."\u{1f}": 6
    default: UTF8.width(scalar)
    }
  }

  package static func width(of text: String) -> Int { text.unicodeScalars.reduce(0) { $0 + width(of: $1) } }
}

/// A `data` member: a string as a rule, any other JSON value by way of exception.
package enum FrameData: Hashable, Sendable, Decodable {
  case text(String)
  case value(JSONValue)

  package init(from decoder: any Decoder) throws {
    if let text = try? decoder.singleValueContainer().decode(String.self) {
      self = .text(text)
    } else {
      self = .value(try JSONValue(from: decoder))
    }
  }

  /// As servers send it on: a string stays as it is, anything else becomes its JSON text.
  package var string: String {
    switch self {
    case .text(let text): text
    case .value(let value): JSON.text(of: value)
    }
  }

  /// As applications read it: the JSON inside a string, or the bare string when it holds none.
  package var parsed: JSONValue {
    switch self {
    case .text(let text): JSONText.decode(JSONValue.self, from: text) ?? .string(text)
    case .value(let value): value
    }
  }
}
