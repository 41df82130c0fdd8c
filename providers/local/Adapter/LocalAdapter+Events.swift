import FerryChat
package import FerryCore
import FerryRuntime
import FerryTransport

extension LocalAdapter: EventHistoryProvider {
  package func events(
    of channel: ChannelID, after cursor: Cursor?, limit: Int
  ) async throws(FerryError) -> EventPage {
    let limit = min(max(limit, 1), 500)
    var query = "?deleted=withheld&limit=\(limit)&room=\(PercentEncoding.encode(channel.rawValue))"
    if let cursor { query += "&after=\(PercentEncoding.encode(cursor.rawValue))" }
    // Without `JSONDecoder`, which would take most of the time of an export.
    let bytes = try await bytes(of: "/v1/events" + query, doing: "read the history")
    guard let page = try? JSONReader.read(bytes, deepest: 2 * JSONValue.deepest).value,
      let items = page["events"]?.array
    else {
      throw FerryError(
        .badData, "Could not read the history: the answer was not understood. Is this a Ferry server?", retry: .now)
    }
    var events: [Event] = []
    events.reserveCapacity(items.count)
    var withheld: Set<MessageID> = []
    for item in items {
      // Of a newer server, perhaps.
      guard let event = Self.event(item, in: channel) else { continue }
      if let message = item["event"]?["message"], message["deleted"] != nil, let id = message["id"]?.string {
        withheld.insert(MessageID(id))
      }
      events.append(event)
    }
    let last = items.last?["sequence"]?.integer
    return EventPage(
      events: events, next: last.map { Cursor(String($0)) } ?? cursor, isLast: page["next"]?.integer == nil,
      withheld: withheld)
  }

  /// A `Wire.Event` with its sequence.
  private static func event(_ item: JSONValue, in channel: ChannelID) -> Event? {
    guard let sequence = item["sequence"]?.integer, let event = item["event"], let time = time(event["time"]),
      let kind = kind(of: event)
    else { return nil }
    return Event(
      key: EventKey("s\(sequence)"), channel: channel, time: time, kind: kind, cursor: Cursor(String(sequence)))
  }

  private static func kind(of event: JSONValue) -> Event.Kind? {
    let by = event["by"]?.author
    let stamp = event["stamp"]?.stamp
    let id = event["id"]?.string.map { MessageID($0) }
    switch event["kind"]?.string {
    case "message": return event["message"].flatMap(message).map { .posted($0) }
    case "edit": return event["message"].flatMap(message).map { .edited($0) }
    case "delete": return id.map { .deleted(Deletion(id: $0, by: by, stamp: stamp)) }
    case "join": return by.map { .joined(Membership(member: $0, stamp: stamp)) }
    case "leave": return by.map { .left(Membership(member: $0, stamp: stamp)) }
    case "read":
      guard let id, let state = event["state"]?.string.flatMap({ ReadMark.State(rawValue: $0) }) else { return nil }
      return .read(ReadMark(upTo: id, by: by, state: state, stamp: stamp))
    case "reaction":
      guard let id, let by, let emoji = event["emoji"]?.string, let added = event["added"]?.bool else { return nil }
      return .reacted(Reaction(message: id, by: by, emoji: emoji, added: added, stamp: stamp))
    default: return nil
    }
  }

  private static func message(_ value: JSONValue) -> Message? {
    guard case .object(let members) = value, let id = members["id"]?.string, let author = members["author"]?.author,
      let text = members["text"]?.string, let time = time(members["time"])
    else { return nil }
    var message = Message(
      id: MessageID(id), author: author, text: text,
      format: members["format"]?.string.flatMap { TextFormat(rawValue: $0) } ?? .plain, time: time)
    message.revision = members["revision"]?.integer.flatMap { Int(exactly: $0) } ?? 0
    message.edited = Self.time(members["edited"])
    message.replyTo = members["reply_to"]?.string.map { MessageID($0) }
    message.mentions = (members["mentions"]?.array ?? []).compactMap { $0.string.map { UserID($0) } }
    message.stamp = members["stamp"]?.stamp
    message.attributes = members["attributes"].flatMap { $0 == .null ? nil : $0 }
    message.attachments = (members["attachments"]?.array ?? []).compactMap { try? $0.wireAttachment.attachment() }
    return message
  }

  private static func time(_ value: JSONValue?) -> Timestamp? {
    switch value {
    case .string(let text): Timestamp(iso8601: text)
    case .integer(let milliseconds): Timestamp(milliseconds: milliseconds)
    default: nil
    }
  }
}
