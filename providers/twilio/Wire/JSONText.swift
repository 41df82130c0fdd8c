import FerryCore
import FerryRuntime

/// JSON as bytes and inside strings, as attributes are.
enum JSONText {
  /// Nil for what is no JSON.
  static func value(_ text: String) -> JSONValue? { decode(JSONValue.self, from: text.utf8) }

  static func value(_ bytes: some Sequence<UInt8>) -> JSONValue? { decode(JSONValue.self, from: bytes) }

  static func decode<Value: Decodable>(_ type: Value.Type, from bytes: some Sequence<UInt8>) -> Value? {
    try? JSON.decode(type, from: bytes)
  }
}
