import FerryCore
import FerryRuntime
import FerryStorage

/// What the console shows live: the answer of `/api/status`. Times are in milliseconds since 1970.
struct ConsoleStatus: Encodable, Sendable {
  struct Account: Encodable, Sendable {
    let name: AccountName
    let provider: String?
    let state: String
    let since: Int64
    let reason: String?
    let lastIn: Int64?
    let lastOut: Int64?
    let lastError: String?
    let lastErrorAt: Int64?
    /// During the last step.
    let received: Int
    let sent: Int
  }

  struct Bridge: Encodable, Sendable {
    struct Route: Encodable, Sendable {
      let from: Address
      let to: [Address]
    }

    let name: BridgeName
    let routes: [Route]
    let mirror: [String]
  }

  struct Lane: Encodable, Sendable {
    let bridge: BridgeName
    let to: Address
    let pending: Int
    let waiting: Int
    let dead: Int
    /// When its oldest undelivered event was accepted.
    let oldest: Int64?
    let attempts: Int
    let error: String?
    /// When the lane tries again, while it pauses.
    let next: Int64?
    /// During the last step.
    let sent: Int
    /// No longer configured: what is left waits until it is again.
    let parked: Bool
    /// A loop has stopped it: until when, unless a person decides before.
    let stopped: Int64?
  }

  struct Gap: Encodable, Sendable {
    let address: Address
    let start: Int64
    let end: Int64
  }

  let time: Int64
  /// The number of the last sample of `/api/history`, which `received` and `sent` tell.
  let tick: Int
  let accounts: [Account]
  let bridges: [Bridge]
  /// At most `laneLimit`, those that wait longest first.
  let lanes: [Lane]
  let laneCount: Int
  /// The newest last.
  let gaps: [Gap]
  let dead: Int
  let lastEvent: Int64

  /// Beyond this many, lanes that are well are left out.
  static let laneLimit = 2000
}

extension ConsoleStatus.Account {
  init(_ health: AccountHealth, provider: String?, received: Int, sent: Int) {
    let snapshot = health.snapshot
    name = health.account
    self.provider = provider
    state = snapshot.state.phase.rawValue
    since = snapshot.since.milliseconds
    reason = snapshot.state.reason
    lastIn = snapshot.lastIn?.milliseconds
    lastOut = snapshot.lastOut?.milliseconds
    lastError = snapshot.lastError?.text
    lastErrorAt = snapshot.lastError?.time.milliseconds
    self.received = received
    self.sent = sent
  }
}

extension ConsoleStatus.Bridge {
  init(_ bridge: Bridge) {
    name = bridge.name
    routes = bridge.routes.sorted { $0.key < $1.key }.map { Route(from: $0.key, to: $0.value) }
    mirror = Bridge.Mirrored.allCases.filter { bridge.mirror.contains($0) }.map(\.rawValue)
  }
}

extension ConsoleStatus.Lane {
  init(_ id: LaneID, _ counts: LaneCounts, next: Timestamp?, sent: Int, isParked: Bool, stopped end: Timestamp?) {
    let queue = counts.queue
    bridge = id.bridge
    to = id.destination
    pending = counts.pending
    waiting = counts.waiting
    dead = counts.dead
    oldest = queue?.oldest.milliseconds
    attempts = queue?.attempts ?? 0
    error = queue?.error
    self.next = queue == nil ? nil : next?.milliseconds
    self.sent = sent
    parked = isParked
    stopped = end?.milliseconds
  }

  /// Those that wait longest come first, then those with dead letters.
  func isWorse(than other: ConsoleStatus.Lane) -> Bool {
    if (stopped == nil) != (other.stopped == nil) { return stopped != nil }
    if oldest != other.oldest { return (oldest ?? .max) < (other.oldest ?? .max) }
    if dead != other.dead { return dead > other.dead }
    return (bridge, to) < (other.bridge, other.to)
  }
}

extension Relay {
  /// What the console shows, as it is now.
  func consoleStatus(providers: [AccountName: String]) async throws(FerryError) -> ConsoleStatus {
    let journal = settings.journal
    let counts = try await journal.counts()
    let gaps = try await journal.gaps()
    let lastEvent = try await journal.lastEvent()
    let (tick, sample) = history.last
    let (healths, running, bridges) = table.withLock { ($0.healths, Set($0.lanes.keys), $0.settings.bridges) }
    let lanes = running.union(counts.keys).map { id in
      ConsoleStatus.Lane(
        id, counts[id] ?? LaneCounts(), next: healths[id.destination.account]?.nextAttempt(of: id),
        sent: sample.sent[id] ?? 0, isParked: !running.contains(id), stopped: stopped(id))
    }
    return ConsoleStatus(
      time: settings.clock.now().milliseconds, tick: tick,
      accounts: healths.values.sorted { $0.account < $1.account }.map { health in
        ConsoleStatus.Account(
          health, provider: providers[health.account], received: sample.received[health.account] ?? 0,
          sent: sample.sent(to: health.account))
      },
      bridges: bridges.map { ConsoleStatus.Bridge($0) },
      lanes: Array(lanes.sorted { $0.isWorse(than: $1) }.prefix(ConsoleStatus.laneLimit)), laneCount: lanes.count,
      gaps: gaps.map { account, gap in
        ConsoleStatus.Gap(
          address: Address(account: account, channel: gap.channel), start: gap.start.milliseconds,
          end: gap.end.milliseconds)
      },
      dead: counts.values.reduce(0) { $0 + $1.dead }, lastEvent: lastEvent)
  }

  /// Takes a sample every step, until cancelled.
  func keepHistory() async {
    while (try? await settings.clock.sleep(for: RelayHistory.step)) != nil {
      guard let queues = try? await settings.journal.queues() else { continue }
      let now = settings.clock.now().milliseconds
      let metrics = settings.metrics
      history.sample(
        received: Dictionary(
          uniqueKeysWithValues: settings.accounts.keys.map { name in
            (name, metrics.value("ferry_events_accepted_total", ["account": name.rawValue]))
          }),
        sent: Dictionary(
          uniqueKeysWithValues: laneIDs.map { ($0, metrics.value("ferry_sends_total", ["lane": $0.description])) }),
        lag: queues.mapValues { max(0, now - $0.oldest.milliseconds) })
    }
  }
}
