import FerryCore
package import FerryRuntime
package import FerryTransport

/// A service that speaks the Channels protocol well enough for the official client libraries: the socket at
/// `/app/KEY` and the signed HTTP API under `/apps/ID`, both behind any prefix.
///
/// Mounted on a server of its own by whoever makes it. It holds no chat: channels live as long as somebody listens,
/// and of an event only a cache channel's last is kept. A `ChannelView` may show channels to people.
package final class PusherFacade: Sendable {
  let settings: Settings
  let appKey: AppKey
  let store: any PusherCacheStore
  let clock: any FerryClock
  let logger: Logger
  let metrics: Metrics?
  let view: ChannelView?
  private let rehearsal: Rehearsal?
  let hub: Locked<Hub>
  private let endpoints: [WebhookEndpoint]
  /// Something has to be looked at before the time planned for it.
  private let alarm = BoundedChannel<Void>(capacity: 1)

  /// `client` sends webhooks; without one there must be none in the settings. A rehearsal is asked whether senders
  /// get their own events back, and may end every socket; whoever mounts the facade wraps `handle` in it.
  package init(
    settings: Settings, store: any PusherCacheStore, client: HTTPClient? = nil, rehearsal: Rehearsal? = nil,
    view: ChannelView? = nil, clock: any FerryClock, logger: Logger, metrics: Metrics?
  ) {
    precondition(settings.webhooks.isEmpty || client != nil, "webhooks need a client that sends them")
    self.settings = settings
    self.store = store
    self.clock = clock
    self.logger = logger
    self.metrics = metrics
    self.view = view
    self.rehearsal = rehearsal
    let appKey = AppKey(key: settings.key, secret: settings.secret)
    self.appKey = appKey
    var empty = Hub(settings: settings)
    empty.notesComings = view != nil
    let hub = Locked(empty)
    self.hub = hub
    endpoints = settings.webhooks.compactMap { webhook in
      client.map {
        WebhookEndpoint(webhook, appKey: appKey, client: $0, clock: clock, logger: logger, metrics: metrics)
      }
    }
    rehearsal?.onCloseSockets { code in
      for socket in hub.withLock({ $0.connections.values.map(\.socket) }) { Self.end(socket, code, "Rehearsed") }
    }
  }

  /// Whether who sends an event gets it too, which the service does not do.
  var echoesWrites: Bool { rehearsal?.echoesWrites ?? false }

  // MARK: Life

  /// Sends webhooks and does what is due later, until cancelled. Webhooks that were not taken by then are given up,
  /// counted and logged.
  @concurrent
  package func run() async {
    await withDiscardingTaskGroup { group in
      for endpoint in endpoints { group.addTask { await endpoint.run() } }
      if let view {
        group.addTask {
          await view.run(members: self.members(of:)) { event async throws(FerryError) in
            try await self.publish([event], isOfView: true)
          }
        }
      }
      group.addTask { await self.prune() }
      while !Task.isCancelled {
        let now = clock.now()
        let pulse = hub.withLock { $0.pulse(at: now) }
        for event in pulse.events {
          for endpoint in endpoints { endpoint.accept(event) }
        }
        if pulse.dropped > 0 {
          metrics?.add(Double(pulse.dropped), to: "ferry_pusher_facade_webhook_drops_total")
          logger.warning("\(pulse.dropped) events for webhooks dropped: too many at once")
        }
        for socket in pulse.unauthorized {
          Self.end(socket, .unauthorized, "Connection not authorized within timeout")
        }
        if pulse.isPruningDue { group.addTask { await self.prune() } }
        await wait(until: pulse.next, now: now)
      }
    }
  }

  /// Until that time, or until there is something to do.
  private func wait(until next: Timestamp?, now: Timestamp) async {
    guard let next else {
      _ = await alarm.next()
      return
    }
    await withTaskGroup(of: Void.self) { group in
      group.addTask { [clock] in _ = try? await clock.sleep(for: .milliseconds(next.milliseconds - now.milliseconds)) }
      group.addTask { [alarm] in _ = await alarm.next() }
      await group.next()
      group.cancelAll()
    }
  }

  /// Changes the hub, and sees to what that leaves to be done.
  func change<Result>(_ body: (inout Hub) -> Result) -> Result {
    let (result, needsLook) = hub.withLock { hub in
      let result = body(&hub)
      // With the lock held, so that the view hears of them in order.
      for coming in hub.comings { view?.heard(coming) }
      hub.comings.removeAll(keepingCapacity: true)
      return (result, hub.notices.needsLook)
    }
    if needsLook { _ = alarm.offer(()) }
    return result
  }

  @Sendable private func members(of channel: String) -> [PresenceList.Member] {
    let users = hub.withLock { $0.rooms[channel]?.presence.users ?? [] }
    return users.map { PresenceList.Member(id: $0.id, info: $0.info) }
  }

  /// Removes what cache channels no longer show.
  private func prune() async {
    do {
      guard try await store.prune(olderThan: Limits.cacheSeconds) else { return }
    } catch {
      logger.warning("old events of cache channels could not be removed: \(FerryError.wrap(error))")
    }
    let now = clock.now()
    change { $0.notices.planPruning(now: now) }
  }

  /// Tells every client to come back soon, and lets it go; those who do come back meanwhile are told to wait. Before
  /// the server is stopped. Many clients are let go over a second, so that they do not all knock elsewhere at once.
  package func closeAll() async {
    let sockets = hub.withLock { hub in
      hub.isStopping = true
      return hub.connections.values.map(\.socket)
    }.shuffled()
    let size = max(Self.goodbyesAtOnce, (sockets.count + 19) / 20)
    for start in stride(from: 0, to: sockets.count, by: size) {
      // Nobody is forgotten when the shutdown is cut short.
      if start > 0 { try? await clock.sleep(for: .milliseconds(50)) }
      for socket in sockets[start..<min(start + size, sockets.count)] {
        Self.end(socket, .reconnect, "The server is shutting down; please reconnect")
      }
    }
  }

  private static let goodbyesAtOnce = 50

  /// The error as an event and as a close code: some clients act on one, some on the other.
  static func end(_ socket: WebSocket, _ code: ErrorCode, _ message: String) {
    // Clients take a close in that range for the end, or come back without pause.
    precondition(!(4300...4399).contains(code.rawValue), "codes from 4300 are for events alone")
    end(socket, code.rawValue, message)
  }

  private static func end(_ socket: WebSocket, _ code: UInt16, _ message: String) {
    if let known = ErrorCode(rawValue: code) { socket.send(FrameText.error(known, message)) }
    socket.close(code: code, reason: message)
  }

  // MARK: Requests

  /// Answers one request. Never throws: what is wrong with a request is said in the answer.
  package func handle(_ request: HTTPRequest) async -> HTTPResponse {
    let segments = request.segments
    let isUpgrade = request.headers.list("Upgrade", contains: "websocket")
    // A channel or a user may be called app, too.
    if isUpgrade || (segments.count == 2 && segments[0] == "app") {
      let isAtApp = segments.count >= 2 && segments[segments.count - 2] == "app"
      return openSocket(request, key: isAtApp ? segments[segments.count - 1] : nil)
    }
    do {
      return try await route(request, segments)
    } catch let refusal as Refusal {
      logger.debug("refused \(request.method) \(request.path): \(refusal.status)")
      return .text(refusal.text, status: refusal.status)
    } catch {
      let error = FerryError.wrap(error)
      // Who goes away in the middle of a request, as anybody may, is no trouble of ours.
      logger.log(error.code == .cancelled ? .debug : .error, "\(request.method) \(request.path) failed: \(error)")
      return .text("The request was not carried out: \(error.message)", status: 503)
    }
  }

  private func route(_ request: HTTPRequest, _ segments: [String]) async throws -> HTTPResponse {
    if let start = segments.firstIndex(of: "apps"), segments.count >= start + 3 {
      return try await answer(
        request, path: Array(segments[(start + 2)...]), appID: segments[start + 1], prefix: start)
    }
    switch (request.method, segments.first, segments.count) {
    case ("GET", "up", 1): return .json(["health": "OK"])
    case ("GET", "files", 3):
      guard let view else { throw Refusal(404, "Not found: there are no files here") }
      return try await view.file(segments[1], name: segments[2])
    // Without /apps/ID, as one official library sends it; the key says which app is meant.
    case ("POST", "users", 3) where segments[2] == "terminate_connections":
      return try await answer(request, path: segments, appID: settings.appID, prefix: 0)
    case ("POST", let name?, 1) where settings.tutorial == .anonymousChat:
      return try await answerTutorial(request, name)
    default: throw Refusal(404, "Not found: this is a Channels service; see /app/KEY and /apps/ID")
    }
  }
}
