package import FerryConfig
package import FerryCore

/// What the app calls the columns of its chat table and the members of what it publishes. Of each list the first is
/// written and all are understood.
package struct ChatFieldNames: Sendable {
  package var author = ["userName", "userEmail", "user", "author", "sender", "name"]
  package var text = ["messageText", "text", "message", "body"]
  package var picture = ["pictureUrl", "imageUrl", "picture", "image"]
  /// The column that says which channel a row belongs to; nil where the table has none, because the app has one
  /// channel only.
  package var channel: String? = "channel"
  /// A column of milliseconds: when the message was written. The service's own `created` has whole seconds.
  package var time = "ferryTime"
  /// A text column for what only Ferry understands.
  package var ferry = "ferry"

  package init() {}

  package init(_ mapping: ConfigMapping) throws(FerryError) {
    if let node = mapping.optional("author") { author = try Self.names(node) }
    if let node = mapping.optional("text") { text = try Self.names(node) }
    if let node = mapping.optional("picture") { picture = try Self.names(node) }
    if let node = mapping.optional("channel") {
      let name = try node.nonEmptyString()
      channel = name == "none" ? nil : try Self.checked(name, node)
    }
    if let node = mapping.optional("time") { time = try Self.checked(try node.nonEmptyString(), node) }
    if let node = mapping.optional("ferry") { ferry = try Self.checked(try node.nonEmptyString(), node) }
    try mapping.finish()
  }

  /// Columns that the service fills by itself.
  static let reserved: Set<String> = ["objectId", "created", "updated", "ownerId", "___class", "__meta"]

  private static func names(_ node: ConfigNode) throws(FerryError) -> [String] {
    var names: [String] = []
    for name in try node.strings() { names.append(try checked(name, node)) }
    return names
  }

  /// Column names stand in where clauses, so they are of letters, digits and underscores.
  private static func checked(_ name: String, _ node: ConfigNode) throws(FerryError) -> String {
    guard isColumn(name) else { throw node.error("\"\(name)\" cannot be a column: letters, digits and _ can") }
    guard !reserved.contains(name) else { throw node.error("\"\(name)\" is a column that Backendless fills by itself") }
    return name
  }

  static func isColumn(_ name: String) -> Bool {
    guard let first = name.unicodeScalars.first, name.utf8.count <= 64 else { return false }
    return !("0"..."9").contains(first)
      && name.unicodeScalars.allSatisfy {
        $0.isASCII && ($0.properties.isAlphabetic || ("0"..."9").contains($0) || $0 == "_")
      }
  }
}

/// Which commands of a channel say who is typing and who has read what. Compared without regard to case.
package struct CommandNames: Sendable {
  package var typing = ["USER_TYPING", "TYPING"]
  package var typingStopped = ["USER_STOP_TYPING", "STOP_TYPING"]
  /// Nil: the app has none, and Ferry sends none.
  package var read: String?
  package var delivered: String?

  package init() {}

  mutating func readTyping(_ mapping: ConfigMapping) throws(FerryError) {
    if let node = mapping.optional("start") { typing = try node.strings() }
    if let node = mapping.optional("stop") { typingStopped = try node.strings() }
    try mapping.finish()
  }

  mutating func readMarks(_ mapping: ConfigMapping) throws(FerryError) {
    read = try mapping.required("command").nonEmptyString()
    delivered = try mapping.optional("delivered")?.nonEmptyString()
    try mapping.finish()
  }

  enum Meaning: Hashable, Sendable { case typing, typingStopped, read, delivered }

  func meaning(of type: String) -> Meaning? {
    func isOne(of names: [String?]) -> Bool { names.contains { $0?.lowercased() == type.lowercased() } }
    if isOne(of: [read]) { return .read }
    if isOne(of: [delivered]) { return .delivered }
    if isOne(of: typing) { return .typing }
    return isOne(of: typingStopped) ? .typingStopped : nil
  }
}
