package import FerryConfig
package import FerryCore

/// What the app calls the fields of an event's data. Of each list the first is sent and all are understood; a dot
/// leads into an object.
package struct FieldNames: Hashable, Sendable {
  package var id = ["ID", "id", "_id", "message_id", "uuid"]
  package var text = ["text", "message", "body", "content"]
  package var sender = [
    "sender", "senderId", "from_id", "user_id", "username", "userName", "author", "sender.name",
  ]
  package var time = ["timestamp", "createdAt", "created_at", "time"]
  package var image = ["image", "imageUrl", "attachment", "url"]

  package init() {}

  package init(_ mapping: ConfigMapping) throws(FerryError) {
    try self.init(mapping, over: FieldNames())
  }

  /// Each list that is given replaces the one in `base`.
  init(_ mapping: ConfigMapping, over base: FieldNames) throws(FerryError) {
    self = base
    for (key, path) in Self.keys {
      guard let node = mapping.optional(key) else { continue }
      let names = try node.strings()
      guard let first = names.first, Self.isPath(first) else {
        throw node.error("the first field name is the one that is sent: a name, or names joined by dots")
      }
      guard first.split(separator: ".").first.map(String.init) != FerryField.name else {
        throw node.error("\"\(FerryField.name)\" is what Ferry keeps its own data under")
      }
      self[keyPath: path] = names
    }
    if let (outer, inner) = collision {
      throw mapping.node.error(
        "\"\(inner)\" cannot be sent beside \"\(outer)\": one is within the other or both are one")
    }
    try mapping.finish()
  }

  private static var keys: [(String, WritableKeyPath<FieldNames, [String]>)] {
    [("id", \.id), ("text", \.text), ("sender", \.sender), ("time", \.time), ("image", \.image)]
  }

  private static func isPath(_ name: String) -> Bool {
    name.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { !$0.isEmpty }
  }

  /// Two fields that are sent and would overwrite one another.
  private var collision: (String, String)? {
    let sent = Self.keys.map { self[keyPath: $0.1][0] }
    for (index, one) in sent.enumerated() {
      for other in sent[(index + 1)...] {
        if one == other || other.hasPrefix(one + ".") { return (one, other) }
        if one.hasPrefix(other + ".") { return (other, one) }
      }
    }
    return nil
  }
}

extension JSONValue {
  /// The value at a name, or at a dotted path.
  subscript(path path: String) -> JSONValue? {
    if let value = self[path] { return value }
    guard path.contains(".") else { return nil }
    var value = self
    for name in path.split(separator: ".") {
      guard let next = value[String(name)] else { return nil }
      value = next
    }
    return value
  }

  /// The first of the aliases under which there is something that `read` understands.
  func first<Value>(_ aliases: [String], _ read: (JSONValue) -> Value?) -> Value? {
    for alias in aliases {
      if let value = self[path: alias].flatMap(read) { return value }
    }
    return nil
  }
}

extension [String: JSONValue] {
  /// Sets the value at a name or a dotted path; objects on the way are made.
  mutating func put(_ value: JSONValue?, at path: String) {
    guard let value else { return }
    put(value, at: path.split(separator: ".").map(String.init)[...])
  }

  private mutating func put(_ value: JSONValue, at path: ArraySlice<String>) {
    guard let first = path.first else { return }
    guard path.count > 1 else {
      self[first] = value
      return
    }
    var inner = self[first]?.object ?? [:]
    inner.put(value, at: path.dropFirst())
    self[first] = .object(inner)
  }

  /// Takes away what is at a name or a dotted path, and the objects that are empty without it.
  mutating func take(at path: String) {
    self[path] = nil
    take(at: path.split(separator: ".").map(String.init)[...])
  }

  private mutating func take(at path: ArraySlice<String>) {
    guard let first = path.first else { return }
    guard path.count > 1 else {
      self[first] = nil
      return
    }
    guard var inner = self[first]?.object else { return }
    inner.take(at: path.dropFirst())
    self[first] = inner.isEmpty ? nil : .object(inner)
  }
}
