/// What Twilio accepts. Source: https://www.twilio.com/docs/conversations/conversations-limits
enum AdapterLimits {
  /// Of a body in a conversation of chat participants.
  static let bodyBytes = 32 << 10
  /// Of a body once a phone or WhatsApp takes part.
  static let messagingCharacters = 1600
  static let attributesBytes = 4096
  static let authorBytes = 256
  static let identityBytes = 256
  static let mediaBytes: Int64 = 150 << 20
  static let pageSize = 100
  /// Of users, receipts and user conversations.
  static let smallPageSize = 50
  static let webhooksPerConversation = 5
}
