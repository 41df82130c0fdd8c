import FerryCore
import FerryRuntime
import FerryStorage

/// Where one account's adapter hands its events: the journal, then the lanes.
struct AccountInbox: Inbox {
  let account: AccountName
  /// For the router, names and typing as they are now: they change while the account is connected.
  let relay: Relay
  let health: AccountHealth
  let journal: Journal
  let logger: Logger
  let metrics: Metrics

  init(account: AccountName, relay: Relay, health: AccountHealth, _ settings: Relay.Settings) {
    self.account = account
    self.relay = relay
    self.health = health
    journal = settings.journal
    logger = settings.logger
    metrics = settings.metrics
  }

  func accept(_ events: [Event]) async throws(FerryError) {
    let account = account
    let (router, names, typing) = relay.table.withLock { ($0.router, $0.names, $0.typing) }
    Failpoint.beforeAccept.pass()
    let loops = loops
    let acceptance = try await journal.accept(events, from: account) { event in
      router.lanes(for: event, from: account)
    } refuse: { event in
      loops?(event)
    }
    Failpoint.afterAccept.pass()
    for event in events {
      if case .posted(let message) = event.kind {
        typing.messagePosted(by: message.author.id, at: Address(account: account, channel: event.channel))
      }
    }
    let labels = ["account": account.rawValue]
    metrics.add(Double(acceptance.accepted), to: "ferry_events_accepted_total", labels)
    metrics.add(Double(acceptance.duplicates), to: "ferry_events_duplicate_total", labels)
    metrics.add(Double(acceptance.echoes), to: "ferry_events_echo_total", labels)
    for key in acceptance.unwritable {
      logger.error("\(account): event \(key) cannot be written down and is not mirrored")
      metrics.add(to: "ferry_events_unwritable_total", labels)
    }
    health.received()
    if acceptance.forgotten > 0 {
      logger.notice("\(account): \(acceptance.forgotten) events are about messages forgotten after relay.retention")
      metrics.add(Double(acceptance.forgotten), to: "ferry_events_forgotten_total", labels)
    }
    if !acceptance.refused.isEmpty {
      for (reason, count) in acceptance.refused.sorted(by: { $0.key < $1.key }) {
        logger.error("\(account): \(count) messages are not carried on, and are dead letters: \(reason)")
        metrics.add(Double(count), to: "ferry_loops_total", labels)
      }
      await relay.lookForStops()
    }
    // Before the lanes look: what comes next may pose as one of these.
    let failure = acceptance.keys.isEmpty ? nil : await note(events, Set(acceptance.keys), in: names)
    relay.wake(acceptance.lanes)
    if let failure { throw failure }
  }

  /// Says why an event is not carried on, when it has gone round too often.
  private var loops: (@Sendable (Event) -> String?)? {
    let (router, limit) = relay.table.withLock { ($0.router, $0.settings.hopLimit) }
    guard limit > 0 else { return nil }
    return { [relay, account] event in
      guard case .posted(let message) = event.kind, message.attachments.isEmpty else { return nil }
      let place = Address(account: account, channel: event.channel)
      // By the source's own clock, which knows how soon one round came after another even when they are read together.
      for bridge in Set(router.lanes(for: event, from: account).map(\.bridge)) {
        let pass = relay.loops.withLock {
          $0.round(
            of: message.text, by: message.author.id, at: place, in: bridge, event: event.key, now: message.time)
        }
        if pass.round > limit { return LoopGuard.reason(pass, limit: limit) }
      }
      return nil
    }
  }

  /// Whoever speaks or comes in is at home here; what Ferry wrote itself was not accepted.
  private func note(_ events: [Event], _ accepted: Set<EventKey>, in names: AuthorNames) async -> FerryError? {
    for event in events where accepted.contains(event.key) {
      let place = Address(account: account, channel: event.channel)
      do throws(FerryError) {
        switch event.kind {
        case .posted(let message): try await names.saw(message.author, at: place)
        case .joined(let membership): try await names.saw(membership.member, at: place)
        default: break
        }
      } catch {
        return error
      }
    }
    return nil
  }

  func accept(cursor: Cursor, for channel: ChannelID) async throws(FerryError) {
    try await journal.move(to: cursor, account, channel)
  }

  func recent(in channel: ChannelID, limit: Int) async throws(FerryError) -> [KnownMessage] {
    try await journal.recent(account, channel, limit: limit)
  }

  func typing(_ typing: Typing) { relay.table.withLock { $0.typing }.typing(typing, at: account) }

  func gap(_ gap: Gap) async {
    logger.warning(
      "\(account):\(gap.channel) was not listened to from \(gap.start.iso8601) to \(gap.end.iso8601); "
        + "this provider keeps no history, so what was said meanwhile is not known")
    metrics.add(to: "ferry_gaps_total", ["account": account.rawValue])
    do throws(FerryError) {
      try await journal.record(gap, at: account)
    } catch {
      logger.error("the gap at \(account):\(gap.channel) could not be recorded: \(error)")
    }
  }

  func connection(_ state: ConnectionState) {
    health.connection(state)
  }
}
