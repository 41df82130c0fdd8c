import FerryCore
import FerryRuntime
import FerryStorage

/// What the console shows live: the answer of `/api/status`. Times are in milliseconds since 1970.
struct ConsoleStatus: Encodable, Sendable {
  struct Account: Encodable, Sendable {
    let name: AccountName
    let provider: String?
    let state: String
    let since: Int64?
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

extension Relay {
  /// What the console shows, as it is now.
  func consoleStatus(providers: [AccountName: String]) async throws(FerryError) -> ConsoleStatus {
    let status = try await status()
    let queues = try await settings.journal.queues()
    let gaps = try await settings.journal.gaps()
    let lastEvent = try await settings.journal.lastEvent()
    let (tick, sample) = history.last
    let lanes = status.lanes.map { lane in
      let id = LaneID(bridge: lane.bridge, destination: lane.destination)
      let queue = queues[id]
      return ConsoleStatus.Lane(
        bridge: lane.bridge, to: lane.destination, pending: queue?.pending ?? 0, waiting: lane.waiting,
        dead: lane.dead, oldest: queue?.oldest.milliseconds, attempts: queue?.attempts ?? 0, error: queue?.error,
        next: nil, sent: sample.sent[id] ?? 0)
    }
    .sorted {
      ($0.oldest ?? .max, $0.dead == 0 ? 1 : 0, $0.bridge, $0.to) < (
        $1.oldest ?? .max, $1.dead == 0 ? 1 : 0, $1.bridge, $1.to
      )
    }
    return ConsoleStatus(
      time: settings.clock.now().milliseconds, tick: tick,
      accounts: status.accounts.map { account in
        ConsoleStatus.Account(
          name: account.name, provider: providers[account.name], state: account.state, since: nil,
          reason: account.reason, lastIn: nil, lastOut: nil, lastError: nil,
          lastErrorAt: nil, received: sample.received[account.name] ?? 0, sent: sample.sent(to: account.name))
      },
      bridges: settings.bridges.map { bridge in
        ConsoleStatus.Bridge(
          name: bridge.name,
          routes: bridge.routes.sorted { $0.key < $1.key }.map {
            ConsoleStatus.Bridge.Route(from: $0.key, to: $0.value)
          },
          mirror: bridge.mirror.map(\.rawValue).sorted())
      },
      lanes: Array(lanes.prefix(ConsoleStatus.laneLimit)), laneCount: lanes.count,
      gaps: gaps.suffix(100).map { account, gap in
        ConsoleStatus.Gap(
          address: Address(account: account, channel: gap.channel), start: gap.start.milliseconds,
          end: gap.end.milliseconds)
      },
      dead: status.lanes.reduce(0) { $0 + $1.dead }, lastEvent: lastEvent)
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
