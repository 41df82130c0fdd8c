import FerryChat
import FerryCore
import FerryRuntime

/// What the facade remembers of a message beyond what the chat knows: the message's attributes there.
///
/// Kept as one text that begins with `mark`, because a text is read many times faster than a tree. Read leniently:
/// somebody else may have posted the message with attributes of any form.
struct MessageExtra: Sendable {
  /// As given, byte for byte.
  var attributes = "{}"
  /// When the message was last changed, as told with the change of that revision.
  var updated: Int64?
  var revision = 0
  var participant: String?
  /// The attachments in their order, as they were uploaded.
  var media: [MediaItem] = []
  var contentSID: String?
  /// How many delivery receipts there are.
  var receipts = 0
  /// False when the message did not come in through the facade.
  var isOurs = true

  private static let mark = "twilio "

  private struct Kept: Decodable {
    var attributes: String?
    var updated: Int64?
    var revision: Int?
    var participant: String?
    var media: [JSONValue]?
    var content: String?
    var receipts: Int?
  }

  init() {}

  init(_ message: Message) {
    guard let text = message.attributes?.string, text.hasPrefix(Self.mark),
      let kept = JSONText.decode(Kept.self, from: text.utf8.dropFirst(Self.mark.utf8.count))
    else {
      isOurs = false
      if let foreign = message.attributes { attributes = JSON.text(of: foreign) }
      return
    }
    attributes = kept.attributes ?? "{}"
    updated = kept.updated
    revision = kept.revision ?? 0
    participant = kept.participant
    media = (kept.media ?? []).compactMap { MediaItem($0) }
    contentSID = kept.content
    receipts = kept.receipts ?? 0
  }

  /// As the chat keeps it.
  var kept: JSONValue {
    var json = JSONWriter()
    json.begin()
    if attributes != "{}" { json.member("attributes", attributes) }
    json.member("updated", updated.map(JSONValue.integer))
    if revision > 0 { json.member("revision", .integer(Int64(revision))) }
    json.member("participant", participant)
    if !media.isEmpty { json.member("media", .array(media.map(\.json))) }
    json.member("content", contentSID)
    if receipts > 0 { json.member("receipts", .integer(Int64(receipts))) }
    json.end()
    return .string(Self.mark + json.text)
  }

  /// When the message was last changed. A change by somebody else counts from when it was made.
  func updated(of message: Message) -> Int64 {
    if let updated, revision == message.revision { return updated }
    return (message.edited ?? message.time).milliseconds
  }
}
