import FerryChat
import FerryCore

/// What the facade remembers of a message beyond what the chat knows: the message's attributes there.
///
/// Read leniently: somebody else may have posted the message with attributes of any form.
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

  private static let mark = "twilio"

  init() {}

  init(_ message: Message) {
    guard let mine = message.attributes?[Self.mark] else {
      isOurs = false
      if let foreign = message.attributes { attributes = JSONText.text(foreign) }
      return
    }
    attributes = mine["attributes"]?.string ?? "{}"
    updated = mine["updated"]?.integer
    revision = mine["revision"]?.integer.flatMap { Int(exactly: $0) } ?? 0
    participant = mine["participant"]?.string
    media = mine["media"]?.array?.compactMap(MediaItem.init) ?? []
    contentSID = mine["content"]?.string
    receipts = mine["receipts"]?.integer.flatMap { Int(exactly: $0) } ?? 0
  }

  var json: JSONValue {
    var mine: [String: JSONValue] = ["revision": .integer(Int64(revision))]
    if attributes != "{}" { mine["attributes"] = .string(attributes) }
    if let updated { mine["updated"] = .integer(updated) }
    if let participant { mine["participant"] = .string(participant) }
    if !media.isEmpty { mine["media"] = .array(media.map(\.json)) }
    if let contentSID { mine["content"] = .string(contentSID) }
    if receipts > 0 { mine["receipts"] = .integer(Int64(receipts)) }
    return [Self.mark: .object(mine)]
  }

  /// When the message was last changed. A change by somebody else counts from when it was made.
  func updated(of message: Message) -> Int64 {
    if let updated, revision == message.revision { return updated }
    return (message.edited ?? message.time).milliseconds
  }
}
