import FerryCore
import FerryRuntime
import FoundationEssentials

/// JSON inside strings, as attributes are.
enum JSONText {
  static func isJSON(_ text: String) -> Bool { value(text) != nil }

  /// Nil for what is no JSON.
  static func value(_ text: String) -> JSONValue? { decode(JSONValue.self, from: text) }

  static func value(_ bytes: [UInt8]) -> JSONValue? { try? JSONDecoder().decode(JSONValue.self, from: Data(bytes)) }

  static func decode<Value: Decodable>(_ type: Value.Type, from text: some StringProtocol) -> Value? {
    try? JSONDecoder().decode(type, from: Data(text.utf8))
  }

  static func text(_ value: JSONValue) -> String {
    var json = JSONWriter()
    json.value(value)
    return json.text
  }
}

extension JSONValue {
  init(_ value: String?) { self = value.map(JSONValue.string) ?? .null }
  init(_ value: Int64?) { self = value.map(JSONValue.integer) ?? .null }

  /// A moment as REST writes it.
  static func date(_ milliseconds: Int64) -> JSONValue {
    .string(TwilioDate.seconds(Timestamp(milliseconds: milliseconds)))
  }
}
