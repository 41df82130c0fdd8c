import FerryCore
import FerryRuntime
import FerryTransport
import Glibc
import Testing

@Suite(.serialized, .timeLimit(.minutes(2)))
struct WebSocketTests {
  private static func socketHandler(
    _ settings: WebSocketSettings = WebSocketSettings(), _ serve: @escaping @Sendable (WebSocket) async -> Void
  ) -> @Sendable (HTTPRequest) async -> HTTPResponse {
    { _ in HTTPResponse(status: 101, body: .webSocket(subprotocol: nil, settings: settings, serve: serve)) }
  }

  static let echo = socketHandler { socket in
    while case .text(let text)? = await socket.next() { socket.send(text) }
  }

  @Test("a bad handshake is refused with the status for it")
  func badHandshakes() async throws {
    try await withBench(handler: Self.echo) { bench in
      var headers: HTTPHeaders = [
        "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "8",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
      ]
      let version = try await bench.client.send(ClientRequest(url: bench.url("/"), headers: headers))
      #expect(version.status == 426)
      #expect(version.headers["Sec-WebSocket-Version"] == "13")
      headers["Sec-WebSocket-Version"] = "13"
      #expect(
        try await bench.client.send(ClientRequest(method: "POST", url: bench.url("/"), headers: headers)).status == 400)
      headers["Sec-WebSocket-Key"] = "short"
      #expect(try await bench.client.send(ClientRequest(url: bench.url("/"), headers: headers)).status == 400)
      #expect(try await bench.client.send(ClientRequest(url: bench.url("/"))).status == 426)
    }
  }

  @Test("the accept header is the one of RFC 6455, and frames sent with the handshake are read")
  func rawHandshake() async throws {
    try await withBench(handler: Self.echo) { bench in
      let port = bench.port
      let (head, answer) = try await blocking {
        let socket = try RawSocket(port: port)
        try socket.write(
          Array(
            ("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"
              + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n").utf8)
            + RawSocket.frame(0x81, Array("early".utf8)))
        let head = try socket.read(until: "\r\n\r\n")
        return (head, try socket.readFrame().payload)
      }
      #expect(head.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"))
      #expect(answer == Array("early".utf8))
    }
  }

  @Test("client and server exchange messages and close")
  func bothSides() async throws {
    try await withBench(handler: Self.echo) { bench in
      let socket = try await bench.client.webSocket(bench.socketURL("/"))
      for index in 0..<1000 { #expect(socket.send("message \(index)")) }
      for index in 0..<1000 { #expect(await socket.next() == .text("message \(index)")) }
      socket.close(code: 1000, reason: "bye")
      #expect(!socket.send("late"))
      while await socket.next() != nil {}
      try await eventually("both are closed") { await bench.server.connections == 0 && socket.closing?.code == 1000 }
    }
  }

  @Test("one encoded frame reaches many sockets")
  func fanOut() async throws {
    let sockets = Locked<[WebSocket]>([])
    try await withBench(
      handler: Self.socketHandler { socket in
        sockets.withLock { $0.append(socket) }
        while await socket.next() != nil {}
      }
    ) { bench in
      var clients: [WebSocket] = []
      for _ in 0..<200 { clients.append(try await bench.client.webSocket(bench.socketURL("/"))) }
      try await eventually("all are known") { sockets.withLock { $0.count } == 200 }
      for round in 0..<50 {
        let frame = EncodedFrame(text: "round \(round)")
        for socket in sockets.withLock({ $0 }) { #expect(socket.send(frame)) }
      }
      for client in clients {
        for round in 0..<50 { #expect(await client.next() == .text("round \(round)")) }
        client.close()
      }
    }
  }

  @Test("a reader that is too slow is dropped, and others are not held up")
  func slowReader() async throws {
    let dropped = BoundedChannel<Int>(capacity: 1)
    try await withBench(
      handler: Self.socketHandler(WebSocketSettings(queueBytes: 1 << 20)) { socket in
        let text = String(repeating: "x", count: 10_000)
        var sent = 0
        while socket.send(text) { sent += 1 }
        await dropped.send(sent)
      }
    ) { bench in
      let slow = try RawSocket(port: bench.port)
      _ = try await blocking { try slow.openWebSocket() }
      let sent = try #require(await dropped.next())
      #expect(sent > 100 && sent < 5000)
      try await eventually("it is gone") { await bench.server.connections == 0 }
    }
  }

  @Test("a slow reader that reads on learns why it was dropped, and one that does not is gone after a while")
  func slowReaderIsTold() async throws {
    let settings = WebSocketSettings(
      queueBytes: 1 << 18, slowCode: 4100, slowReason: "too slow", closeTimeout: .seconds(20))
    let dropped = BoundedChannel<Int>(capacity: 1)
    let handler = Self.socketHandler(settings) { socket in
      let text = String(repeating: "x", count: 10_000)
      var sent = 0
      while socket.send(text) { sent += 1 }
      await dropped.send(sent)
    }
    try await withBench(handler: handler) { bench in
      let socket = try await bench.client.webSocket(bench.socketURL("/"))
      let sent = try #require(await dropped.next())
      var received = 0
      while case .text(let text)? = await socket.next() {
        // Whole to the last.
        #expect(text.utf8.count == 10_000)
        received += 1
      }
      #expect(received <= sent)
      #expect(socket.closing?.code == 4100)
      #expect(socket.closing?.reason == "too slow")
    }
    var impatient = settings
    impatient.closeTimeout = .milliseconds(50)
    let deaf = BoundedChannel<Void>(capacity: 1)
    try await withBench(
      handler: Self.socketHandler(impatient) { socket in
        while socket.send(String(repeating: "x", count: 10_000)) {}
        await deaf.send(())
      }
    ) { bench in
      let slow = try RawSocket(port: bench.port)
      _ = try await blocking { try slow.openWebSocket() }
      _ = await deaf.next()
      try await eventually("it is gone") { await bench.server.connections == 0 }
    }
  }

  @Test("sendWaiting waits for a slow reader instead")
  func sendWaiting() async throws {
    try await withBench(
      handler: Self.socketHandler(WebSocketSettings(queueBytes: 1 << 18)) { socket in
        for index in 0..<2000 {
          guard await socket.sendWaiting("\(index) " + String(repeating: "x", count: 10_000)) else { return }
        }
      }
    ) { bench in
      let socket = try await bench.client.webSocket(bench.socketURL("/"))
      var count = 0
      while case .text(let text)? = await socket.next() {
        #expect(text.hasPrefix("\(count) "))
        count += 1
      }
      #expect(count == 2000)
      #expect(socket.closing?.code == 1000)
    }
  }

  @Test("a receiver that lags holds back the sender")
  func receiverBackPressure() async throws {
    let go = BoundedChannel<Void>(capacity: 1)
    try await withBench(
      handler: Self.socketHandler { socket in
        _ = await go.next()
        var count = 0
        while await socket.next() != nil { count += 1 }
      }
    ) { bench in
      let port = bench.port
      let sent = try await blocking {
        let socket = try RawSocket(port: port, seconds: 1)
        _ = try socket.openWebSocket()
        let frame = RawSocket.frame(0x82, [UInt8](repeating: 1, count: 10_000))
        var sent = 0
        while sent < 5000, (try? socket.write(frame)) != nil { sent += 1 }
        return sent
      }
      #expect(sent < 2000)
      await go.send(())
    }
  }

  @Test("a silent peer is pinged, and closed when no pong comes")
  func deadPeer() async throws {
    let settings = WebSocketSettings(
      pingAfter: .milliseconds(50), pongTimeout: .milliseconds(100), deadCode: 4201,
      deadReason: "Pong reply not received",
      closeTimeout: .milliseconds(100))
    let ended = BoundedChannel<UInt16>(capacity: 4)
    try await withBench(
      handler: Self.socketHandler(settings) { socket in
        while await socket.next() != nil {}
        await ended.send(socket.closing?.code ?? 0)
      }
    ) { bench in
      let port = bench.port
      let frames = try await blocking {
        let socket = try RawSocket(port: port)
        _ = try socket.openWebSocket()
        let ping = try socket.readFrame()
        // Any traffic counts as life.
        try socket.write(RawSocket.frame(0x8a, []))
        let second = try socket.readFrame()
        return [ping, second, try socket.readFrame()]
      }
      #expect(frames.map(\.first) == [0x89, 0x89, 0x88])
      #expect(frames[2].payload == [0x10, 0x69] + Array("Pong reply not received".utf8))
      #expect(await ended.next() == 1006)
    }
  }

  @Test("a peer that answers pings stays")
  func livePeer() async throws {
    let settings = WebSocketSettings(pingAfter: .milliseconds(20), pongTimeout: .milliseconds(500))
    try await withBench(handler: Self.socketHandler(settings) { socket in while await socket.next() != nil {} }) {
      bench in
      let port = bench.port
      let pings = try await blocking {
        let socket = try RawSocket(port: port)
        _ = try socket.openWebSocket()
        for _ in 0..<10 {
          let ping = try socket.readFrame()
          guard ping.first == 0x89 else { return false }
          try socket.write(RawSocket.frame(0x8a, ping.payload))
        }
        return true
      }
      #expect(pings)
    }
  }

  @Test("more messages than allowed a second are read more slowly, none lost")
  func throttled() async throws {
    let settings = WebSocketSettings(messagesPerSecond: 100)
    try await withBench(handler: { request in
      HTTPResponse(
        status: 101,
        body: .webSocket(subprotocol: nil, settings: settings) { socket in
          while case .text(let text)? = await socket.next() { socket.send(text) }
        })
    }) { bench in
      let socket = try await bench.client.webSocket(bench.socketURL("/"))
      let start = ContinuousClock.now
      for round in 0..<5 {
        for index in 0..<50 { socket.send("\(round) \(index)") }
        for index in 0..<50 { #expect(await socket.next() == .text("\(round) \(index)")) }
      }
      #expect(start.duration(to: .now) > .milliseconds(500))
      socket.close()
    }
  }

  @Test("a server that stops closes its sockets with its stop code")
  func stopCode() async throws {
    let loop = try LoopExecutor(name: "stop")
    let server = try HTTPServer(
      .init(), loop: loop, logger: .silent,
      handler: Self.socketHandler(WebSocketSettings(stopCode: 4200, stopReason: "come back")) { socket in
        while await socket.next() != nil {}
      })
    let running = Task { await server.run() }
    let client = HTTPClient(loop: loop, logger: .silent)
    let socket = try await client.webSocket("ws" + server.url.dropFirst(4))
    running.cancel()
    #expect(await socket.next() == nil)
    try await eventually("closed") { socket.closing?.code == 4200 && socket.closing?.reason == "come back" }
    await running.value
    loop.stop()
  }

  @Test("random bytes, truncated and broken frames end one socket and disturb no other")
  func garbage() async throws {
    try await withBench(handler: Self.echo) { bench in
      let good = try await bench.client.webSocket(bench.socketURL("/"))
      let port = bench.port
      for round in 0..<50 {
        _ = try await blocking {
          let socket = try RawSocket(port: port, seconds: 1)
          _ = try socket.openWebSocket()
          var random = SystemRandomNumberGenerator()
          try? socket.write((0..<(round * 50 + 1)).map { _ in UInt8.random(in: 0...255, using: &random) })
          socket.finishWriting()
          _ = try? socket.readAll()
        }
        good.send("\(round)")
        #expect(await good.next() == .text("\(round)"))
      }
      good.close()
      try await eventually("all are gone") { await bench.server.connections == 0 }
    }
  }
}
