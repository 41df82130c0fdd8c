import FerryConfig
import FerryCore
import FerryHistory
import FerryRelay
import FerryRuntime
import FerryStorage

/// Mirrors a channel from before its past is copied until long after, through a relay's own journal.
///
/// Listens first and writes down what happens, without delivering it. Then the past is copied, and every copy becomes a
/// link in the journal. Then the relay delivers what happened meanwhile; what the past contained already is settled.
struct Follow: Sendable {
  private let ends: Ends
  private let bridge: Bridge
  private let journal: Journal
  private let spool: Spool

  /// Uses the configured bridge from FROM to TO and the relay's journal, else a bridge of its own in the work folder.
  init(_ ends: Ends, _ folder: WorkFolder, _ arguments: Arguments) throws(FerryError) {
    self.ends = ends
    let (from, to) = (ends.fromAddress, ends.toAddress)
    let configured = ends.configuration?.bridges.map { Bridge($0) }.first { $0.routes[from]?.contains(to) == true }
    let path: String
    if let configured, let configuration = ends.configuration {
      path = configuration.relay.journal
      // One way only while it follows, and to this address alone.
      var only = configured
      only.routes = [from: [to]]
      bridge = only
    } else {
      try folder.make()
      path = "\(folder.path)/follow-\(Self.name(from, to)).db"
      bridge = Bridge(
        name: "migrate", routes: [from: [to]],
        mirror: Set(Bridge.Mirrored.allCases.filter { $0 != .typing }))
    }
    journal = try Journal(path: path)
    spool = try Spool(beside: path, ends.configuration?.relay)
  }

  private static func name(_ from: Address, _ to: Address) -> String {
    Crypto.hex(Crypto.digest(.sha256, of: "\(from)\n\(to)".utf8).prefix(6))
  }

  private var lane: LaneID { LaneID(bridge: bridge.name, destination: ends.toAddress) }

  /// Notes what the import has copied.
  var linking: @Sendable ([Importer.Written]) async throws(FerryError) -> Void {
    let (journal, bridge, from, to) = (journal, bridge.name, ends.fromAddress, ends.toAddress)
    return { written async throws(FerryError) in
      let links = written.flatMap { message in
        message.parts.map { part in
          Link(
            bridge: bridge, source: from, origin: message.id, destination: to, copy: part.id, part: part.number,
            revision: message.revision, isDeleted: message.isDeleted)
        }
      }
      try await journal.store(links)
    }
  }

  /// Until the task is cancelled. `rereads`: the source cannot tell what changed, so it is read a second time.
  func run(
    rereads: Bool, _ migrate: @escaping @Sendable () async throws(FerryError) -> Void
  ) async throws(FerryError) {
    defer { journal.close() }
    try await listening {
      () async throws(FerryError) in
      try await migrate()
      if rereads { try await migrate() }
    }
    let settled = try await journal.settleImported(lane, from: ends.fromAddress)
    ends.session.logger.info("\(settled) messages came while the past was copied, and were in it")
    Terminal.error("The past is copied. Mirroring \(ends.fromText) to \(ends.toText) until interrupted.")
    // Both may be channels of one account.
    var accounts: [AccountName: any ChatProvider] = [ends.fromAddress.account: ends.from]
    accounts[ends.toAddress.account] = ends.to
    let relay = try Relay(
      Relay.Settings(
        ends.configuration, accounts: accounts, bridges: [bridge], journal: journal, spool: spool,
        url: "http://127.0.0.1:8090", ends.session))
    await withTaskCancellationHandler {
      // Not cancelled with this task: what is being sent is settled first.
      let work = Task { await relay.run() }
      await work.value
    } onCancel: {
      relay.stop()
    }
    throw .cancelled(didNotAct: true)
  }

  /// Runs `body` while everything that happens at the source is written down.
  private func listening(
    _ body: @escaping @Sendable () async throws(FerryError) -> Void
  ) async throws(FerryError) {
    let (from, source, journal, bridge) = (ends.from, ends.fromAddress, journal, bridge)
    let ready = BoundedChannel<Void>(capacity: 1)
    let inbox = FollowInbox(
      account: source.account, journal: journal, router: Router([bridge]), ready: ready, logger: ends.session.logger)
    let known = try await journal.cursors(of: source.account)[source.channel]
    let subscription = Subscription(channel: source.channel, cursor: known?.0, lastSeen: known?.1)
    let result = await withTaskGroup(of: Result<Void, FerryError>.self) { group in
      group.addTask {
        do throws(FerryError) {
          try await from.run([subscription], into: inbox)
          return .failure(.cancelled(didNotAct: true))
        } catch { return .failure(error) }
      }
      group.addTask {
        do throws(FerryError) {
          guard await ready.next() != nil else { throw .cancelled(didNotAct: true) }
          try await body()
          return .success(())
        } catch { return .failure(error) }
      }
      let first = await group.next()
      group.cancelAll()
      return first ?? .failure(.cancelled(didNotAct: true))
    }
    try result.get()
  }
}

/// Writes down what happens at a source, for a relay to deliver later.
struct FollowInbox: Inbox {
  let account: AccountName
  let journal: Journal
  let router: Router
  /// Told once the source is being listened to.
  let ready: BoundedChannel<Void>
  let logger: Logger

  func accept(_ events: [Event]) async throws(FerryError) {
    let (router, account) = (router, account)
    _ = try await journal.accept(events, from: account) { router.lanes(for: $0, from: account) }
  }

  func accept(cursor: Cursor, for channel: ChannelID) async throws(FerryError) {
    try await journal.move(to: cursor, account, channel)
  }

  func recent(in channel: ChannelID, limit: Int) async throws(FerryError) -> [KnownMessage] {
    try await journal.recent(account, channel, limit: limit)
  }

  func typing(_ typing: Typing) {}

  func gap(_ gap: Gap) async {
    logger.warning("nothing is known of \(account):\(gap.channel) from \(gap.start.iso8601) to \(gap.end.iso8601)")
    do throws(FerryError) { try await journal.record(gap, at: account) } catch {
      logger.error("the gap could not be noted in the journal: \(error.message)")
    }
  }

  func connection(_ state: ConnectionState) {
    if state.phase == .connected { _ = ready.offer(()) }
    if let reason = state.reason { logger.notice("\(account) is \(state.phase.rawValue): \(reason)") }
  }
}
