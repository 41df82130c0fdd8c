package import FerryCore
import FerryRuntime
import FerryTransport

extension BackendlessAdapter {
  /// What one run of the adapter shares between its tasks.
  private struct Run: Sendable {
    let channels: [ChannelID]
    let inbox: any Inbox
    let queue = BoundedChannel<ChannelFeed.Item>(capacity: 512)
    /// Typing of users whose names have to be looked up: the newest only.
    let typing = BoundedChannel<(ChannelID, CommandReader.Command)>(capacity: 16)
    /// What else needs names: messages do not wait for these.
    let people = BoundedChannel<Heard>(capacity: 256)
    /// Counts the connections.
    let connection = Locked(0)
  }

  private enum Heard: Sendable {
    case users(ChannelID, JSONValue, own: Set<String>)
    case mark(ChannelID, MessageID, ReadMark.State, CommandReader.Command)
  }

  package func run(_ subscriptions: [FerryCore.Subscription], into inbox: any Inbox) async throws(FerryError) {
    for subscription in subscriptions { _ = try checked(subscription.channel) }
    if subscriptions.count > 1, settings.table != nil, settings.fields.channel == nil {
      throw FerryError(
        .badConfiguration, "Without a channel column (fields: { channel: none }) an account has one channel only.")
    }
    let run = Run(channels: subscriptions.map(\.channel), inbox: inbox)
    present.withLock { $0 = [:] }
    do {
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await self.consume(subscriptions, run) }
        group.addTask { await self.nameTypists(run) }
        group.addTask { await self.namePeople(run) }
        group.addTask { await self.keepTime(run) }
        group.addTask {
          if self.settings.receive == .realtime {
            try await self.stayConnected(run)
          } else {
            try await self.keepPolling(run)
          }
        }
        defer { group.cancelAll() }
        try await group.next()
      }
    } catch {
      let error = FerryError.wrap(error)
      guard error.code == .cancelled, Task.isCancelled else { throw error }
    }
    inbox.connection(ConnectionState(.stopped))
  }

  // MARK: Handing on

  /// The one reader of the queue.
  private func consume(_ subscriptions: [FerryCore.Subscription], _ run: Run) async throws(FerryError) {
    var feed = ChannelFeed(adapter: self, inbox: run.inbox, connection: run.connection)
    try await feed.begin(subscriptions)
    while let first = await run.queue.next() {
      try await feed.take([first] + run.queue.drain(upTo: ChannelFeed.batch - 1))
    }
  }

  private func keepTime(_ run: Run) async {
    while (try? await clock.sleep(for: .seconds(1))) != nil { await run.queue.send(.tick) }
  }

  /// Who is typing, where only the user's id is told.
  private func nameTypists(_ run: Run) async {
    while let (channel, command) = await run.typing.next() {
      guard case .typing(let on) = command.content, let user = command.userID else { continue }
      let author = await people.author(user)
      run.inbox.typing(Typing(channel: channel, by: author, on: on, stamp: command.stamp))
    }
  }

  /// Who comes and goes, and who has read what. A user is there as long as one of their connections is, over all
  /// connections of ours.
  private func namePeople(_ run: Run) async {
    var lists: [ChannelID: MemberList] = [:]
    while let heard = await run.people.next() {
      switch heard {
      case .users(let channel, let frame, let own):
        let change = lists[channel, default: MemberList()].apply(frame, own: own)
        let users = lists[channel]?.users ?? []
        present.withLock { $0[channel, default: Presence()].users = users }
        for user in change.left { await run.queue.send(.member(channel, await people.author(user), joined: false)) }
        for user in change.joined { await run.queue.send(.member(channel, await people.author(user), joined: true)) }
      case .mark(let channel, let id, let state, let command):
        var by = command.by
        if by == nil, let user = command.userID { by = await people.author(user) }
        await run.queue.send(.mark(channel, ReadMark(upTo: id, by: by, state: state, stamp: command.stamp)))
      }
    }
  }

  // MARK: Connecting

  private func stayConnected(_ run: Run) async throws(FerryError) {
    var policy = ReconnectPolicy(base: .milliseconds(250), limit: .seconds(30))
    var reason: String?
    while !Task.isCancelled {
      run.inbox.connection(ConnectionState(.connecting, reason: reason))
      let began = clock.now()
      var failure = ReconnectPolicy.Failure.unknown
      var held: Duration?
      do throws(FerryError) {
        let link = try await openLink(listening: run.channels)
        let ending = await listen(on: link, run)
        if Task.isCancelled { return }
        held = .milliseconds(clock.now().milliseconds - began.milliseconds)
        reason = try await judged(ending)
      } catch {
        if Task.isCancelled { return }
        if error.retry == .never { throw stopped(error, run.inbox) }
        if case .after(let wait) = error.retry { failure = .after(wait) }
        reason = error.message
      }
      logger.notice("the real-time connection ended: \(reason ?? "")")
      let wait = policy.delay(after: failure, connectedFor: held) ?? .seconds(1)
      guard (try? await clock.sleep(for: wait)) != nil else { return }
    }
  }

  /// What no retry can mend.
  private func stopped(_ error: FerryError, _ inbox: any Inbox) -> FerryError {
    inbox.connection(
      ConnectionState(error.code == .badCredentials ? .badCredentials : .stopped, reason: error.message))
    return error
  }

  /// The reason in words, or an error where coming back cannot help.
  private func judged(_ ending: RealtimeSession.Ending) async throws(FerryError) -> String {
    switch ending {
    case .closed(let reason): return reason
    case .refused(let reason):
      let words = reason.lowercased()
      if words.contains("api key") || words.contains("apikey") || words.contains("application id") {
        throw FerryError(
          .badCredentials, "The real-time service does not accept the app id or the API key. Check app_id and api_key.",
          cause: String(reason.prefix(200)))
      }
      // A token that has run out, perhaps.
      if let token = api.currentToken { _ = try await api.renewed(token) }
      return "the real-time service refuses: \(reason.prefix(200))"
    }
  }

  private func listen(on link: RealtimeLink, _ run: Run) async -> RealtimeSession.Ending {
    let number = run.connection.withLock { number in
      number += 1
      return number
    }
    live.withLock { $0 = link }
    defer { live.withLock { $0 = nil } }
    let lastHeard = Locked(clock.now())
    let ending = await withTaskGroup(of: RealtimeSession.Ending?.self) { group in
      group.addTask {
        await link.run { action in
          let now = self.clock.now()
          lastHeard.withLock { $0 = now }
          await self.hear(action, over: link, number, run)
        }
      }
      group.addTask {
        await self.followToken(on: link)
        return nil
      }
      defer { group.cancelAll() }
      while let ended = await group.next() { if let ended { return ended } }
      return .closed("stopped")
    }
    run.connection.withLock { $0 += 1 }
    await run.queue.send(.lost(since: lastHeard.withLock { $0 }))
    return ending
  }

  /// Tells the connection of a token that was renewed meanwhile.
  private func followToken(on link: RealtimeLink) async {
    guard settings.login != nil else { return }
    var told = api.currentToken
    while (try? await clock.sleep(for: .seconds(5))) != nil {
      guard let token = api.currentToken, token != told else { continue }
      do throws(FerryError) {
        try await link.setUserToken(token)
        told = token
      } catch { logger.info("the connection keeps its old token for now: \(error)") }
    }
  }

  private func hear(_ action: RealtimeSession.Action, over link: RealtimeLink, _ number: Int, _ run: Run) async {
    switch action {
    case .ready(let channel): await run.queue.send(.ready(channel, connection: number))
    case .heard(let subscription, let data): await hear(data, of: subscription, over: link, run)
    case .refused(let subscription, let fault):
      let what = subscription.channel.map { "\(subscription.name) of \($0)" } ?? subscription.name
      logger.warning("\(what) was refused and will be asked for again: \(fault.cause)")
      guard subscription.role == .join || subscription.role == .messages else { return }
      run.inbox.connection(ConnectionState(.degraded, reason: "\(what) was refused: \(fault.cause)"))
    case .connected, .send, .answered, .end: return
    }
  }

  private func hear(
    _ data: JSONValue, of subscription: RealtimeSession.Subscription, over link: RealtimeLink, _ run: Run
  ) async {
    switch (subscription.role, subscription.channel) {
    case (.messages, let channel?): await run.queue.send(.published(channel, data))
    case (.commands, let channel?): await hear(command: data, in: channel, over: link, run)
    case (.users, let channel?): await run.people.send(.users(channel, data, own: link.ownIDs))
    case (.rows(let change), let channel?): await run.queue.send(.row(channel, change, data))
    case (.looseRows(let change), _): await run.queue.send(.row(nil, change, data))
    case (.bulk, _): await run.queue.send(.bulk)
    case (.join, _), (.messages, nil), (.commands, nil), (.users, nil), (.rows, nil): return
    }
  }

  private func hear(command data: JSONValue, in channel: ChannelID, over link: RealtimeLink, _ run: Run) async {
    guard let command = commands.read(data) else { return }
    let on: Bool
    switch command.content {
    case .typing(let isOn): on = isOn
    case .mark(let id, let state):
      await run.people.send(.mark(channel, id, state, command))
      return
    }
    // What this connection sent for the relay is nobody's news.
    if command.stamp != nil, let sender = command.connectionID, link.ownIDs.contains(sender) { return }
    let by = command.by ?? command.userID.flatMap { people.known($0) } ?? command.anonymous
    if let by { return run.inbox.typing(Typing(channel: channel, by: by, on: on, stamp: command.stamp)) }
    if run.typing.offer((channel, command)) == .full { logger.debug("typing is dropped: too many names to look up") }
  }

  // MARK: Polling

  /// The way without a socket: asks every second.
  private func keepPolling(_ run: Run) async throws(FerryError) {
    var policy = ReconnectPolicy(base: .milliseconds(500), limit: .seconds(30))
    var subscriptions: [ChannelID: String] = [:]
    var began = clock.now()
    var lastHeard = clock.now()
    run.inbox.connection(ConnectionState(.connecting))
    while !Task.isCancelled {
      do throws(FerryError) {
        for channel in run.channels {
          let name = try checked(channel)
          if subscriptions[channel] == nil {
            subscriptions[channel] = try await api.subscribe(to: name, selector: settings.selector)
            await run.queue.send(.ready(channel, connection: run.connection.withLock { $0 }))
          }
          guard let id = subscriptions[channel] else { continue }
          for message in try await api.messages(of: id, in: name) { await run.queue.send(.published(channel, message)) }
        }
        lastHeard = clock.now()
        guard (try? await clock.sleep(for: .seconds(1))) != nil else { return }
      } catch {
        if Task.isCancelled { return }
        // A subscription that the service forgot is made anew.
        if error.retry == .never, error.code != .notFound, error.code != .badRequest || subscriptions.isEmpty {
          throw stopped(error, run.inbox)
        }
        logger.notice("polling failed: \(error)")
        run.inbox.connection(ConnectionState(.connecting, reason: error.message))
        subscriptions = [:]
        run.connection.withLock { $0 += 1 }
        await run.queue.send(.lost(since: lastHeard))
        let held = Duration.milliseconds(clock.now().milliseconds - began.milliseconds)
        let failure =
          if case .after(let wait) = error.retry { ReconnectPolicy.Failure.after(wait) } else {
            ReconnectPolicy.Failure.unknown
          }
        let wait = policy.delay(after: failure, connectedFor: held) ?? .seconds(1)
        began = clock.now()
        guard (try? await clock.sleep(for: wait)) != nil else { return }
      }
    }
  }
}

extension CommandReader.Command {
  /// Of a connection at which nobody is logged in, and who does not say either.
  fileprivate var anonymous: Author? {
    userID != nil ? nil : connectionID.map { Author(id: UserID("connection \($0)"), name: "Somebody") }
  }
}
