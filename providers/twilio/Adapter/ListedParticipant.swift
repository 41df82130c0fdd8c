import FerryCore

/// A participant as Twilio tells it, in a list or in a webhook.
struct ListedParticipant: Hashable, Sendable {
  /// One membership: who leaves and comes back has another.
  var sid: String
  var conversation: String
  /// Nil for a phone.
  var identity: String?
  /// Of a phone and the like.
  var address: String?
  var attributes: String
  /// Index of the last message read; nil as long as nobody set it.
  var horizon: Int64?
  /// Created, updated or removed, whichever came last.
  var changed: Timestamp?

  init?(json value: JSONValue) {
    guard let sid = value["sid"]?.string, !sid.isEmpty else { return nil }
    self.sid = sid
    conversation = value["conversation_sid"]?.string ?? ""
    identity = value["identity"]?.text
    address = value["messaging_binding"]?["address"]?.string
    attributes = value["attributes"]?.string ?? "{}"
    horizon = value["last_read_message_index"]?.text.flatMap { Int64($0) }
    changed = (value["date_updated"]?.string ?? value["date_created"]?.string).flatMap { TwilioDate.parse($0) }
  }

  init?(form: Form) {
    guard let sid = form["ParticipantSid"], !sid.isEmpty else { return nil }
    self.sid = sid
    conversation = form["ConversationSid"] ?? ""
    identity = form["Identity"]
    address = form["MessagingBinding.Address"]
    attributes = form["Attributes"] ?? "{}"
    horizon = form["LastReadMessageIndex"].flatMap { Int64($0) }
    changed = (form["DateRemoved"] ?? form["DateUpdated"] ?? form["DateCreated"]).flatMap { TwilioDate.parse($0) }
  }

  /// What names this person: the identity, a phone's address, or at least the membership.
  var id: String { identity ?? address ?? sid }

  var ferry: FerryAttributes? { FerryAttributes(attributes) }
}
