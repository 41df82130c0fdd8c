import FerryChat
package import FerryCore
import FerryRuntime

extension LocalAdapter: ImportingProvider {
  package func prepareImport(into channel: ChannelID, notify: Bool) async throws(FerryError) {
    try await call("PUT", Self.path(channel), Bodies.Room(), doing: "make the room")
  }

  package func write(
    _ items: [PastItem], into channel: ChannelID
  ) async throws(FerryError) -> [MessageID?] {
    struct Answer: Decodable { let ids: [String?] }
    var json = JSONWriter(capacity: 256 * items.count)
    json.begin()
    json.name("items")
    json.begin("[")
    for item in items { try Self.write(item, to: &json) }
    json.end("]")
    json.end()
    let answer = try await call(
      "POST", Self.path(channel, "import"), json: json.utf8, Answer.self, doing: "import")
    guard answer.ids.count == items.count else {
      throw FerryError(
        .badData, "Could not import: the answer names another number of items.", retry: .now, didNotAct: false)
    }
    return answer.ids.map { $0.map { MessageID($0) } }
  }

  // MARK: Bodies

  /// A `Bodies.Import.Item`.
  private static func write(_ item: PastItem, to json: inout JSONWriter) throws(FerryError) {
    json.begin()
    json.member("key", fitted(id: item.key.rawValue))
    json.name("time")
    json.value(item.time.milliseconds)
    switch item.kind {
    case .message(let message):
      json.member("kind", "message")
      try write(message, to: &json)
    case .edit(let reference, let message):
      json.member("kind", "edit")
      write(reference, to: &json)
      try write(message, to: &json)
    case .delete(let reference, let author):
      json.member("kind", "delete")
      write(reference, to: &json)
      write(author, to: &json)
    case .join(let member):
      json.member("kind", "join")
      write(member, to: &json)
    case .leave(let member):
      json.member("kind", "leave")
      write(member, to: &json)
    case .read(let reference, let reader, let state):
      json.member("kind", "read")
      write(reference, to: &json)
      write(reader, to: &json)
      json.member("state", state.rawValue)
    case .reaction(let reference, let author, let emoji, let added):
      json.member("kind", "reaction")
      write(reference, to: &json)
      write(author, to: &json)
      json.member("emoji", emoji)
      json.name("added")
      json.value(added)
    }
    json.member("stamp", item.stamp)
    json.end()
  }

  private static func write(_ message: PastMessage, to json: inout JSONWriter) throws(FerryError) {
    write(message.author, to: &json)
    json.member("text", message.text)
    json.member("format", message.format.rawValue)
    if let edited = message.edited {
      json.name("edited")
      json.value(edited.milliseconds)
    }
    json.name("revision")
    // Some services count revisions in milliseconds.
    json.value((0...1_000_000).contains(message.revision) ? Int64(message.revision) : 1)
    if !message.attachments.isEmpty { try json.member("attachments", encoding: message.attachments.map(wire)) }
    if message.isAction {
      json.name("action")
      json.value(true)
    }
    json.member("system", message.system)
    if let reply = message.replyTo {
      json.member("reply_to", fitted(id: reply.key.rawValue))
      json.member("reply_to_id", reply.id?.rawValue)
    }
    if !message.mentions.isEmpty {
      json.name("mentions")
      json.begin("[")
      for user in message.mentions.prefix(64) { json.value(fitted(id: user.rawValue)) }
      json.end("]")
    }
  }

  private static func write(_ reference: PastReference, to json: inout JSONWriter) {
    json.member("of", fitted(id: reference.key.rawValue))
    json.member("id", reference.id?.rawValue)
  }

  private static func write(_ author: Author?, to json: inout JSONWriter) {
    guard let author else { return }
    json.name("by")
    Wire.Author(fitted(author)).write(to: &json)
  }
}
