import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@Suite(.timeLimit(.minutes(1))) struct ManualClockTests {
  @Test("who sleeps wakes when the time has come, and not before")
  func sleeping() async {
    let clock = ManualClock()
    let woken = BoundedChannel<Int>(capacity: 10)
    await withTaskGroup(of: Void.self) { group in
      for seconds in [1, 2, 3] {
        group.addTask {
          try? await clock.sleep(for: .seconds(seconds))
          _ = woken.offer(seconds)
        }
      }
      await clock.waitForSleepers(3)
      clock.advance(by: .milliseconds(999))
      #expect(clock.sleepers == 3)
      clock.advance(by: .milliseconds(1))
      #expect(await woken.next() == 1)
      #expect(clock.sleepers == 2)
      clock.advance(by: .seconds(10))
      let rest = [await woken.next(), await woken.next()].compactMap { $0 }
      #expect(Set(rest) == [2, 3])
    }
    #expect(clock.sleepers == 0)
  }

  @Test("sleeping ends with the task")
  func cancellation() async {
    let clock = ManualClock()
    let sleeper = Task { () -> Bool in
      do { try await clock.sleep(for: .seconds(1)) } catch { return true }
      return false
    }
    await clock.waitForSleepers()
    sleeper.cancel()
    #expect(await sleeper.value)
    #expect(clock.sleepers == 0)
  }
}

@Suite(.timeLimit(.minutes(1))) struct FaultProxyTests {
  /// A server that answers with as many bytes as asked for, or with what it was sent.
  private func withService(_ body: @escaping @Sendable (FaultProxy, HTTPClient) async throws -> Void) async throws {
    let loop = try LoopExecutor(name: "proxy-tests")
    let server = try HTTPServer(
      HTTPServer.Settings(stopTimeout: .milliseconds(200)), loop: loop, logger: .silent,
      handler: { request in
        if let count = Int(request.query("count") ?? "") { return .text(String(repeating: "x", count: count)) }
        let bytes = (try? await request.body.collect(upTo: 10_000_000)) ?? []
        return .text(Crypto.hex(Crypto.digest(.sha256, of: bytes)))
      })
    let proxy = try await FaultProxy.start(to: server.port)
    let client = HTTPClient(loop: loop, guard: AddressGuard(), logger: .silent)
    let task = Task { await server.run() }
    do { try await body(proxy, client) } catch { Issue.record(error) }
    await proxy.close()
    task.cancel()
    await task.value
    loop.stop()
  }

  private static func get(_ proxy: FaultProxy, _ client: HTTPClient, count: Int = 5) async throws -> Int {
    let response = try await client.send(ClientRequest(url: "\(proxy.url)/?count=\(count)"))
    let body = try await response.collect(upTo: 10_000_000)
    return response.status == 200 ? body.count : response.status
  }

  @Test("what is not told to misbehave passes everything, large bodies too")
  func passing() async throws {
    try await withService { proxy, client in
      #expect(try await Self.get(proxy, client, count: 5_000_000) == 5_000_000)
      let bytes = Crypto.randomBytes(5_000_000)
      let response = try await client.send(ClientRequest(method: "POST", url: proxy.url + "/", body: .bytes(bytes)))
      let digest = String(decoding: try await response.collect(upTo: 100), as: UTF8.self)
      #expect(digest == Crypto.hex(Crypto.digest(.sha256, of: bytes)))
      for _ in 0..<20 { #expect(try await Self.get(proxy, client) == 5) }
      #expect(await proxy.accepted == 1, "requests share a connection")
    }
  }

  @Test("a delay is kept to both ways, and a throttle to its rate")
  func slowness() async throws {
    try await withService { proxy, client in
      let clock = ContinuousClock()
      await proxy.delay(.milliseconds(50))
      let start = clock.now
      #expect(try await Self.get(proxy, client) == 5)
      let delayed = clock.now - start
      #expect(delayed >= .milliseconds(100))
      try await proxy.behave()
      await proxy.throttle(bytesPerSecond: 100_000)
      let begin = clock.now
      #expect(try await Self.get(proxy, client, count: 50_000) == 50_000)
      let throttled = clock.now - begin
      #expect(throttled >= .milliseconds(400))
      try await proxy.behave()
      #expect(try await Self.get(proxy, client) == 5)
    }
  }

  @Test("requests are answered in the service's place, as many as told")
  func answers() async throws {
    try await withService { proxy, client in
      await proxy.answer(2, status: 429, retryAfter: 3)
      await proxy.answer(1, status: 503, method: "POST")
      #expect(try await Self.get(proxy, client) == 429)
      #expect(try await Self.get(proxy, client) == 429)
      #expect(try await Self.get(proxy, client) == 5, "the third answer is for a POST")
      let response = try await client.send(
        ClientRequest(method: "POST", url: proxy.url + "/", body: .bytes(Crypto.randomBytes(200_000))))
      #expect(response.status == 503)
      #expect(await proxy.interfered == 3)
    }
  }

  @Test("connections are refused until they are accepted again, on the same port")
  func refusal() async throws {
    try await withService { proxy, client in
      for _ in 0..<3 {
        #expect(try await Self.get(proxy, client) == 5)
        await proxy.refuse()
        let error = await #expect(throws: FerryError.self) { try await Self.get(proxy, client) }
        #expect(error?.didNotAct == true)
        try await proxy.accept()
      }
      #expect(try await Self.get(proxy, client) == 5)
    }
  }

  @Test("cutting ends a transfer under way")
  func cutting() async throws {
    try await withService { proxy, client in
      await proxy.throttle(bytesPerSecond: 10_000)
      let transfer = Task { try await Self.get(proxy, client, count: 1_000_000) }
      let response = try await client.send(ClientRequest(url: "\(proxy.url)/?count=1000000"))
      _ = try await response.body.next()
      await proxy.cut()
      await #expect(throws: FerryError.self) { try await response.collect(upTo: 10_000_000) }
      await #expect(throws: FerryError.self) { try await transfer.value }
    }
  }
}
