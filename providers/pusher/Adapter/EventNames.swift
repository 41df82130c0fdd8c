package import FerryConfig
package import FerryCore

/// What the app calls its events. Of each list the first is sent and all are understood.
package struct EventNames: Hashable, Sendable {
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
    try self.init(mapping, over: EventNames())
  }

  /// Each list that is given replaces the one in `base`.
  init(_ mapping: ConfigMapping, over base: EventNames) throws(FerryError) {
    self = base
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

  /// Every name and all that it may mean, most likely first.
  var meanings: [String: [Meaning]] {
    let all: [(Meaning, [String])] = [
      (.message, message), (.edit, edit), (.delete, delete), (.typing, typing), (.typingStopped, typingStopped),
      (.delivered, delivered), (.read, read), (.reaction, reaction), (.join, join), (.leave, leave),
    ]
    var meanings: [String: [Meaning]] = [:]
    for (meaning, names) in all {
      for name in names where meanings[name]?.contains(meaning) != true { meanings[name, default: []].append(meaning) }
    }
    return meanings
  }
}

/// The names of an app's events, made ready for looking them up.
struct EventIndex: Sendable {
  private let meanings: [String: [EventNames.Meaning]]

  init(_ names: EventNames) { meanings = names.meanings }

  /// Everything an event's name may mean; its data decides between several.
  ///
  /// A PHP class name counts as its last part, and a leading dot, by which Laravel's clients mark names that are no
  /// class, as none. A client event that has to do with typing is understood whatever exactly it is called; all
  /// others must be named, because anybody who may listen may send them.
  subscript(name: String) -> [EventNames.Meaning] {
    if let found = meanings[name] { return found }
    if let backslash = name.lastIndex(of: "\\") {
      return meanings[String(name[name.index(after: backslash)...])] ?? []
    }
    if name.hasPrefix("."), let found = meanings[String(name.dropFirst())] { return found }
    // On channels without client events the same is published without the prefix.
    guard EventName.isFromClient(name) else { return meanings["client-\(name)"] ?? [] }
    let lowercase = name.lowercased()
    guard lowercase.contains("typing") else { return [] }
    return lowercase.contains("stop") || lowercase.contains("end") ? [.typingStopped] : [.typing]
  }
}
