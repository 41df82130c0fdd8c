import FerryCore
import FerryRuntime
import FerryTransport
import FoundationEssentials
import Testing

/// What a handler did, and how a rehearsal made it look.
@Suite(.timeLimit(.minutes(1))) struct RehearsalTests {
  private func withRehearsal(
    _ plan: Rehearsal.Plan = Rehearsal.Plan(), _ body: (Bench, Rehearsal, Locked<Int>) async throws -> Void
  ) async throws {
    let acted = Locked(0)
    let rehearsal = Rehearsal(plan, token: "told", clock: SystemClock())
    try await withBench(
      handler: rehearsal.wrap { request in
        if request.headers["Upgrade"] != nil {
          return HTTPResponse(
            status: 101, body: .webSocket(subprotocol: nil, settings: .init()) { _ = await $0.next() })
        }
        acted.withLock { $0 += 1 }
        return .text("done")
      }
    ) { bench in try await body(bench, rehearsal, acted) }
  }

  private func get(_ bench: Bench, _ path: String = "/") async throws(FerryError) -> ClientResponse {
    try await bench.client.send(ClientRequest(method: "GET", url: bench.url(path)))
  }

  /// A POST: a GET would be repeated by the client.
  private func post(_ bench: Bench) async throws(FerryError) -> ClientResponse {
    try await bench.client.send(ClientRequest(method: "POST", url: bench.url("/"), body: .bytes([1])))
  }

  private func tell(_ bench: Bench, _ plan: String, token: String = "told") async throws -> Int {
    var request = ClientRequest(method: "POST", url: bench.url("/ferry/rehearsal"), body: .bytes(Array(plan.utf8)))
    request.headers.set("Authorization", "Bearer \(token)")
    let response = try await bench.client.send(request)
    _ = try await response.collect(upTo: 1 << 16)
    return response.status
  }

  @Test("as many requests as told are refused without acting, with the status and the pause told")
  func refusals() async throws {
    var plan = Rehearsal.Plan()
    plan.fail = 2
    plan.status = 429
    plan.retryAfter = 3
    try await withRehearsal(plan) { bench, _, acted async throws in
      for _ in 0..<2 {
        let response = try await get(bench)
        #expect(response.status == 429 && response.headers["Retry-After"] == "3")
      }
      #expect(acted.withLock { $0 } == 0)
      #expect(try await get(bench).status == 200)
    }
  }

  @Test("a dropped request did not act, a lost answer belongs to one that did")
  func dropsAndLosses() async throws {
    try await withRehearsal { bench, _, acted async throws in
      #expect(try await tell(bench, #"{"drop":1,"lose":1}"#) == 200)
      await #expect(throws: FerryError.self) { _ = try await post(bench) }
      #expect(acted.withLock { $0 } == 0)
      await #expect(throws: FerryError.self) { _ = try await post(bench) }
      #expect(acted.withLock { $0 } == 1)
      #expect(try await get(bench).status == 200)
    }
  }

  @Test("only requests of the path and method told are harmed")
  func matching() async throws {
    try await withRehearsal { bench, _, _ async throws in
      #expect(try await tell(bench, #"{"fail":1,"match":"/Messages","method":"GET"}"#) == 200)
      #expect(try await get(bench, "/other").status == 200)
      #expect(try await get(bench, "/x/Messages").status == 503)
      #expect(try await get(bench, "/x/Messages").status == 200)
    }
  }

  @Test("the plan is changed only with the token, and only to one that makes sense")
  func control() async throws {
    try await withRehearsal { bench, rehearsal, _ async throws in
      #expect(try await tell(bench, #"{"echo":true}"#, token: "wrong") == 401)
      #expect(!rehearsal.echoesWrites)
      for bad in ["", "{", "[]", #"{"fail":-1}"#, #"{"status":99}"#, #"{"fail":"many"}"#] {
        #expect(try await tell(bench, bad) == 400, "\(bad)")
      }
      #expect(try await tell(bench, #"{"echo":true}"#) == 200)
      #expect(rehearsal.echoesWrites)
    }
  }

  @Test("sockets are ended with the code told, and never counted")
  func sockets() async throws {
    var plan = Rehearsal.Plan()
    plan.fail = 1
    try await withRehearsal(plan) { bench, rehearsal, _ async throws in
      let told = Locked<UInt16?>(nil)
      rehearsal.onCloseSockets { code in told.withLock { $0 = code } }
      let socket = try await bench.client.webSocket(bench.socketURL("/"), settings: .init(), deadline: .seconds(10))
      socket.close()
      #expect(try await tell(bench, #"{"fail":1,"close_sockets":4200}"#) == 200)
      #expect(told.withLock { $0 } == 4200)
      #expect(try await get(bench).status == 503)
    }
  }
}
