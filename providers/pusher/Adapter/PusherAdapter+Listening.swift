import FerryCore
import FerryRuntime
import FerryTransport

/// What goes on while a connection lasts.
extension PusherAdapter {
  private static let ownTimeout = 30
  private static let answerTimeout = Duration.seconds(30)
  /// Questions to an endpoint at a time.
  private static let askedAtOnce = 8

  func listen(
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
        // At once: an event that opens may follow in the same breath.
        let reason = "\(channel): \(Session.unreadableReason)"
        connection.report(ConnectionState(.degraded, reason: reason), to: run.inbox, always: true)
      case .incomplete(let channel, let count):
        logger.warning("\(count) events in slices never became complete and are lost, one of them maybe of \(channel)")
        self.count(count, "ferry_pusher_incomplete_total", channel)
      case .pong: connection.pong()
      case .rejected(let code, let reason): rejected(code, reason, connection)
      case .end(let ending): return ending
      }
    }
    let state = connection.session.withLock { $0.state }
    if state.phase != .connecting { connection.report(state, to: run.inbox, always: isNews) }
    return nil
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
  func answer(
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
  func keepAlive(_ connection: LiveConnection, _ run: Run) async -> Session.Ending? {
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

  func repeatSubscriptions(
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
