package import FerryCore
package import FerryRuntime
package import FerryStorage

/// Runs bridges: keeps every account connected, journals what they say, and delivers it lane by lane.
package final class Relay: Sendable {
  package struct Settings: Sendable {
    package var accounts: [AccountName: any ChatProvider]
    package var bridges: [Bridge]
    package var journal: Journal
    package var spool: Spool
    /// Where the relay's listener is reached from outside, for links to files. No slash at the end.
    package var publicURL: String
    package var clock: any FerryClock
    package var logger: Logger
    package var metrics: Metrics

    package init(
      accounts: [AccountName: any ChatProvider], bridges: [Bridge], journal: Journal, spool: Spool,
      publicURL: String, clock: any FerryClock = SystemClock(), logger: Logger = .silent,
      metrics: Metrics = Metrics()
    ) {
      self.accounts = accounts
      self.bridges = bridges
      self.journal = journal
      self.spool = spool
      self.publicURL = publicURL
      self.clock = clock
      self.logger = logger
      self.metrics = metrics
    }
  }

  let settings: Settings
  private let router: Router
  private let typing: TypingMirror
  private let signals: [LaneID: BoundedChannel<Void>]
  let healths: [AccountName: AccountHealth]
  private let stops: [LaneID: StopSignal]
  /// The last minutes, for the console.
  let history = RelayHistory()
  private let hasStopped = Locked(false)

  /// How often it is noted that a source without history is being listened to: the most by which a gap is
  /// reported too long.
  private static let heartbeat = Duration.seconds(15)

  /// Throws `badConfiguration` when a bridge names an account that is not there.
  package init(_ settings: Settings) throws(FerryError) {
    self.settings = settings
    router = Router(settings.bridges)
    for bridge in settings.bridges {
      for address in bridge.routes.flatMap({ [$0.key] + $0.value }) where settings.accounts[address.account] == nil {
        throw FerryError(.badConfiguration, "Bridge \(bridge.name) names the account \(address.account), unknown here.")
      }
    }
    signals = Dictionary(uniqueKeysWithValues: router.lanes.map { ($0, BoundedChannel(capacity: 1)) })
    stops = Dictionary(uniqueKeysWithValues: router.lanes.map { ($0, StopSignal()) })
    let router = router
    let healths = Dictionary(
      uniqueKeysWithValues: settings.accounts.map { name, provider in
        let isSource = provider.capabilities.receives && !router.sources(of: name).isEmpty
        return (
          name,
          AccountHealth(
            name, isSource ? .connecting : .idle, clock: settings.clock, logger: settings.logger,
            metrics: settings.metrics)
        )
      })
    self.healths = healths
    typing = TypingMirror(
      router: router, providers: settings.accounts, clock: settings.clock, metrics: settings.metrics,
      isSending: { healths[$0]?.isSending ?? false })
  }

  /// Runs until `stop` has been called and what was being sent is settled, or the task is cancelled, which leaves
  /// sends under way to be settled at the next start. One account's or lane's failure never ends the others.
  package func run() async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await self.runSources() }
      await withDiscardingTaskGroup { lanes in
        for (id, signal) in signals {
          guard let lane = makeLane(id, signal) else { continue }
          lanes.addTask { await lane.run() }
        }
      }
      group.cancelAll()
    }
  }

  /// Lets every lane end after the send it is making. `run` then returns.
  package func stop() {
    hasStopped.withLock { $0 = true }
    for stop in stops.values { stop.stop() }
    for signal in signals.values { signal.finish() }
  }

  // MARK: Sources

  private func runSources() async {
    await withDiscardingTaskGroup { group in
      group.addTask { await self.typing.run() }
      group.addTask { await self.keepHistory() }
      for (name, provider) in settings.accounts {
        let channels = router.sources(of: name)
        guard !channels.isEmpty, provider.capabilities.receives, let health = healths[name] else { continue }
        group.addTask { await self.runSource(name, provider, channels, health) }
        if provider.capabilities.history == .none {
          group.addTask { await self.noteListening(name, channels, health) }
        }
      }
    }
  }

  private func runSource(
    _ name: AccountName, _ provider: any ChatProvider, _ channels: [ChannelID], _ health: AccountHealth
  ) async {
    let inbox = AccountInbox(
      account: name, journal: settings.journal, router: router, typingMirror: typing,
      wake: { self.wake($0) }, health: health,
      clock: settings.clock, logger: settings.logger, metrics: settings.metrics)
    var backoff = Backoff(base: .seconds(1), limit: .seconds(60))
    while !Task.isCancelled {
      do throws(FerryError) {
        let cursors = try await settings.journal.cursors(of: name)
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
    while (try? await settings.clock.sleep(for: Self.heartbeat)) != nil {
      await noteSeen(name, channels, health)
    }
    await noteSeen(name, channels, health)
  }

  private func noteSeen(_ name: AccountName, _ channels: [ChannelID], _ health: AccountHealth) async {
    guard health.snapshot.connection.phase == .connected else { return }
    for channel in channels {
      do throws(FerryError) {
        try await settings.journal.move(to: nil, name, channel)
      } catch {
        settings.logger.warning("\(name):\(channel): \(error)")
      }
    }
  }

  // MARK: Lanes

  private func makeLane(_ id: LaneID, _ signal: BoundedChannel<Void>) -> Lane? {
    guard let bridge = router.bridges[id.bridge], let stop = stops[id],
      let provider = settings.accounts[id.destination.account], let health = healths[id.destination.account]
    else { return nil }
    let renderer = Renderer(
      lane: id, bridge: bridge, destination: provider, sources: settings.accounts, journal: settings.journal,
      spool: settings.spool, publicURL: settings.publicURL, logger: settings.logger)
    return Lane(
      id: id, renderer: renderer, provider: provider, journal: settings.journal, signal: signal,
      stop: stop, health: health, wake: { self.wake($0) }, clock: settings.clock, logger: settings.logger,
      metrics: settings.metrics)
  }

  // MARK: Status

  /// What the relay is doing, for `ferry status`, the console and the metrics.
  package func status() async throws(FerryError) -> RelayStatus {
    let counts = try await settings.journal.counts()
    let gaps = try await settings.journal.gaps()
    let accounts = healths.values.map { RelayStatus.Account($0.account, $0.snapshot) }
    let lanes = signals.keys.map { lane in
      let counts = counts[lane] ?? LaneCounts()
      return RelayStatus.Lane(
        bridge: lane.bridge, destination: lane.destination, pending: counts.pending, waiting: counts.waiting,
        dead: counts.dead)
    }
    return RelayStatus(
      accounts: accounts.sorted { $0.name < $1.name },
      lanes: lanes.sorted { ($0.bridge, $0.destination) < ($1.bridge, $1.destination) },
      gaps: gaps.suffix(100).map { account, gap in
        RelayStatus.Gap(
          address: Address(account: account, channel: gap.channel), start: gap.start.iso8601, end: gap.end.iso8601)
      })
  }

  /// Every lane there is.
  var laneIDs: Dictionary<LaneID, BoundedChannel<Void>>.Keys { signals.keys }

  /// `stop` has been called.
  var isStopping: Bool { hasStopped.withLock { $0 } }

  private func wake(_ lanes: Set<LaneID>) { for lane in lanes { _ = signals[lane]?.offer(()) } }

  /// After `Journal.retryDead`: lets the lanes look again.
  package func wakeAll() { for signal in signals.values { _ = signal.offer(()) } }
}
