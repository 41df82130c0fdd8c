import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport

@testable import PusherProvider

/// A server on a real socket that does what a test says.
final class ScriptedService: Sendable {
  let loop: LoopExecutor
  let server: HTTPServer

  /// Serves while `body` works.
  static func serving<Result: Sendable>(
    _ handler: @escaping @Sendable (HTTPRequest) async -> HTTPResponse,
    _ body: @escaping @Sendable (ScriptedService) async throws -> Result
  ) async throws -> Result {
    let service = try ScriptedService(handler)
    defer { service.loop.stop() }
    return try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { await service.server.run() }
      defer { group.cancelAll() }
      return try await body(service)
    }
  }

  private init(_ handler: @escaping @Sendable (HTTPRequest) async -> HTTPResponse) throws {
    loop = try LoopExecutor(name: "scripted")
    server = try HTTPServer(
      HTTPServer.Settings(stopTimeout: .milliseconds(100)), loop: loop, logger: .silent, handler: handler)
  }

  var settings: PusherAdapter.Settings {
    PusherAdapter.Settings(
      appID: "1001", key: "demo-key", secret: nil, host: "127.0.0.1", port: server.port, tls: false)
  }

  /// Answers the upgrade and plays a part.
  static func socket(_ part: @escaping @Sendable (WebSocket) async -> Void) -> HTTPResponse {
    HTTPResponse(
      status: 101, body: .webSocket(subprotocol: nil, settings: WebSocketSettings(pingAfter: nil), serve: part))
  }

  /// An adapter for this or another service, running on `channels` while `body` works.
  func running(
    _ settings: PusherAdapter.Settings, _ channels: [String], metrics: Metrics? = nil,
    _ body: @escaping @Sendable (PusherAdapter, RecordingInbox) async throws -> Void
  ) async throws {
    let client = HTTPClient(loop: loop, guard: AddressGuard(allowedHosts: ["127.0.0.1"]), logger: .silent)
    let adapter = PusherAdapter(
      settings: settings, client: client, clock: SystemClock(), logger: .silent, metrics: metrics)
    let inbox = RecordingInbox()
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await adapter.run(channels.map { Subscription(channel: ChannelID($0)) }, into: inbox) }
      defer { group.cancelAll() }
      try await body(adapter, inbox)
    }
  }
}

/// Everything that passes between an adapter and a facade, in the clear: what the service can read.
final class Tap: Sendable {
  struct Seen: Sendable {
    var requests: [String] = []
    var answers: [String] = []
    var fromClient: [String] = []
    var fromService: [String] = []

    var everything: [String] { requests + answers + fromClient + fromService }
  }

  let seen = Observed(Seen())
  private let service: Service

  init(_ service: Service) { self.service = service }

  @Sendable func handle(_ request: HTTPRequest) async -> HTTPResponse {
    if request.headers["Upgrade"] != nil { return pass(request) }
    var request = request
    let body = (try? await request.body.collect(upTo: 1 << 20)) ?? []
    request.body = .bytes(body)
    let text = "\(request.method) \(request.path)?\(request.rawQuery)\n\(String(decoding: body, as: UTF8.self))"
    seen.update { $0.requests.append(text) }
    let response = await service.facade.handle(request)
    if case .bytes(let bytes) = response.body {
      seen.update { $0.answers.append(String(decoding: bytes, as: UTF8.self)) }
    }
    return response
  }

  private func pass(_ request: HTTPRequest) -> HTTPResponse {
    ScriptedService.socket { [seen, service] near in
      guard
        let far = try? await service.client.webSocket(
          "ws\(service.server.url.dropFirst(4))\(request.path)?\(request.rawQuery)",
          settings: WebSocketSettings(pingAfter: nil))
      else { return }
      await withTaskGroup(of: Void.self) { group in
        group.addTask {
          while case .text(let text) = await near.next() {
            seen.update { $0.fromClient.append(text) }
            far.send(text)
          }
        }
        group.addTask {
          while case .text(let text) = await far.next() {
            seen.update { $0.fromService.append(text) }
            near.send(text)
          }
        }
        await group.next()
        group.cancelAll()
      }
      far.close()
    }
  }
}
