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
  private let statuses: [AccountName: AccountStatus]
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
    typing = TypingMirror(
      router: router, providers: settings.accounts, clock: settings.clock, metrics: settings.metrics)
    signals = Dictionary(uniqueKeysWithValues: router.lanes.map { ($0, BoundedChannel(capacity: 1)) })
    stops = Dictionary(uniqueKeysWithValues: router.lanes.map { ($0, StopSignal()) })
    let router = router
    statuses = Dictionary(
      uniqueKeysWithValues: settings.accounts.map { name, provider in
        let isSource = provider.capabilities.receives && !router.sources(of: name).isEmpty
        return (name, AccountStatus(isSource ? .connecting : .idle))
      })
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
        guard !channels.isEmpty, provider.capabilities.receives, let status = statuses[name] else { continue }
        group.addTask { await self.runSource(name, provider, channels, status) }
        if provider.capabilities.history == .none {
          group.addTask { await self.noteListening(name, channels, status) }
        }
      }
    }
  }

  private func runSource(
    _ name: AccountName, _ provider: any ChatProvider, _ channels: [ChannelID], _ status: AccountStatus
  ) async {
    let inbox = AccountInbox(
      account: name, journal: settings.journal, router: router, typingMirror: typing,
      wake: { self.wake($0) }, status: status,
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
        let phase: ConnectionState.Phase = error.code == .badCredentials ? .badCredentials : .degraded
        inbox.connection(ConnectionState(phase, reason: error.message))
        // Nothing mends this but a person, who may mend it at the other side: look again now and then.
        let delay = error.retry == .never ? Duration.seconds(60) : backoff.next()
        guard (try? await settings.clock.sleep(for: delay)) != nil else { return }
      }
    }
  }

  private func noteListening(_ name: AccountName, _ channels: [ChannelID], _ status: AccountStatus) async {
    while (try? await settings.clock.sleep(for: Self.heartbeat)) != nil {
      await noteSeen(name, channels, status)
    }
    await noteSeen(name, channels, status)
  }

  private func noteSeen(_ name: AccountName, _ channels: [ChannelID], _ status: AccountStatus) async {
    guard status.snapshot.connection.phase == .connected else { return }
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
      let provider = settings.accounts[id.destination.account]
    else { return nil }
    let renderer = Renderer(
      lane: id, bridge: bridge, destination: provider, sources: settings.accounts, journal: settings.journal,
      spool: settings.spool, publicURL: settings.publicURL, logger: settings.logger)
    return Lane(
      id: id, renderer: renderer, provider: provider, journal: settings.journal, signal: signal,
      stop: stop, wake: { self.wake($0) }, clock: settings.clock, logger: settings.logger,
      metrics: settings.metrics)
  }

  // MARK: Status

  /// What the relay is doing, for `ferry status`, the console and the metrics.
  package func status() async throws(FerryError) -> RelayStatus {
    let counts = try await settings.journal.counts()
    let gaps = try await settings.journal.gaps()
    let accounts = statuses.map { name, status in
      let snapshot = status.snapshot
      return RelayStatus.Account(
        name: name, state: snapshot.connection.phase.rawValue, reason: snapshot.connection.reason,
        lastEvent: snapshot.lastEvent?.iso8601)
    }
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

/// A stable JSON document: the answer of the relay's `/status`.
package struct RelayStatus: Codable, Sendable {
  package struct Account: Codable, Sendable {
    package var name: AccountName
    package var state: String
    package var reason: String?
    package var lastEvent: String?
  }

  package struct Lane: Codable, Sendable {
    package var bridge: BridgeName
    package var destination: Address
    package var pending: Int
    package var waiting: Int
    package var dead: Int
  }

  package struct Gap: Codable, Sendable {
    package var address: Address
    package var start: String
    package var end: String
  }

  package var accounts: [Account]
  package var lanes: [Lane]
  package var gaps: [Gap]
}
