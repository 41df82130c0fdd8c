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
