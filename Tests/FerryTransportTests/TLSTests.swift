import FerryCore
import FerryRuntime
import Glibc
import Testing

@testable import FerryTransport

@Suite(.timeLimit(.minutes(1)))
struct TLSTests {
  /// Made for these tests alone, for 127.0.0.1 and localhost, valid until 2126.
  private static let certificate = """
    -----BEGIN CERTIFICATE-----
    MIIBmzCCAUGgAwIBAgIUNloLTJKUGXzVtoSafzSwfvEt3lgwCgYIKoZIzj0EAwIw
    FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEzMDEwMzEyNVoYDzIxMjYxMTA2
    MTAzMTI1WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
    PQMBBwNCAATCnkZ0HB2O/1yg7DnNNF1QznjlJj+M4Yu/P0he6IUYrkzPmM8ipc86
    kTp1m3+XGTMOUmbkferAITh/dHv6jG3Oo28wbTAdBgNVHQ4EFgQU0vm3TmIyt9xM
    S+L8iftNiaEdw2EwHwYDVR0jBBgwFoAU0vm3TmIyt9xMS+L8iftNiaEdw2EwDwYD
    VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARhwR/AAABgglsb2NhbGhvc3QwCgYIKoZI
    zj0EAwIDSAAwRQIhAOy367Af4VsNeZg5XC+8quqXtjCBVwHRp5rzXCLz448NAiBj
    +WCskeuU4TbRxrbuee/Bc4Aeg2ajKnyJIsMvlcB/EA==
    -----END CERTIFICATE-----
    """
  private static let key = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg55P3HIUmdq1XW+CW
    JG6clBTF9M/VqHYgHk0p2U4vsqOhRANCAATCnkZ0HB2O/1yg7DnNNF1QznjlJj+M
    4Yu/P0he6IUYrkzPmM8ipc86kTp1m3+XGTMOUmbkferAITh/dHv6jG3O
    -----END PRIVATE KEY-----
    """

  private func withTLS(
    handler: @escaping @Sendable (HTTPRequest) async -> HTTPResponse,
    _ body: (HTTPServer, HTTPClient, _ untrusting: HTTPClient) async throws -> Void
  ) async throws {
    let folder = "\(Temporary.folder)/ferry-tls-\(Crypto.randomHex(bytes: 8))"
    mkdir(folder, 0o700)
    defer {
      unlink("\(folder)/cert.pem")
      unlink("\(folder)/key.pem")
      rmdir(folder)
    }
    try write(Self.certificate, to: "\(folder)/cert.pem")
    try write(Self.key, to: "\(folder)/key.pem")
    let settings = HTTPServer.Settings(certificateFile: "\(folder)/cert.pem", keyFile: "\(folder)/key.pem")
    let loop = try LoopExecutor(name: "tls")
    let server = try HTTPServer(settings, loop: loop, logger: .silent, handler: handler)
    let running = Task { await server.run() }
    let environment = ClientEnvironment { $0 == "SSL_CERT_FILE" ? "\(folder)/cert.pem" : nil }
    let result: Result<Void, any Error>
    do {
      result = .success(
        try await body(
          server, HTTPClient(loop: loop, environment: environment),
          HTTPClient(loop: loop, environment: ClientEnvironment { _ in nil })))
    } catch {
      result = .failure(error)
    }
    running.cancel()
    await running.value
    loop.stop()
    try result.get()
  }

  private func write(_ text: String, to path: String) throws {
    guard let file = fopen(path, "we") else { throw SocketFailure(what: "fopen: \(errno)") }
    fputs(text + "\n", file)
    fclose(file)
  }

  private enum Temporary {
    static let folder = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
  }

  @Test("requests, large bodies and WebSockets pass over TLS")
  func overTLS() async throws {
    let handler: @Sendable (HTTPRequest) async -> HTTPResponse = { request in
      guard request.path == "/socket" else { return request.isSecure ? await echo(request) : .text("", status: 500) }
      return HTTPResponse(
        status: 101,
        body: .webSocket(subprotocol: nil, settings: WebSocketSettings(messageBytes: 4 << 20, queueBytes: 8 << 20)) {
          socket in
          while case .text(let text)? = await socket.next() { socket.send(text) }
        })
    }
    try await withTLS(handler: handler) { server, client, _ in
      #expect(server.url.hasPrefix("https://"))
      let body = [UInt8](repeating: 65, count: 3 << 20)
      let response = try await client.send(
        ClientRequest(method: "POST", url: server.url + "/x", body: .stream(sized(nil, body))))
      #expect(try await response.collect(upTo: 4 << 20) == Array("POST /x?\n".utf8) + body)
      let socket = try await client.webSocket(
        "wss" + server.url.dropFirst(5) + "/socket",
        settings: WebSocketSettings(messageBytes: 4 << 20, queueBytes: 8 << 20))
      for size in [0, 10, 70_000, 200_000] {
        let text = String(repeating: "x", count: size)
        #expect(socket.send(text))
        #expect(await socket.next() == .text(text))
      }
      for index in 0..<500 { #expect(socket.send("\(index)")) }
      for index in 0..<500 { #expect(await socket.next() == .text("\(index)")) }
      socket.close(code: 1000, reason: "")
      try await eventually("closed") { socket.closing?.code == 1000 }
    }
  }

  @Test("a WebSocket outlives the deadline for opening it")
  func deadline() async throws {
    let settings = WebSocketSettings(pingAfter: .milliseconds(8500))
    let handler: @Sendable (HTTPRequest) async -> HTTPResponse = { _ in
      HTTPResponse(
        status: 101,
        body: .webSocket(subprotocol: nil, settings: WebSocketSettings()) { socket in
          while case .text(let text)? = await socket.next() { socket.send(text) }
        })
    }
    try await withTLS(handler: handler) { server, client, _ in
      let socket = try await client.webSocket(
        "wss" + server.url.dropFirst(5), settings: settings, deadline: .seconds(8))
      let start = ContinuousClock.now
      try await eventually("the deadline is over") { start.duration(to: .now) > .seconds(9) }
      socket.send("still here")
      #expect(await socket.next() == .text("still here"))
      socket.close()
    }
  }

  @Test("a certificate that nobody vouches for is refused before anything is sent")
  func untrusted() async throws {
    try await withTLS(handler: echo) { server, _, untrusting in
      let error = await #expect(throws: FerryError.self) {
        _ = try await untrusting.send(ClientRequest(method: "POST", url: server.url + "/"))
      }
      #expect(error?.didNotAct == true)
      #expect(error?.message.contains("not trusted") == true)
    }
  }

  @Test("certificate files that are missing or hold nonsense are named")
  func badFiles() throws {
    let loop = try LoopExecutor(name: "tls")
    defer { loop.stop() }
    let missing = #expect(throws: FerryError.self) {
      _ = try HTTPServer(
        .init(certificateFile: "/nowhere/c.pem", keyFile: "/nowhere/k.pem"), loop: loop, logger: .silent, handler: echo)
    }
    #expect(missing?.message.contains("/nowhere/c.pem") == true)
    let nonsense = #expect(throws: FerryError.self) {
      let file = "\(PeerProcess.root)/Package.swift"
      _ = try HTTPServer(.init(certificateFile: file, keyFile: file), loop: loop, logger: .silent, handler: echo)
    }
    #expect(nonsense?.code == .badConfiguration)
  }
}

@Suite(.timeLimit(.minutes(1)))
struct ProxyTests {
  @Test("the environment's proxy is used, but not for this machine nor for what NO_PROXY names")
  func environment() {
    let environment = ClientEnvironment {
      ["https_proxy": "http://p:1", "NO_PROXY": "corp.example", "HTTP_PROXY": "http://ignored:2"][$0]
    }
    #expect(environment.proxy(for: "https") == "http://p:1")
    #expect(environment.proxy(for: "http") == nil)
    #expect(environment.noProxy == "corp.example,localhost,127.0.0.0/8,::1")
    #expect(ClientEnvironment { $0 == "no_proxy" ? "*" : nil }.noProxy == "*")
  }

  @Test("an untrusted request through a proxy names no private place")
  func guarded() async throws {
    let proxy = try RawServer { connection in
      connection.readHead()
      connection.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nproxy")
    }
    let port = proxy.port
    let loop = try LoopExecutor(name: "proxy")
    defer { loop.stop() }
    let client = HTTPClient(
      loop: loop, environment: ClientEnvironment { $0 == "http_proxy" ? "http://127.0.0.1:\(port)" : nil })
    let response = try await client.send(ClientRequest(url: "http://files.example/", isTrusted: false))
    #expect(try await response.collect(upTo: 10) == Array("proxy".utf8))
    for host in ["10.0.0.1", "localhost", "metadata.internal", "intranet", "[fd00::1]", "0xa9fea9fe"] {
      let error = await #expect(throws: FerryError.self) {
        _ = try await client.send(ClientRequest(url: "http://\(host)/", isTrusted: false))
      }
      #expect(error?.code == .addressRefused, "\(host)")
    }
  }
}
