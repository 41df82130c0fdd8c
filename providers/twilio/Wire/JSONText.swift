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

  /// Without escapes for slashes and beyond ASCII, which Twilio takes for no JSON; names in order, so that equal values
  /// give equal text.
  static func text(_ value: JSONValue) -> String {
    var json = JSONWriter()
    json.sorted(value)
    return json.text
  }
}
