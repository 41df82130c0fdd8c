package import FerryCore
import FerryRuntime
import Glibc

/// A TCP proxy on 127.0.0.1 that misbehaves on demand: what stands between Ferry and a service in fault tests.
///
/// It understands just enough HTTP/1.1 to tell where a request begins (requests on one connection one after the
/// other, as all clients of ours send them).
package actor FaultProxy {
  /// What is in force for every connection, or spent by the next requests.
  struct Faults {
    /// How much later bytes arrive, either way.
    var delay: Duration = .zero
    /// For either way of every connection.
    var bytesPerSecond: Int?
    var answers: [CannedAnswer] = []
    /// How many requests still lose their answers, and what they start with.
    var swallows: [String] = []
    /// The same for requests whose answers become garbage, and for requests that break off.
    var garbles: [String] = []
    var tears: [String] = []
  }

  struct CannedAnswer {
    let method: String
    let text: String
  }

  package nonisolated let port: UInt16
  /// How many connections were accepted, those refused by `refuse` not counted.
  package private(set) var accepted = 0
  /// How many requests were answered by the proxy, or had their answers swallowed.
  package private(set) var interfered = 0

  var faults = Faults()
  nonisolated let loop: LoopExecutor
  private let target: UInt16
  /// Keeps the port ours while connections are refused.
  private let reservation: PortReservation
  private var listener: (descriptor: Int32, watch: LoopExecutor.WatchID)?
  private var connections: [Int: ProxyConnection] = [:]
  private var nextConnection = 0
  private var isClosed = false

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// Listens, and passes everything on to `target` at 127.0.0.1.
  package static func start(to target: UInt16) async throws(FerryError) -> FaultProxy {
    let proxy = try FaultProxy(to: target)
    try await proxy.accept()
    return proxy
  }

  private init(to target: UInt16) throws(FerryError) {
    loop = try LoopExecutor(name: "fault-proxy")
    self.target = target
    reservation = try PortReservation()
    port = reservation.port
  }

  package nonisolated var url: String { "http://127.0.0.1:\(port)" }

  /// How many connections are open now.
  package var open: Int { connections.count }

  // MARK: Faults

  /// Bytes arrive this much later, either way.
  package func delay(_ delay: Duration) { faults.delay = delay }

  /// At most so many bytes a second each way of each connection; nil for no limit.
  package func throttle(bytesPerSecond: Int?) {
    faults.bytesPerSecond = bytesPerSecond
    for connection in connections.values { connection.moveOn() }
  }

  /// Resets every connection, at once.
  package func cut() {
    for connection in connections.values { connection.close(reset: true) }
  }

  /// Connections are refused, and those that exist reset, until `accept`.
  package func refuse() {
    if let listener {
      loop.unwatch(listener.watch)
      Glibc.close(listener.descriptor)
    }
    listener = nil
    cut()
  }

  /// The end of `refuse`.
  package func accept() throws(FerryError) {
    guard listener == nil, !isClosed else { return }
    let descriptor = try Sockets.bind(port: port)
    guard listen(descriptor, 128) == 0 else { throw Sockets.failure("listen") }
    let watch = loop.watch(descriptor, for: .readable) { _ in self.assumeIsolated { $0.acceptAll() } }
    listener = (descriptor, watch)
  }

  /// The next `count` requests whose first line starts with `method` (any, when empty) are answered by the proxy and
  /// never reach the service.
  package func answer(_ count: Int, status: Int, retryAfter: Int? = nil, method: String = "") {
    let body = "the fault proxy answers \(status)"
    var text = "HTTP/1.1 \(status) Fault\r\nContent-Type: text/plain\r\nContent-Length: \(body.utf8.count)\r\n"
    if let retryAfter { text += "Retry-After: \(retryAfter)\r\n" }
    text += "Connection: close\r\n\r\n\(body)"
    faults.answers += Array(repeating: CannedAnswer(method: method, text: text), count: count)
  }

  /// The next `count` such requests reach the service, which acts; its answer is swallowed and the connection cut.
  package func swallowAnswers(_ count: Int = 1, method: String = "") {
    faults.swallows += Array(repeating: method, count: count)
  }

  /// The next `count` such requests are answered with bytes that are no HTTP. Only with `afterActing` do they reach the
  /// service.
  package func garble(_ count: Int = 1, method: String = "", afterActing: Bool) {
    if afterActing {
      faults.garbles += Array(repeating: method, count: count)
    } else {
      faults.answers += Array(repeating: CannedAnswer(method: method, text: Self.garbage), count: count)
    }
  }

  static let garbage = "\u{16}\u{3}\u{1}\u{0}\u{7f} no HTTP \r\n\u{0}\r\n\r\n"

  /// The next `count` such requests break off before their last bytes have reached the service.
  package func tear(_ count: Int = 1, method: String = "") {
    faults.tears += Array(repeating: method, count: count)
  }

  /// No more faults; connections stay.
  package func behave() throws(FerryError) {
    faults = Faults()
    for connection in connections.values { connection.moveOn() }
    try accept()
  }

  /// The last act.
  package func close() {
    guard !isClosed else { return }
    refuse()
    isClosed = true
    loop.stop()
  }

  // MARK: For connections

  /// What is to be done with a request that starts like this.
  enum Verdict {
    case pass
    case answer(String)
    case swallow
    case garble
    case tear
  }

  func verdict(for request: some StringProtocol) -> Verdict {
    if let index = faults.answers.firstIndex(where: { request.hasPrefix($0.method) }) {
      interfered += 1
      return .answer(faults.answers.remove(at: index).text)
    }
    if Self.take(&faults.swallows, for: request) { return interfere(.swallow) }
    if Self.take(&faults.garbles, for: request) { return interfere(.garble) }
    if Self.take(&faults.tears, for: request) { return interfere(.tear) }
    return .pass
  }

  private func interfere(_ verdict: Verdict) -> Verdict {
    interfered += 1
    return verdict
  }

  /// Spends one fault that is meant for such a request.
  private static func take(_ faults: inout [String], for request: some StringProtocol) -> Bool {
    guard let index = faults.firstIndex(where: { request.hasPrefix($0) }) else { return false }
    faults.remove(at: index)
    return true
  }

  func forget(_ number: Int) { connections[number] = nil }

  private func acceptAll() {
    guard let listener else { return }
    while true {
      let client = Glibc.accept(listener.descriptor, nil, nil)
      guard client >= 0 else { return }
      accepted += 1
      guard let server = Sockets.connect(port: target) else {
        Sockets.reset(client)
        continue
      }
      Sockets.prepare(client)
      nextConnection += 1
      connections[nextConnection] = ProxyConnection(
        number: nextConnection, client: client, server: server, proxy: self)
    }
  }
}
