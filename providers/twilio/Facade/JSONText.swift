import FerryCore
import FoundationEssentials

/// JSON inside strings, as attributes are.
enum JSONText {
  static func isJSON(_ text: String) -> Bool { value(text) != nil }

  /// Nil for what is no JSON.
  static func value(_ text: String) -> JSONValue? {
    try? JSONDecoder().decode(JSONValue.self, from: Data(text.utf8))
  }

  static func value(_ bytes: [UInt8]) -> JSONValue? { try? JSONDecoder().decode(JSONValue.self, from: Data(bytes)) }

  static func text(_ value: some Encodable) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // Fails only for numbers that JSON lacks; none is ever decoded from JSON.
    return (try? encoder.encode(value)).map { String(decoding: $0, as: UTF8.self) } ?? "null"
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
