import FerryChat
import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport

@testable import BackendlessProvider

/// A facade on a real socket of this machine, and the means to talk to it.
final class Service: Sendable {
  static let appID = "APPID"
  static let key = "KEY"

  let facade: BackendlessFacade
  let chat: ChatService
  let server: HTTPServer
  let client: HTTPClient
  let clock: any FerryClock
  let loop: LoopExecutor
  let folder: TemporaryFolder

  init(
    clock: any FerryClock, folder: TemporaryFolder, rehearsal: Rehearsal?,
    adjust: (inout BackendlessFacade.Settings) -> Void
  ) throws {
    self.clock = clock
    self.folder = folder
    var settings = BackendlessFacade.Settings(appID: Self.appID, apiKey: Secret(Self.key))
    settings.passwordRounds = 10
    adjust(&settings)
    loop = try LoopExecutor(name: "backendless-test")
    chat = try ChatService(path: folder.file("chat.db"), files: folder.file("files"), clock: clock, logger: .silent)
    client = HTTPClient(loop: loop, guard: AddressGuard(), logger: .silent)
    facade = BackendlessFacade(
      settings: settings, chat: chat, client: client, rehearsal: rehearsal, clock: clock, logger: .silent, metrics: nil)
    server = try HTTPServer(HTTPServer.Settings(), loop: loop, logger: .silent, handler: facade.handle)
  }

  /// Serves while `body` works. With the same folder it goes on where an earlier one ended.
  static func serving<Result: Sendable>(
    clock: any FerryClock = SystemClock(), folder: TemporaryFolder? = nil, rehearsal: Rehearsal? = nil,
    adjust: (inout BackendlessFacade.Settings) -> Void = { _ in },
    _ body: @escaping @Sendable (Service) async throws -> Result
  ) async throws -> Result {
    let service = try Service(
      clock: clock, folder: try folder ?? TemporaryFolder(), rehearsal: rehearsal, adjust: adjust)
    defer {
      service.chat.close()
      service.loop.stop()
    }
    return try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { await service.server.run() }
      group.addTask { await service.chat.run() }
      group.addTask { await service.facade.run() }
      defer { group.cancelAll() }
      return try await body(service)
    }
  }

  // MARK: HTTP

  struct Answer: Sendable {
    let status: Int
    let headers: HTTPHeaders
    let bytes: [UInt8]
    var text: String { String(decoding: bytes, as: UTF8.self) }
    var json: JSONValue { JSONText.value(bytes) ?? .null }
    var code: Int64? { json["code"]?.integer }
  }

  func raw(
    _ method: String, _ path: String, body: [UInt8]? = nil, type: String? = nil, headers: [(String, String)] = []
  ) async throws -> Answer {
    var all = HTTPHeaders()
    if let type { all.add("Content-Type", type) }
    for (name, value) in headers { all.add(name, value) }
    let url = path.hasPrefix("http") ? path : server.url + path
    let response = try await client.send(
      ClientRequest(
        method: method, url: url, headers: all, body: body.map(ClientRequest.Body.bytes) ?? .none,
        deadline: .seconds(120)))
    return Answer(
      status: response.status, headers: response.headers, bytes: try await response.collect(upTo: 64 << 20))
  }

  /// A call of the REST API, its path behind the key.
  @discardableResult
  func call(
    _ method: String, _ path: String, _ body: JSONValue? = nil, token: String? = nil
  ) async throws -> Answer {
    try await raw(
      method, "/\(Self.appID)/\(Self.key)\(path)", body: body.map(JSONText.bytes),
      type: body == nil ? nil : "application/json", headers: token.map { [("user-token", $0)] } ?? [])
  }

  @discardableResult
  func publish(_ message: JSONValue, to channel: String, _ options: [String: JSONValue] = [:]) async throws -> Answer {
    try await call(
      "POST", "/messaging/\(PercentEncoding.encode(channel))", .object(options.merging(["message": message]) { $1 }))
  }

  /// A registered user who is logged in.
  func user(_ email: String) async throws -> (id: String, token: String) {
    try await call("POST", "/users/register", ["email": .string(email), "password": "pw"])
    let answer = try await call("POST", "/users/login", ["login": .string(email), "password": "pw"]).json
    return (
      try unwrap(answer["objectId"]?.string, "no objectId"), try unwrap(answer["user-token"]?.string, "no token")
    )
  }

  // MARK: Real time

  var query: String { "apiKey=\(Self.key)&clientId=test&userToken=null" }

  func socket(_ version: EngineVersion = .four, query: String? = nil, sid: String? = nil) async throws -> WebSocket {
    let session = sid.map { "&sid=\($0)" } ?? ""
    let port = server.port
    return try await client.webSocket(
      "ws://127.0.0.1:\(port)/\(Self.appID)/?\(query ?? self.query)&EIO=\(version.rawValue)&transport=websocket\(session)",
      settings: WebSocketSettings(pingAfter: nil), deadline: .seconds(120))
  }

  /// A client that has joined the namespace over a WebSocket.
  func connect(_ version: EngineVersion = .four, token: String? = nil) async throws -> Listener {
    let socket = try await socket(version, query: token.map { "apiKey=\(Self.key)&clientId=test&userToken=\($0)" })
    let handshake = try EngineHandshake(String(try await socket.nextText().dropFirst()))
    if version == .three { _ = try await socket.nextText() }
    socket.send("40/APPID,")
    let consent = try await socket.nextText()
    guard consent.hasPrefix("40/APPID,") else { throw FerryError(.badData, consent) }
    return Listener(socket: socket, sid: handshake.sid)
  }

  func poll(_ sid: String, _ version: EngineVersion = .four) async throws -> Answer {
    try await raw("GET", "/APPID/?\(query)&EIO=\(version.rawValue)&transport=polling&sid=\(sid)")
  }

  func post(
    _ body: String, _ sid: String, _ version: EngineVersion = .four, bytes: [UInt8]? = nil
  ) async throws -> Answer {
    try await raw(
      "POST", "/APPID/?\(query)&EIO=\(version.rawValue)&transport=polling&sid=\(sid)", body: bytes ?? Array(body.utf8),
      type: bytes == nil ? "text/plain;charset=UTF-8" : "application/octet-stream")
  }

  func open(_ version: EngineVersion = .four) async throws -> (sid: String, answer: Answer) {
    let answer = try await raw("GET", "/APPID/?\(query)&EIO=\(version.rawValue)&transport=polling&t=xkw4hftg")
    let packets = try EnginePayload.decode(answer.bytes, version: version)
    return (try EngineHandshake(try unwrap(packets.first?.text, "no packet")).sid, answer)
  }
}

