import FerryConfig
package import FerryCore
package import FerryRuntime
package import FerryTransport

/// A client of Pusher Channels, or of a service that speaks its protocol.
///
/// It listens on the socket and publishes over the HTTP API. Pusher keeps no history: what was said while nobody
/// listened is reported as a gap, and whether a lost request was carried out is read from a marker (see `Marker`).
package final class PusherAdapter: ChatProvider {
  package let capabilities: Capabilities
  let settings: Settings
  let client: HTTPClient
  let clock: any FerryClock
  let logger: Logger
  /// Nil for an account that cannot sign for itself, and so cannot publish.
  private let api: PusherAPI?
  private let metrics: Metrics?
  /// When this process last published to each marker.
  let marked = Locked<[String: Timestamp]>([:])
  /// The connection that is open, and whether there will be one again.
  let live = Locked<(connection: LiveConnection?, isRunning: Bool)>((nil, false))
  /// Who was announced on each channel and not taken back: nobody can be made to subscribe.
  let announced = Locked<[ChannelID: [UserID: Author]]>([:])

  package init(
    settings: Settings, client: HTTPClient, clock: any FerryClock, logger: Logger, metrics: Metrics? = nil
  ) {
    self.settings = settings
    self.client = client
    self.clock = clock
    self.logger = logger
    self.metrics = metrics
    api = settings.secret.map { secret in
      PusherAPI(
        base: settings.api, appID: settings.appID, appKey: AppKey(key: settings.key, secret: secret), client: client,
        clock: clock)
    }
    capabilities = Self.capabilities(of: settings)
  }

  /// What signs requests and subscriptions, where the account may.
  var appKey: AppKey? { api?.appKey }

  func count(_ amount: Int = 1, _ name: String, _ channel: ChannelID) {
    metrics?.add(Double(amount), to: name, ["channel": channel.rawValue])
  }

  // MARK: Capabilities

  /// What an account can do that has the given marker setting and no others.
  package static func capabilities(marker: Bool) -> Capabilities {
    var settings = Settings(appID: "", key: "", secret: Secret(""), cluster: "mt1")
    settings.marker = marker
    return capabilities(of: settings)
  }

  private static func capabilities(of settings: Settings) -> Capabilities {
    var capabilities = Capabilities()
    let publishes = settings.secret != nil
    let profiles = [settings.profile] + settings.channels.map(\.profile)
    func can(_ kind: Transports.Kind, _ names: KeyPath<EventNames, [String]>) -> Bool {
      publishes || profiles.contains { $0.via.plan(kind, $0.events[keyPath: names]).way == .client }
    }
    capabilities.edits = can(.edit, \.edit)
    capabilities.deletes = can(.delete, \.delete)
    capabilities.typing = can(.typing, \.typing)
    capabilities.members = publishes
    capabilities.reads = can(.read, \.read) || can(.delivered, \.delivered)
    capabilities.reactions = can(.reaction, \.reaction)
    capabilities.attachments = .link
    capabilities.attachmentsPerMessage = Self.linksPerMessage
    capabilities.certainty = settings.marker && publishes ? .window(seconds: Limits.cacheSeconds) : .none
    capabilities.settleSeconds = 2
    // One place of the ten is the marker's.
    capabilities.batch = !publishes ? 1 : settings.marker ? Limits.eventsPerBatch - 1 : Limits.eventsPerBatch
    capabilities.bodyBytes = bodyBytes(settings, profiles)
    capabilities.bodyIsJSON = true
    capabilities.absent = [
      "history": "Pusher keeps no messages. What is said while nobody listens is reported as a gap.",
      "uploads": "Pusher has no files. Images are sent as links.",
    ]
    if !publishes {
      capabilities.absent["posts"] = "The account has no secret, so it can only listen and send client events."
    }
    return capabilities
  }

  /// Longest body that surely fits into what may be sent at once, as it stands in JSON.
  private static func bodyBytes(_ settings: Settings, _ profiles: [Profile]) -> Int {
    guard settings.long == .split else { return longestBody }
    let mayBeEncrypted = settings.encryption != nil || settings.auth != nil
    let room = (mayBeEncrypted ? SecretBox.longestText : Limits.dataBytes) - reserve
    // An ampersand takes five bytes in HTML.
    return profiles.contains(where: \.html) ? room / 5 : room
  }

  /// That many fit beside the longest text. The relay sends the others in messages of their own; to whoever sends
  /// more at once it happens that some are only counted (see `EventWriter`).
  private static let linksPerMessage = 10
  /// For names, links and the stamp.
  private static let reserve = 2240
  /// Of a message that is sent in slices, or stored elsewhere.
  static let longestBody = 200_000

  // MARK: Reading

  package func attachment(_ reference: AttachmentReference) async throws(FerryError) -> ByteStream {
    guard case .url(let url) = reference else {
      throw FerryError(.notFound, "Pusher has no files: an attachment of its messages is a link.")
    }
    // Anybody may have written the link.
    let response = try await client.send(ClientRequest(method: "GET", url: url, redirects: 3, isTrusted: false))
    guard (200...299).contains(response.status) else {
      throw FerryError.from(
        status: response.status, retryAfter: response.headers["Retry-After"], doing: "fetch the attachment")
    }
    return response.body
  }

  package func channels() async throws(FerryError) -> [ChannelSummary] {
    let answer = try await publisher().get("channels", doing: "list the channels")
    guard case .object(let channels)? = answer["channels"] else {
      throw FerryError(.badData, "Could not list the channels: the answer names none. Check host and port.")
    }
    return channels.keys.filter { !$0.hasPrefix(Marker.prefix) }.sorted()
      .map { ChannelSummary(id: ChannelID($0), name: $0) }
  }

  // MARK: What sends need

  /// The HTTP API, where the account may use it.
  func publisher() throws(FerryError) -> PusherAPI {
    guard let api else {
      throw FerryError(
        .unsupported, "This account has no secret, without which Pusher's HTTP API takes nothing. Add secret to it.")
    }
    return api
  }

  /// The name as the service takes it.
  func checked(_ channel: ChannelID) throws(FerryError) -> ChannelName {
    guard let name = ChannelName(channel.rawValue, longest: ChannelName.longestSent) else {
      throw FerryError(
        .badRequest,
        "\"\(channel)\" cannot be a Pusher channel: 1 to \(ChannelName.longestSent) letters, digits and signs _-=@,.; are."
      )
    }
    guard !name.isEncrypted || settings.encryption != nil || settings.auth != nil else {
      throw FerryError(
        .unsupported,
        "The channel \"\(channel)\" is encrypted, and the account has neither encryption_master_key nor auth_endpoint.")
    }
    return name
  }

  /// The key of an encrypted channel; nil for all others, which have none.
  func box(for name: ChannelName) throws(FerryError) -> SecretBox? {
    guard name.isEncrypted else { return nil }
    if let masterKey = settings.encryption { return masterKey.box(for: name.text) }
    let connection = live.withLock { $0.connection }
    if let box = connection?.session.withLock({ $0.memory.boxes[ChannelID(name.text)] }) { return box }
    throw FerryError(
      .unavailable,
      "The key of \"\(name.text)\" comes from auth_endpoint with the subscription, which is not there yet.", retry: .now
    )
  }
}
