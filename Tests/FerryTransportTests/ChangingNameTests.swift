import FerryCore
import FerryRuntime
import FerryTransport
import Testing

/// A name that a message brought may lead to a public address when it is checked and into this machine when it is used
/// (DNS rebinding). There is one question, and what is connected to is what was checked (G8).
@Suite(.serialized, .timeLimit(.minutes(2))) struct ChangingNameTests {
  private static let outside = "9.9.9.9"

  /// Asks once under `name`, on connections and with remembered names of its own; returns the failure.
  private func failure(_ name: String, port: UInt16) async throws -> FerryError? {
    let loop = try LoopExecutor(name: "names")
    defer { loop.stop() }
    let client = HTTPClient(loop: loop, guard: AddressGuard(), logger: .silent)
    return await #expect(throws: FerryError.self) {
      _ = try await client.send(ClientRequest(url: "http://\(name):\(port)/", isTrusted: false))
    }
  }

  private func withInside(_ body: (_ port: UInt16, _ hits: Locked<Int>) async throws -> Void) async throws {
    let hits = Locked(0)
    let handler: @Sendable (HTTPRequest) async -> HTTPResponse = { _ in
      hits.withLock { $0 += 1 }
      return .text("secret")
    }
    try await withBench(handler: handler) { bench in try await body(bench.port, hits) }
  }

  @Test("the script works: who is trusted is led inside by such a name")
  func control() async throws {
    ScriptedNames.script("trusted.test", [["127.0.0.1"]], unreachable: [])
    let handler: @Sendable (HTTPRequest) async -> HTTPResponse = { _ in .text("secret") }
    try await withBench(handler: handler) { bench in
      let answer = try await bench.client.send(ClientRequest(url: "http://trusted.test:\(bench.port)/"))
      #expect(answer.status == 200)
    }
    #expect(ScriptedNames.questions("trusted.test") >= 1)
  }

  @Test("first outside, then inside: the one that was checked is the one that is connected to")
  func outsideFirst() async throws {
    try await withInside { port, hits in
      ScriptedNames.script("rebound.test", [[Self.outside], ["127.0.0.1"]], unreachable: [Self.outside])
      let first = try await failure("rebound.test", port: port)
      #expect(first?.code != .addressRefused)
      #expect(ScriptedNames.questions("rebound.test") == 1)
      #expect(ScriptedNames.attempts == [Self.outside])
      // A new look at the name is checked anew.
      let second = try await failure("rebound.test", port: port)
      #expect(second?.code == .addressRefused)
      #expect(second?.didNotAct == true)
      #expect(hits.withLock { $0 } == 0)
    }
  }

  @Test("an address inside beside one outside is not tried when the one outside fails")
  func both() async throws {
    try await withInside { port, hits in
      for answer in [[Self.outside, "127.0.0.1"], ["127.0.0.1", Self.outside]] {
        ScriptedNames.script("mixed.test", [answer], unreachable: [Self.outside])
        _ = try await failure("mixed.test", port: port)
        #expect(hits.withLock { $0 } == 0, "\(answer)")
      }
    }
  }

  @Test("a redirect to a name that leads inside by now is refused")
  func redirect() async throws {
    try await withInside { port, hits in
      ScriptedNames.script("turned.test", [["127.0.0.1"]], unreachable: [])
      let handler: @Sendable (HTTPRequest) async -> HTTPResponse = { _ in
        HTTPResponse(status: 302, headers: ["Location": "http://turned.test:\(port)/"])
      }
      try await withBench(guard: AddressGuard(allowedHosts: ["localhost"]), handler: handler) { bench in
        let error = await #expect(throws: FerryError.self) {
          _ = try await bench.client.send(
            ClientRequest(url: "http://localhost:\(bench.port)/", redirects: 2, isTrusted: false))
        }
        #expect(error?.code == .addressRefused)
      }
      #expect(hits.withLock { $0 } == 0)
    }
  }
}
