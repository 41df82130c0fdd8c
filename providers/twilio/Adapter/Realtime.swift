import FerryConfig
import FerryCore
import FerryRuntime
import FerryTransport

/// Typing, both ways, over the realtime socket of Twilio's own clients. No message depends on it.
final class Realtime: Sendable {
  private struct Typist: Hashable {
    let channel: ChannelID
    let identity: String
  }

  private struct State {
    /// While `run` keeps the connection.
    var isRunning = false
    var link: RealtimeLink?
    /// Until when a conversation shows our typing anyway.
    var shown: [String: Timestamp] = [:]
    /// Who types, and until when unless they go on.
    var typists: [Typist: (by: Author, until: Timestamp)] = [:]
    var complained: String?
  }

  /// Where requests for typing go, behind the socket.
  private struct Target: Sendable {
    var host: String
    var path = "/v1/typing"
  }

  private let settings: TwilioAdapter.Settings
  private let client: HTTPClient
  private let clock: any FerryClock
  private let logger: Logger
  private let state = Locked(State())
  private let target: Locked<Target>

  /// Seconds from now on.
  private static let tokenLife = 3600
  /// By how many seconds this machine's clock may be ahead: a token that is not valid yet is refused.
  private static let clockSkew = 120
  /// Before its end.
  private static let renewal = Duration.seconds(tokenLife - 300)
  private static let connectTime = Duration.seconds(10)
  private static let retryOfDenied = Duration.seconds(300)

  /// Nil where there is no API key.
  init?(_ settings: TwilioAdapter.Settings, client: HTTPClient, clock: any FerryClock, logger: Logger) {
    guard settings.canType else { return nil }
    self.settings = settings
    self.client = client
    self.clock = clock
    self.logger = logger
    let authority = settings.realtime.firstRange(of: "://").map { String(settings.realtime[$0.upperBound...]) } ?? ""
    target = Locked(Target(host: authority.hasPrefix("tsock.") ? "aim." + authority.dropFirst(6) : authority))
  }

  private func makeToken() -> String {
    let token = AccessToken(
      accountSID: settings.accountSID, keySID: settings.apiKey ?? "", serviceSID: settings.serviceSID ?? "",
      identity: settings.identity, issued: clock.now().advanced(by: .seconds(-Self.clockSkew)),
      ttl: Self.clockSkew + Self.tokenLife)
    return token.signed(with: settings.apiSecret ?? Secret(""))
  }

  // MARK: Keeping connected

  /// Until cancelled.
  func run(_ adapter: TwilioAdapter, _ doors: [ConversationDoor], into inbox: any Inbox) async {
    state.withLock { $0.isRunning = true }
    defer { state.withLock { $0.isRunning = false } }
    await withDiscardingTaskGroup { group in
      group.addTask { await self.endTyping(inbox) }
      await keepConnected(adapter, doors, inbox)
      group.cancelAll()
    }
  }

  private func keepConnected(_ adapter: TwilioAdapter, _ doors: [ConversationDoor], _ inbox: any Inbox) async {
    var policy = ReconnectPolicy(base: .seconds(1), limit: .seconds(120))
    while !Task.isCancelled {
      let began = clock.now()
      let ending = await connected(
        onTyping: { conversation, identity, seconds in
          self.heard(conversation, identity, seconds, adapter, doors, inbox)
        },
        body: { link in await self.keep(link) })
      if Task.isCancelled { return }
      complain(ending.reason)
      let held = Duration.milliseconds(clock.now().milliseconds - began.milliseconds)
      let own = policy.delay(after: .unknown, connectedFor: held) ?? .seconds(1)
      let delay =
        switch ending.advice {
        case .reconnect: own
        case .later(let milliseconds): max(own, .milliseconds(milliseconds))
        case .denied: Self.retryOfDenied
        }
      guard (try? await clock.sleep(for: delay)) != nil else { return }
    }
  }

  /// Once for one reason, since nothing but typing is lost.
  private func complain(_ reason: String) {
    let isNews = state.withLock { state in
      defer { state.complained = reason }
      return state.complained != reason
    }
    if isNews { logger.warning("typing is not carried for the moment: \(reason)") }
  }

  /// Connects, and calls `body` once the service has let us in. Returns when either is over.
  private func connected(
    onTyping: @escaping @Sendable (String, String, Int64) -> Void,
    body: @escaping @Sendable (RealtimeLink) async -> Void
  ) async -> RealtimeSession.Ending {
    let socket: WebSocket
    do {
      var limits = WebSocketSettings()
      limits.pingAfter = .seconds(30)
      socket = try await client.webSocket(
        settings.realtime + "/v3/wsconnect", settings: limits, deadline: Self.connectTime)
    } catch { return RealtimeSession.Ending(reason: error.message, advice: .reconnect) }
    let link = RealtimeLink(socket: socket, clock: clock, makeToken: { self.makeToken() })
    defer { link.close() }
    return await withTaskGroup(of: RealtimeSession.Ending?.self) { group in
      group.addTask { await link.listen(onTyping: onTyping) }
      group.addTask {
        guard await link.isReady() else {
          return Task.isCancelled
            ? nil : RealtimeSession.Ending(reason: "the realtime socket did not greet", advice: .reconnect)
        }
        await body(link)
        return nil
      }
      defer { group.cancelAll() }
      return await group.next().flatMap { $0 } ?? RealtimeSession.Ending(reason: "stopped", advice: .reconnect)
    }
  }

