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

extension Wire.Event {
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
