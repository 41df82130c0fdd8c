import FerryCore

/// Where clauses, with every value from outside quoted so that it stays a value.
enum Condition {
  /// In single quotes, those inside doubled. Nil for text that some dialects would read as more than text.
  static func quoted(_ text: String) -> String? {
    guard isPlain(text) else { return nil }
    return "'" + text.replacing("'", with: "''") + "'"
  }

  /// Neither backslashes, which some dialects take for escapes, nor controls.
  static func isPlain(_ text: String) -> Bool {
    text.unicodeScalars.allSatisfy { $0 != "\\" && $0.properties.generalCategory != .control }
  }

  static func all(_ parts: [String?]) -> String { parts.compactMap { $0 }.map { "(\($0))" }.joined(separator: " and ") }
}