  /// While `run` has the connection: asks where typing goes, and shows a new token before the old one ends.
  private func keep(_ link: RealtimeLink) async {
    await findTarget(link)
    state.withLock { state in
      state.link = link
      state.complained = nil
    }
    while (try? await clock.sleep(for: Self.renewal)) != nil { link.renew() }
    state.withLock { state in if state.link === link { state.link = nil } }
  }

  /// The place is a link in the service's configuration. Where there is none, the old one still does.
  private func findTarget(_ link: RealtimeLink) async {
    let host = target.withLock { $0.host }
    let configuration = try? await link.request(
      "GET", host: host, path: "/Client/v2/Configuration", doing: "read the configuration")
    guard let address = configuration?["links"]?["typing"]?.string, let slashes = address.firstRange(of: "://") else {
      return
    }
    let rest = address[slashes.upperBound...]
    let authority = rest.prefix { $0 != "/" }
    let path = rest.dropFirst(authority.count)
    guard !authority.isEmpty, !path.isEmpty else { return }
    target.withLock { $0 = Target(host: String(authority), path: String(path)) }
  }

  // MARK: Hearing

  private func heard(
    _ conversation: String, _ identity: String, _ seconds: Int64, _ adapter: TwilioAdapter,
    _ doors: [ConversationDoor], _ inbox: any Inbox
  ) {
    guard identity != settings.identity,
      let door = doors.first(where: { door in door.conversation.withLock { $0 == conversation } })
    else { return }
    let until = clock.now().advanced(by: .seconds(seconds))
    let by = Author(id: UserID(identity), name: adapter.names.known(identity) ?? identity)
    state.withLock { $0.typists[Typist(channel: door.channel, identity: identity)] = (by, until) }
    inbox.typing(Typing(channel: door.channel, by: by, on: true))
  }

  /// Nobody says that they have stopped: it follows from silence.
  private func endTyping(_ inbox: any Inbox) async {
    while (try? await clock.sleep(for: .seconds(1))) != nil {
      let now = clock.now()
      let over = state.withLock { state in
        let over = state.typists.filter { $0.value.until <= now }
        for typist in over.keys { state.typists[typist] = nil }
        return over
      }
      for (typist, typing) in over { inbox.typing(Typing(channel: typist.channel, by: typing.by, on: false)) }
    }
  }

  // MARK: Typing

  /// Shows Ferry as typing. Twilio shows it for some seconds, in which nothing more is sent.
  func type(in conversation: String) async throws(FerryError) {
    let now = clock.now()
    let (isShown, isRunning, link) = state.withLock { state in
      state.shown = state.shown.filter { $0.value > now }
      return (state.shown[conversation] != nil, state.isRunning, state.link)
    }
    if isShown { return }
    if let link { return try await type(in: conversation, over: link) }
    guard !isRunning else {
      throw FerryError(.unavailable, "Typing is not shown: the realtime socket is not connected.", retry: .now)
    }
    let result = Locked<Result<Void, FerryError>?>(nil)
    let ending = await connected(onTyping: { _, _, _ in }) { link in
      await self.findTarget(link)
      do throws(FerryError) {
        try await self.type(in: conversation, over: link)
        result.withLock { $0 = .success(()) }
      } catch { result.withLock { $0 = .failure(error) } }
    }
    switch result.withLock({ $0 }) {
    case .success: return
    case .failure(let error): throw error
    case nil where Task.isCancelled: throw .cancelled(didNotAct: true)
    case nil:
      let isDenied = ending.advice == .denied
      throw FerryError(
        isDenied ? .badCredentials : .unavailable, "Typing is not shown: \(ending.reason).",
        retry: isDenied ? .never : .now)
    }
  }

  private func type(in conversation: String, over link: RealtimeLink) async throws(FerryError) {
    let target = target.withLock { $0 }
    let answer = try await link.request(
      "POST", host: target.host, path: target.path, form: [("ChannelSid", conversation)], doing: "show typing")
    let seconds = min(max(answer["typing_timeout"]?.integer ?? 5, 1), 60)
    let until = clock.now().advanced(by: .seconds(seconds))
    state.withLock { $0.shown[conversation] = until }
  }
}
