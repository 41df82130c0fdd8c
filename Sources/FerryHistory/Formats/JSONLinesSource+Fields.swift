import FerryCore

extension JSONLinesSource {
  /// Which members of a line mean what: the first name that is there counts. A name with dots leads into objects.
  package struct Fields: Hashable, Sendable {
    enum Field: String, CaseIterable, Hashable, Sendable {
      case kind, channel, id, time, author, authorID = "author_id", text, format, edited
      case replyTo = "reply_to", thread
    }

    private var names: [Field: [String]] = [
      .kind: ["kind", "type"], .channel: ["channel"], .id: ["id", "message_id"],
      .time: ["time", "timestamp", "ts", "date", "created_at"],
      .author: ["author", "user", "sender", "from", "name", "nick"], .authorID: ["author_id", "user_id"],
      .text: ["text", "message", "body", "content"], .format: ["format"], .edited: ["edited"],
      .replyTo: ["reply_to"], .thread: ["thread"],
    ]

    /// The usual names, those among them that Ferry itself writes.
    package init() {}

    /// Written `text=body,author=user.name,time=ts`; fields that are not in it have their usual names. Nil for what is no
    /// such list.
    package init?(_ map: String) {
      for pair in map.split(separator: ",") {
        let words = pair.split(separator: "=", maxSplits: 1).map { $0.filter { $0 != " " } }
        guard words.count == 2, let field = Field(rawValue: words[0]), !words[1].isEmpty else { return nil }
        names[field] = [words[1]]
      }
    }

    /// For messages to the user.
    func name(_ field: Field) -> String { names[field]?.first ?? field.rawValue }

    /// Takes a field's value out of an object; null counts as absent.
    func take(_ field: Field, from members: inout [String: JSONValue]) -> JSONValue? {
      for name in names[field] ?? [] {
        if let value = members.removeValue(forKey: name) {
          if value != .null { return value }
        } else if name.contains(".") {
          let path = name.split(separator: ".").map(String.init)
          let value = path.dropFirst().reduce(members[path.first ?? ""]) { $0?[$1] }
          if let value, value != .null { return value }
        }
      }
      return nil
    }
  }
}
