package import FerryCore

/// A condition of SQL-92 over named values: the selector of a subscription (over headers, which are strings) or the
/// where clause of a table (over columns).
///
/// Understood: `=`, `<>`, `!=`, `<`, `<=`, `>`, `>=`, `LIKE`, `IN`, `BETWEEN`, `IS NULL`, each with `NOT`, and `AND`,
/// `OR`, `NOT` and parentheses. Anything else is refused with its place.
package struct SQLCondition: Hashable, Sendable {
  package enum Comparison: String, Sendable {
    case equal = "="
    case unequal = "<>"
    case less = "<"
    case lessOrEqual = "<="
    case greater = ">"
    case greaterOrEqual = ">="
  }

  indirect enum Node: Hashable, Sendable {
    case and([Node])
    case or([Node])
    case not(Node)
    case compare(String, Comparison, JSONValue)
    case like(String, String)
    case isIn(String, [JSONValue])
    case between(String, JSONValue, JSONValue)
    case isNull(String)
  }

  package static let longest = 10_000

  let root: Node

  /// Throws `badRequest` that names the place of what is not understood, counted in characters from 1.
  package init(_ text: String) throws(FerryError) {
    guard text.utf8.count <= Self.longest else {
      throw FerryError(.badRequest, "The condition is longer than \(Self.longest) bytes.")
    }
    var parser = SQLParser(try SQLToken.list(text))
    root = try parser.condition()
  }

  /// Whether the condition is true, not merely unknown, of the values. A value that is missing makes every comparison
  /// with it unknown.
  package func matches(_ value: (String) -> JSONValue?) -> Bool { Self.truth(of: root, value) == true }

  package func matches(_ values: [String: JSONValue]) -> Bool { matches { values[$0] } }

  /// Every name that the condition mentions.
  package var names: Set<String> { Self.names(in: root) }

  /// Comparisons that hold wherever the whole does: by them a search may be narrowed.
  package var required: [(name: String, comparison: Comparison, value: JSONValue)] {
    parts.compactMap {
      if case .compare(let name, let comparison, let value) = $0 { (name, comparison, value) } else { nil }
    }
  }

  /// The texts of which a value must be one; nil where the condition does not say so.
  package func list(of name: String) -> [String]? {
    for part in parts {
      let values: [JSONValue]
      switch part {
      case .isIn(name, let list): values = list
      case .compare(name, .equal, let value): values = [value]
      default: continue
      }
      let texts = values.compactMap(\.string)
      if texts.count == values.count { return texts }
    }
    return nil
  }

  private var parts: [Node] { if case .and(let nodes) = root { nodes } else { [root] } }

  private static func names(in node: Node) -> Set<String> {
    switch node {
    case .and(let nodes), .or(let nodes): nodes.reduce(into: []) { $0.formUnion(names(in: $1)) }
    case .not(let node): names(in: node)
    case .compare(let name, _, _), .like(let name, _), .isIn(let name, _), .between(let name, _, _), .isNull(let name):
      [name]
    }
  }

  // MARK: Truth

  /// Nil: unknown.
  private static func truth(of node: Node, _ value: (String) -> JSONValue?) -> Bool? {
    switch node {
    case .and(let nodes): all(nodes) { truth(of: $0, value) }
    case .or(let nodes): any(nodes) { truth(of: $0, value) }
    case .not(let node): truth(of: node, value).map { !$0 }
    case .compare(let name, let comparison, let literal): compare(value(name), comparison, literal)
    case .like(let name, let pattern): value(name)?.text.map { SQLPattern.matches($0, pattern) }
    case .isIn(let name, let list): any(list) { compare(value(name), .equal, $0) }
    case .between(let name, let low, let high):
      all([(Comparison.greaterOrEqual, low), (.lessOrEqual, high)]) { compare(value(name), $0.0, $0.1) }
    case .isNull(let name): (value(name) ?? .null) == .null
    }
  }

  /// False when it is false of one, else unknown when it is unknown of one.
  private static func all<T>(_ items: [T], _ truth: (T) -> Bool?) -> Bool? {
    var result: Bool? = true
    for item in items {
      switch truth(item) {
      case false?: return false
      case nil: result = nil
      case true?: break
      }
    }
    return result
  }

  /// True when it is true of one, else unknown when it is unknown of one.
  private static func any<T>(_ items: [T], _ truth: (T) -> Bool?) -> Bool? {
    all(items) { truth($0).map { !$0 } }.map { !$0 }
  }

  private static func compare(_ value: JSONValue?, _ comparison: Comparison, _ literal: JSONValue) -> Bool? {
    guard let value, let order = order(value, literal) else { return nil }
    return switch comparison {
    case .equal: order == 0
    case .unequal: order != 0
    case .less: order < 0
    case .lessOrEqual: order <= 0
    case .greater: order > 0
    case .greaterOrEqual: order >= 0
    }
  }

  /// As numbers where the literal is one: headers that hold numbers are strings. Nil where nothing can be said.
  private static func order(_ value: JSONValue, _ literal: JSONValue) -> Int? {
    switch literal {
    case .integer, .number:
      guard let left = number(value), let right = number(literal) else { return nil }
      return left < right ? -1 : left == right ? 0 : left > right ? 1 : nil
    case .string(let right):
      guard let left = value.string else { return nil }
      return order(left, right)
    case .bool(let right):
      guard let left = flag(value) else { return nil }
      return left == right ? 0 : right ? -1 : 1
    case .null, .array, .object: return nil
    }
  }

  private static func order(_ left: String, _ right: String) -> Int {
    if left.utf8.elementsEqual(right.utf8) { return 0 }
    return left.utf8.lexicographicallyPrecedes(right.utf8) ? -1 : 1
  }

  private static func number(_ value: JSONValue) -> Double? {
    switch value {
    case .integer(let value): Double(value)
    case .number(let value): value
    case .string(let text): text.utf8.count <= 64 ? Double(text) : nil
    case .bool(let value): value ? 1 : 0
    case .null, .array, .object: nil
    }
  }

  private static func flag(_ value: JSONValue) -> Bool? {
    switch value {
    case .bool(let value): value
    case .integer(let value): value != 0
    case .string("true"), .string("TRUE"): true
    case .string("false"), .string("FALSE"): false
    default: nil
    }
  }
}

/// The patterns of LIKE: `%` is any text, `_` any one character.
enum SQLPattern {
  /// By going back to the last `%` only, which is enough: the time grows with the product of the lengths, not beyond.
  static func matches(_ text: String, _ pattern: String) -> Bool {
    let text = Array(text.unicodeScalars)
    let pattern = Array(pattern.unicodeScalars)
    var (at, place) = (0, 0)
    var lastPercent: (place: Int, at: Int)?
    while at < text.count {
      if place < pattern.count, pattern[place] == "%" {
        lastPercent = (place, at)
        place += 1
      } else if place < pattern.count, pattern[place] == "_" || pattern[place] == text[at] {
        at += 1
        place += 1
      } else if let last = lastPercent {
        lastPercent = (last.place, last.at + 1)
        at = last.at + 1
        place = last.place + 1
      } else {
        return false
      }
    }
    return pattern[place...].allSatisfy { $0 == "%" }
  }
}
