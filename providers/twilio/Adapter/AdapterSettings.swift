package import FerryConfig
package import FerryCore
import FerryRuntime
import FerryTransport

extension TwilioAdapter {
  /// An account's configuration, validated. Read once and passed by value.
  package struct Settings: Sendable {
    /// Empty when only an API key is known, as in a URL.
    package var accountSID: String
    /// Signs webhooks, and requests too unless there is none.
    package var authToken: Secret?
    /// The conversation service; the account's default one when nil.
    package var serviceSID: String?
    /// Signs the realtime socket's tokens, and requests where there is no auth token.
    package var apiKey: String?
    package var apiSecret: Secret?
    /// Scheme, host and port of the three services, without a slash at the end.
    package var api: String
    package var media: String
    package var realtime: String
    /// The public URL that Twilio calls, exactly as it is told to Twilio; nil for polling alone.
    package var webhook: String?
    /// Whether each conversation's own webhook is created and kept right.
    package var webhookSetup = false
    /// Secrets of webhook rules, by the rules' key ids.
    package var signatureKeys: [String: Secret] = [:]
    /// How often the service is asked; nil for 5 s, and 30 s once a webhook has arrived.
    package var poll: Duration?
    /// How many of the newest messages are compared for edits and deletions that nobody announced.
    package var pollWindow = 100
    /// Whether a conversation that does not exist is created.
    package var create = false
    /// Whether phone or WhatsApp participants are expected, which shortens messages to 1,600 characters.
    package var messaging = false
    /// As whom Ferry types.
    package var identity = "ferry"
    /// The name that identity is given unless it has one: it is shown when anybody types elsewhere.
    package var typingName = "Someone"
    /// Whether a reader who is no participant is made one, so that the read mark has somebody to belong to.
    package var addReaders = true
    /// Writes a second to one conversation.
    package var writesPerSecond = 30

    /// How long a webhook may wait for its events to be stored. Twilio gives up after five seconds, and others are served
    /// behind the same address.
    package var answerTime = Duration.milliseconds(900)
    /// How long a name may take to be looked up; it is not worth waiting for.
    package var lookupTime = Duration.milliseconds(500)

    /// Every service at one address, as at a facade.
    package init(accountSID: String, authToken: Secret?, api: String) {
      self.accountSID = accountSID
      self.authToken = authToken
      self.api = api
      media = api
      realtime = "ws" + api.dropFirst(4)
    }

    /// Twilio's own hosts.
    /// Source: https://www.twilio.com/docs/global-infrastructure/api-domain-names
    package init(accountSID: String, authToken: Secret?, region: String?, edge: String?) {
      let place = edge.map { "\($0).\(region ?? "us1")." } ?? region.map { "\($0)." } ?? ""
      self.init(accountSID: accountSID, authToken: authToken, api: "https://conversations.\(place)twilio.com")
      media = "https://mcs.\(region ?? "us1").twilio.com"
      realtime = "wss://tsock.\(region ?? "us1").twilio.com"
    }

    package var canType: Bool { apiKey != nil && apiSecret != nil && serviceSID != nil && !accountSID.isEmpty }

    /// Seldom only where webhooks do arrive: a URL may be configured that nothing calls, or that another process answers.
    func pollInterval(isCalled: Bool) -> Duration { poll ?? (isCalled ? .seconds(30) : .seconds(5)) }

    /// Reads every key of an account's configuration and refuses the others.
    package init(_ mapping: ConfigMapping) throws(FerryError) {
      let account = try Self.sid(try mapping.required("account_sid"), .account)
      let token = try mapping.optionalSecret("auth_token")
      let region = try mapping.optional("region").map(Self.label)
      let edge = try mapping.optional("edge").map(Self.label)
      if let api = mapping.optional("api_url") {
        self.init(accountSID: account, authToken: token, api: try api.webAddress())
        if region != nil || edge != nil {
          throw api.error("api_url excludes region and edge, which choose Twilio's own hosts")
        }
      } else {
        self.init(accountSID: account, authToken: token, region: region, edge: edge)
      }
      if let media = mapping.optional("media_url") { self.media = try media.webAddress() }
      if let realtime = mapping.optional("realtime_url") { self.realtime = try Self.socketAddress(realtime) }
      try readKeys(mapping)
      try readListening(mapping)
      if let create = mapping.optional("create") { self.create = try create.bool() }
      if let messaging = mapping.optional("messaging") { self.messaging = try messaging.bool() }
      if let readers = mapping.optional("add_readers") { addReaders = try readers.bool() }
      if let writes = mapping.optional("writes_per_second") {
        writesPerSecond = Int(try writes.integer(in: 1...10_000))
      }
      try mapping.finish()
    }

    private mutating func readKeys(_ mapping: ConfigMapping) throws(FerryError) {
      serviceSID = try mapping.optional("service_sid").map { node throws(FerryError) in try Self.sid(node, .service) }
      let key = mapping.optional("api_key")
      let secret = mapping.optional("api_secret")
      apiSecret = try secret?.secret()
      if let key {
        apiKey = try Self.sid(key, .apiKey)
        guard secret != nil else { throw key.error("api_key needs its api_secret") }
        if serviceSID == nil, authToken != nil {
          throw key.error("api_key is for typing, which needs the service_sid (IS...) of the conversations too")
        }
      } else if let secret {
        throw secret.error("api_secret needs its api_key")
      }
      if authToken == nil, apiKey == nil {
        throw mapping.node.error("auth_token is missing; or give api_key and api_secret")
      }
      if let node = mapping.optional("identity") {
        identity = try node.nonEmptyString()
        guard identity.utf8.count <= AdapterLimits.identityBytes, !SID.isOne(identity, of: .user) else {
          throw node.error("identity is a name of up to \(AdapterLimits.identityBytes) bytes that is not a user's SID")
        }
      }
      if let node = mapping.optional("typing_name") { typingName = try node.nonEmptyString() }
    }

    private mutating func readListening(_ mapping: ConfigMapping) throws(FerryError) {
      if let node = mapping.optional("webhook") {
        webhook = try Self.publicAddress(node)
        guard authToken != nil else { throw node.error("webhook needs auth_token, with which Twilio signs its calls") }
      }
      if let setup = mapping.optional("webhook_setup") {
        webhookSetup = try setup.bool()
        if webhookSetup, webhook == nil { throw setup.error("webhook_setup needs webhook, the URL to set up") }
      }
      if let keys = mapping.optional("signature_keys") {
        for (name, _, value) in try keys.mapping().names() { signatureKeys[name] = try value.secret() }
      }
      if let node = mapping.optional("poll") {
        let interval = try node.duration()
        guard (.milliseconds(100) ... .seconds(86_400)).contains(interval) else {
          throw node.error("poll is a time from 100ms to 1d")
        }
        poll = interval
      }
      if let window = mapping.optional("poll_window") { pollWindow = Int(try window.integer(in: 1...1000)) }
    }

    /// Replaces a port of 0 in the addresses: that of a facade in the same process, known once it listens.
    package mutating func fill(port: UInt16) {
      if api.hasSuffix(":0") { api = api.dropLast() + String(port) }
      if media.hasSuffix(":0") { media = media.dropLast() + String(port) }
      if realtime.hasSuffix(":0") { realtime = realtime.dropLast() + String(port) }
    }

    /// The same for the listener that `webhook` leads to.
    package mutating func fill(webhookPort port: UInt16) {
      guard let address = webhook, let slashes = address.firstRange(of: "://") else { return }
      let authority = address[slashes.upperBound...].prefix { $0 != "/" && $0 != "?" }
      guard authority.hasSuffix(":0") else { return }
      webhook = address[..<authority.endIndex].dropLast() + String(port) + address[authority.endIndex...]
    }

    // MARK: Checks

    private static func sid(_ node: ConfigNode, _ kind: SID.Kind) throws(FerryError) -> String {
      let text = try node.nonEmptyString()
      guard SID.isOne(text, of: kind) else {
        throw node.error("this SID is written \(kind.rawValue) and 32 hexadecimal digits")
      }
      return text
    }

    private static func label(_ node: ConfigNode) throws(FerryError) -> String {
      let text = try node.nonEmptyString()
      guard text.utf8.allSatisfy({ (0x61...0x7a).contains($0) || (0x30...0x39).contains($0) || $0 == 0x2d }) else {
        throw node.error("region and edge are words such as us1, ie1 or dublin")
      }
      return text
    }

    private static func socketAddress(_ node: ConfigNode) throws(FerryError) -> String {
      var text = try node.nonEmptyString()
      while text.hasSuffix("/") { text.removeLast() }
      let rest = text.hasPrefix("wss://") ? text.dropFirst(6) : text.hasPrefix("ws://") ? text.dropFirst(5) : ""
      guard !rest.isEmpty, !rest.contains(where: { $0.isWhitespace || "?#@/".contains($0) }) else {
        throw node.error("realtime_url must be a URL that starts with wss:// or ws://, without a path")
      }
      return text
    }

    /// With a path and perhaps a query, which are part of what Twilio signs.
    private static func publicAddress(_ node: ConfigNode) throws(FerryError) -> String {
      let text = try node.nonEmptyString()
      let rest = text.hasPrefix("https://") ? text.dropFirst(8) : text.hasPrefix("http://") ? text.dropFirst(7) : ""
      let authority = rest.prefix { $0 != "/" && $0 != "?" }
      guard !authority.isEmpty, !authority.contains("@"), rest.dropFirst(authority.count).hasPrefix("/"),
        !rest.contains(where: { $0.isWhitespace || $0 == "#" })
      else {
        throw node.error("webhook must be the whole public URL, such as https://bridge.example.org/hooks/support")
      }
      return text
    }
  }
}
