import FerryConfig
package import FerryCore
package import FerryRuntime
package import FerryTransport

/// A client of Twilio Conversations, or of a service that speaks its protocol.
///
/// It writes over the REST API. It hears by signed webhooks, where a public address is configured, and by asking: at the
/// start, on a timer, and whenever a webhook shows that something is missing. Typing goes over the realtime socket of
/// Twilio's own clients, where an API key is configured; nothing else depends on that.
package final class TwilioAdapter: ChatProvider {
  package let capabilities: Capabilities
  let settings: Settings
  let client: HTTPClient
  let clock: any FerryClock
  let logger: Logger
  let api: TwilioAPI
  let pace: WritePace
  let names: DisplayNames
  let written = Written()
  /// So many conversations are asked about at a time: Twilio limits the requests of an account that overlap.
  let gate = BoundedChannel<Void>(capacity: 8)
  let realtime: Realtime?
  /// What `run` shares with webhooks; nil while it does not run.
  let current = Locked<Run?>(nil)
  /// The SID of the account's default service, and of conversations by their names, as far as they were asked for.
  let found = Locked(Found())
  let started: Timestamp

  /// Whether a webhook of Twilio's has ever arrived.
  let isCalled = Locked(false)
  /// Whether Ferry's identity has been given its name.
  let isIntroduced = Locked(false)

  struct Found {
    var service: String?
    var conversations = Remembered<ChannelID, String>(capacity: 10_000)
  }

  package init(settings: Settings, client: HTTPClient, clock: any FerryClock, logger: Logger) {
    self.settings = settings
    self.client = client
    self.clock = clock
    self.logger = logger
    let authorization =
      settings.authToken.map { TwilioAPI.basic(settings.accountSID, $0.reveal()) }
      ?? TwilioAPI.basic(settings.apiKey ?? "", settings.apiSecret?.reveal() ?? "")
    let prefix = settings.serviceSID.map { "/v1/Services/\($0)" } ?? "/v1"
    api = TwilioAPI(base: settings.api, prefix: prefix, authorization: authorization, client: client, clock: clock)
    pace = WritePace(perSecond: settings.writesPerSecond, clock: clock)
    names = DisplayNames(api: api, deadline: settings.lookupTime, clock: clock)
    realtime = Realtime(settings, client: client, clock: clock, logger: logger)
    started = clock.now()
    capabilities = Self.capabilities(
      typing: settings.canType, messaging: settings.messaging, writesPerSecond: settings.writesPerSecond)
  }

  /// What an account can do. `typing` is whether it has an API key and names its service, `messaging` whether phones are
  /// expected in its conversations.
  package static func capabilities(
    typing: Bool, messaging: Bool = false, writesPerSecond: Int = 30
  ) -> Capabilities {
    var capabilities = Capabilities()
    capabilities.edits = true
    capabilities.deletes = true
    capabilities.typing = typing
    capabilities.members = true
    capabilities.reads = true
    capabilities.attachments = .stored
    capabilities.history = .messages
    capabilities.certainty = .window(seconds: Double(findWindow.components.seconds))
    // A hook of the account may hold a message back for five seconds.
    capabilities.settleSeconds = 6
    capabilities.bodyBytes = AdapterLimits.bodyBytes
    capabilities.bodyCharacters = messaging ? AdapterLimits.messagingCharacters : nil
    capabilities.attachmentBytes = AdapterLimits.mediaBytes
    capabilities.attachmentsPerMessage = 1
    capabilities.captions = false
    capabilities.sendsPerSecond = Double(writesPerSecond)
    var importing = ImportPowers()
    importing.timeUnit = 1000
    capabilities.importing = importing
    capabilities.absent = [
      "reactions": "Twilio has no reactions.",
      "edit history": "Twilio keeps a message as it was last edited.",
    ]
    if typing {
      capabilities.absent["typing names"] =
        "Twilio names nobody else's typing but one's own: whoever types elsewhere is shown as Ferry's own identity, by `typing_name`."
    } else {
      capabilities.absent["typing"] =
        "Twilio's REST API has no typing. Give api_key, api_secret and service_sid to use its realtime socket."
    }
    return capabilities
  }

  var pollInterval: Duration { settings.pollInterval(isCalled: isCalled.withLock { $0 }) }

  // MARK: Addresses

  func messagesURL(_ conversation: String, _ query: [(String, String)] = []) -> String {
    api.url("Conversations", conversation, "Messages", query: Form(query.map { (name: $0.0, value: $0.1) }))
  }

  func messageURL(_ conversation: String, _ message: String) -> String {
    api.url("Conversations", conversation, "Messages", message)
  }

  func participantURL(_ conversation: String, _ identity: String) -> String {
    api.url("Conversations", conversation, "Participants", identity)
  }

  /// Whether a channel is named by its SID, and so cannot be created.
  static func isSID(_ channel: ChannelID) -> Bool { SID.isOne(channel.rawValue, of: .conversation) }

  // MARK: Conversations

  /// The SID of a conversation, asked for anew; created where that is wanted.
  func resolve(_ channel: ChannelID) async throws(FerryError) -> String {
    let conversation = try await conversationOrNew(channel)
    guard let sid = conversation["sid"]?.string, !sid.isEmpty else {
      throw FerryError(.badData, "Could not find \(channel): the answer names no SID. Check api_url.", retry: .now)
    }
    if conversation["state"]?.string == "closed" {
      logger.notice("\(channel) is closed: it can be read, and nothing can be written to it any more")
    }
    found.withLock { found in
      found.conversations[channel] = sid
      found.service = conversation["chat_service_sid"]?.string ?? found.service
    }
    return sid
  }

  private func conversationOrNew(_ channel: ChannelID) async throws(FerryError) -> JSONValue {
    let url = api.url("Conversations", channel.rawValue)
    do throws(FerryError) { return try await api.get(url, doing: "find the conversation \(channel)") } catch {
      guard error.code == .notFound else { throw error }
      guard settings.create, !Self.isSID(channel) else { throw missing(channel) }
    }
    try await createConversation(channel)
    return try await api.get(url, doing: "find the conversation \(channel)")
  }

  /// Somebody else may do the same at the same time.
  func createConversation(_ channel: ChannelID) async throws(FerryError) {
    do throws(FerryError) {
      try await api.post(
        api.url("Conversations"),
        [("UniqueName", channel.rawValue), ("FriendlyName", String(channel.rawValue.prefix(128)))],
        doing: "create the conversation \(channel)")
      logger.notice("created the conversation \(channel)")
    } catch {
      guard error.code == .conflict else { throw error }
    }
  }

  func missing(_ channel: ChannelID) -> FerryError {
    let hint =
      Self.isSID(channel)
      ? "Check the SID and service_sid." : "Check its unique name and service_sid, or set create: true."
    return FerryError(.notFound, "There is no conversation \(channel). \(hint)")
  }

  /// The SID of a conversation, as last heard.
  func sid(of channel: ChannelID) async throws(FerryError) -> String {
    if Self.isSID(channel) { return channel.rawValue }
    if let sid = found.withLock({ $0.conversations[channel] }) { return sid }
    return try await resolve(channel)
  }

  /// The service whose media these are: the configured one, or the account's default.
  func service() async throws(FerryError) -> String {
    if let service = settings.serviceSID ?? found.withLock({ $0.service }) { return service }
    let configuration = try await api.get(api.url("Configuration"), doing: "find the account's conversation service")
    guard let service = configuration["default_chat_service_sid"]?.string else {
      throw FerryError(.badConfiguration, "The account has no default conversation service. Set service_sid.")
    }
    found.withLock { $0.service = service }
    return service
  }

  package func channels() async throws(FerryError) -> [ChannelSummary] {
    let url = api.url("Conversations", query: [("PageSize", String(AdapterLimits.pageSize))])
    return try await api.all(url, doing: "list the conversations").compactMap { conversation in
      guard let sid = conversation["sid"]?.string else { return nil }
      let unique = conversation["unique_name"]?.string.flatMap { $0.isEmpty ? nil : $0 }
      let friendly = conversation["friendly_name"]?.string.flatMap { $0.isEmpty ? nil : $0 }
      return ChannelSummary(id: ChannelID(unique ?? sid), name: friendly ?? unique ?? sid)
    }
  }
}

extension TwilioAdapter: SetupProvider {
  package func setUp(_ channels: [ChannelID]) async throws(FerryError) -> [String] {
    var made: [String] = []
    for channel in channels {
      do throws(FerryError) {
        _ = try await api.get(api.url("Conversations", channel.rawValue), doing: "find the conversation \(channel)")
      } catch  where error.code == .notFound {
        // A SID is given by the service; nobody can choose one.
        if Self.isSID(channel) { throw missing(channel) }
        try await createConversation(channel)
        made.append("the conversation \(channel)")
      }
    }
    return made
  }
}
