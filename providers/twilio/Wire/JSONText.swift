import FerryCore
import FoundationEssentials

/// JSON as bytes and inside strings, as attributes are.
enum JSONText {
  /// Nil for what is no JSON.
  static func value(_ text: String) -> JSONValue? { decode(JSONValue.self, from: text.utf8) }

  static func value(_ bytes: some Sequence<UInt8>) -> JSONValue? { decode(JSONValue.self, from: bytes) }

  static func decode<Value: Decodable>(_ type: Value.Type, from bytes: some Sequence<UInt8>) -> Value? {
    try? JSONDecoder().decode(type, from: Data(bytes))
  }

  /// Without escapes for slashes and beyond ASCII, which Twilio takes for no JSON; names in order, so that equal values
  /// give equal text.
  static func text(_ value: JSONValue) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // Fails only for numbers that JSON lacks; none is ever decoded from JSON.
    return (try? encoder.encode(value)).map { String(decoding: $0, as: UTF8.self) } ?? "null"
  }
}
