package import FerryConfig
package import FerryCore

extension PusherFacade {
  package struct Settings: Sendable {
    /// What a client is told when there are `connections` already.
    package enum Overflow: String, Sendable, CaseIterable {
      /// Code 4004, as the hosted service: over quota, do not come back unchanged.
      case quota
      /// Code 4100: over capacity, come back later.
      case capacity

      var code: ErrorCode { self == .quota ? .overQuota : .overCapacity }
    }

    /// A tutorial's own server, played beside the service.
    package enum Tutorial: String, Sendable, CaseIterable {
      case anonymousChat = "anonymous_chat"
    }

    package var appID: String
    package var key: String
    package var secret: Secret
    /// Whether clients may send to one another on private and presence channels.
    package var clientEvents = true
    package var clientEventsPerSecond = 10
    /// How many sockets may be open; nil: as many as the server takes.
    package var connections: Int?
    package var overflow = Overflow.quota
    /// Whether a socket that is neither signed in nor on a private or presence channel after half a minute is closed.
    package var authorizedConnections = false
    /// Whether subscribers are told how many they are.
    package var subscriptionCount = false
    /// Whether signed-in users may watch others come and go.
    package var watchlist = false
    /// Whether a second subscription to the same channel is an error rather than confirmed again.
    package var strict = false
    package var webhooks: [WebhookSettings] = []
    package var tutorial: Tutorial?

    /// Seconds of silence after which a client is asked whether it is there, and how long it has to answer.
    package var activityTimeout = 120
    package var pongTimeout = 30
    /// A flood of subscriptions from one socket ends here.
    package var channelsPerConnection = 1000
    /// What may wait for a reader that does not keep up, before it is let go.
    package var queueBytes = 1 << 20
    /// How long a client may take to answer a close, and one that was let go to read that it was.
    package var closeTimeout: Duration = .seconds(5)

    package init(appID: String, key: String, secret: Secret) {
      self.appID = appID
      self.key = key
      self.secret = secret
    }

    /// Reads every key of a facade's configuration and refuses the others.
    package init(_ mapping: ConfigMapping) throws(FerryError) {
      let appID = try mapping.required("app_id")
      self.appID = try appID.nonEmptyString()
      guard self.appID.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
        throw appID.error("app_id must be all digits, or the official libraries refuse it")
      }
      key = try mapping.required("key").nonEmptyString()
      secret = try mapping.secret("secret")
      clientEvents = try mapping.optional("client_events")?.bool() ?? true
      if let rate = mapping.optional("client_events_per_second") {
        clientEventsPerSecond = Int(try rate.integer(in: 1...100_000))
      }
      if let limit = mapping.optional("channels_per_connection") {
        channelsPerConnection = Int(try limit.integer(in: 1...1_000_000))
      }
      if let limit = mapping.optional("connections") { connections = Int(try limit.integer(in: 1...1_000_000)) }
      overflow = try mapping.optional("over_connections")?.choice(Overflow.self) ?? .quota
      authorizedConnections = try mapping.optional("authorized_connections")?.bool() ?? false
      subscriptionCount = try mapping.optional("subscription_count")?.bool() ?? false
      watchlist = try mapping.optional("watchlist")?.bool() ?? false
      strict = try mapping.optional("strict")?.bool() ?? false
      tutorial = try mapping.optional("tutorial")?.choice(Tutorial.self)
      for node in try mapping.optional("webhooks")?.list() ?? [] {
        webhooks.append(try WebhookSettings(node, countsSubscriptions: subscriptionCount))
      }
      try mapping.finish()
    }
  }
}
