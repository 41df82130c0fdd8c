import FerryCore
import FerryRuntime
import FerryTransport
import Testing

/// The `websockets` library of PyPI at the other side.
@Suite(.enabled(if: PeerProcess.isAvailable, PeerProcess.advice), .timeLimit(.minutes(1)))
struct ConformanceTests {
  static let settings = WebSocketSettings(messageBytes: 2 << 20, queueBytes: 8 << 20, closeTimeout: .seconds(2))

  @Test("our server passes the library's cases")
  func server() async throws {
    let handler: @Sendable (HTTPRequest) async -> HTTPResponse = { request in
      let isChat = request.headers.list("Sec-WebSocket-Protocol", contains: "chat")
      return HTTPResponse(
        status: 101,
        body: .webSocket(subprotocol: isChat ? "chat" : nil, settings: Self.settings) { socket in
          while let message = await socket.next() {
            switch message {
            case .text(let text): socket.send(text)
            case .binary(let bytes): socket.send(bytes)
            }
          }
        })
    }
    try await withBench(handler: handler) { bench in
      let peer = try PeerProcess("websockets/client.py", bench.socketURL("/"))
      var count = 0
      while let line = try await peer.line() {
        #expect(line.hasPrefix("ok "), "\(line)")
        count += 1
      }
      #expect(count == 21)
    }
  }

  /// What the peer saw, after the client has met it at `path`.
  private func meet(
    _ path: String, subprotocols: [String] = [], _ body: @Sendable (WebSocket) async throws -> Void = { _ in }
  ) async throws -> (closing: (code: UInt16, reason: String)?, seen: [String]) {
    let loop = try LoopExecutor(name: "client")
    defer { loop.stop() }
    let client = HTTPClient(loop: loop, logger: .silent)
    let peer = try PeerProcess("websockets/server.py")
    let port = try #require(try await peer.line())
    let socket = try await client.webSocket(
      "ws://127.0.0.1:\(port)\(path)", subprotocols: subprotocols, settings: Self.settings)
    try await body(socket)
    while await socket.next() != nil {}
    var seen: [String] = []
    if path != "/vanish" {
      while let line = try await peer.line() {
        seen.append(line)
        if line.contains("closed") { break }
      }
    }
    return (socket.closing, seen)
  }

  @Test("messages of all sizes come back")
  func echo() async throws {
    let met = try await meet("/echo") { socket in
      for size in [0, 1, 125, 126, 65535, 65536, 1 << 20] {
        let text = String(repeating: "x", count: size)
        #expect(socket.send(text))
        #expect(await socket.next() == .text(text))
        #expect(socket.send([UInt8](repeating: 255, count: size)))
        #expect(await socket.next() == .binary([UInt8](repeating: 255, count: size)))
      }
      socket.close(code: 4321, reason: "enough")
    }
    #expect(met.seen == ["/echo closed 4321"])
  }

  @Test("control frames between fragments are answered, and the close code arrives")
  func fragments() async throws {
    let met = try await meet("/fragments") { socket in #expect(await socket.next() == .text("abc")) }
    #expect(met.seen == ["/fragments PONG p1 PONG p2", "/fragments closed 4001"])
    #expect(met.closing?.code == 4001)
    #expect(met.closing?.reason == "done")
  }

  @Test("frames that arrive byte by byte, or with the handshake, are read")
  func pieces() async throws {
    _ = try await meet("/bytewise") { socket in
      #expect(await socket.next() == .text("Grüße"))
      socket.close()
    }
    _ = try await meet("/early") { socket in
      #expect(await socket.next() == .text("early"))
      socket.close()
    }
  }

  @Test(
    "what breaks the protocol is answered with the code for it",
    arguments: [
      ("/invalid-utf8", 1007), ("/oversized", 1009), ("/rsv", 1002), ("/masked", 1002), ("/fragmented-ping", 1002),
    ])
  func violations(path: String, code: Int) async throws {
    let met = try await meet(path)
    #expect(met.seen == ["\(path) closed \(code)"])
    #expect(met.closing?.code == 1006)
  }

  @Test("a server that vanishes closed with 1006, one that names no code with 1005")
  func endings() async throws {
    #expect(try await meet("/vanish").closing?.code == 1006)
    #expect(try await meet("/no-code").closing?.code == 1005)
  }

  @Test("the subprotocol that the server chose is known")
  func subprotocol() async throws {
    _ = try await meet("/echo", subprotocols: ["other", "chat"]) { socket in
      #expect(socket.subprotocol == "chat")
      socket.close()
    }
  }

  @Test(
    "a refused or false handshake is an error", arguments: [("/refused", "forbidden"), ("/bad-accept", "bad_data")])
  func handshakes(path: String, label: String) async throws {
    let error = await #expect(throws: FerryError.self) { _ = try await meet(path) }
    #expect(error?.code.label == label)
  }
}
