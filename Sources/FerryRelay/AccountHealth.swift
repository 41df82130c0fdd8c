import FerryCore
import FerryRuntime
import FerryStorage

/// What an account is doing and how it fares: told by its adapter about what comes in, by its lanes about what goes out.
/// Lanes pass here before they send, and wait here while the account fails.
final class AccountHealth: Sendable {
  struct Snapshot: Sendable {
    /// As its adapter says.
    var connection: ConnectionState
    /// When its state last changed.
    var since: Timestamp
    var lastIn: Timestamp?
    var lastOut: Timestamp?
    var lastError: (time: Timestamp, text: String)?
    var circuit = Circuit()

    /// As people are told: also what the lanes have found out.
    var state: ConnectionState {
      guard circuit.failures >= Circuit.threshold || !circuit.isClosed, let error = circuit.lastError else {
        return connection
      }
      if connection.phase == .badCredentials || connection.phase == .stopped { return connection }
      let reason = connection.phase == .degraded ? connection.reason : nil
      return ConnectionState(
        error.code == .badCredentials ? .badCredentials : .degraded, reason: reason ?? "sending fails: \(error.message)"
      )
    }

    /// When a waiting lane tries next; nil when none waits.
    var nextAttempt: Timestamp? {
      if case .open(let until) = circuit.state { until } else { nil }
    }
  }

  let account: AccountName
  private let clock: any FerryClock
  private let logger: Logger
  private let metrics: Metrics
  private let state: Locked<Snapshot>
  /// Lanes that wait, or have.
  private let signals = Locked<[LaneID: BoundedChannel<Void>]>([:])
  /// Until when lanes that wait for themselves do so.
  private let pauses = Locked<[LaneID: Timestamp]>([:])

  init(
    _ account: AccountName, _ phase: ConnectionState.Phase, clock: any FerryClock, logger: Logger, metrics: Metrics
  ) {
    self.account = account
    self.clock = clock
    self.logger = logger
    self.metrics = metrics
    state = Locked(Snapshot(connection: ConnectionState(phase), since: clock.now()))
    tell(nil, ConnectionState(phase))
  }

  var snapshot: Snapshot { state.withLock { $0 } }

  // MARK: Coming in

  func received() {
    let now = clock.now()
    state.withLock { $0.lastIn = now }
  }

  func connection(_ connection: ConnectionState) {
    change { snapshot in
      var connection = connection
      // Trying once more after a failure is no news: it would hide for a moment what is wrong, and since when.
      if connection.phase == .connecting, connection.reason != nil || snapshot.connection.phase == .degraded {
        connection = ConnectionState(.degraded, reason: connection.reason ?? snapshot.connection.reason)
      }
      snapshot.connection = connection
    }
  }

  func failedToConnect(_ error: FerryError) {
    let now = clock.now()
    change { snapshot in
      snapshot.connection = ConnectionState(
        error.code == .badCredentials ? .badCredentials : .degraded, reason: error.message)
      snapshot.lastError = (now, error.description)
    }
  }

  // MARK: Going out

  var isSending: Bool { state.withLock { $0.circuit.isClosed } }

  /// Returns true once this lane may send, and false when it is to end. What it then does must end with `left`.
  func pass(_ lane: LaneID, _ stop: StopSignal) async -> Bool {
    while !Task.isCancelled, !stop.isStopping {
      let now = clock.now()
      switch state.withLock({ $0.circuit.ask(lane, at: now) }) {
      case .go: return true
      case .wait(let duration):
        await stop.sleep(for: duration ?? .seconds(3600), on: clock, or: signal(of: lane))
      }
    }
    left(lane)
    return false
  }

  /// The lane waits by itself, whatever the account does.
  func pauses(_ lane: LaneID, for delay: Duration) {
    let until = clock.now().advanced(by: delay)
    pauses.withLock { $0[lane] = until }
  }

  /// When a lane with something to deliver tries next; nil when it is at it.
  func nextAttempt(of lane: LaneID) -> Timestamp? {
    let now = clock.now()
    let own = pauses.withLock { $0[lane] } ?? now
    let next = max(own, snapshot.nextAttempt ?? now)
    return next > now ? next : nil
  }

  func left(_ lane: LaneID) {
    let now = clock.now()
    wake(state.withLock { $0.circuit.left(lane, at: now) })
  }

  /// The service answered a send: by doing it, or by refusing just this one.
  func answered(_ lane: LaneID, hasActed: Bool) {
    let now = clock.now()
    let wasFailing = state.withLock { snapshot in
      if hasActed { snapshot.lastOut = now }
      return snapshot.circuit.failures > 0
    }
    guard wasFailing else { return }
    var woken: [LaneID] = []
    change { woken = $0.circuit.succeeded(lane) }
    wake(woken)
  }

  /// A refusal of just this one is an answer to a send only when it was sent: `isWriting`.
  func failed(_ lane: LaneID, _ error: FerryError, isWriting: Bool) {
    guard let isAccounts = error.isAccounts else { return }
    let now = clock.now()
    if !isAccounts {
      state.withLock { $0.lastError = (now, error.description) }
      return isWriting ? answered(lane, hasActed: false) : ()
    }
    var woken: [LaneID] = []
    change { snapshot in
      snapshot.lastError = (now, error.description)
      var random = Chance()
      woken = snapshot.circuit.failed(lane, error, at: now, using: &random)
    }
    metrics.add(to: "ferry_account_failures_total", ["account": account.rawValue, "reason": error.code.label])
    wake(woken)
  }

  private func signal(of lane: LaneID) -> BoundedChannel<Void> {
    signals.withLock { signals in
      if let signal = signals[lane] { return signal }
      let signal = BoundedChannel<Void>(capacity: 1)
      signals[lane] = signal
      return signal
    }
  }

  private func wake(_ lanes: [LaneID]) {
    guard !lanes.isEmpty else { return }
    for signal in signals.withLock({ signals in lanes.compactMap { signals[$0] } }) { _ = signal.offer(()) }
  }

  // MARK: Telling

  private func change(_ body: (inout Snapshot) -> Void) {
    let now = clock.now()
    let (old, new) = state.withLock { snapshot in
      let old = snapshot.state
      body(&snapshot)
      if snapshot.state.phase != old.phase { snapshot.since = now }
      return (old, snapshot.state)
    }
    if old != new { tell(old, new) }
  }

  private static let phases: [ConnectionState.Phase] = [
    .connecting, .connected, .degraded, .badCredentials, .stopped, .idle,
  ]

  private func tell(_ old: ConnectionState?, _ new: ConnectionState) {
    if old != nil {
      logger.notice("\(account) is \(new.phase.rawValue)\(new.reason.map { ": \($0)" } ?? "")")
    }
    metrics.set("ferry_account_connected", ["account": account.rawValue], to: new.phase == .connected ? 1 : 0)
    for phase in Self.phases {
      metrics.set(
        "ferry_account_state", ["account": account.rawValue, "state": phase.rawValue], to: phase == new.phase ? 1 : 0)
    }
  }
}
