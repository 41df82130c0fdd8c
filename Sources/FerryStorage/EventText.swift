import FerryCore
import FerryRuntime
import FoundationEssentials

/// Events as the journal keeps them: the JSON of `Event`'s `Codable`.
///
/// Posted messages, which are nearly all there is, are written without `JSONEncoder`, which cost a tenth of the relay's
/// time (measured). Read back as any JSON.
enum EventText {
  static func write(_ event: Event) throws(FerryError) -> String {
    guard case .posted(let message) = event.kind else {
      do { return String(decoding: try JSONEncoder().encode(event), as: UTF8.self) } catch { throw .wrap(error) }
    }
    var json = JSONWriter()
    json.begin()
    json.member("key", event.key.rawValue)
    json.member("channel", event.channel.rawValue)
    json.name("time")
    json.value(event.time.milliseconds)
    json.member("cursor", event.cursor?.rawValue)
    json.name("kind")
    json.begin()
    json.name("posted")
    json.begin()
    json.name("_0")
    try write(message, to: &json)
    json.end()
    json.end()
    json.end()
    return json.text
  }

  /// The event, or the event without its provider's own fields where these cannot be written (too deep, say), or nil.
  static func writeWhatCanBe(_ event: Event) -> String? {
    if let text = try? write(event) { return text }
    var event = event
    switch event.kind {
    case .posted(var message):
      message.attributes = nil
      event.kind = .posted(message)
    case .edited(var message):
      message.attributes = nil
      event.kind = .edited(message)
    default: return nil
    }
    return try? write(event)
  }

  static func read(_ text: String) throws -> Event { try JSON.decode(Event.self, from: text.utf8) }

  private static func write(_ message: Message, to json: inout JSONWriter) throws(FerryError) {
    json.begin()
    json.member("id", message.id.rawValue)
    json.name("author")
    json.value(message.author)
    json.member("text", message.text)
    json.member("format", message.format.rawValue)
    json.name("time")
    json.value(message.time.milliseconds)
    json.name("revision")
    json.value(Int64(message.revision))
    if let edited = message.edited {
      json.name("edited")
      json.value(edited.milliseconds)
    }
    json.member("replyTo", message.replyTo?.rawValue)
    if message.attachments.isEmpty {
      json.name("attachments")
      json.raw("[]")
    } else {
      try json.member("attachments", encoding: message.attachments)
    }
    if message.mentions.isEmpty {
      json.name("mentions")
      json.raw("[]")
    } else {
      try json.member("mentions", encoding: message.mentions)
    }
    json.member("stamp", message.stamp)
    json.member("attributes", message.attributes)
    json.end()
  }
}

/// The events accepted last, so that lanes that keep up need not read them back from JSON. Only ever a copy of what
/// the database holds.
final class RecentEvents: Sendable {
  private struct State: Sendable {
    var events: [Int64: Event] = [:]
    var order: [Int64] = []
    var head = 0
  }

  private static let capacity = 2048
  private let state = Locked(State())

  subscript(id: Int64) -> Event? { state.withLock { $0.events[id] } }

  func keep(_ event: Event, _ id: Int64) {
    state.withLock { state in
      if state.order.count < Self.capacity {
        state.order.append(id)
      } else {
        state.events[state.order[state.head]] = nil
        state.order[state.head] = id
        state.head = (state.head + 1) % Self.capacity
      }
      state.events[id] = event
    }
  }
}
