import FerryCore
import FerryRuntime
import FerryStorage

/// Whether an account's lanes may send, judged from how their sends fared: a pure value (a circuit breaker).
///
/// While sends fail now and then, each lane waits for itself. Once several fail in a row, in more than one lane, it is the
/// account that fails and not a channel: then all lanes wait together, one of them tries after a pause that grows, in
/// turn, and its first success lets all go on. Rejected credentials close an account at once.
struct Circuit: Sendable {
  enum State: Sendable, Equatable {
    case closed
    /// Nobody sends before then.
    case open(until: Timestamp)
    /// One lane tries, all others wait.
    case probing(LaneID)
  }

  enum Answer: Equatable {
    case go
    /// Ask again after this long, or when told; without a time only when told.
    case wait(Duration?)
  }

  /// So many failures in a row, in two lanes at least, are the account's.
  static let threshold = 3

  private(set) var state = State.closed
  /// In a row, over all lanes.
  private(set) var failures = 0
  private(set) var lastError: FerryError?
  private var failing: Set<LaneID> = []
  private var backoff = Backoff(base: .seconds(1), limit: .seconds(60))
  /// Those that wait, in the order in which they may try. An entry whose ticket is not its lane's is out of date.
  private var queue: [(lane: LaneID, ticket: UInt64)] = []
  private var waiting: [LaneID: UInt64] = [:]
  private var nextTicket: UInt64 = 0

  var isClosed: Bool { state == .closed }
  var waitingCount: Int { waiting.count }

  /// May this lane send now?
  mutating func ask(_ lane: LaneID, at now: Timestamp) -> Answer {
    switch state {
    case .closed: return .go
    case .probing(let other):
      if other == lane { return .go }
      enqueue(lane)
      return .wait(nil)
    case .open(let until):
      enqueue(lane)
      guard head == lane else { return .wait(nil) }
      guard until <= now else { return .wait(.milliseconds(until.milliseconds - now.milliseconds)) }
      removeHead()
      state = .probing(lane)
      return .go
    }
  }

  /// A send was answered: by success, or by a refusal of just this message. Returns whom to tell that all may go.
  mutating func succeeded(_ lane: LaneID) -> [LaneID] {
    guard failures > 0 || state != .closed else { return [] }
    let told = Array(waiting.keys)
    self = Circuit()
    return told
  }

  /// A send failed for a reason that is not its own. Returns whom to tell to ask again.
  mutating func failed(
    _ lane: LaneID, _ error: FerryError, at now: Timestamp, using random: inout some RandomNumberGenerator
  ) -> [LaneID] {
    failures += 1
    failing.insert(lane)
    lastError = error
    let isAccounts = error.code == .badCredentials || (failures >= Self.threshold && failing.count > 1)
    switch state {
    case .closed:
      guard isAccounts else { return [] }
    case .open:
      // It was under way when the others failed. The pause stands, unless this one was asked to wait longer.
      guard case .after(let asked) = error.retry else { return [] }
      extend(to: now.advanced(by: asked))
      return tellHead()
    case .probing(let prober):
      guard prober == lane else { return [] }
    }
    var pause = max(backoff.next(using: &random), .milliseconds(50))
    if error.code == .badCredentials { pause = max(pause, .seconds(10)) }
    if case .after(let asked) = error.retry { pause = max(pause, asked) }
    state = .open(until: now.advanced(by: pause))
    return tellHead()
  }

  /// The lane neither sends nor waits any more. Returns whom to tell to ask again.
  mutating func left(_ lane: LaneID, at now: Timestamp) -> [LaneID] {
    let wasHead = head == lane
    waiting[lane] = nil
    if state == .probing(lane) {
      // It found out nothing, so the next one may try at once.
      state = .open(until: now)
      return tellHead()
    }
    return wasHead ? tellHead() : []
  }

  private mutating func extend(to time: Timestamp) {
    guard case .open(let until) = state, until < time else { return }
    state = .open(until: time)
  }

  /// It sleeps until the pause is over, and must learn of a new one.
  private func tellHead() -> [LaneID] { head.map { [$0] } ?? [] }

  private var head: LaneID? { queue.first(where: isCurrent)?.lane }

  private func isCurrent(_ entry: (lane: LaneID, ticket: UInt64)) -> Bool { waiting[entry.lane] == entry.ticket }

  private mutating func enqueue(_ lane: LaneID) {
    guard waiting[lane] == nil else { return }
    if queue.count > 2 * waiting.count + 8 { queue = queue.filter(isCurrent) }
    nextTicket += 1
    waiting[lane] = nextTicket
    queue.append((lane, nextTicket))
  }

  private mutating func removeHead() {
    guard let index = queue.firstIndex(where: isCurrent) else { return }
    waiting[queue[index].lane] = nil
    queue.removeSubrange(...index)
  }
}

extension FerryError {
  /// Whether it tells that the account cannot be reached or used, rather than that it refuses one thing. Nil when it
  /// tells nothing of the account.
  var isAccounts: Bool? {
    switch code {
    case .storage, .cancelled, .badConfiguration: nil
    case .unavailable, .timedOut, .rateLimited, .badCredentials, .outcomeUnknown, .addressRefused, .internal: true
    default: false
    }
  }
}
