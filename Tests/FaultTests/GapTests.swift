import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import FoundationEssentials
import Testing

/// What a service that keeps nothing says while the relay is away is lost to it, but not without a word (G10).
@Suite(.timeLimit(.minutes(5))) struct GapTests {
  @Test("a relay that was killed before it had heard anything tells since when it did not listen")
  func killedBeforeAnything() async throws {
    let bridge = try await ServedBridge()
    let port = bridge.pusher.split(separator: ":").last ?? ""
    let config = """
      accounts:
        here: { provider: local, url: "\(bridge.local)", token: \(ServedBridge.token) }
        site: { provider: pusher, app_id: "1001", key: k, secret: s, host: 127.0.0.1, port: \(port), tls: false }
      bridges: { b: { between: ["here:lobby", "site:lobby"] } }
      relay: { listen: "127.0.0.1:0", token: t, journal: "\(bridge.folder)/ferry.db" }
      """
    try Data(config.utf8).write(to: URL(fileURLWithPath: "\(bridge.folder)/relay.yaml"))
    let begun = SystemClock().now()
    for life in 0..<2 {
      let ready = "\(bridge.folder)/ready-\(life)"
      let relay = try ChildProcess(
        ChildProcess.built("ferry"), ["relay", "--config", "\(bridge.folder)/relay.yaml", "--ready-file", ready])
      let url = try #require(try await ServedBridge.ready(ready, relay)["relay"])
      while try await bridge.client.send(.init(method: "GET", url: url + "/readyz")).status != 200 {
        try await SystemClock().sleep(for: .milliseconds(5))
      }
      let gaps = try await gaps(at: url, bridge).filter { $0["address"] == "site:lobby" }
      #expect(gaps.count == life, "a first start has missed nothing; the next has")
      if let start = gaps.first?["start"]?.string.flatMap({ Timestamp(iso8601: $0) }) { #expect(start >= begun) }
      relay.signal(9)
      _ = await relay.wait()
    }
    await bridge.close()
  }

  private func gaps(at url: String, _ bridge: ServedBridge) async throws -> [JSONValue] {
    var request = ClientRequest(method: "GET", url: url + "/status")
    request.headers.set("Authorization", "Bearer t")
    let body = try await bridge.client.send(request).collect(upTo: 1 << 20)
    return try JSONDecoder().decode(JSONValue.self, from: Data(body))["gaps"]?.array ?? []
  }
}
