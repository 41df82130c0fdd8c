package import FerryCore
import FerryRuntime
import FerryTransport

extension PusherAdapter {
  /// Between the socket and the inbox: what was heard, in order.
  enum Item: Sendable {
    case event(Event)
    case gap(Gap)
  }

  /// What one run of the adapter shares between its tasks.
  struct Run: Sendable {
    let channels: [ChannelName]
    let inbox: any Inbox
    let queue = BoundedChannel<Item>(capacity: PusherAdapter.queueCapacity)
    /// Since when nobody has listened to a channel.
    let silentSince: Locked<[ChannelID: Timestamp]>
    let context: Session.Context
    /// What the last connection left to the next.
    let memory = Locked(Session.Memory())
  }

  /// What an endpoint is asked to sign.
  enum Question: Sendable {
    case subscription(ChannelName, socketID: String)
    case signIn(socketID: String)
  }

  static let queueCapacity = 1024
  private static let batch = 256
  static let greetingTimeout = Duration.seconds(10)

  package func run(_ subscriptions: [Subscription], into inbox: any Inbox) async throws(FerryError) {
    var channels: [ChannelName] = []
    var lastSeen: [ChannelID: Timestamp] = [:]
    for subscription in subscriptions {
      let channel = try checked(subscription.channel)
      // Listening twice would be refused, or tell everything twice.
      if !channels.contains(channel) { channels.append(channel) }
      lastSeen[subscription.channel] = subscription.lastSeen
    }
    let run = Run(
      channels: channels, inbox: inbox, silentSince: Locked(lastSeen), context: context(for: channels))
    live.withLock { $0.isRunning = true }
    defer { live.withLock { $0 = (nil, false) } }
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

  private func context(for channels: [ChannelName]) -> Session.Context {
    let readers = channels.map { (ChannelID($0.text), EventReader(settings.profile(for: $0.text))) }
    return Session.Context(
      channels: channels, readers: Dictionary(readers) { first, _ in first },
      signer: settings.auth == nil ? appKey : nil, userSigner: settings.userAuth == nil ? appKey : nil,
      user: settings.user, masterKey: settings.encryption)
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
    let connection = LiveConnection(
      socket: socket, session: Session(context: run.context, memory: run.memory.withLock { $0 }, now: began),
      clock: clock)
    live.withLock { $0.connection = connection }
    let questions = BoundedChannel<Question>(capacity: max(run.channels.count * 2, 16))
    let ending = await withTaskGroup(of: Session.Ending?.self) { group in
      group.addTask { await self.listen(on: connection, run, questions) }
      group.addTask { await self.keepAlive(connection, run) }
      group.addTask { await self.repeatSubscriptions(on: connection, run, questions) }
      group.addTask { await self.answer(questions, on: connection, run) }
      defer { group.cancelAll() }
      return await group.next() ?? nil
    }
    live.withLock { $0.connection = nil }
    connection.end()
    socket.close(code: 1000, reason: "")
    let session = connection.session.withLock { $0 }
    run.memory.withLock { $0 = session.memory }
    let lost = run.channels.map { ChannelID($0.text) }.filter(session.isConfirmed)
    run.silentSince.withLock { silent in for channel in lost { silent[channel] = session.lastHeard } }
    return (
      ending ?? Session.Ending(code: 1000, reason: "stopped"),
      .milliseconds(session.lastHeard.milliseconds - began.milliseconds)
    )
  }
}
