package import FerryChat
package import FerryConfig
package import FerryCore
import FerryRuntime

extension TwilioFacade {
  package struct Settings: Sendable {
    package var accountSID: String
    package var authToken: Secret
    package var apiKey: String
    package var apiSecret: Secret
    /// The account's default service: what paths without a service act on.
    package var serviceSID: String
    /// Scheme and host in the URLs of answers, without a slash at the end. Nil: as the request names them.
    package var publicURL: String?
    /// Unique names of conversations to be made at the start.
    package var conversations: [String] = []
    /// How often a webhook is repeated that was answered 429, 503, 504 or not at all.
    package var preWebhookRetries = 0
    package var postWebhookRetries = 0
    package var webhookRetryDelay: Duration = .milliseconds(250)
    /// Seconds, as clients are told.
    package var typingTimeout = 5
    /// How long a webhook may take to be answered.
    package var webhookTimeout: Duration = .seconds(5)

    package init(accountSID: String, authToken: Secret, apiKey: String, apiSecret: Secret, serviceSID: String) {
      self.accountSID = accountSID
      self.authToken = authToken
      self.apiKey = apiKey
      self.apiSecret = apiSecret
      self.serviceSID = serviceSID
    }

    /// Reads every key of a facade's configuration and refuses the others.
    package init(_ mapping: ConfigMapping) throws(FerryError) {
      accountSID = try Self.sid("account_sid", .account, mapping)
      authToken = try mapping.secret("auth_token")
      apiKey = try Self.sid("api_key", .apiKey, mapping)
      apiSecret = try mapping.secret("api_secret")
      serviceSID = try Self.sid("service_sid", .service, mapping)
      if let node = mapping.optional("public_url") {
        let url = try node.nonEmptyString()
        guard url.hasPrefix("http://") || url.hasPrefix("https://") else {
          throw node.error("public_url must begin with http:// or https://")
        }
        publicURL = url.hasSuffix("/") ? String(url.dropLast()) : url
      }
      if let node = mapping.optional("conversations") {
        for item in try node.list() { conversations.append(try Self.uniqueName(item)) }
      }
      if let node = mapping.optional("pre_webhook_retry_count") { preWebhookRetries = Int(try node.integer(in: 0...3)) }
      if let node = mapping.optional("post_webhook_retry_count") {
        postWebhookRetries = Int(try node.integer(in: 0...3))
      }
      if let node = mapping.optional("typing_timeout") {
        let seconds = try node.duration().components.seconds
        guard (1...60).contains(seconds) else { throw node.error("typing_timeout must be from 1s to 60s") }
        typingTimeout = Int(seconds)
      }
      try mapping.finish()
    }

    private static func sid(_ key: String, _ kind: SID.Kind, _ mapping: ConfigMapping) throws(FerryError) -> String {
      let node = try mapping.required(key)
      let sid = try node.nonEmptyString()
      guard SID.isOne(sid, of: kind) else {
        throw node.error("\(key) must be \(kind.rawValue) and 32 hexadecimal digits")
      }
      return sid
    }

    private static func uniqueName(_ node: ConfigNode) throws(FerryError) -> String {
      let name = try node.nonEmptyString()
      guard name.count <= Limits.name, !SID.isOne(name, of: .conversation) else {
        throw node.error("a conversation's unique name has at most \(Limits.name) characters and is no SID")
      }
      return name
    }

    /// What the namespace behind the facade has to accept.
    package var chatLimits: ChatLimits {
      var limits = ChatLimits()
      // Names have 256 characters here, of up to four bytes each.
      limits.idBytes = 4 * Limits.name
      limits.nameBytes = 4 * Limits.name
      // Attributes are kept as text, escaped, with what else the facade remembers of a message.
      limits.extraBytes = 64 << 10
      limits.fileBytes = Limits.mediaBytes
      limits.typingLasts = .seconds(typingTimeout)
      return limits
    }
  }
}

/// Twilio's limits. Source: https://www.twilio.com/docs/conversations/conversations-limits
enum Limits {
  /// Characters of a friendly name, unique name, identity, author or address.
  static let name = 256
  static let roleName = 64
  /// Bytes.
  static let body = 32 << 10
  /// Characters, where a participant is on a phone.
  static let phoneBody = 1600
  static let attributes = 4 << 10
  static let conversationAttributes = 16 << 10
  static let mediaBytes: Int64 = 150 << 20
  static let participants = 1000
  static let phoneParticipants = 50
  static let conversationsPerIdentity = 1000
  static let webhooks = 5
  static let participantsAtOnce = 10
  /// Seconds for which media waits for its message, and a link to media works.
  static let mediaWaits = 300
  static let linkLasts = 300
}
