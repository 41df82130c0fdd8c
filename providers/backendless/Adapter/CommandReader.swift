import FerryCore

/// Commands of a channel: who is typing, and who has read what.
struct CommandReader: Sendable {
  let names: CommandNames
  let fields: ChatFieldNames

  /// What a command means, and who says so as far as it tells by itself.
  struct Command: Hashable, Sendable {
    enum Content: Hashable, Sendable {
      case typing(on: Bool)
      case mark(MessageID, ReadMark.State)
    }

    var content: Content
    /// By name, where the command carries one.
    var by: Author?
    /// The user of the connection that sent it; nil when nobody is logged in there.
    var userID: String?
    var connectionID: String?
    var stamp: Stamp?
  }

  /// Nil for what has no meaning to Ferry.
  func read(_ frame: JSONValue) -> Command? {
    guard let type = frame["type"]?.string, let meaning = names.meaning(of: type) else { return nil }
    let data = frame["data"] ?? .null
    guard let content = content(meaning, data) else { return nil }
    let mark = FerryMark(data[FerryMark.name])
    // An older kind of client nests who it was.
    let info = frame["userInfo"] ?? .null
    var command = Command(content: content)
    command.userID = (frame["userId"] ?? info["userId"])?.text.flatMap { $0.isEmpty ? nil : $0 }
    command.connectionID = (frame["connectionId"] ?? info["connectionId"])?.text
    command.stamp = mark?.stamp
    if let name = name(data) { command.by = Author(id: UserID(mark?.senderID ?? name), name: name) }
    return command
  }

  private func content(_ meaning: CommandNames.Meaning, _ data: JSONValue) -> Command.Content? {
    switch meaning {
    // One command for both says which by its data.
    case .typing: return .typing(on: data["on"]?.bool ?? data["typing"]?.bool ?? true)
    case .typingStopped: return .typing(on: false)
    case .read, .delivered:
      let names = ["objectId", "messageId", "message", "id"]
      guard let id = names.lazy.compactMap({ data[$0]?.text }).first ?? data.text, !id.isEmpty, id.utf8.count <= 512
      else { return nil }
      let said = data["state"]?.string.flatMap { ReadMark.State(rawValue: $0) }
      return .mark(MessageID(id), said ?? (meaning == .read ? .read : .delivered))
    }
  }

  private func name(_ data: JSONValue) -> String? {
    let names = ["user", "userName", "name", "userEmail"] + fields.author
    for alias in names {
      guard let value = data[alias] else { continue }
      let name = value.text ?? value["name"]?.text ?? value["userName"]?.text ?? value["email"]?.text
      if let name, !name.isEmpty { return name }
    }
    return nil
  }
}
