import FerryCore
import FerryRuntime
import FerryStorage

/// The last minutes of the relay's work, for small plots: one sample every few seconds, in memory, bounded.
final class RelayHistory: Sendable {
  /// What happened during one step.
  struct Sample: Sendable {
    var received: [AccountName: Int] = [:]
    var sent: [LaneID: Int] = [:]
    /// Milliseconds that the oldest undelivered has waited at the step's end.
    var lag: [LaneID: Int64] = [:]
  }

  private struct State: Sendable {
    var samples: [Sample] = []
    /// Steps since the start: the number of the last sample.
    var tick = 0
    var received: [AccountName: Double] = [:]
    var sent: [LaneID: Double] = [:]
  }

  static let step = Duration.seconds(5)
  /// Ten minutes of them.
  static let capacity = 120

  private let state = Locked(State())

  /// Takes the counters as they stand, and how long each lane's oldest delivery has waited.
  func sample(received: [AccountName: Double], sent: [LaneID: Double], lag: [LaneID: Int64]) {
    state.withLock { state in
      var sample = Sample(lag: lag)
      for (account, total) in received {
        let new = Int(max(0, total - (state.received[account] ?? 0)))
        if new > 0 { sample.received[account] = new }
      }
      for (lane, total) in sent {
        let new = Int(max(0, total - (state.sent[lane] ?? 0)))
        if new > 0 { sample.sent[lane] = new }
      }
      state.received = received
      state.sent = sent
      state.samples.append(sample)
      if state.samples.count > Self.capacity { state.samples.removeFirst() }
      state.tick += 1
    }
  }

  /// The samples there are, oldest first, and the number of the last.
  var samples: (tick: Int, samples: [Sample]) { state.withLock { ($0.tick, $0.samples) } }

  var last: (tick: Int, sample: Sample) { state.withLock { ($0.tick, $0.samples.last ?? Sample()) } }
}

/// The answer of `/api/history`: for each account and lane one number a sample, oldest first.
struct ConsoleHistory: Encodable {
  struct Account: Encodable {
    let name: AccountName
    let received: [Int]
    let sent: [Int]
  }

  struct Lane: Encodable {
    let bridge: BridgeName
    let to: Address
    let sent: [Int]
    let lag: [Int64]
  }

  /// Milliseconds between samples.
  let step: Int64
  let tick: Int
  let accounts: [Account]
  let lanes: [Lane]

  init(_ history: RelayHistory, accounts: [AccountName], lanes: [LaneID]) {
    let (tick, samples) = history.samples
    step = RelayHistory.step.milliseconds
    self.tick = tick
    self.accounts = accounts.map { account in
      Account(
        name: account, received: samples.map { $0.received[account] ?? 0 },
        sent: samples.map { sample in sample.sent(to: account) })
    }
    self.lanes = lanes.map { lane in
      Lane(
        bridge: lane.bridge, to: lane.destination, sent: samples.map { $0.sent[lane] ?? 0 },
        lag: samples.map { $0.lag[lane] ?? 0 })
    }
  }
}

extension RelayHistory.Sample {
  func sent(to account: AccountName) -> Int {
    sent.reduce(0) { sum, each in each.key.destination.account == account ? sum + each.value : sum }
  }
}
