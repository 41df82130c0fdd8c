/// Header fields in the order they were sent. Names are compared without regard to case and may be repeated.
package struct HTTPHeaders: Sendable, ExpressibleByDictionaryLiteral {
  package private(set) var fields: [(name: String, value: String)] = []

  package init() {}

  package init(dictionaryLiteral elements: (String, String)...) {
    fields = elements.map { (name: $0.0, value: $0.1) }
  }

  /// The first value under `name`. Setting replaces all values under it; setting nil removes them.
  package subscript(name: String) -> String? {
    get { fields.first { Self.matches($0.name, name) }?.value }
    set {
      guard let newValue else { return fields.removeAll { Self.matches($0.name, name) } }
      set(name, newValue)
    }
  }

  package mutating func add(_ name: String, _ value: String) { fields.append((name: name, value: value)) }

  /// Replaces all values under `name`, in the place of the first.
  package mutating func set(_ name: String, _ value: String) {
    guard let first = fields.firstIndex(where: { Self.matches($0.name, name) }) else { return add(name, value) }
    fields[first] = (name: name, value: value)
    var index = fields.count - 1
    while index > first {
      if Self.matches(fields[index].name, name) { fields.remove(at: index) }
      index -= 1
    }
  }

  package func all(_ name: String) -> [String] {
    fields.filter { Self.matches($0.name, name) }.map(\.value)
  }

  /// Whether the comma-separated list under `name` contains `token`, in any case.
  package func list(_ name: String, contains token: String) -> Bool {
    all(name).contains { value in
      value.split(separator: ",").contains { Self.matches(String($0.trimmingSpaces), token) }
    }
  }

  /// Same bytes but for the case of ASCII letters.
  static func matches(_ left: String, _ right: String) -> Bool {
    guard left.utf8.count == right.utf8.count else { return false }
    return zip(left.utf8, right.utf8).allSatisfy { $0 == $1 || lowercase($0) == lowercase($1) }
  }

  private static func lowercase(_ byte: UInt8) -> UInt8 {
    UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte ? byte | 0x20 : byte
  }
}

extension StringProtocol {
  /// Without spaces and tabs at either end.
  var trimmingSpaces: SubSequence {
    var rest = self[...]
    while let first = rest.first, first == " " || first == "\t" { rest.removeFirst() }
    while let last = rest.last, last == " " || last == "\t" { rest.removeLast() }
    return rest
  }
}
