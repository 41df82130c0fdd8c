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
    let context: Session.Context
    /// What the last connection left to the next.
    let memory = Locked(Session.Memory())
  }

  /// What an endpoint is asked to sign.
  private enum Question: Sendable {
    case subscription(ChannelName, socketID: String)
    case signIn(socketID: String)
  }

  private static let queueCapacity = 1024
  private static let batch = 256
  private static let ownTimeout = 30
  private static let answerTimeout = Duration.seconds(30)
  private static let greetingTimeout = Duration.seconds(10)
  /// Questions to an endpoint at a time.
  private static let askedAtOnce = 8

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

  // MARK: Connected

  private func listen(
    on connection: LiveConnection, _ run: Run, _ questions: BoundedChannel<Question>
  ) async -> Session.Ending? {
    while let message = await connection.socket.next() {
      guard case .text(let text) = message else { continue }
      let now = clock.now()
      let actions = connection.session.withLock { $0.receive(text, now: now) }
      if let ending = await act(on: actions, connection, run, questions) { return ending }
    }
    let closing = connection.socket.closing
    return Session.Ending(
      code: Int(closing?.code ?? 1006),
      reason: closing.map { $0.reason.isEmpty ? "the connection was lost" : $0.reason } ?? "the connection was lost")
  }

  /// Does what the session has decided; an ending ends the connection.
  private func act(
    on actions: [Session.Action], _ connection: LiveConnection, _ run: Run, _ questions: BoundedChannel<Question>
  ) async -> Session.Ending? {
    var isNews = false
    for action in actions {
      switch action {
      case .send(let text): _ = await connection.socket.sendWaiting(text)
      case .authorize(let channel, let socketID): await questions.send(.subscription(channel, socketID: socketID))
      case .authorizeUser(let socketID): await questions.send(.signIn(socketID: socketID))
      case .deliver(let event): await run.queue.send(.event(event))
      case .typing(let typing): run.inbox.typing(typing)
      case .subscribed(let channel):
        await subscribed(channel, run)
        isNews = true
      case .refused(let channel, let reason):
        logger.warning("the subscription to \(channel) was refused and will be repeated: \(reason)")
        isNews = true
      case .signedIn: logger.info("signed in as \(settings.user?.id ?? "")")
      case .notSignedIn(let reason):
        logger.warning("the sign-in failed; channels are listened to all the same: \(reason)")
        isNews = true
      case .unreadable(let channel, let count):
        logger.warning("\(count) event of \(channel) could not be decrypted and is lost")
        self.count(count, "ferry_pusher_unreadable_total", channel)
        isNews = true
      case .incomplete(let channel, let count):
        logger.warning("\(count) events in slices never became complete and are lost, one of them maybe of \(channel)")
        self.count(count, "ferry_pusher_incomplete_total", channel)
      case .pong: connection.pong()
      case .rejected(let code, let reason): rejected(code, reason, connection)
      case .end(let ending): return ending
      }
    }
    if isNews { report(connection, run) }
    return nil
  }

  private func report(_ connection: LiveConnection, _ run: Run) {
    let state = connection.session.withLock { $0.state }
    if state.phase != .connecting { run.inbox.connection(state) }
  }

  private func rejected(_ code: Int?, _ reason: String, _ connection: LiveConnection) {
    logger.warning("the service did not take a client event: \(reason)")
    let error =
      code == Int(ErrorCode.rateLimited.rawValue)
      ? FerryError(
        .rateLimited, "Pusher takes no more client events for now.", retry: .after(.seconds(1)), didNotAct: false,
        cause: reason)
      : FerryError(
        .forbidden,
        "Pusher does not take client events. Enable them in the app's settings, or set via to server.", cause: reason)
    connection.reject(error)
  }

  private func subscribed(_ channel: ChannelID, _ run: Run) async {
    let now = clock.now()
    if let start = run.silentSince.withLock({ $0.removeValue(forKey: channel) }) {
      await run.queue.send(.gap(Gap(channel: channel, start: start, end: now)))
    }
  }

  // MARK: Endpoints

  /// Asks endpoints, beside the reading of the socket: they may take their time.
  private func answer(
    _ questions: BoundedChannel<Question>, on connection: LiveConnection, _ run: Run
  ) async -> Session.Ending? {
    await withTaskGroup(of: Void.self) { group in
      var asked = 0
      while let question = await questions.next() {
        if asked >= Self.askedAtOnce { await group.next() } else { asked += 1 }
        group.addTask {
          let actions = await self.answer(question, connection)
          _ = await self.act(on: actions, connection, run, questions)
          if case .subscription(let channel, _) = question {
            await self.release(ChannelID(channel.text), connection, run, questions)
          }
        }
      }
      group.cancelAll()
    }
    return nil
  }

  private func answer(_ question: Question, _ connection: LiveConnection) async -> [Session.Action] {
    switch question {
    case .subscription(let channel, let socketID):
      let answer = await sign([("socket_id", socketID), ("channel_name", channel.text)], at: settings.auth)
      return connection.session.withLock { session in
        switch answer {
        case .success(let answer):
          let authorization = Session.Authorization(
            auth: answer["auth"]?.string ?? "", channelData: answer["channel_data"]?.string,
            sharedSecret: answer["shared_secret"]?.string)
          return session.authorized(channel, socketID: socketID, authorization)
        case .failure(let error): return session.notAuthorized(channel, socketID: socketID, error.message)
        }
      }
    case .signIn(let socketID):
      let answer = await sign([("socket_id", socketID)], at: settings.userAuth)
      return connection.session.withLock { session in
        switch answer {
        case .success(let answer): session.signInAuthorized(answer, socketID: socketID)
        case .failure(let error): session.signInFailed(error.message, socketID: socketID)
        }
      }
    }
  }

  /// Hands on what waited for the channel's key.
  private func release(
    _ channel: ChannelID, _ connection: LiveConnection, _ run: Run, _ questions: BoundedChannel<Question>
  ) async {
    let clock = clock
    while let actions = connection.session.withLock({ $0.release(channel, now: clock.now()) }) {
      _ = await act(on: actions, connection, run, questions)
    }
  }

  private func sign(
    _ form: [(name: String, value: String)], at endpoint: Endpoint?
  ) async -> Result<JSONValue, FerryError> {
    guard let endpoint else { return .failure(FerryError(.internal, "There is no endpoint to ask.")) }
    do throws(FerryError) { return .success(try await endpoint.sign(form, with: client)) } catch {
      return .failure(error)
    }
  }

  // MARK: Staying connected

  /// Ends when the other side has been silent too long, or did not greet. A reader that waits for the disk is no
  /// silence.
  private func keepAlive(_ connection: LiveConnection, _ run: Run) async -> Session.Ending? {
    guard (try? await clock.sleep(for: Self.greetingTimeout)) != nil else { return nil }
    guard connection.socketID != nil else {
      return Session.Ending(code: 1006, reason: "the service did not greet")
    }
    while true {
      let timeout = connection.session.withLock { min(Self.ownTimeout, $0.activityTimeout) }
      guard let silent = await isSilent(for: .seconds(timeout), connection, run) else { return nil }
      guard silent else { continue }
      await connection.ping()
      guard let silent = await isSilent(for: Self.answerTimeout, connection, run) else { return nil }
      if silent { return Session.Ending(code: 4201, reason: "the service does not answer") }
    }
  }

  /// Nil when cancelled.
  private func isSilent(for duration: Duration, _ connection: LiveConnection, _ run: Run) async -> Bool? {
    let before = connection.session.withLock { $0.heard }
    guard (try? await clock.sleep(for: duration)) != nil else { return nil }
    return connection.session.withLock { $0.heard } == before && run.queue.count < Self.queueCapacity
  }

  private func repeatSubscriptions(
    on connection: LiveConnection, _ run: Run, _ questions: BoundedChannel<Question>
  ) async -> Session.Ending? {
    var delay = Duration.seconds(2)
    while (try? await clock.sleep(for: delay)) != nil {
      let now = clock.now()
      let actions = connection.session.withLock { $0.subscribeAgain(now: now) }
      _ = await act(on: actions, connection, run, questions)
      delay = actions.isEmpty ? .seconds(2) : min(delay * 2, .seconds(60))
    }
    return nil
  }
}
