package import FerryCore
package import FerryRuntime
package import FerryStorage

/// Runs bridges: keeps every account connected, journals what they say, and delivers it lane by lane.
package final class Relay: Sendable {
  package struct Settings: Sendable {
    package var accounts: [AccountName: any ChatProvider]
    package var bridges: [Bridge]
    package var identities: Identities
    package var journal: Journal
    package var spool: Spool
    /// Where the relay's listener is reached from outside, for links to files. No slash at the end.
    package var publicURL: String
    /// How long the journal keeps what is settled; nil for ever.
    package var retention: Duration?
    /// After so many rounds of a loop that other software closes a message is not carried on; zero for never.
    package var hopLimit: Int
    package var clock: any FerryClock
    package var logger: Logger
    package var metrics: Metrics

    package init(
      accounts: [AccountName: any ChatProvider], bridges: [Bridge], identities: Identities = Identities(),
      journal: Journal, spool: Spool, publicURL: String, retention: Duration? = nil, hopLimit: Int = 10,
      clock: any FerryClock = SystemClock(), logger: Logger = .silent, metrics: Metrics = Metrics()
    ) {
      self.accounts = accounts
      self.bridges = bridges
      self.identities = identities
      self.journal = journal
      self.spool = spool
      self.publicURL = publicURL
      self.retention = retention
      self.hopLimit = hopLimit
      self.clock = clock
      self.logger = logger
      self.metrics = metrics
    }

    /// Throws `badConfiguration` when a bridge names an account that is not there.
    func check() throws(FerryError) {
      for bridge in bridges {
        for address in bridge.routes.flatMap({ [$0.key] + $0.value }) where accounts[address.account] == nil {
          throw FerryError(
            .badConfiguration, "Bridge \(bridge.name) names the account \(address.account), unknown here.")
        }
      }
    }
  }

  /// What runs now, or will once `run` is called.
  struct Table: Sendable {
    var settings: Settings
    var router: Router
    var names: AuthorNames
    var typing: TypingMirror
    var healths: [AccountName: AccountHealth]
    var lanes: [LaneID: LaneRun] = [:]
    var accounts: [AccountName: Running] = [:]
    /// Typing, retention, and the console's samples.
    var common = Running()
  }

  struct LaneRun: Sendable {
    let signal = BoundedChannel<Void>(capacity: 1)
    let stop = StopSignal()
    let running = Running()
  }

  struct Change: Sendable {
    let settings: Settings
    let replaced: Set<AccountName>
    let done = BoundedChannel<RelayChanges>(capacity: 1)
  }

  let table: Locked<Table>
  let loops = Locked(LoopGuard())
  let stops = Locked(Stops())
  private let changes = BoundedChannel<Change>(capacity: 1)
  /// The last minutes, for the console.
  let history = RelayHistory()
  private let hasStopped = Locked(false)

  /// How often it is noted that a source without history is being listened to: the most by which a gap is
  /// reported too long.
  private static let heartbeat = Duration.seconds(15)

  /// Throws `badConfiguration` when a bridge names an account that is not there.
  package init(_ settings: Settings) throws(FerryError) {
    try settings.check()
    table = Locked(Self.table(for: settings, healths: [:]))
  }

  /// As they are now.
  package var settings: Settings { table.withLock { $0.settings } }

  static func table(for settings: Settings, healths old: [AccountName: AccountHealth]) -> Table {
    let router = Router(settings.bridges)
    var healths: [AccountName: AccountHealth] = [:]
    for (name, provider) in settings.accounts {
      let isSource = provider.capabilities.receives && !router.sources(of: name).isEmpty
      healths[name] =
        old[name]
        ?? AccountHealth(
          name, isSource ? .connecting : .idle, clock: settings.clock, logger: settings.logger,
          metrics: settings.metrics)
    }
    let names = AuthorNames(journal: settings.journal, identities: settings.identities)
    let isSending: @Sendable (AccountName) -> Bool = { [healths] in healths[$0]?.isSending ?? false }
    let typing = TypingMirror(
      router: router, providers: settings.accounts, identities: settings.identities, names: names,
      clock: settings.clock, metrics: settings.metrics, isSending: isSending)
    var table = Table(settings: settings, router: router, names: names, typing: typing, healths: healths)
    for lane in router.lanes { table.lanes[lane] = LaneRun() }
    for name in settings.accounts.keys { table.accounts[name] = Running() }
    return table
  }

  /// Runs until `stop` has been called and what was being sent is settled, or the task is cancelled, which leaves
  /// sends under way to be settled at the next start. One account's or lane's failure never ends the others.
  package func run() async {
    await lookForStops()
    await withDiscardingTaskGroup { group in
      let table = table.withLock { $0 }
      start(lanes: table.lanes.keys, accounts: table.accounts.keys, common: true, table, in: &group)
      while let change = await changes.next() {
        let report = await carryOut(change, in: &group)
        _ = change.done.offer(report)
        change.done.finish()
      }
      // A change may have started some since they were told.
      let lanes = self.table.withLock { $0.lanes }
      endLanes(lanes)
      for lane in lanes.values { await lane.running.waitUntilEnded() }
      group.cancelAll()
    }
  }

  /// Lets every lane end after the send it is making. `run` then returns.
  package func stop() {
    hasStopped.withLock { $0 = true }
    changes.finish()
    endLanes(table.withLock { $0.lanes })
  }

  private func endLanes(_ lanes: [LaneID: LaneRun]) {
    for lane in lanes.values { lane.end() }
  }

  /// Goes over to other settings while running. `replaced` are the accounts that are new objects, those that are new
  /// included; all others keep their connections, and must be the objects that they were.
  ///
  /// Throws `badConfiguration` and changes nothing when a bridge names an account that is not there, and `unavailable`
  /// when the relay is ending.
  package func change(to settings: Settings, replacing replaced: Set<AccountName>) async throws(FerryError)
    -> RelayChanges
  {
    try settings.check()
    let change = Change(settings: settings, replaced: replaced)
    guard await changes.send(change), let report = await change.done.next() else {
      throw FerryError(.unavailable, "The relay is ending, so nothing was changed.")
    }
    return report
  }

  /// Accounts, of those that are there, that other bridges would make listen to other channels: they have to connect anew.
  package func accountsListeningElsewhere(with bridges: [Bridge]) -> Set<AccountName> {
    let (old, names) = table.withLock { ($0.router, $0.settings.accounts.keys) }
    let new = Router(bridges)
    return Set(names.filter { old.sources(of: $0) != new.sources(of: $0) })
  }

  // MARK: Starting

  func start(
    lanes: some Sequence<LaneID>, accounts: some Sequence<AccountName>, common: Bool, _ table: Table,
    in group: inout DiscardingTaskGroup
  ) {
    for id in lanes {
      guard let run = table.lanes[id], let lane = makeLane(id, run, table) else { continue }
      group.addTask { await run.running.run { await lane.run() } }
    }
    for name in accounts {
      guard let running = table.accounts[name], let provider = table.settings.accounts[name],
        let health = table.healths[name]
      else { continue }
      let channels = table.router.sources(of: name)
      guard !channels.isEmpty, provider.capabilities.receives else {
        running.neverStarts()
        continue
      }
      group.addTask { await running.run { await self.listen(to: provider, name, channels, health) } }
    }
    if common { group.addTask { await table.common.run { await self.runCommon(table) } } }
  }

  private func runCommon(_ table: Table) async {
    let settings = table.settings
    await withDiscardingTaskGroup { group in
      group.addTask { await table.typing.run() }
      group.addTask { await self.keepHistory() }
      if let age = settings.retention {
        let retention = Retention(
          age: age, journal: settings.journal, names: table.names, clock: settings.clock, logger: settings.logger,
          metrics: settings.metrics)
        group.addTask { await retention.run() }
      }
    }
  }

  private func makeLane(_ id: LaneID, _ run: LaneRun, _ table: Table) -> Lane? {
    let settings = table.settings
    guard let bridge = table.router.bridges[id.bridge],
      let provider = settings.accounts[id.destination.account], let health = table.healths[id.destination.account]
    else { return nil }
    let renderer = Renderer(
      lane: id, bridge: bridge, destination: provider, sources: settings.accounts, journal: settings.journal,
      spool: settings.spool, publicURL: settings.publicURL, identities: settings.identities, names: table.names,
      logger: settings.logger)
    return Lane(
      id: id, renderer: renderer, provider: provider, journal: settings.journal, signal: run.signal,
      stop: run.stop, health: health, stopped: { self.stopped(id) },
      wake: { self.wake($0) }, clock: settings.clock, logger: settings.logger,
      metrics: settings.metrics)
  }

  // MARK: Sources

  private func listen(
    to provider: any ChatProvider, _ name: AccountName, _ channels: [ChannelID], _ health: AccountHealth
  ) async {
    await withDiscardingTaskGroup { group in
      group.addTask { await self.runSource(name, provider, channels, health) }
      if provider.capabilities.history == .none {
        group.addTask { await self.noteListening(name, channels, health) }
      }
    }
  }

  private func runSource(
    _ name: AccountName, _ provider: any ChatProvider, _ channels: [ChannelID], _ health: AccountHealth
  ) async {
    let settings = settings
    let inbox = AccountInbox(account: name, relay: self, health: health, settings)
    let keepsNothing = provider.capabilities.history == .none
    var backoff = Backoff(base: .seconds(1), limit: .seconds(60))
    while !Task.isCancelled {
      do throws(FerryError) {
        let cursors = try await settings.journal.cursors(of: name)
        // Whatever is said from now on is to be heard, or told as a gap: also when the first to end is the relay.
        for channel in channels where keepsNothing && cursors[channel] == nil {
          try await settings.journal.move(to: nil, name, channel)
        }
        let subscriptions = channels.map { channel in
          Subscription(channel: channel, cursor: cursors[channel]?.0, lastSeen: cursors[channel]?.1)
        }
        try await provider.run(subscriptions, into: inbox)
      } catch {
        guard error.code != .cancelled, !Task.isCancelled else { return }
        health.failedToConnect(error)
        // Nothing mends this but a person, who may mend it at the other side: look again now and then.
        let delay = error.retry == .never ? Duration.seconds(60) : backoff.next()
        guard (try? await settings.clock.sleep(for: delay)) != nil else { return }
      }
    }
  }

  private func noteListening(_ name: AccountName, _ channels: [ChannelID], _ health: AccountHealth) async {
    let clock = settings.clock
    while (try? await clock.sleep(for: Self.heartbeat)) != nil {
      await noteSeen(name, channels, health)
    }
    await noteSeen(name, channels, health)
  }

  private func noteSeen(_ name: AccountName, _ channels: [ChannelID], _ health: AccountHealth) async {
    guard health.snapshot.connection.phase == .connected else { return }
    let settings = settings
    for channel in channels {
      do throws(FerryError) {
        try await settings.journal.move(to: nil, name, channel)
      } catch {
        settings.logger.warning("\(name):\(channel): \(error)")
      }
    }
  }

  // MARK: Status

  /// What the relay is doing, for `ferry status`, the console and the metrics.
  package func status() async throws(FerryError) -> RelayStatus {
    let table = table.withLock { $0 }
    let counts = try await laneCounts()
    let gaps = try await table.settings.journal.gaps()
    let accounts = table.healths.values.map { RelayStatus.Account($0.account, $0.snapshot) }
    let lanes = counts.map { lane, counts in
      RelayStatus.Lane(
        bridge: lane.bridge, destination: lane.destination, pending: counts.pending, waiting: counts.waiting,
        dead: counts.dead, oldest: counts.oldest?.iso8601, parked: table.lanes[lane] == nil,
        stopped: stopped(lane).map { Self.whyStopped(until: $0) })
    }
    return RelayStatus(
      accounts: accounts.sorted { $0.name < $1.name },
      lanes: lanes.sorted { ($0.bridge, $0.destination) < ($1.bridge, $1.destination) },
      gaps: gaps.map { account, gap in
        RelayStatus.Gap(
          address: Address(account: account, channel: gap.channel), start: gap.start.iso8601, end: gap.end.iso8601)
      })
  }

  /// Of every lane that is configured or has something left.
  func laneCounts() async throws(FerryError) -> [LaneID: LaneCounts] {
    let table = table.withLock { $0 }
    var counts = try await table.settings.journal.counts()
    for lane in table.lanes.keys where counts[lane] == nil { counts[lane] = LaneCounts() }
    return counts
  }

  /// Every lane there is.
  var laneIDs: Set<LaneID> { Set(table.withLock { $0.lanes.keys }) }

  /// `stop` has been called.
  var isStopping: Bool { hasStopped.withLock { $0 } }

  func wake(_ lanes: Set<LaneID>) {
    guard !lanes.isEmpty else { return }
    let signals = table.withLock { table in lanes.compactMap { table.lanes[$0]?.signal } }
    for signal in signals { _ = signal.offer(()) }
  }

}

extension Relay.LaneRun {
  /// Lets it end after the send that it is making.
  func end() {
    stop.stop()
    signal.finish()
  }
}
