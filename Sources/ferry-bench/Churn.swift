import FerryCore
import FerryRuntime
import FoundationEssentials
import Glibc

/// Thousands of sockets that subscribe, leave and come back for minutes: what does the server keep of them?
actor Churn {
  private let loop: LoopExecutor
  private let port: UInt16
  private var wires: [Wire?]
  private var subscriptions: [WordCounter]
  private var established: [WordCounter]
  private var reconnects = 0
  private var resubscriptions = 0
  private var failures = 0

  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  private init(port: UInt16, sockets: Int) throws(FerryError) {
    loop = try LoopExecutor(name: "bench")
    self.port = port
    wires = Array(repeating: nil, count: sockets)
    subscriptions = Array(repeating: WordCounter("succeeded"), count: sockets)
    established = Array(repeating: WordCounter("stablished"), count: sockets)
  }

  /// For `FERRY_BENCH_CHURN` seconds, 60 if it is not set.
  static func run(sockets: Int) async throws {
    let seconds = ProcessInfo.processInfo.environment["FERRY_BENCH_CHURN"].flatMap { Double($0) } ?? 60
    let child = try Child("serve", config: Configurations.serve)
    let churn = try Churn(port: child.port("pusher"), sockets: sockets)
    try await churn.connectAll()
    // What the first minute, or quarter, allocates for reuse is not growth.
    try await churn.turn(over: min(60, seconds / 4))
    let settled = child.residentMB
    try await churn.turn(over: seconds - min(60, seconds / 4))
    let end = child.residentMB
    let counts = await churn.counts
    await churn.close()
    Report(
      benchmark: "\(sockets) sockets coming and going for \(Int(seconds)) s",
      values: [
        "resident_mb_settled": settled, "resident_mb_end": end, "peak_mb": child.peakMB,
        "reconnects": Double(counts.reconnects), "resubscriptions": Double(counts.resubscriptions),
        "failures": Double(counts.failures), "connected_at_end": Double(counts.connected),
      ]
    ).print()
    await child.stop()
  }

  private var counts: (reconnects: Int, resubscriptions: Int, failures: Int, connected: Int) {
    (reconnects, resubscriptions, failures, subscriptions.count { $0.count > 0 })
  }

  private func connectAll() async throws {
    for index in wires.indices {
      try connect(index)
      if index % 64 == 63 { try await SystemClock().sleep(for: .milliseconds(5)) }
    }
    while subscriptions.contains(where: { $0.count == 0 }) { try await SystemClock().sleep(for: .milliseconds(20)) }
  }

  /// 200 sockets a second come back, ten times as many leave their channel and join again.
  private func turn(over seconds: Double) async throws {
    let end = ContinuousClock.now + .seconds(seconds)
    while ContinuousClock.now < end {
      for _ in 0..<20 {
        let index = Int.random(in: wires.indices)
        wires[index]?.close()
        try connect(index)
        reconnects += 1
      }
      for _ in 0..<200 {
        let index = Int.random(in: wires.indices)
        guard subscriptions[index].count > 0 else { continue }
        wires[index]?.send(
          WebSocketText.frame(#"{"event":"pusher:unsubscribe","data":{"channel":"\#(channel(index))"}}"#))
        subscribe(index)
        resubscriptions += 1
      }
      try await SystemClock().sleep(for: .milliseconds(100))
    }
  }

  private func connect(_ index: Int) throws {
    subscriptions[index] = WordCounter("succeeded")
    established[index] = WordCounter("stablished")
    let wire = try Wire(port: port, loop: loop) { [unowned self] bytes in
      self.assumeIsolated { $0.received(bytes, index) }
    }
    wires[index] = wire
    wire.send(WebSocketText.upgrade("/app/bench-key?protocol=7&client=bench&version=1"))
  }

  private func channel(_ index: Int) -> String { "channel-\(index % 500)" }

  private func subscribe(_ index: Int) {
    wires[index]?.send(WebSocketText.frame(#"{"event":"pusher:subscribe","data":{"channel":"\#(channel(index))"}}"#))
  }

  private func received(_ bytes: [UInt8]?, _ index: Int) {
    guard let bytes else {
      failures += 1
      return
    }
    if established[index].count == 0 {
      established[index].feed(bytes)
      if established[index].count > 0 { subscribe(index) }
    }
    subscriptions[index].feed(bytes)
  }

  private func close() {
    for wire in wires { wire?.close() }
    loop.stop()
  }
}
