/// What webhooks may be told of, and where.
enum WebhookRules {
  static let preActions = [
    "onMessageAdd", "onMessageUpdate", "onMessageRemove", "onConversationAdd", "onConversationUpdate",
    "onConversationRemove", "onParticipantAdd", "onParticipantUpdate", "onParticipantRemove", "onUserUpdate",
  ]

  static let postActions = [
    "onMessageAdded", "onMessageUpdated", "onMessageRemoved", "onConversationAdded", "onConversationUpdated",
    "onConversationRemoved", "onConversationStateUpdated", "onParticipantAdded", "onParticipantUpdated",
    "onParticipantRemoved", "onDeliveryUpdated", "onUserAdded", "onUserUpdated",
  ]

  static func check(_ filters: [String], among valid: [String]) throws(TwilioError) {
    for filter in filters where !valid.contains(filter) {
      throw TwilioError(400, 50365, "Invalid webhook filter \(filter.prefix(64))")
    }
  }

  /// Nil when none is given; an empty one takes away what was set.
  static func url(_ text: String?) throws(TwilioError) -> String? {
    guard let text else { return nil }
    let lower = text.lowercased()
    guard text.isEmpty || lower.hasPrefix("http://") || lower.hasPrefix("https://"),
      !text.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7f }), text.utf8.count <= 2048
    else { throw TwilioError(400, 50372, "The webhook's URL must begin with http:// or https://") }
    return text
  }
}
