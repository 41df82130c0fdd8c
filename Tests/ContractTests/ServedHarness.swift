import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import FoundationEssentials

/// What the harnesses of served providers share: a server on a free port, a proxy before it, and a client that goes
/// round both adapter and proxy.
final class ServedService: Sendable {
  let loop: LoopExecutor
  /// The adapter's, and the harness's own.
  let client: HTTPClient
  let direct: HTTPClient
  let server: HTTPServer
  let proxy: FaultProxy
  private let task: Task<Void, Never>

  init(
    handler: @escaping @Sendable (HTTPRequest) async -> HTTPResponse, alongside: @escaping @Sendable () async -> Void
  ) async throws {
    loop = try LoopExecutor(name: "contract")
    let addresses = AddressGuard(allowedHosts: ["127.0.0.1"])
    client = HTTPClient(loop: loop, guard: addresses, logger: .silent)
    direct = HTTPClient(loop: loop, guard: addresses, logger: .silent)
    let server = try HTTPServer(
      HTTPServer.Settings(stopTimeout: .milliseconds(200)), loop: loop, logger: .silent, handler: handler)
    self.server = server
    proxy = try await FaultProxy.start(to: server.port)
    task = Task {
      await withDiscardingTaskGroup { group in
        group.addTask { await server.run() }
        group.addTask { await alongside() }
      }
    }
  }

  /// A request that goes straight to the server and must succeed.
  func send(_ method: String, _ path: String, headers: HTTPHeaders = [:], _ body: [UInt8]) async throws(FerryError) {
    var request = ClientRequest(method: method, url: server.url + path, headers: headers, body: .bytes(body))
    request.headers.set("Content-Type", "application/json")
    let response = try await direct.send(request)
    let text = try await response.collect(upTo: 1 << 20)
    guard (200...299).contains(response.status) else {
      throw FerryError(.internal, "\(path): \(response.status) \(String(decoding: text, as: UTF8.self))")
    }
  }

  func socket(_ path: String, headers: HTTPHeaders = [:]) async throws(FerryError) -> WebSocket {
    try await direct.webSocket(
      "ws" + server.url.dropFirst(4) + path, headers: headers, settings: .init(), deadline: .seconds(10))
  }

  func close() async {
    await proxy.close()
    task.cancel()
    await task.value
    loop.stop()
  }

  static func json(_ value: JSONValue) throws(FerryError) -> [UInt8] {
    do { return Array(try JSONEncoder().encode(value)) } catch { throw FerryError.wrap(error) }
  }

  static func value(_ text: String) -> JSONValue {
    (try? JSONDecoder().decode(JSONValue.self, from: Data(text.utf8))) ?? .null
  }
}

/// Reads messages off a WebSocket, as far as `seen` understands its frames.
struct SocketWatcher: ChannelWatcher {
  let socket: WebSocket
  let seen: @Sendable (JSONValue) -> Seen?

  func messages(_ count: Int) async -> [Seen] {
    var all: [Seen] = []
    while all.count < count, let message = await socket.next() {
      guard case .text(let text) = message, let one = seen(ServedService.value(text)) else { continue }
      all.append(one)
    }
    return all
  }

  func close() async { socket.close() }
}
