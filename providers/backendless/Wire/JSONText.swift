package import FerryCore
import FerryRuntime

/// JSON as both sides write and read it.
package enum JSONText {
  /// A string as JSON, quotes included.
  package static func quoted(_ text: String) -> String {
    var json = JSONWriter(capacity: text.utf8.count + 8)
    json.value(text)
    return json.text
  }

  package static func bytes(of value: JSONValue) -> [UInt8] { Array(JSON.text(of: value).utf8) }

  /// Nil when it is not JSON, or nested deeper than anything Ferry keeps.
  package static func value(_ text: some StringProtocol) -> JSONValue? { value(Array(text.utf8)) }

  package static func value(_ bytes: [UInt8]) -> JSONValue? {
    guard isShallow(bytes), let value = try? JSON.decode(JSONValue.self, from: bytes) else { return nil }
    return value
  }

  /// With every character beyond U+FFFF escaped, so that a length in UTF-16 units and one in characters are the same:
  /// there are clients that count the wrong ones.
  package static func escapingAstral(_ json: String) -> String {
    guard json.utf8.contains(where: { $0 >= 0xf0 }) else { return json }
    var escaped = ""
    for scalar in json.unicodeScalars {
      guard scalar.value > 0xffff else {
        escaped.unicodeScalars.append(scalar)
        continue
      }
      for unit in String(scalar).utf16 { escaped += "\\u" + String(unit, radix: 16) }
    }
    return escaped
  }

  /// Counted before it is decoded: the decoder recurses, and what is too deep is refused in the end anyway.
  private static func isShallow(_ bytes: [UInt8]) -> Bool {
    var depth = 0
    var isInString = false
    var isEscaped = false
    for byte in bytes {
      if isInString {
        if isEscaped {
          isEscaped = false
        } else if byte == UInt8(ascii: "\\") {
          isEscaped = true
        } else if byte == UInt8(ascii: "\"") {
          isInString = false
        }
        continue
      }
      switch byte {
      case UInt8(ascii: "\""): isInString = true
      case UInt8(ascii: "["), UInt8(ascii: "{"):
        depth += 1
        if depth > JSONValue.deepest { return false }
      case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
      default: break
      }
    }
    return true
  }
}
