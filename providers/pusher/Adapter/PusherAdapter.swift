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
  let appKey: AppKey
  let client: HTTPClient
  let clock: any FerryClock
  let logger: Logger
  let api: PusherAPI
  let writer: EventWriter
  let reader: EventReader
  /// When this process last published to each marker.
  let marked = Locked<[String: Timestamp]>([:])

  package init(settings: Settings, client: HTTPClient, clock: any FerryClock, logger: Logger) {
    self.settings = settings
    self.client = client
    self.clock = clock
    self.logger = logger
    appKey = AppKey(key: settings.key, secret: settings.secret)
    api = PusherAPI(base: settings.api, appID: settings.appID, appKey: appKey, client: client, clock: clock)
    writer = EventWriter(fields: settings.fields)
    reader = EventReader(events: settings.events, fields: settings.fields)
    capabilities = Self.capabilities(marker: settings.marker)
  }

  /// What an account can do that has the given marker setting.
  package static func capabilities(marker: Bool) -> Capabilities {
    var capabilities = Capabilities()
    capabilities.edits = true
    capabilities.deletes = true
    capabilities.typing = true
    capabilities.members = true
    capabilities.reads = true
    capabilities.reactions = true
    capabilities.attachments = .link
    capabilities.certainty = marker ? .window(seconds: Limits.cacheSeconds) : .none
    capabilities.settleSeconds = 2
    // One place of the ten is the marker's.
    capabilities.batch = marker ? Limits.eventsPerBatch - 1 : Limits.eventsPerBatch
    // Leaves room for names, links and the stamp in the 10,240 bytes of an event.
    capabilities.bodyBytes = 8000
    capabilities.bodyIsJSON = true
    capabilities.absent = [
      "history": "Pusher keeps no messages. What is said while nobody listens is reported as a gap.",
      "uploads": "Pusher has no files. Images are sent as links.",
    ]
    return capabilities
  }

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
    let answer = try await api.get("channels", doing: "list the channels")
    guard case .object(let channels)? = answer["channels"] else {
      throw FerryError(.badData, "Could not list the channels: the answer names none. Check host and port.")
    }
    return channels.keys.filter { !$0.hasPrefix(Marker.prefix) }.sorted()
      .map { ChannelSummary(id: ChannelID($0), name: $0) }
  }

  /// The name as the service takes it.
  func checked(_ channel: ChannelID) throws(FerryError) -> ChannelName {
    guard let name = ChannelName(channel.rawValue, longest: ChannelName.longestSent) else {
      throw FerryError(
        .badRequest,
        "\"\(channel)\" cannot be a Pusher channel: 1 to \(ChannelName.longestSent) letters, digits and signs _-=@,.; are."
      )
    }
    guard !name.isEncrypted else {
      throw FerryError(.unsupported, "Ferry does not read or write encrypted Pusher channels such as \"\(channel)\".")
    }
    return name
  }
}
