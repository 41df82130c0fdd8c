import FerryCore
import FerryRuntime
import FerryTransport
import Glibc
import Testing

/// A client on a loop of its own.
func withClient(
  guard addressGuard: AddressGuard = AddressGuard(), _ body: (HTTPClient) async throws -> Void
) async throws {
  let loop = try LoopExecutor(name: "client")
  defer { loop.stop() }
  try await body(HTTPClient(loop: loop, guard: addressGuard, logger: .silent))
}

@Suite(.timeLimit(.minutes(1)))
struct HTTPClientTests {
  private func failure(_ request: ClientRequest) async throws -> FerryError {
    var result: FerryError?
    try await withClient { client in
      result = await #expect(throws: FerryError.self) {
        let response = try await client.send(request)
        _ = try await response.collect(upTo: 1 << 20)
      }
    }
    return try #require(result)
  }

  @Test("a refused connection and an unknown name certainly did not act")
  func certain() async throws {
    let closed = try RawServer { _ in }.port
    let refused = try await failure(ClientRequest(method: "POST", url: "http://127.0.0.1:\(closed)/?secret=1"))
    #expect(refused.didNotAct && refused.retry == .now && refused.code == .unavailable)
    #expect(!refused.description.contains("secret"))
    let unknown = try await failure(ClientRequest(method: "POST", url: "http://me:pass@nobody.invalid/?secret=1"))
    #expect(unknown.didNotAct)
    #expect(unknown.description.contains("nobody.invalid"))
    #expect(!unknown.description.contains("pass") && !unknown.description.contains("secret"))
  }

  @Test("a peer that speaks no TLS certainly did not act")
  func noTLS() async throws {
    let server = try RawServer { connection in connection.write("HTTP/1.1 400 No\r\n\r\n") }
    let error = try await failure(ClientRequest(method: "POST", url: "https://127.0.0.1:\(server.port)/"))
    #expect(error.didNotAct)
  }

  @Test("a connection that ends after the request was read may have acted")
  func uncertain() async throws {
    for isReset in [false, true] {
      let server = try RawServer { connection in
        connection.readHead()
        if isReset { connection.reset() }
      }
      let url = "http://127.0.0.1:\(server.port)/"
      let error = try await failure(ClientRequest(method: "POST", url: url, body: .bytes([1])))
      #expect(!error.didNotAct && error.retry == .now)
    }
  }

  @Test("an answer that is cut short may have acted")
  func cutShort() async throws {
    let server = try RawServer { connection in
      connection.readHead()
      connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    }
    let error = try await failure(ClientRequest(method: "POST", url: "http://127.0.0.1:\(server.port)/"))
    #expect(!error.didNotAct)
  }

  @Test("a deadline that passes after sending may have acted")
  func deadline() async throws {
    let server = try RawServer { connection in
      connection.readHead()
      connection.waitForEnd()
    }
    let start = ContinuousClock.now
    let error = try await failure(
      ClientRequest(method: "POST", url: "http://127.0.0.1:\(server.port)/", deadline: .milliseconds(200)))
    #expect(error.code == .timedOut && !error.didNotAct)
    #expect(error.message.contains("200 ms"))
    #expect(start.duration(to: .now) < .seconds(25))
  }

  @Test("a post on a kept connection that turns out dead is not sent again behind our back")
  func noSilentRepeat() async throws {
    let server = try RawServer { connection in
      connection.readHead()
      connection.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
      // The second request is read and never answered.
      connection.readHead()
      connection.reset()
    }
    try await withClient { client in
      let url = "http://127.0.0.1:\(server.port)/"
      _ = try await client.send(ClientRequest(method: "POST", url: url)).collect(upTo: 10)
      let error = await #expect(throws: FerryError.self) {
        _ = try await client.send(ClientRequest(method: "POST", url: url)).collect(upTo: 10)
      }
      #expect(error?.didNotAct == false)
      #expect(server.connections <= 2)
    }
  }

  @Test("what went out on a kept connection may have acted, though a new one is refused", arguments: ["POST", "PUT"])
  func refusedAfterSending(method: String) async throws {
    let stopping = Locked<RawServer?>(nil)
    let server = try RawServer { connection in
      connection.readHead()
      connection.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
      // The service is killed while it acts.
      connection.readHead()
      stopping.withLock { $0 }?.stop()
      connection.reset()
    }
    stopping.withLock { $0 = server }
    try await withClient { client in
      let url = "http://127.0.0.1:\(server.port)/"
      _ = try await client.send(ClientRequest(method: method, url: url)).collect(upTo: 10)
      let error = await #expect(throws: FerryError.self) {
        _ = try await client.send(ClientRequest(method: method, url: url)).collect(upTo: 10)
      }
      #expect(error?.didNotAct == false)
      // What is asked for now has certainly not arrived.
      let later = await #expect(throws: FerryError.self) {
        _ = try await client.send(ClientRequest(method: method, url: url)).collect(upTo: 10)
      }
      #expect(later?.didNotAct == true)
    }
    stopping.withLock { $0 = nil }
  }

  @Test("connections are kept and used again")
  func reuse() async throws {
    let server = try RawServer { connection in
      while !connection.readHead().isEmpty { connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") }
    }
    try await withClient { client in
      for _ in 0..<5 {
        let response = try await client.send(ClientRequest(url: "http://127.0.0.1:\(server.port)/"))
        #expect(try await response.collect(upTo: 10) == Array("ok".utf8))
      }
      #expect(server.connections == 1)
    }
  }

  @Test("cancelling ends a request at once, before and after it has started")
  func cancellation() async throws {
    let arrived = BoundedChannel<Void>(capacity: 1)
    try await withBench(
      handler: { _ in
        await arrived.send(())
        _ = await BoundedChannel<Void>(capacity: 1).next()
        return .text("late")
      }
    ) { bench in
      let request = ClientRequest(method: "POST", url: bench.url("/"))
      let task = Task { try await bench.client.send(request).status }
      _ = await arrived.next()
      let start = ContinuousClock.now
      task.cancel()
      let result = await task.result
      #expect(start.duration(to: .now) < .seconds(25))
      #expect((try? result.get()) == nil)
      let early = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        return try await bench.client.send(request).status
      }
      let error = await #expect(throws: FerryError.self) { _ = try await early.value }
      #expect(error?.code == .cancelled && error?.didNotAct == true)
    }
  }

  @Test("a response that nobody reads is held back, and dropped with its stream")
  func responseBackPressure() async throws {
    let sent = Locked(0)
    try await withBench(
      handler: { _ in
        HTTPResponse(
          status: 200,
          body: .stream(
            ByteStream { () async throws(FerryError) -> [UInt8]? in
              sent.withLock { $0 += 65536 }
              return [UInt8](repeating: 0, count: 65536)
            }))
      }
    ) { bench in
      do {
        let response = try await bench.client.send(ClientRequest(url: bench.url("/")))
        _ = try await response.body.next()
        let last = Locked(-1)
        try await eventually("the sender stops") {
          let now = sent.withLock { $0 }
          _ = try? await blocking { usleep(50_000) }
          return last.withLock { last in
            defer { last = now }
            return last == now
          }
        }
        #expect(sent.withLock { $0 } < 32 << 20)
      }
      try await eventually("the connection is gone") { await bench.server.connections == 0 }
    }
  }

  @Test("headers, method, body and status pass unchanged, both ways")
  func fidelity() async throws {
    try await withBench(
      handler: { request in
        var response = await echo(request)
        response.status = 418
        response.headers.add("X-Twice", "1")
        response.headers.add("X-Twice", "2")
        response.headers.set("X-Got", request.headers.all("X-Mine").joined(separator: "|"))
        response.headers.set(
          "X-Length", request.headers["Content-Length"] ?? request.headers["Transfer-Encoding"] ?? "")
        return response
      }
    ) { bench in
      var headers: HTTPHeaders = ["X-Mine": "a"]
      headers.add("X-Mine", "ü")
      for body in [ClientRequest.Body.bytes(Array("body".utf8)), .stream(sized(4, Array("body".utf8)))] {
        let response = try await bench.client.send(
          ClientRequest(method: "PATCH", url: bench.url("/p?q"), headers: headers, body: body))
        #expect(response.status == 418)
        #expect(response.headers.all("x-twice") == ["1", "2"])
        #expect(response.headers["X-Got"] == "a|ü")
        #expect(response.headers["X-Length"] == "4")
        #expect(String(decoding: try await response.collect(upTo: 100), as: UTF8.self) == "PATCH /p?q\nbody")
      }
      let chunked = try await bench.client.send(
        ClientRequest(method: "PUT", url: bench.url("/p"), body: .stream(sized(nil, Array("body".utf8)))))
      #expect(chunked.headers["X-Length"] == "chunked")
      for method in ["GET", "DELETE", "POST", "PUT"] {
        let response = try await bench.client.send(ClientRequest(method: method, url: bench.url("/p")))
        #expect(String(decoding: try await response.collect(upTo: 100), as: UTF8.self) == "\(method) /p?\n")
      }
    }
  }

  @Test("a response whose head does not end is given up")
  func endlessHead() async throws {
    let server = try RawServer { connection in
      connection.readHead()
      connection.write("HTTP/1.1 200 OK\r\n")
      for _ in 0..<1000 { connection.write("X: \(String(repeating: "y", count: 1000))\r\n") }
      connection.waitForEnd()
    }
    let error = try await failure(ClientRequest(url: "http://127.0.0.1:\(server.port)/"))
    #expect(error.code == .unavailable && !error.didNotAct)
  }

  @Test("a line break in a header adds no header")
  func headerInjection() async throws {
    let handler: @Sendable (HTTPRequest) async -> HTTPResponse = { request in
      var response = HTTPResponse.text(request.headers["X-Evil"] ?? request.headers["X-Mine"] ?? "")
      response.headers.add("X-Back", "a\r\nX-Evil: 1")
      return response
    }
    try await withBench(handler: handler) { bench in
      let response = try await bench.client.send(
        ClientRequest(url: bench.url("/"), headers: ["X-Mine": "a\r\nX-Evil: 1"]))
      #expect(response.headers["X-Evil"] == nil)
      #expect(try await response.collect(upTo: 100) == Array("aX-Evil: 1".utf8))
    }
  }

  @Test("a request body whose source fails is not sent to its end, and the reason is told")
  func failingUpload() async throws {
    try await withBench(handler: echo) { bench in
      let stream = ByteStream(size: 100) { () async throws(FerryError) -> [UInt8]? in
        throw FerryError(.storage, "The disk is gone.")
      }
      let error = await #expect(throws: FerryError.self) {
        _ = try await bench.client.send(ClientRequest(method: "POST", url: bench.url("/"), body: .stream(stream)))
      }
      #expect(error?.code == .storage)
    }
  }

  @Test("redirects are followed only when asked, and not for ever")
  func redirects() async throws {
    try await withBench(
      handler: { request in
        request.path == "/end"
          ? .text("end")
          : HTTPResponse(status: 302, headers: ["Location": request.path == "/loop" ? "/loop" : "/end"])
      }
    ) { bench in
      #expect(try await bench.client.send(ClientRequest(url: bench.url("/"))).status == 302)
      let followed = try await bench.client.send(ClientRequest(url: bench.url("/"), redirects: 3))
      #expect(followed.status == 200)
      let endless = await #expect(throws: FerryError.self) {
        _ = try await bench.client.send(ClientRequest(url: bench.url("/loop"), redirects: 3)).status
      }
      #expect(endless?.message.contains("redirects more than 3 times") == true)
    }
  }

  @Test(
    "an address that is not http is refused",
    arguments: ["file:///etc/passwd", "gopher://a/", "nonsense", "", "http://"])
  func badURL(url: String) async throws {
    #expect(try await failure(ClientRequest(url: url)).code == .badRequest)
  }

  @Test("an untrusted URL does not lead to this machine, not even over a connection that a trusted one opened")
  func guardRefuses() async throws {
    try await withBench(handler: echo) { bench in
      let port = bench.port
      _ = try await bench.client.send(ClientRequest(url: bench.url("/"))).collect(upTo: 100)
      for host in ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"] {
        let error = await #expect(throws: FerryError.self) {
          _ = try await bench.client.send(ClientRequest(url: "http://\(host):\(port)/", isTrusted: false))
        }
        #expect(error?.code == .addressRefused, "\(host)")
        #expect(error?.didNotAct == true, "\(host)")
      }
    }
    try await withBench(guard: AddressGuard(allowedHosts: ["127.0.0.1"]), handler: echo) { bench in
      let response = try await bench.client.send(ClientRequest(url: bench.url("/"), isTrusted: false))
      #expect(response.status == 200)
    }
  }

  @Test("a redirect to a place that is not public is refused")
  func guardedRedirect() async throws {
    let target = try RawServer { connection in connection.readHead() }
    let port = target.port
    try await withBench(
      guard: AddressGuard(allowedHosts: ["localhost"]),
      handler: { _ in HTTPResponse(status: 302, headers: ["Location": "http://127.0.0.1:\(port)/"]) }
    ) { bench in
      let error = await #expect(throws: FerryError.self) {
        _ = try await bench.client.send(
          ClientRequest(url: "http://localhost:\(bench.port)/", redirects: 2, isTrusted: false))
      }
      #expect(error?.code == .addressRefused)
      #expect(target.connections == 0)
    }
  }
}
