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

  /// What comes after a row in the order of `column`, then `objectId`.
  static func after(_ place: RowPlace, by column: String, ascending: Bool) -> String? {
    guard let id = quoted(place.id) else { return nil }
    let sign = ascending ? ">" : "<"
    return "\(column) \(sign) \(place.time) or (\(column) = \(place.time) and objectId \(sign) \(id))"
  }

  static func sort(by column: String, ascending: Bool) -> String {
    let order = ascending ? "asc" : "desc"
    return "\(column) \(order),objectId \(order)"
  }
}

/// Where a row stands in an order by a time and the object's id.
struct RowPlace: Hashable, Sendable {
  var time: Int64
  var id: String
}
