import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import FoundationEssentials
import Testing

/// `ferry serve` with a local server and a Pusher facade, which outlives the relays that tests end.
final class ServedBridge: Sendable {
  let folder: String
  let loop: LoopExecutor
  let client: HTTPClient
  let server: ChildProcess
  let local: String
  let pusher: String

  static let token = "token"

  init() async throws {
    folder = "\(FileManager.default.temporaryDirectory.path)/ferry-fault-\(Crypto.randomHex(bytes: 8))"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    loop = try LoopExecutor(name: "fault")
    client = HTTPClient(loop: loop, guard: AddressGuard(allowedHosts: ["127.0.0.1"]), logger: .silent)
    let config = """
      serve:
        data: \(folder)/data
        local: { listen: "127.0.0.1:0", tokens: [\(Self.token)] }
        facades: [{ provider: pusher, listen: "127.0.0.1:0", app_id: "1001", key: k, secret: s }]
      """
    try Data(config.utf8).write(to: URL(fileURLWithPath: "\(folder)/serve.yaml"))
    let ready = "\(folder)/serve.ready"
    server = try ChildProcess(
      ChildProcess.built("ferry"), ["serve", "--config", "\(folder)/serve.yaml", "--ready-file", ready])
    let urls = try await Self.ready(ready, server)
    local = try #require(urls["local"])
    pusher = try #require(urls["pusher"])
  }

  func close() async {
    server.signal(15)
    _ = await server.wait()
    loop.stop()
    try? FileManager.default.removeItem(atPath: folder)
  }

  static func ready(_ path: String, _ child: ChildProcess) async throws -> [String: String] {
    while true {
      if let data = FileManager.default.contents(atPath: path) {
        return try JSONDecoder().decode([String: String].self, from: data)
      }
      guard child.isRunning else { throw FerryError(.unavailable, child.errors) }
      try await SystemClock().sleep(for: .milliseconds(2))
    }
  }

  /// Sends a request to the local server and returns the answer's JSON.
  @discardableResult
  func call(_ method: String, _ path: String, _ body: JSONValue? = nil) async throws -> JSONValue {
    let bytes = try body.map { Array(try JSONEncoder().encode($0)) }
    return try await send(method, path, bytes, type: "application/json")
  }

  func upload(_ bytes: [UInt8]) async throws -> String {
    let answer = try await send("POST", "/v1/files?name=a.png", bytes, type: "image/png")
    return try #require(answer["sha256"]?.string)
  }

  private func send(_ method: String, _ path: String, _ body: [UInt8]?, type: String) async throws -> JSONValue {
    var request = ClientRequest(method: method, url: local + path, body: body.map { .bytes($0) } ?? .none)
    request.headers.set("Authorization", "Bearer \(Self.token)")
    if body != nil { request.headers.set("Content-Type", type) }
    let response = try await client.send(request)
    let answer = try await response.collect(upTo: 16 << 20)
    guard (200...299).contains(response.status) else {
      throw FerryError(.internal, "\(method) \(path): \(response.status) \(String(decoding: answer, as: UTF8.self))")
    }
    return answer.isEmpty ? .null : try JSONDecoder().decode(JSONValue.self, from: Data(answer))
  }

  /// A room's messages, oldest first, without those deleted.
  func messages(of room: String) async throws -> [JSONValue] {
    let page = try await call("GET", "/v1/rooms/\(room)/messages?order=oldest&limit=256")
    return (page["messages"]?.array ?? []).filter { $0["deleted"] == nil }
  }
}

/// What a Pusher channel's subscriber saw: the messages that are left, and those that came twice.
final class PusherEyes: Sendable {
  struct Seen: Sendable {
    var order: [String] = []
    var texts: [String: String] = [:]
    var doubled: [String] = []
    var left: [String] { order.compactMap { texts[$0] } }
  }

  private let socket: WebSocket
  private let task: Task<Void, Never>
  private let state: Locked<Seen>

  var now: Seen { state.withLock { $0 } }

  init(_ bridge: ServedBridge, _ channel: String) async throws {
    let socket = try await bridge.client.webSocket(
      "ws" + bridge.pusher.dropFirst(4) + "/app/k?protocol=7", settings: .init(), deadline: .seconds(30))
    self.socket = socket
    let state = Locked(Seen())
    self.state = state
    _ = await socket.sendWaiting(#"{"event":"pusher:subscribe","data":{"channel":"\#(channel)"}}"#)
    while case .text(let text)? = await socket.next() {
      if text.contains("subscription_succeeded") { break }
    }
    task = Task {
      while case .text(let text)? = await socket.next() { state.withLock { Self.read(text, into: &$0) } }
    }
  }

  func close() async {
    socket.close()
    await task.value
  }

  private static func read(_ text: String, into seen: inout Seen) {
    guard let frame = try? JSONDecoder().decode(JSONValue.self, from: Data(text.utf8)),
      let data = frame["data"]?.string.flatMap({ try? JSONDecoder().decode(JSONValue.self, from: Data($0.utf8)) }),
      let id = data["id"]?.string ?? data["ID"]?.string
    else { return }
    switch frame["event"]?.string {
    case "new_message":
      if seen.order.contains(id) { seen.doubled.append(id) } else { seen.order.append(id) }
      seen.texts[id] = data["text"]?.string ?? ""
    case "message_updated": if seen.texts[id] != nil { seen.texts[id] = data["text"]?.string ?? "" }
    case "message_deleted": seen.texts[id] = nil
    default: break
    }
  }
}
