import FerryCore

/// What a webhook says, as far as Ferry has a use for it.
enum WebhookEvent: Hashable, Sendable {
  case added(ListedMessage)
  case updated(ListedMessage)
  case removed(ListedMessage, at: Timestamp?)
  case joined(ListedParticipant)
  case left(ListedParticipant)
  case participantChanged(ListedParticipant)
  case delivery(Receipt)
  /// The conversation was closed, reopened or deleted: look again.
  case conversationChanged
  case userChanged(identity: String)

  /// Nil for hooks before an action, which Ferry lets pass, and for all that is of no use to it.
  init?(_ form: Form) {
    switch form["EventType"] {
    case "onMessageAdded":
      guard let message = ListedMessage(form: form) else { return nil }
      self = .added(message)
    case "onMessageUpdated":
      guard let message = ListedMessage(form: form) else { return nil }
      self = .updated(message)
    case "onMessageRemoved":
      guard let message = ListedMessage(form: form) else { return nil }
      self = .removed(message, at: form["DateRemoved"].flatMap { TwilioDate.parse($0) })
    case "onParticipantAdded":
      guard let participant = ListedParticipant(form: form) else { return nil }
      self = .joined(participant)
    case "onParticipantRemoved":
      guard let participant = ListedParticipant(form: form) else { return nil }
      self = .left(participant)
    case "onParticipantUpdated":
      guard let participant = ListedParticipant(form: form) else { return nil }
      self = .participantChanged(participant)
    case "onDeliveryUpdated":
      guard let receipt = Receipt(form: form) else { return nil }
      self = .delivery(receipt)
    case "onConversationStateUpdated", "onConversationRemoved": self = .conversationChanged
    case "onUserUpdated":
      guard let identity = form["Identity"], !identity.isEmpty else { return nil }
      self = .userChanged(identity: identity)
    default: return nil
    }
  }

  /// What a scoped webhook has to announce.
  static let filters = [
    "onMessageAdded", "onMessageUpdated", "onMessageRemoved", "onParticipantAdded", "onParticipantRemoved",
    "onParticipantUpdated", "onDeliveryUpdated", "onConversationStateUpdated", "onConversationRemoved",
  ]

  /// How far a message got at one phone.
  struct Receipt: Hashable, Sendable {
    var sid: String
    var message: String
    var participant: String
    var status: String
    var changed: Timestamp?

    init?(form: Form) {
      guard let sid = form["DeliveryReceiptSid"], let message = form["MessageSid"], let status = form["Status"] else {
        return nil
      }
      self.sid = sid
      self.message = message
      self.status = status
      participant = form["ParticipantSid"] ?? ""
      changed = (form["DateUpdated"] ?? form["DateCreated"]).flatMap { TwilioDate.parse($0) }
    }

    init?(json value: JSONValue) {
      guard let sid = value["sid"]?.string, let message = value["message_sid"]?.string,
        let status = value["status"]?.string
      else { return nil }
      self.sid = sid
      self.message = message
      self.status = status
      participant = value["participant_sid"]?.string ?? ""
      changed = (value["date_updated"]?.string ?? value["date_created"]?.string).flatMap { TwilioDate.parse($0) }
    }

    var state: ReadMark.State? {
      switch status {
      case "delivered": .delivered
      case "read": .read
      default: nil
      }
    }
  }
}
