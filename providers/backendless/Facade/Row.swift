import FerryChat
import FerryCore

/// A row of a table as it is kept.
struct Row: Hashable, Sendable, Codable {
  /// Where the message is that this row is, too.
  struct Place: Hashable, Sendable, Codable {
    let room: String
    let message: String
  }

  /// The columns, with those that the service itself writes.
  var values: [String: JSONValue]
  /// The file in the image column, when it has no address of its own before somebody asks for it.
  var picture: Publication.Picture?
  var place: Place?

  var id: String { values["objectId"]?.string ?? "" }
  var created: Int64 { values["created"]?.integer ?? 0 }

  /// As clients are shown it. `files`: where the client finds files.
  func shown(as table: String, files: String, only properties: Set<String> = [], without excluded: Set<String> = [])
    -> JSONValue
  {
    var shown = values
    if let picture { shown[picture.field] = .string(files + picture.path) }
    if !properties.isEmpty { shown = shown.filter { properties.contains($0.key) || $0.key == "objectId" } }
    for name in excluded { shown[name] = nil }
    shown["___class"] = .string(table)
    return .object(shown)
  }

  /// Columns that no client writes.
  static let own: Set<String> = ["objectId", "created", "updated", "ownerId"]

  /// What a client may write of what it sent.
  static func writable(_ members: [String: JSONValue]) throws(Fault) -> [String: JSONValue] {
    var values: [String: JSONValue] = [:]
    for (name, value) in members where !own.contains(name) && !name.hasPrefix("___") {
      guard TableName.isValid(name) else {
        throw .badRequest("A column's name has up to 64 letters, digits and underscores: \"\(name.prefix(64))\"")
      }
      values[name] = value
    }
    return values
  }

  /// The id that a client chose; nil when it left that to the service.
  static func id(in members: [String: JSONValue]) throws(Fault) -> String? {
    switch members["objectId"] {
    case nil, .null?: return nil
    case .string(let id)? where (1...128).contains(id.utf8.count) && id.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7f }:
      return id
    default: throw .badRequest("An objectId is a text of up to 128 bytes without spaces")
    }
  }
}

/// The order of two values of a column: null first, then numbers, then texts byte by byte, then whatever else.
enum ColumnOrder {
  static func precedes(_ left: JSONValue, _ right: JSONValue) -> Bool? {
    let (one, two) = (rank(left), rank(right))
    guard one == two else { return one < two }
    switch (left, right) {
    case (.string(let left), .string(let right)):
      return left.utf8.elementsEqual(right.utf8) ? nil : left.utf8.lexicographicallyPrecedes(right.utf8)
    case (.bool(let left), .bool(let right)): return left == right ? nil : !left
    default:
      guard let left = number(left), let right = number(right), left != right else { return nil }
      return left < right
    }
  }

  private static func rank(_ value: JSONValue) -> Int {
    switch value {
    case .null: 0
    case .bool: 1
    case .integer, .number: 2
    case .string: 3
    case .array, .object: 4
    }
  }

  private static func number(_ value: JSONValue) -> Double? {
    switch value {
    case .integer(let value): Double(value)
    case .number(let value): value
    default: nil
    }
  }
}
