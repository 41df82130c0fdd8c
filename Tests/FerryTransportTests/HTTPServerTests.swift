import FerryCore
import FerryRuntime
import FerryTransport
import Glibc
import Testing

/// Answers with what it was asked: a line of method, path and query, then the body.
@Sendable func echo(_ request: HTTPRequest) async -> HTTPResponse {
  do {
    let body = try await request.body.collect(upTo: 16 << 20)
    let line = "\(request.method) \(request.path)?\(request.rawQuery)\n"
    return HTTPResponse(status: 200, headers: ["Content-Type": "text/plain"], body: .bytes(Array(line.utf8) + body))
  } catch {
    return .error(error)
  }
}

@Suite(.timeLimit(.minutes(1)))
struct HTTPServerTests {
  @Test("a request is answered with what its handler returns")
  func simple() async throws {
    try await withBench(handler: echo) { bench in
      let response = try await bench.client.send(ClientRequest(url: bench.url("/a%20b/c?x=1&y=%26")))
      #expect(response.status == 200)
      #expect(response.headers["server"] == "ferry")
      #expect(response.headers["Date"] != nil)
      let text = String(decoding: try await response.collect(upTo: 1000), as: UTF8.self)
      #expect(text == "GET /a%20b/c?x=1&y=%26\n")
    }
  }

