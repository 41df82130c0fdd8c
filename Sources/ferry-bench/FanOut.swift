import FerryCore
import FerryRuntime
import Glibc

/// One publisher, many subscribers of one Pusher channel, with and without idle sockets beside.
actor FanOut {
  private let loop: LoopExecutor
  private let port: UInt16
  private var wires: [Wire] = []
  private var readers: [Reader] = []
  private var publisher: Wire?
  private var subscribed = 0
  private var delivered = 0
  private var answers = 0
  private var responses = WordCounter("HTTP/1.1 200")
  private var lost = false
  private var sentAt: [ContinuousClock.Instant] = []
  private var latencies: [Double] = []
  private var waiting: (condition: () -> Bool, continuation: CheckedContinuation<Void, Never>)?

  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  init(port: UInt16) throws(FerryError) {
    loop = try LoopExecutor(name: "bench")
    self.port = port
  }

  static func run(subscribers: Int, idle: Int, events: Int) async throws {
    let child = try Child("serve", config: Configurations.serve)
    let load = try FanOut(port: child.port("pusher"))
    let before = child.residentMB
    try await load.connect(subscribers: subscribers, idle: idle)
    let connected = child.residentMB
    let cpu = child.cpuMicroseconds
    let seconds = try await load.publish(events, to: subscribers)
    let deliveries = Double(await load.delivered)
    let latencies = await load.latencies
    Report(
      benchmark: "fan-out \(subscribers) subscribers, \(idle) idle",
      values: [
        "deliveries": deliveries, "expected": Double(subscribers * events), "per_second": deliveries / seconds,
        "cpu_us": (child.cpuMicroseconds - cpu) / deliveries, "p50_ms": percentile(latencies, 0.5),
        "p99_ms": percentile(latencies, 0.99), "resident_mb": connected, "resident_before_mb": before,
      ]
    ).print()
    await load.close()
    await child.stop()
  }

  private func connect(subscribers: Int, idle: Int) async throws {
    for index in 0..<(subscribers + idle) {
      readers.append(Reader(isSubscriber: index < subscribers))
      let wire = try Wire(port: port, loop: loop) { [unowned self] bytes in
        self.assumeIsolated { $0.received(bytes, index) }
      }
      wires.append(wire)
      wire.send(WebSocketText.upgrade("/app/bench-key?protocol=7&client=bench&version=1"))
      if index % 64 == 63 { await wait { self.subscribed > index - 64 } }
    }
    await wait { self.subscribed == subscribers + idle || self.lost }
    if lost { throw FerryError(.unavailable, "A subscriber lost its connection.") }
  }

  /// What one socket has seen so far.
  private struct Reader {
    let isSubscriber: Bool
    var established = WordCounter("connection_established")
    var succeeded = WordCounter("subscription_succeeded")
    var events = WordCounter("load-event")
  }

  private func received(_ bytes: [UInt8]?, _ index: Int) {
    guard let bytes else { return lost = true }
    if readers[index].established.count == 0 {
      readers[index].established.feed(bytes)
      if readers[index].established.count == 1 {
        if readers[index].isSubscriber {
          wires[index].send(WebSocketText.frame(#"{"event":"pusher:subscribe","data":{"channel":"load"}}"#))
        } else {
          subscribed += 1
        }
      }
    }
    if readers[index].succeeded.count == 0 {
      readers[index].succeeded.feed(bytes)
      if readers[index].succeeded.count == 1 { subscribed += 1 }
    }
    let known = readers[index].events.count
    readers[index].events.feed(bytes)
    for event in known..<readers[index].events.count {
      delivered += 1
      latencies.append(milliseconds(sentAt[event].duration(to: .now)))
    }
    check()
  }

  /// One trigger after the other, on one connection; returns the seconds until all had arrived.
  private func publish(_ events: Int, to subscribers: Int) async throws -> Double {
    publisher = try Wire(port: port, loop: loop) { [unowned self] bytes in
      self.assumeIsolated { $0.answered(bytes) }
    }
    latencies.reserveCapacity(events * subscribers)
    let start = ContinuousClock.now
    for event in 0..<events {
      sentAt.append(.now)
      publisher?.send(trigger(event))
      await wait { self.answers > event || self.lost }
    }
    await wait { self.delivered >= events * subscribers || self.lost }
    return start.duration(to: .now).inSeconds
  }

  private func answered(_ bytes: [UInt8]?) {
    guard let bytes else { return lost = true }
    responses.feed(bytes)
    answers = responses.count
    check()
  }

  private func trigger(_ event: Int) -> [UInt8] {
    let data = #"{\"seq\":\#(event),\"text\":\"hello there, this is a chat message\"}"#
    let body = #"{"name":"load-event","channels":["load"],"data":"\#(data)"}"#
    let digest = Crypto.hex(Crypto.digest(.md5, of: body.utf8))
    let query = "auth_key=bench-key&auth_timestamp=\(time(nil))&auth_version=1.0&body_md5=\(digest)"
    let signature = Crypto.hex(
      Crypto.hmac(.sha256, key: "bench-secret".utf8, "POST\n/apps/1001/events\n\(query)".utf8))
    return Array(
      ("POST /apps/1001/events?\(query)&auth_signature=\(signature) HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        + "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)").utf8)
  }

  private func wait(_ condition: @escaping () -> Bool) async {
    if condition() { return }
    await withCheckedContinuation { waiting = (condition, $0) }
  }

  private func check() {
    guard let (condition, continuation) = waiting, condition() else { return }
    waiting = nil
    continuation.resume()
  }

  private func close() {
    for wire in wires { wire.close() }
    publisher?.close()
    loop.stop()
  }
}
