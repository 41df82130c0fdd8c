package import FerryConfig
package import FerryCore

/// What the app calls its events. Of each list the first is sent and all are understood.
package struct EventNames: Sendable {
  package var message = [
    "new_message", "new-message", "message", "messages:new", "message:new", "messages:create", "message-created",
    "public_message", "messaging", "MessageSent",
  ]
  package var edit = ["message_updated", "message:update", "edit-message", "MessageUpdated", "client-MessageUpdated"]
  package var delete = [
    "message_deleted", "message:remove", "message_delete", "client-messageDelete", "MessageDeleted",
    "client-MessageDeleted",
  ]
  package var typing = ["user_typing", "client-typing", "typing"]
  package var typingStopped = ["user_stopped_typing", "typing_stopped", "stop_typing", "client-stop-typing"]
  package var delivered = ["message_delivered", "delivery-status", "delivered"]
  package var read = ["message_read", "client-seen", "message:update", "MessageRead", "client-MessageRead"]
  package var reaction = ["message_reaction", "react-message"]
  package var join = ["user_joined", "user-joined", "member_joined", "UserJoined"]
  package var leave = ["user_left", "user-left", "member_left", "UserLeft"]

  package init() {}

  package init(_ mapping: ConfigMapping) throws(FerryError) {
    for (key, path) in Self.keys {
      if let node = mapping.optional(key) { self[keyPath: path] = try Self.names(node) }
    }
    try mapping.finish()
  }

  private static var keys: [(String, WritableKeyPath<EventNames, [String]>)] {
    [
      ("message", \.message), ("edit", \.edit), ("delete", \.delete), ("typing", \.typing),
      ("typing_stopped", \.typingStopped), ("delivered", \.delivered), ("read", \.read), ("reaction", \.reaction),
      ("join", \.join), ("leave", \.leave),
    ]
  }

  private static func names(_ node: ConfigNode) throws(FerryError) -> [String] {
    let names = try node.strings()
    guard let first = names.first, !first.isEmpty else { throw node.error("at least one event name is needed here") }
    for name in names where EventName.isReserved(name) || name.unicodeScalars.count > EventName.longest {
      throw node.error("\"\(name)\" is reserved or too long for an event name")
    }
    return names
  }

  enum Meaning: Hashable, Sendable {
    case message, edit, delete, typing, typingStopped, delivered, read, reaction, join, leave
  }

  /// Everything an event's name may mean; its data decides between several. A PHP class name counts as its last part.
  func meanings(of name: String) -> [Meaning] {
    let short = name.lastIndex(of: "\\").map { String(name[name.index(after: $0)...]) } ?? name
    let all: [(Meaning, [String])] = [
      (.message, message), (.edit, edit), (.delete, delete), (.typing, typing), (.typingStopped, typingStopped),
      (.delivered, delivered), (.read, read), (.reaction, reaction), (.join, join), (.leave, leave),
    ]
    return all.filter { $0.1.contains(name) || $0.1.contains(short) }.map(\.0)
  }
}

/// What the app calls the fields of an event's data. Of each list the first is sent and all are understood; a dot
/// leads into an object.
package struct FieldNames: Sendable {
  package var id = ["ID", "id", "_id", "message_id", "uuid"]
  package var text = ["text", "message", "body", "content"]
  package var sender = [
    "sender", "senderId", "from_id", "user_id", "username", "userName", "author", "sender.name",
  ]
  package var time = ["timestamp", "createdAt", "created_at", "time"]
  package var image = ["image", "imageUrl", "attachment", "url"]

  package init() {}

  package init(_ mapping: ConfigMapping) throws(FerryError) {
    for (key, path) in Self.keys {
      guard let node = mapping.optional(key) else { continue }
      let names = try node.strings()
      guard let first = names.first, !first.isEmpty else { throw node.error("at least one field name is needed here") }
      guard !first.contains("."), first != FerryField.name else {
        throw node.error("the first field name is the one that is sent: neither dotted nor \"\(FerryField.name)\"")
      }
      self[keyPath: path] = names
    }
    try mapping.finish()
  }

  private static var keys: [(String, WritableKeyPath<FieldNames, [String]>)] {
    [("id", \.id), ("text", \.text), ("sender", \.sender), ("time", \.time), ("image", \.image)]
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