  @Test("one connection serves requests one after the other, and pipelined ones in order")
  func keepAliveAndPipelining() async throws {
    try await withBench(handler: echo) { bench in
      let port = bench.port
      let answers = try await blocking {
        let socket = try RawSocket(port: port)
        try socket.write("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n")
        let first = try socket.read(until: "GET /1?\n")
        try socket.write(
          "POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /3 HTTP/1.1\r\nHost: a\r\n\r\n"
            + "POST /4 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nxy\r\n1\r\nz\r\n0\r\n\r\n"
            + "GET /5 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        return (first, try socket.readAll())
      }
      #expect(answers.0.hasPrefix("HTTP/1.1 200 OK\r\n"))
      let bodies = answers.1.split(separator: "\n").filter { $0.contains("?") || $0.contains("xyz") }
      #expect(answers.1.contains("POST /2?\nabcHTTP/1.1 200"))
      #expect(answers.1.contains("POST /4?\nxyzHTTP/1.1 200"))
      #expect(answers.1.hasSuffix("GET /5?\n"))
      #expect(bodies.count == 4)
    }
  }

  @Test("HEAD gets the head only, with the length of the body")
  func head() async throws {
    try await withBench(handler: { _ in .text("12345") }) { bench in
      let response = try await bench.client.send(ClientRequest(method: "HEAD", url: bench.url("/")))
      #expect(response.headers["Content-Length"] == "5")
      #expect(try await response.collect(upTo: 10).isEmpty)
    }
  }

  @Test("a client that asks first is told to go on only when the handler wants the body")
  func expectContinue() async throws {
    let handler: @Sendable (HTTPRequest) async -> HTTPResponse = { request in
      request.path == "/no" ? .text("no", status: 401) : await echo(request)
    }
    try await withBench(handler: handler) { bench in
      let port = bench.port
      let (accepted, refused) = try await blocking {
        let head = "HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
        let socket = try RawSocket(port: port)
        try socket.write("PUT /yes \(head)")
        let interim = try socket.read(until: "\r\n\r\n")
        try socket.write("hello")
        let other = try RawSocket(port: port)
        try other.write("PUT /no \(head)")
        return (interim + (try socket.read(until: "hello")), try other.read(until: "no"))
      }
      #expect(accepted.hasPrefix("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK"))
      #expect(refused.hasPrefix("HTTP/1.1 401"))
    }
  }

  @Test("a sender is held back while the handler does not read")
  func uploadBackPressure() async throws {
    let go = BoundedChannel<Void>(capacity: 1)
    let handler: @Sendable (HTTPRequest) async -> HTTPResponse = { request in
      _ = try? await request.body.next()
      _ = await go.next()
      return await echo(request)
    }
    try await withBench(handler: handler) { bench in
      let port = bench.port
      let sent = try await blocking {
        let socket = try RawSocket(port: port, seconds: 1)
        try socket.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 50000000\r\n\r\n")
        var sent = 0
        do {
          while true {
            try socket.write([UInt8](repeating: 1, count: 65536))
            sent += 65536
          }
        } catch {}
        return sent
      }
      #expect(sent < 20_000_000)
      await go.send(())
    }
  }

  @Test("a body over the limit is answered with 413 and the limit, declared or chunked")
  func tooLarge() async throws {
    var settings = HTTPServer.Settings()
    settings.bodyBytes = 1000
    try await withBench(settings, handler: echo) { bench in
      let declared = try await bench.client.send(
        ClientRequest(method: "POST", url: bench.url("/"), body: .bytes([UInt8](repeating: 1, count: 1001))))
      #expect(declared.status == 413)
      #expect(String(decoding: try await declared.collect(upTo: 1000), as: UTF8.self).contains("1000 bytes"))
      let chunked = try await bench.client.send(
        ClientRequest(
          method: "POST", url: bench.url("/"), body: .stream(sized(nil, [UInt8](repeating: 1, count: 1500)))))
      #expect(chunked.status == 413)
      let exact = try await bench.client.send(
        ClientRequest(method: "POST", url: bench.url("/"), body: .bytes([UInt8](repeating: 65, count: 1000))))
      #expect(exact.status == 200)
    }
  }

  @Test("a request with two lengths is refused and its connection closed")
  func smuggling() async throws {
    try await withBench(handler: echo) { bench in
      let port = bench.port
      let answer = try await blocking {
        let socket = try RawSocket(port: port)
        try socket.write(
          "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n"
            + "0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: a\r\n\r\n")
        return try socket.readAll()
      }
      #expect(answer.hasPrefix("HTTP/1.1 400"))
      #expect(!answer.contains("hidden"))
    }
  }

  @Test("headers over the limit are refused, and the connection of another is undisturbed")
  func headersTooLarge() async throws {
    try await withBench(handler: echo) { bench in
      let port = bench.port
      let answer = try await blocking {
        let socket = try RawSocket(port: port)
        try socket.write("GET / HTTP/1.1\r\nHost: a\r\nBig: \(String(repeating: "x", count: 100_000))\r\n\r\n")
        return try socket.readAll()
      }
      #expect(answer.hasPrefix("HTTP/1.1 431") || answer.isEmpty)
      #expect(try await bench.client.send(ClientRequest(url: bench.url("/"))).status == 200)
    }
  }

  @Test("headers that trickle in are cut off after the idle timeout")
  func slowHeaders() async throws {
    var settings = HTTPServer.Settings()
    settings.idleTimeout = .milliseconds(400)
    try await withBench(settings, handler: echo) { bench in
      let port = bench.port
      let time = try await blocking {
        let start = ContinuousClock.now
        let socket = try RawSocket(port: port)
        try socket.write("GET / HTTP/1.1\r\n")
        do {
          while start.duration(to: .now) < .seconds(50) {
            try socket.write("X: y\r\n")
            usleep(50_000)
          }
        } catch {}
        return start.duration(to: .now)
      }
      #expect(time < .seconds(30))
    }
  }

  @Test("a body that trickles in is cut off")
  func slowBody() async throws {
    var settings = HTTPServer.Settings()
    settings.idleTimeout = .milliseconds(400)
    try await withBench(settings, handler: echo) { bench in
      let port = bench.port
      let time = try await blocking {
        let start = ContinuousClock.now
        let socket = try RawSocket(port: port)
        try socket.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n")
        while start.duration(to: .now) < .seconds(50), (try? socket.write("x")) != nil { usleep(200_000) }
        return start.duration(to: .now)
      }
      #expect(time < .seconds(30))
    }
  }

  @Test("a body that is read after the answer fails instead of looking complete")
  func lateBody() async throws {
    let bodies = BoundedChannel<ByteStream>(capacity: 1)
    let handler: @Sendable (HTTPRequest) async -> HTTPResponse = { request in
      await bodies.send(request.body)
      return .text("no")
    }
    try await withBench(handler: handler) { bench in
      let body = ClientRequest.Body.bytes([UInt8](repeating: 1, count: 500_000))
      #expect(try await bench.client.send(ClientRequest(method: "POST", url: bench.url("/"), body: body)).status == 200)
      let late = try #require(await bodies.next())
      await #expect(throws: FerryError.self) { _ = try await late.collect(upTo: 1 << 20) }
    }
  }

  @Test("an address gets no more connections than allowed, WebSockets counted")
  func connectionLimit() async throws {
    var settings = HTTPServer.Settings()
    settings.connectionsPerAddress = 3
    let handler: @Sendable (HTTPRequest) async -> HTTPResponse = { _ in
      HTTPResponse(
        status: 101,
        body: .webSocket(subprotocol: nil, settings: WebSocketSettings()) { socket in
          while await socket.next() != nil {}
        })
    }
    try await withBench(settings, handler: handler) { bench in
      let port = bench.port
      let isRefused = try await blocking {
        let sockets = try (0..<3).map { _ in try RawSocket(port: port) }
        for socket in sockets { _ = try socket.openWebSocket() }
        let extra = try RawSocket(port: port)
        return (try? extra.openWebSocket()) == nil && sockets.count == 3
      }
      #expect(isRefused)
      try await eventually("all gone") { await bench.server.connections == 0 }
      let isAccepted = try await blocking { try RawSocket(port: port).openWebSocket().hasPrefix("HTTP/1.1 101") }
      #expect(isAccepted)
    }
  }

  @Test("a client that goes away cancels its handler")
  func clientGoesAway() async throws {
    let started = BoundedChannel<Void>(capacity: 1)
    let cancelled = BoundedChannel<Void>(capacity: 1)
    let handler: @Sendable (HTTPRequest) async -> HTTPResponse = { _ in
      await started.send(())
      _ = await BoundedChannel<Void>(capacity: 1).next()
      _ = cancelled.offer(())
      return .text("too late")
    }
    try await withBench(handler: handler) { bench in
      let socket = Locked<RawSocket?>(try RawSocket(port: bench.port))
      try socket.withLock { try $0?.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n") }
      _ = await started.next()
      socket.withLock { $0 = nil }
      #expect(await cancelled.next() != nil)
    }
  }

  @Test("a port in use is named")
  func portInUse() async throws {
    try await withBench(handler: echo) { bench in
      let error = #expect(throws: FerryError.self) {
        _ = try HTTPServer(.init(port: bench.port), loop: bench.loop, logger: .silent, handler: echo)
      }
      #expect(error?.message.contains("Port \(bench.port) is in use") == true)
    }
  }

  @Test("stopping lets a request in flight end and refuses new connections")
  func gracefulStop() async throws {
    let started = BoundedChannel<Void>(capacity: 1)
    let go = BoundedChannel<Void>(capacity: 1)
    let loop = try LoopExecutor(name: "stop")
    let server = try HTTPServer(.init(), loop: loop, logger: .silent) { _ in
      await started.send(())
      _ = await go.next()
      return .text("done")
    }
    let client = HTTPClient(loop: loop, logger: .silent)
    let running = Task { await server.run() }
    let answer = Task { try await client.send(ClientRequest(url: server.url)).collect(upTo: 100) }
    _ = await started.next()
    running.cancel()
    try await eventually("refused") { (try? RawSocket(port: server.port)) == nil }
    await go.send(())
    #expect(try await answer.value == Array("done".utf8))
    await running.value
    loop.stop()
  }

  @Test("stopping ends also beside handlers and answers that never do", arguments: [true, false])
  func stubbornStop(isStream: Bool) async throws {
    let started = BoundedChannel<Void>(capacity: 1)
    let never = BoundedChannel<[UInt8]>(capacity: 1)
    let loop = try LoopExecutor(name: "stop")
    let server = try HTTPServer(.init(stopTimeout: .milliseconds(20)), loop: loop, logger: .silent) { _ in
      if isStream {
        let body = ByteStream {
          await started.send(())
          return await Task { await never.next() }.value
        }
        return HTTPResponse(status: 200, headers: [:], body: .stream(body))
      }
      await started.send(())
      _ = await Task { await never.next() }.value
      return .text("late")
    }
    let running = Task { await server.run() }
    let socket = try RawSocket(port: server.port)
    try socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    _ = await started.next()
    running.cancel()
    await running.value
    never.finish()
    loop.stop()
  }

  @Test("garbage on the port disturbs nobody else")
  func garbage() async throws {
    try await withBench(handler: echo) { bench in
      let port = bench.port
      for round in 0..<20 {
        try await blocking {
          let socket = try RawSocket(port: port)
          var random = SystemRandomNumberGenerator()
          try? socket.write((0..<(round * 997 + 1)).map { _ in UInt8.random(in: 0...255, using: &random) })
          socket.finishWriting()
          _ = try? socket.readAll()
        }
        #expect(try await bench.client.send(ClientRequest(url: bench.url("/"))).status == 200)
      }
    }
  }
}

/// Bytes as a stream that declares `size`.
func sized(_ size: Int64?, _ bytes: [UInt8]) -> ByteStream {
  let rest = Locked<[UInt8]?>(bytes)
  return ByteStream(size: size) { () async throws(FerryError) -> [UInt8]? in
    rest.withLock { rest in
      defer { rest = nil }
      return rest
    }
  }
}
