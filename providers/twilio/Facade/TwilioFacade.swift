package import FerryChat
import FerryConfig
import FerryCore
package import FerryRuntime
package import FerryTransport
import FoundationEssentials

/// A service that speaks Twilio Conversations v1 well enough for the official client library: the REST API and its
/// media service under `/v1`, webhooks, and the realtime socket at `/v3/wsconnect`.
///
/// Mounted on a server of its own by whoever makes it. Conversations are rooms of the chat, messages its messages;
/// what the chat has no notion of is kept as documents beside it. Only the open sockets are in memory.
package final class TwilioFacade: Sendable {
  let settings: Settings
  let chat: ChatService
  let clock: any FerryClock
  let logger: Logger
  let metrics: Metrics?
  let rehearsal: Rehearsal?
  let sids: DerivedSID
  let sender: WebhookSender
  let hub = Locked(RealtimeHub())
  /// Told that something may be due earlier than was thought.
  let schedule = BoundedChannel<Void>(capacity: 1)
  /// Told that a token's end is to be watched.
  let tokenNews = BoundedChannel<Void>(capacity: 1)
  /// A copy of what is configured: asked for with every request.
  let defaultService: Locked<String>
  /// What links to media are signed with; nil until the account is set up.
  let linkKey = Locked<String?>(nil)

  /// A form is small; only media is large, and streams.
  private static let bodyBytes = 1 << 20

  package init(
    settings: Settings, chat: ChatService, client: HTTPClient, clock: any FerryClock, logger: Logger,
    metrics: Metrics?, rehearsal: Rehearsal? = nil
  ) {
    var settings = settings
    settings.serviceSID = Ledger.sid(settings.serviceSID)
    self.settings = settings
    self.chat = chat
    self.clock = clock
    self.logger = logger.component("twilio-facade")
    self.metrics = metrics
    self.rehearsal = rehearsal
    sids = DerivedSID(accountSID: settings.accountSID)
    defaultService = Locked(settings.serviceSID)
    sender = WebhookSender(
      chat: chat, client: client, signature: WebhookSignature(authToken: settings.authToken), settings: settings,
      clock: clock, logger: self.logger, metrics: metrics)
    rehearsal?.onCloseSockets { [hub] code in
      let sockets = hub.withLock { $0.connections.values.map(\.socket) }
      for socket in sockets { socket.close(code: code, reason: "rehearsed") }
    }
  }

  /// Sends webhooks, tells of typing, ends what is due; until cancelled.
  package func run() async {
    while !Task.isCancelled {
      do throws(FerryError) {
        try await setUp()
        break
      } catch {
        logger.error("the account cannot be set up: \(error)")
        try? await clock.sleep(for: .seconds(1))
      }
    }
    await withDiscardingTaskGroup { group in
      group.addTask { await self.sender.run() }
      group.addTask { await self.followTyping() }
      group.addTask { await self.endWhatIsDue() }
      group.addTask { await self.watchTokens() }
    }
  }

  /// Answers one request. Never throws: what is wrong with a request is said in the answer.
  package func handle(_ request: HTTPRequest) async -> HTTPResponse {
    let start = clock.now()
    var response: HTTPResponse
    do {
      try await setUp()
      response = try await answer(request)
    } catch let error as TwilioError {
      logger.debug("refused \(request.method) \(request.path): \(error.code)")
      response = error.response
    } catch {
      let failure = FerryError.wrap(error)
      let refusal = TwilioError(failure)
      if refusal.status >= 500 { logger.error("\(request.method) \(request.path) failed: \(failure)") }
      response = refusal.response
    }
    if case .webSocket = response.body { return response }
    response.headers.set("Twilio-Request-Id", SID.make(.request))
    let took = Double(clock.now().milliseconds - start.milliseconds) / 1000
    response.headers.set("Twilio-Request-Duration", String(took))
    return response
  }

  /// Tells every client of the socket to come back soon, and lets it go. Before the server is stopped.
  package func closeAll() {
    let sockets = hub.withLock { $0.connections.values.map(\.socket) }
    for socket in sockets { Self.close(socket, 308, "offload") }
  }

  /// A refusal as the service would word it, for rehearsed failures.
  package static func rehearsed(status: Int) -> HTTPResponse {
    let code =
      switch status {
      case 429: 20429
      case 503: 20503
      default: 20500
      }
    return TwilioError(status, code, "This failure is rehearsed").response
  }

  // MARK: Requests

  private func answer(_ request: HTTPRequest) async throws -> HTTPResponse {
    let segments = request.segments
    if segments == ["v3", "wsconnect"] { return openSocket(request) }
    // A signed link needs no credentials.
    if segments.first == "media", segments.count == 2 { return try await linkedMedia(segments[1], request) }
    let isMedia = segments.count > 3 && segments[1] == "Services" && segments[3].hasPrefix("Media")
    let identity = try caller(request, allowsToken: isMedia)
    guard segments.first == "v1", segments.count > 1 else { throw TwilioError.notFound(request.path) }
    let call = try await call(request, segments)
    metrics?.add(to: "ferry_twilio_facade_requests_total")
    switch call.route {
    case .media: return try await upload(request, call, by: identity)
    case .mediaContent(let sid): return try await mediaContent(sid, call)
    case .mediaSet: return try await mediaSet(request, call)
    default: break
    }
    switch call.method {
    case "GET": return Self.json(try await get(call), status: 200)
    case "POST":
      let (body, isNew) = try await post(call)
      return Self.json(body, status: isNew ? 201 : 200)
    default:
      try await delete(call)
      return HTTPResponse(status: 204)
    }
  }

  static func json(_ value: JSONValue, status: Int) -> HTTPResponse {
    var json = JSONWriter(capacity: 1024)
    json.value(value)
    return HTTPResponse(
      status: status, headers: ["Content-Type": "application/json; charset=utf-8"], body: .bytes(json.utf8))
  }

  private func call(_ request: HTTPRequest, _ segments: [String]) async throws -> Call {
    var rest = segments.dropFirst()
    var service = defaultService.withLock { $0 }
    // `/v1/Services/IS` is a resource of its own; what follows is in the service.
    let isInService = rest.first == "Services" && rest.count > 2
    if isInService {
      service = Ledger.sid(segments[2])
      rest = rest.dropFirst(2)
    }
    let route: Route
    if !isInService, rest.first == "Services", rest.count == 2 {
      route = .service(segments[2])
    } else {
      guard let named = Route(rest, inService: isInService) else { throw TwilioError.notFound(request.path) }
      route = named
    }
    guard route.methods.contains(request.method) else { throw TwilioError(405, 20004, "Method not allowed") }
    if isInService { try await checkService(service, request.path) }
    let takesForm = request.method == "POST" && route != .media && route != .mediaSet
    return Call(
      method: request.method, route: route, path: request.path, form: takesForm ? try await form(request) : [],
      query: Form(request.queryItems), base: base(request), service: service, isInService: isInService,
      isAnnounced: rehearsal?.echoesWrites == true
        || request.headers["X-Twilio-Webhook-Enabled"]?.lowercased() == "true")
  }

  private func checkService(_ sid: String, _ path: String) async throws {
    if sid == settings.serviceSID { return }
    guard try await read({ try $0.service(sid) }) != nil else { throw TwilioError.notFound(path) }
  }

  private func form(_ request: HTTPRequest) async throws -> Form {
    do throws(FerryError) {
      return Form(decoding: try await request.body.collect(upTo: Self.bodyBytes))
    } catch {
      throw error.code == .tooLarge ? TwilioError(413, 20001, "The request is too large") : TwilioError(error)
    }
  }

  /// Scheme and host of the URLs in answers.
  func base(_ request: HTTPRequest) -> String {
    if let url = settings.publicURL { return url }
    let host = request.headers["Host"].flatMap { $0.isEmpty ? nil : $0 } ?? "127.0.0.1"
    return "\(request.isSecure ? "https" : "http")://\(host)"
  }
}
