import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport

/// A facade on a port of its own, behind a proxy, that can be ended and begun again.
final class FacadeHost: Sendable {
  struct Facade: Sendable {
    let handle: @Sendable (HTTPRequest) async -> HTTPResponse
    /// Until cancelled.
    let run: @Sendable () async -> Void
    /// After everything has ended.
    let close: @Sendable () async -> Void
  }

  /// What the relay is told to talk to.
  let proxy: FaultProxy
  /// The service itself, which people talk to.
  let url: String
  /// The adapter's, and the people's.
  let client: HTTPClient
  let direct: HTTPClient
  private let loop: LoopExecutor
  private let reservation: PortReservation
  private let make: @Sendable (HTTPClient) throws -> Facade
  private let echo: Echo
  private let life = Locked<Life?>(nil)
  /// What was fetched before is not fetched again.
  private let digests = Locked<[String: String]>([:])

  private let underWay = Locked(0)
  /// Whether everything that is written through the API is written once more, under an id of its own.
  let echoes = Locked(false)

  /// Requests that may still change something.
  var writesUnderWay: Int { underWay.withLock { $0 } }

  /// A write once more, made of its request and its body, under another id.
  typealias Echo = @Sendable (_ request: HTTPRequest, _ body: String) -> HTTPRequest

  /// Where a write has a key of its own, a second one with that key would be none.
  static let echo: Echo = { request, body in
    var echo = request
    var text = body
    for key in [#""client_id":""#, #""objectId":""#] { text = text.replacing(key, with: key + "echo-") }
    echo.body = .bytes(Array(text.utf8))
    return echo
  }

  private struct Life: Sendable {
    let task: Task<Void, Never>
    let facade: Facade
  }

  init(
    echo: @escaping Echo = FacadeHost.echo, _ make: @escaping @Sendable (HTTPClient) throws -> Facade
  ) async throws {
    self.make = make
    self.echo = echo
    loop = try LoopExecutor(name: "place")
    let addresses = AddressGuard(allowedHosts: ["127.0.0.1"])
    client = HTTPClient(loop: loop, guard: addresses, logger: .silent)
    direct = HTTPClient(loop: loop, guard: addresses, logger: .silent)
    let facade = try make(direct)
    reservation = try PortReservation()
    let server = try Self.server(port: reservation.port, loop, facade, underWay, echoes, echo)
    url = server.url
    proxy = try await FaultProxy.start(to: reservation.port)
    begin(server, facade)
  }

  private static func server(
    port: UInt16, _ loop: LoopExecutor, _ facade: Facade, _ underWay: Locked<Int>, _ echoes: Locked<Bool>,
    _ echo: @escaping Echo
  ) throws -> HTTPServer {
    try HTTPServer(
      HTTPServer.Settings(port: port, stopTimeout: .milliseconds(100)), loop: loop, logger: .silent
    ) { request in
      guard request.method != "GET" else { return await facade.handle(request) }
      underWay.withLock { $0 += 1 }
      defer { underWay.withLock { $0 -= 1 } }
      guard request.method == "POST", echoes.withLock({ $0 }), let body = try? await request.body.collect(upTo: 1 << 20)
      else { return await facade.handle(request) }
      var copy = request
      copy.body = .bytes(body)
      let answer = await facade.handle(copy)
      _ = await facade.handle(echo(request, String(decoding: body, as: UTF8.self)))
      return answer
    }
  }

  private func begin(_ server: HTTPServer, _ facade: Facade) {
    let task = Task {
      await withDiscardingTaskGroup { group in
        group.addTask { await server.run() }
        group.addTask { await facade.run() }
      }
    }
    life.withLock { $0 = Life(task: task, facade: facade) }
  }

  private func end() async {
    let old = life.withLock { life in
      defer { life = nil }
      return life
    }
    old?.task.cancel()
    await old?.task.value
    await old?.facade.close()
  }

  func restart(beforeAccepting: () async throws -> Void = {}) async throws {
    await proxy.refuse()
    await end()
    let facade = try make(direct)
    begin(try Self.server(port: reservation.port, loop, facade, underWay, echoes, echo), facade)
    try await beforeAccepting()
    try await proxy.accept()
  }

  func close() async {
    await proxy.close()
    await end()
    loop.stop()
  }

  /// A request that goes round the proxy.
  func send(_ method: String, _ path: String, headers: HTTPHeaders = [:], _ body: String = "") async throws -> Int {
    var request = ClientRequest(method: method, url: url + path, headers: headers, body: .bytes(Array(body.utf8)))
    if request.headers["Content-Type"] == nil { request.headers.set("Content-Type", "application/json") }
    let response = try await direct.send(request)
    _ = try await response.collect(upTo: 1 << 20)
    return response.status
  }

  func digest(of url: String) async throws -> String {
    if let known = digests.withLock({ $0[url] }) { return known }
    let response = try await direct.send(ClientRequest(method: "GET", url: url))
    guard response.status == 200 else { return "status \(response.status)" }
    let digest = Crypto.hex(Crypto.digest(.sha256, of: try await response.collect(upTo: 1 << 20)))
    digests.withLock { $0[url] = digest }
    return digest
  }
}
