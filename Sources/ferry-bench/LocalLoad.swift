import FerryCore
import FerryRuntime
import Glibc

/// Posts to the local server's HTTP API over a few connections, and counts what a WebSocket reader of a room sees.
actor LocalLoad {
  private let loop: LoopExecutor
  private let port: UInt16
  private var posters: [Wire] = []
  private var answers: [WordCounter] = []
  private var reader: Wire?
  private var seen = 0
  private var isSubscribed = false
  private var counter = WordCounter("bench-message")
  private var subscribed = WordCounter("\"subscribed\"")
  private var sentAt: [ContinuousClock.Instant] = []
  private(set) var latencies: [Double] = []
  private var waiting: [(condition: () -> Bool, continuation: CheckedContinuation<Void, Never>)] = []

  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  init(port: UInt16) throws(FerryError) {
    loop = try LoopExecutor(name: "bench")
    self.port = port
  }

  /// Counts the messages that appear in `room` from now on.
  func watch(_ room: String) async throws {
    let wire = try Wire(port: port, loop: loop) { [unowned self] bytes in
      self.assumeIsolated { $0.read(bytes) }
    }
    reader = wire
    wire.send(WebSocketText.upgrade("/v1/live?token=bench"))
    wire.send(WebSocketText.frame(#"{"type":"subscribe","room":"\#(room)"}"#))
    await wait { self.isSubscribed }
  }

  private func read(_ bytes: [UInt8]?) {
    guard let bytes else {
      // What is not heard any more would be waited for for ever.
      Logger.standardError("ferry-bench: the server closed the reader's connection\n")
      Glibc._exit(70)
    }
    if !isSubscribed {
      subscribed.feed(bytes)
      isSubscribed = subscribed.count > 0
    }
    counter.feed(bytes)
    for index in seen..<max(counter.count, seen) where index < sentAt.count {
      latencies.append(milliseconds(sentAt[index].duration(to: .now)))
    }
    seen = counter.count
    check()
  }

  /// `count` posts over `connections`, each one waiting for its answer before the next; returns the seconds.
  func post(_ count: Int, connections: Int, batch: Int = 1) async throws -> Double {
    try open(connections)
    let start = ContinuousClock.now
    await withTaskGroup(of: Void.self) { group in
      for connection in 0..<connections {
        group.addTask { await self.postAll(count / connections, on: connection, batch: batch) }
      }
    }
    return start.duration(to: .now).inSeconds
  }

  /// One post every 1/`rate` seconds over `connections`, whatever the answers do.
  func post(_ count: Int, perSecond rate: Double, connections: Int) async throws {
    try open(connections)
    let clock = ContinuousClock()
    let start = clock.now
    for index in 0..<count {
      try await clock.sleep(until: start.advanced(by: .seconds(Double(index) / rate)), tolerance: .zero)
      sentAt.append(.now)
      posters[index % connections].send(request(["\(index)"]))
    }
  }

  func waitUntilSeen(_ count: Int) async { await wait { self.seen >= count } }

  func close() {
    for poster in posters { poster.close() }
    reader?.close()
    loop.stop()
  }

  private func open(_ connections: Int) throws {
    for index in posters.count..<max(connections, posters.count) {
      answers.append(WordCounter("HTTP/1.1 20"))
      posters.append(
        try Wire(port: port, loop: loop) { [unowned self] bytes in
          self.assumeIsolated { $0.answered(bytes, index) }
        })
    }
  }

  private func answered(_ bytes: [UInt8]?, _ index: Int) {
    guard let bytes else { return }
    answers[index].feed(bytes)
    check()
  }

  private func postAll(_ count: Int, on connection: Int, batch: Int) async {
    var done = answers[connection].count
    var left = count
    while left > 0 {
      let size = min(batch, left)
      posters[connection].send(request((0..<size).map { "\(connection)-\(left - $0)" }))
      done += 1
      left -= size
      let target = done
      await wait { self.answers[connection].count >= target }
    }
  }

  private func request(_ ids: [String]) -> [UInt8] {
    let messages = ids.map { id in
      #"{"client_id":"bench-\#(id)","author":{"id":"ann","name":"Ann"},"text":"bench-message \#(id), of a common length"}"#
    }
    let body = messages.count == 1 ? messages[0] : #"{"messages":[\#(messages.joined(separator: ","))]}"#
    return Array(
      ("POST /v1/rooms/a/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer bench\r\n"
        + "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)").utf8)
  }

  private func wait(_ condition: @escaping () -> Bool) async {
    if condition() { return }
    await withCheckedContinuation { waiting.append((condition, $0)) }
  }

  private func check() {
    let ready = waiting.filter { $0.condition() }
    guard !ready.isEmpty else { return }
    waiting.removeAll { $0.condition() }
    for (_, continuation) in ready { continuation.resume() }
  }
}
