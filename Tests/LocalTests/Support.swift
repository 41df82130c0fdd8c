import FerryChat
import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import FoundationEssentials
import LocalProvider
import Testing

/// A local server on a free port, with a chat in a temporary folder. It may be stopped and started again.
final class TestServer: Sendable {
  private struct Running {
    let chat: ChatService
    let task: Task<Void, Never>
  }

  let folder: String
  let loop: LoopExecutor
  let client: HTTPClient
  let limits: ChatLimits
  private let port: PortReservation
  private let running = Locked<Running?>(nil)

  static let tokens = [
    LocalServer.Token(token: "owner"),
    LocalServer.Token(token: "ada's", user: "ada", moderator: false),
    LocalServer.Token(token: "bob's", user: "bob", moderator: false),
    LocalServer.Token(token: "mo's", user: "mo", moderator: true),
  ]

  init(limits: ChatLimits = ChatLimits()) throws {
    port = try PortReservation()
    folder = FileManager.default.temporaryDirectory.path + "/ferry-local-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    loop = try LoopExecutor(name: "local-tests")
    client = HTTPClient(loop: loop, guard: AddressGuard(allowedHosts: ["127.0.0.1"]), logger: .silent)
    self.limits = limits
  }

  var url: String { "http://127.0.0.1:\(port.port)" }

  var chat: ChatService {
    get throws { try #require(running.withLock { $0?.chat }) }
  }

  func start() throws {
    let chat = try ChatService(
      path: folder + "/chat.db", files: folder + "/files", logger: .silent, limits: limits)
    let facade = LocalServer(chat: chat, tokens: Self.tokens, logger: .silent)
    let server = try HTTPServer(
      HTTPServer.Settings(port: port.port, stopTimeout: .milliseconds(500)), loop: loop, logger: .silent,
      handler: { await facade.handle($0) })
    let task = Task {
      await withDiscardingTaskGroup { group in
        group.addTask { await server.run() }
        group.addTask { await chat.run() }
      }
    }
    running.withLock { $0 = Running(chat: chat, task: task) }
  }

  func stop() async {
    let running = running.withLock { running in
      defer { running = nil }
      return running
    }
    running?.task.cancel()
    await running?.task.value
    running?.chat.close()
  }

  func remove() {
    loop.stop()
    try? FileManager.default.removeItem(atPath: folder)
  }

  /// One request and its whole answer.
  func send(
    _ method: String, _ path: String, _ body: String? = nil, token: String? = "owner",
    type: String = "application/json",
    headers: HTTPHeaders = [:]
  ) async throws -> Answer {
    var request = ClientRequest(method: method, url: url + path, headers: headers)
    if let token { request.headers.set("Authorization", "Bearer \(token)") }
    if let body {
      request.body = .bytes(Array(body.utf8))
      request.headers.set("Content-Type", type)
    }
    let response = try await client.send(request)
    return Answer(
      status: response.status, headers: response.headers, bytes: try await response.collect(upTo: 1 << 26))
  }

  func socket(token: String = "owner") async throws -> WebSocket {
    try await client.webSocket(
      "ws" + url.dropFirst(4) + "/v1/live", headers: ["Authorization": "Bearer \(token)"], settings: .init(),
      deadline: .seconds(10))
  }

  func adapter(token: String = "owner") throws -> LocalAdapter {
    var settings = try LocalAdapter.Settings(url: url, token: Secret(token))
    settings.reconnect = ReconnectPolicy(base: .milliseconds(5), limit: .milliseconds(50))
    return LocalAdapter(settings: settings, client: client, logger: .silent)
  }
}

struct Answer {
  let status: Int
  let headers: HTTPHeaders
  let bytes: [UInt8]

  var json: JSONValue { (try? Wire.value(JSONValue.self, from: bytes)) ?? .null }
  var text: String { String(decoding: bytes, as: UTF8.self) }
  /// The code of a refusal.
  var refusal: String? { json["error"]?["code"]?.string }
}

func withServer(
  limits: ChatLimits = ChatLimits(), _ body: (TestServer) async throws -> Void
) async throws {
  let server = try TestServer(limits: limits)
  defer { server.remove() }
  try server.start()
  do { try await body(server) } catch {
    await server.stop()
    throw error
  }
  await server.stop()
}

extension WebSocket {
  func say(_ text: String) async { _ = await sendWaiting(text) }

  /// The next text message, as JSON.
  func json() async throws -> JSONValue {
    guard case .text(let text) = try #require(await next()) else { return .null }
    return try Wire.value(JSONValue.self, from: text.utf8)
  }
}

let lobby: ChannelID = "lobby"
let ada = Author(id: "ada", name: "Ada")
let bob = Author(id: "bob", name: "Bob")

/// What `body` throws, or nil.
func failure(of body: () async throws -> Void) async -> FerryError? {
  do { try await body() } catch { return error as? FerryError }
  return nil
}
