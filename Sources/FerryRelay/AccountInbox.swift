import FerryCore
import FerryRuntime
import FerryStorage

/// Where one account's adapter hands its events: the journal, then the lanes.
struct AccountInbox: Inbox {
  let account: AccountName
  let journal: Journal
  let router: Router
  let typingMirror: TypingMirror
  let wake: @Sendable (Set<LaneID>) -> Void
  let health: AccountHealth
  let clock: any FerryClock
  let logger: Logger
  let metrics: Metrics

  func accept(_ events: [Event]) async throws(FerryError) {
    let account = account
    let router = router
    Failpoint.beforeAccept.pass()
    let acceptance = try await journal.accept(events, from: account) { router.lanes(for: $0, from: account) }
    Failpoint.afterAccept.pass()
    for event in events {
      if case .posted(let message) = event.kind {
        typingMirror.messagePosted(by: message.author.id, at: Address(account: account, channel: event.channel))
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
    wake(acceptance.lanes)
  }

  func accept(cursor: Cursor, for channel: ChannelID) async throws(FerryError) {
    try await journal.move(to: cursor, account, channel)
  }

  func recent(in channel: ChannelID, limit: Int) async throws(FerryError) -> [KnownMessage] {
    try await journal.recent(account, channel, limit: limit)
  }

  func typing(_ typing: Typing) { typingMirror.typing(typing, at: account) }

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