/// A client of the namespace, as raw as the wire.
struct Listener: Sendable {
  let socket: WebSocket
  let sid: String

  func send(_ event: String, _ argument: JSONValue) {
    socket.send("4" + SocketPacket(.event(event, argument), in: "/APPID").text)
  }

  func next() async throws -> String { try await socket.nextText() }

  /// The next event; the server's pings are answered and passed over.
  func event() async throws -> (name: String, data: JSONValue) {
    while true {
      let text = try await socket.nextText()
      if text == "2" {
        socket.send("3")
        continue
      }
      guard text.hasPrefix("4"), case .event(let name, let data) = try SocketPacket(String(text.dropFirst())).content
      else { throw FerryError(.badData, text) }
      return (name, data ?? .null)
    }
  }

  /// The data of the next answer to a subscription.
  func data(of id: String? = nil) async throws -> JSONValue {
    let (name, data) = try await event()
    guard name == "SUB_RES", id == nil || data["id"]?.string == id, let inner = data["data"] else {
      throw FerryError(.badData, "\(name) \(JSON.text(of: data))")
    }
    return inner
  }

  func subscribe(_ name: String, _ id: String, _ options: JSONValue) {
    send("SUB_ON", ["id": .string(id), "name": .string(name), "options": options])
  }

  /// Joins a channel and listens to its messages.
  func join(_ channel: String, messages: String? = "m", selector: String? = nil) async throws {
    subscribe("PUB_SUB_CONNECT", "c-\(channel)", ["channel": .string(channel)])
    guard try await data() == "connected" else { throw FerryError(.badData, "not connected") }
    guard let messages else { return }
    var options: [String: JSONValue] = ["channel": .string(channel)]
    options["selector"] = selector.map(JSONValue.string)
    subscribe("PUB_SUB_MESSAGES", messages, .object(options))
    try await ready()
  }

  func ready() async throws {
    let (name, data) = try await event()
    guard name == "SUB_READY" else { throw FerryError(.badData, "\(name) \(JSON.text(of: data))") }
  }

  /// Nothing has been sent to this client that it has not seen: the answer to a method comes next.
  func isQuiet() async throws -> Bool {
    send("MET_REQ", ["id": "quiet", "name": "NO_SUCH_METHOD"])
    let (name, data) = try await event()
    return name == "MET_RES" && data["id"] == "quiet"
  }

  func close() { socket.close(code: 1000, reason: "") }
}
