package import FerryCore
package import FerryRuntime

extension Wire.Author {
  package func write(to json: inout JSONWriter) {
    json.begin()
    json.member("id", id)
    json.member("name", name)
    json.member("avatar", avatar)
    json.end()
  }
}

extension Wire.Message {
  /// The same members as its `Encodable` writes.
  package func write(to json: inout JSONWriter) throws(FerryError) {
    json.begin()
    json.member("id", id)
    json.member("room", room)
    json.name("author")
    author.write(to: &json)
    json.member("text", text)
    json.member("format", format.rawValue)
    json.member("time", time.timestamp.iso8601)
    json.name("revision")
    json.value(Int64(revision))
    json.member("edited", edited?.timestamp.iso8601)
    json.member("deleted", deleted?.timestamp.iso8601)
    json.name("attachments")
    json.raw(attachments.isEmpty ? "[]" : try Wire.json(attachments))
    json.member("reply_to", reply_to)
    try json.member("mentions", encoding: mentions)
    json.member("client_id", client_id)
    try json.member("reactions", encoding: reactions)
    json.member("stamp", stamp)
    json.member("attributes", attributes)
    json.end()
  }

  package func json() throws(FerryError) -> String {
    var json = JSONWriter()
    try write(to: &json)
    return json.text
  }
}

extension ChatMessage {
  /// As `Wire.Message` writes it, mostly without making one.
  func write(to json: inout JSONWriter) throws(FerryError) {
    guard message.attachments.isEmpty, message.mentions.isEmpty, reactions.isEmpty else {
      return try Wire.Message(self).write(to: &json)
    }
    json.begin()
    json.member("id", message.id.rawValue)
    json.member("room", room.rawValue)
    json.name("author")
    json.value(message.author)
    json.member("text", message.text)
    json.member("format", message.format.rawValue)
    json.member("time", message.time.iso8601)
    json.name("revision")
    json.value(Int64(message.revision))
    json.member("edited", message.edited?.iso8601)
    json.member("deleted", deleted?.iso8601)
    json.name("attachments")
    json.raw("[]")
    json.member("reply_to", message.replyTo?.rawValue)
    json.member("client_id", clientID?.rawValue)
    json.member("stamp", message.stamp)
    json.member("attributes", message.attributes)
    json.end()
  }
}

extension Wire.Event {
  /// What `Wire.Event(event, stored: stored)` is in JSON, mostly without making one.
  static func json(_ event: FerryCore.Event, stored: ChatMessage?) throws(FerryError) -> String {
    let kind: Kind
    switch event.kind {
    case .posted: kind = .message
    case .edited: kind = .edit
    default: return try Wire.Event(event, stored: stored).json()
    }
    guard let stored else { return try Wire.Event(event).json() }
    var json = JSONWriter(capacity: 512 + 2 * stored.message.text.utf8.count)
    json.begin()
    json.member("kind", kind.rawValue)
    json.member("room", event.channel.rawValue)
    json.member("time", event.time.iso8601)
    json.name("message")
    try stored.write(to: &json)
    json.end()
    return json.text
  }

  /// The same members as its `Encodable` writes.
  func json() throws(FerryError) -> String {
    var json = JSONWriter()
    json.begin()
    json.member("kind", kind.rawValue)
    json.member("room", room)
    json.member("time", time.timestamp.iso8601)
    if let message {
      json.name("message")
      try message.write(to: &json)
    }
    json.member("id", id)
    if let by {
      json.name("by")
      by.write(to: &json)
    }
    json.member("state", state?.rawValue)
    json.member("emoji", emoji)
    if let added {
      json.name("added")
      json.value(added)
    }
    json.member("stamp", stamp)
    json.end()
    return json.text
  }
}
