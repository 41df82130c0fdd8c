package import FerryCore
import FerryRuntime
import FerryTransport

extension PusherAdapter {
  /// Between the socket and the inbox: what was heard, in order.
  private enum Item: Sendable {
    case event(Event)
    case gap(Gap)
  }

  /// What one run of the adapter shares between its tasks.
  private struct Run: Sendable {
    let channels: [ChannelName]
    let inbox: any Inbox
    let queue = BoundedChannel<Item>(capacity: PusherAdapter.queueCapacity)
    /// Since when nobody has listened to a channel.
    let silentSince: Locked<[ChannelID: Timestamp]>
  }

  private static let queueCapacity = 1024
  private static let batch = 256
  private static let ownTimeout = 30
  private static let answerTimeout = Duration.seconds(30)
  private static let greetingTimeout = Duration.seconds(10)

  package func run(_ subscriptions: [Subscription], into inbox: any Inbox) async throws(FerryError) {
    var channels: [ChannelName] = []
    var lastSeen: [ChannelID: Timestamp] = [:]
    for subscription in subscriptions {
      channels.append(try checked(subscription.channel))
      lastSeen[subscription.channel] = subscription.lastSeen
    }
    let run = Run(channels: channels, inbox: inbox, silentSince: Locked(lastSeen))
    do {
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { await self.consume(run) }
        group.addTask { try await self.stayConnected(run) }
        defer { group.cancelAll() }
        try await group.next()
      }
    } catch { throw .wrap(error) }
    inbox.connection(ConnectionState(.stopped))
  }

  // MARK: Handing on

  /// The one reader of the queue: what has gathered is accepted together.
  private func consume(_ run: Run) async {
    while let first = await run.queue.next() {
      await handOn([first] + run.queue.drain(upTo: Self.batch - 1), run)
    }
    // What was heard before the end is still handed on, if that can be done at once.
    await handOn(run.queue.drain(), run)
  }

  private func handOn(_ items: [Item], _ run: Run) async {
    var events: [Event] = []
    for item in items {
      switch item {
      case .event(let event): events.append(event)
      case .gap(let gap):
        await accept(events, run.inbox)
        events = []
        await run.inbox.gap(gap)
      }
    }
    await accept(events, run.inbox)
  }

  /// For as long as it takes: meanwhile the queue fills, and then the socket waits. Tries only once when cancelled.
  private func accept(_ events: [Event], _ inbox: any Inbox) async {
    guard !events.isEmpty else { return }
    var backoff = Backoff(base: .milliseconds(100), limit: .seconds(5))
    while true {
      do throws(FerryError) { return try await inbox.accept(events) } catch {
        logger.warning("\(events.count) events could not be stored: \(error)")
        guard (try? await clock.sleep(for: backoff.next())) != nil else { return }
      }
    }
  }

  // MARK: Connecting

  private func stayConnected(_ run: Run) async throws(FerryError) {
    // What is said meanwhile is lost, so the waits stay short.
    var policy = ReconnectPolicy(limit: .seconds(15))
    var reason: String?
    while !Task.isCancelled {
      run.inbox.connection(ConnectionState(.connecting, reason: reason))
      let (ending, connectedFor) = await connectOnce(run)
      if Task.isCancelled { return }
      reason = ending.reason
      logger.notice("the connection ended with \(ending.code): \(ending.reason)")
      let delay: Duration
      switch ending.advice {
      case .stop: throw stopped(ending, run.inbox)
      case .reconnect: delay = policy.delay(after: .quick, connectedFor: connectedFor) ?? .zero
      case .backOff where (4000...4199).contains(ending.code):
        delay = max(.seconds(1), policy.delay(after: .unknown, connectedFor: connectedFor) ?? .zero)
      case .backOff, .carryOn: delay = policy.delay(after: .unknown, connectedFor: connectedFor) ?? .zero
      }
      guard (try? await clock.sleep(for: delay)) != nil else { return }
    }
  }

  /// What no retry can mend.
  private func stopped(_ ending: Session.Ending, _ inbox: any Inbox) -> FerryError {
    switch ending.code {
    case 4001, 4003, 4009:
      inbox.connection(ConnectionState(.badCredentials, reason: ending.reason))
      return FerryError(
        .badCredentials, "Pusher does not accept the key. Check key, app_id, and cluster or host.",
        cause: "\(ending.code): \(ending.reason)")
    default:
      inbox.connection(ConnectionState(.stopped, reason: ending.reason))
      return FerryError(
        .badConfiguration, "Pusher refuses the connection for good. Check tls, and cluster or host.",
        cause: "\(ending.code): \(ending.reason)")
    }
  }

  private func connectOnce(_ run: Run) async -> (Session.Ending, connectedFor: Duration?) {
    var webSocket = WebSocketSettings()
    // Events are 10 KB at most; a presence channel's list of members is longer.
    webSocket.messageBytes = 1 << 20
    let socket: WebSocket
    do {
      socket = try await client.webSocket(
        "\(settings.socket)/app/\(PercentEncoding.encode(settings.key))?protocol=7&client=ferry&version=1.0",
        subprotocols: ["pusher-channels-protocol-7"], settings: webSocket, deadline: Self.greetingTimeout)
    } catch { return (Session.Ending(code: 1006, reason: error.message), nil) }

    let began = clock.now()
    let session = Locked(Session(appKey: appKey, reader: reader, channels: run.channels, now: began))
    let ending = await withTaskGroup(of: Session.Ending?.self) { group in
      group.addTask { await self.listen(to: socket, session, run) }
      group.addTask { await self.keepAlive(socket, session, run) }
      group.addTask { await self.repeatSubscriptions(socket, session) }
      defer { group.cancelAll() }
      return await group.next() ?? nil
    }
    socket.close(code: 1000, reason: "")
    let lastHeard = session.withLock { $0.lastHeard }
    let lost = session.withLock { session in run.channels.map { ChannelID($0.text) }.filter(session.isConfirmed) }
    run.silentSince.withLock { silent in for channel in lost { silent[channel] = lastHeard } }
    return (
      ending ?? Session.Ending(code: 1000, reason: "stopped"),
      .milliseconds(lastHeard.milliseconds - began.milliseconds)
    )
  }

  // MARK: Connected

  private func listen(to socket: WebSocket, _ session: Locked<Session>, _ run: Run) async -> Session.Ending? {
    while let message = await socket.next() {
      guard case .text(let text) = message else { continue }
      let now = clock.now()
      for action in session.withLock({ $0.receive(text, now: now) }) {
        switch action {
        case .send(let text): _ = await socket.sendWaiting(text)
        case .deliver(let event): await run.queue.send(.event(event))
        case .typing(let typing): run.inbox.typing(typing)
        case .subscribed(let channel): await subscribed(channel, session, run)
        case .refused(let channel, let reason):
          logger.warning("the subscription to \(channel) was refused and will be repeated: \(reason)")
          run.inbox.connection(ConnectionState(.degraded, reason: "\(channel): \(reason)"))
        case .end(let ending): return ending
        }
      }
    }
    let closing = socket.closing
    return Session.Ending(
      code: Int(closing?.code ?? 1006),
      reason: closing.map { $0.reason.isEmpty ? "the connection was lost" : $0.reason } ?? "the connection was lost")
  }

  private func subscribed(_ channel: ChannelID, _ session: Locked<Session>, _ run: Run) async {
    let now = clock.now()
    if let start = run.silentSince.withLock({ $0.removeValue(forKey: channel) }) {
      await run.queue.send(.gap(Gap(channel: channel, start: start, end: now)))
    }
    if session.withLock({ $0.isComplete }) { run.inbox.connection(ConnectionState(.connected)) }
  }

  /// Ends when the other side has been silent too long, or did not greet. A reader that waits for the disk is no
  /// silence.
  private func keepAlive(_ socket: WebSocket, _ session: Locked<Session>, _ run: Run) async -> Session.Ending? {
    guard (try? await clock.sleep(for: Self.greetingTimeout)) != nil else { return nil }
    guard session.withLock({ $0.socketID }) != nil else {
      return Session.Ending(code: 1006, reason: "the service did not greet")
    }
    while true {
      let timeout = session.withLock { min(Self.ownTimeout, $0.activityTimeout) }
      guard let silent = await isSilent(for: .seconds(timeout), session, run) else { return nil }
      guard silent else { continue }
      _ = await socket.sendWaiting(FrameText.ping)
      guard let silent = await isSilent(for: Self.answerTimeout, session, run) else { return nil }
      if silent { return Session.Ending(code: 4201, reason: "the service does not answer") }
    }
  }

  /// Nil when cancelled.
  private func isSilent(for duration: Duration, _ session: Locked<Session>, _ run: Run) async -> Bool? {
    let before = session.withLock { $0.heard }
    guard (try? await clock.sleep(for: duration)) != nil else { return nil }
    return session.withLock { $0.heard } == before && run.queue.count < Self.queueCapacity
  }

  private func repeatSubscriptions(_ socket: WebSocket, _ session: Locked<Session>) async -> Session.Ending? {
    var delay = Duration.seconds(2)
    while (try? await clock.sleep(for: delay)) != nil {
      let actions = session.withLock { $0.subscribeAgain() }
      for case .send(let text) in actions { _ = await socket.sendWaiting(text) }
      delay = actions.isEmpty ? .seconds(2) : min(delay * 2, .seconds(60))
    }
    return nil
  }
}
