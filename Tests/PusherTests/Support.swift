import FerryChat
import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport

@testable import PusherProvider

/// A facade on a real socket of this machine, and the means to talk to it.
final class Service: Sendable {
  let facade: PusherFacade
  let server: HTTPServer
  let client: HTTPClient
  let clock: any FerryClock
  let metrics = Metrics()
  let appKey = AppKey(key: "demo-key", secret: Secret("demo-secret"))

  let loop: LoopExecutor
  /// Of a view, of each channel.
  static let mostMessages = 40
  /// Of a view's files, all together.
  static let mostFileBytes: Int64 = 4096

  init(
    clock: any FerryClock = SystemClock(), store: (any PusherCacheStore)? = nil, rehearsal: Rehearsal? = nil,
    chat: ChatService? = nil, adjust: (inout PusherFacade.Settings) -> Void = { _ in }
  ) throws {
    self.clock = clock
    var settings = PusherFacade.Settings(appID: "1001", key: "demo-key", secret: Secret("demo-secret"))
    adjust(&settings)
    loop = try LoopExecutor(name: "pusher-test")
    client = HTTPClient(loop: loop, guard: AddressGuard(allowedHosts: ["127.0.0.1"]), logger: .silent)
    let facade = PusherFacade(
      settings: settings, store: store ?? MemoryCacheStore(clock: clock), client: client,
      rehearsal: rehearsal,
      view: chat.map { [client, metrics] in
        ChannelView(
          chat: $0, client: client, tutorial: settings.tutorial, mostMessages: Self.mostMessages,
          mostFileBytesInAll: Self.mostFileBytes, clock: clock, logger: .silent, metrics: metrics)
      }, clock: clock, logger: .silent, metrics: metrics)
    self.facade = facade
    server = try HTTPServer(
      HTTPServer.Settings(), loop: loop, logger: .silent, handler: rehearsal?.wrap(facade.handle) ?? facade.handle)
  }

  /// Serves while `body` works.
  static func serving<Result: Sendable>(
    clock: any FerryClock = SystemClock(), store: (any PusherCacheStore)? = nil, rehearsal: Rehearsal? = nil,
    chat: ChatService? = nil, adjust: (inout PusherFacade.Settings) -> Void = { _ in },
    _ body: @escaping @Sendable (Service) async throws -> Result
  ) async throws -> Result {
    let service = try Service(clock: clock, store: store, rehearsal: rehearsal, chat: chat, adjust: adjust)
    defer { service.loop.stop() }
    return try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { await service.server.run() }
      group.addTask { await service.facade.run() }
      defer { group.cancelAll() }
      return try await body(service)
    }
  }

  // MARK: HTTP

  struct Answer: Sendable {
    let status: Int
    let text: String
    var json: JSONValue? { JSONText.decode(JSONValue.self, from: text) }
  }

  func send(
    _ method: String, _ path: String, _ parameters: [(name: String, value: String)] = [], body: String = "",
    key: AppKey? = nil, skew: Int64 = 0
  ) async throws -> Answer {
    let bytes = Array(body.utf8)
    let signed = (key ?? appKey).signed(
      method: method, path: path, parameters: parameters, body: bytes, seconds: clock.now().milliseconds / 1000 + skew)
    let query = signed.map { "\($0.name)=\(PercentEncoding.encode($0.value))" }.joined(separator: "&")
    return try await raw(method, "\(path)?\(query)", body: bytes)
  }

  func raw(
    _ method: String, _ pathAndQuery: String, headers: HTTPHeaders = [:], body: [UInt8] = []
  ) async throws -> Answer {
    let response = try await client.send(
      ClientRequest(
        method: method, url: server.url + pathAndQuery, headers: headers,
        body: body.isEmpty ? .none : .bytes(body)))
    return Answer(
      status: response.status, text: String(decoding: try await response.collect(upTo: 1 << 20), as: UTF8.self))
  }

  @discardableResult
  func trigger(
    _ name: String, on channels: String..., data: String, except: String? = nil, info: String? = nil
  ) async throws -> Answer {
    var body: [String: JSONValue] = [
      "name": .string(name), "channels": .array(channels.map(JSONValue.string)), "data": .string(data),
    ]
    body["socket_id"] = except.map(JSONValue.string)
    body["info"] = info.map(JSONValue.string)
    return try await send("POST", "/apps/1001/events", body: JSON.text(of: .object(body)))
  }

  // MARK: Sockets

  func socket(
    key: String = "demo-key", query: String = "?protocol=7", subprotocols: [String] = [], port: UInt16? = nil
  ) async throws -> WebSocket {
    try await client.webSocket(
      "ws://127.0.0.1:\(port ?? server.port)/app/\(key)\(query)", subprotocols: subprotocols,
      settings: WebSocketSettings(pingAfter: nil), deadline: .seconds(10))
  }

  /// A socket that has been greeted.
  func connect(port: UInt16? = nil) async throws -> Connection {
    let socket = try await socket(port: port)
    let greeting = try await socket.nextText()
    let id = Frame(text: greeting)?.data?.parsed["socket_id"]?.string
    return Connection(socket: socket, socketID: try unwrap(id, "no socket_id in \(greeting)"), appKey: appKey)
  }
}

/// A client of the facade, as raw as the wire.
struct Connection: Sendable {
  let socket: WebSocket
  let socketID: String
  let appKey: AppKey

  func send(_ text: String) { socket.send(text) }
  func next() async throws -> String { try await socket.nextText() }
  func close() { socket.close(code: 1000, reason: "") }

  /// Asks and returns the answer.
  @discardableResult
  func subscribe(_ channel: String, as user: String? = nil) async throws -> String {
    let channelData = user.map { #"{"user_id":"\#($0)","user_info":{"name":"\#($0)!"}}"# }
    let isSigned = channel.hasPrefix("private-") || channel.hasPrefix("presence-")
    let auth = isSigned ? appKey.channelAuth(socketID: socketID, channel: channel, channelData: channelData) : nil
    send(FrameText.subscribe(to: channel, auth: auth, channelData: channelData))
    return try await next()
  }

  /// Signs in and returns the first answer.
  @discardableResult
  func signIn(_ userData: String) async throws -> String {
    let data: JSONValue = [
      "auth": .string(appKey.userAuth(socketID: socketID, userData: userData)), "user_data": .string(userData),
    ]
    send(FrameText.object("pusher:signin", data))
    return try await next()
  }

  /// Nothing has been sent to this client that it has not seen: a ping is answered at once.
  func isQuiet() async throws -> Bool {
    send(FrameText.ping)
    return try await next() == FrameText.pong
  }
}
