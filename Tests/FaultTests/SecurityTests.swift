import FerryCore
import FerryRelay
import FerryRuntime
import FerryTestKit
import FerryTransport
import FoundationEssentials
import Testing

/// Nobody else gets in, and nothing gets out (G8).
@Suite(.timeLimit(.minutes(5))) struct SecurityTests {
  private static let mark = "MARKED"

  /// Accounts at real services whose secrets are wrong and all hold the mark.
  private static func configuration(_ places: [PlaceKind: any Place], in folder: TemporaryFolder) throws {
    var accounts = ""
    for kind in [PlaceKind.local, .twilio, .pusher, .backendless] {
      var text = places[kind]?.configuration(webhook: "http://127.0.0.1:1/hooks/\(kind.rawValue)") ?? ""
      for secret in ["token: good", "auth_token: token", "secret: secret", "api_key: KEY-1"] {
        let name = secret.split(separator: ":")[0]
        text = text.replacing(secret, with: "\(name): \(mark)-\(name)")
      }
      accounts += "  \(kind.rawValue): \(text)\n"
    }
    let config = """
      accounts:
      \(accounts)
      bridges:
        b: { between: ["local:room", "twilio:room", "pusher:chatroom", "backendless:room"] }
      relay: { listen: "127.0.0.1:0", token: \(mark)-relay, journal: \(folder.file("s.db")) }
      """
    try Data(config.utf8).write(to: URL(fileURLWithPath: folder.file("s.yaml")))
  }

  @Test("no command, no answer, no metric, no log and no file of the journal holds a secret, whatever fails")
  func secrets() async throws {
    let folder = try TemporaryFolder()
    var places: [PlaceKind: any Place] = [:]
    for kind in PlaceKind.allCases where kind != .memory { places[kind] = try await kind.open() }
    try Self.configuration(places, in: folder)
    let ferry = ChildProcess.built("ferry")
    let environment = ["FERRY_CONFIG": folder.file("s.yaml")]
    var written: [(what: String, text: String)] = []
    // First at services that refuse the credentials, then at none, then at some that answer with garbage.
    for round in 0..<3 {
      for place in places.values {
        if round == 1 { await place.proxy?.refuse() }
        if round == 2 {
          try await place.proxy?.accept()
          await place.proxy?.garble(50, afterActing: false)
        }
      }
      for account in ["local:room", "twilio:room", "pusher:chatroom", "backendless:room"] {
        let name = String(account.split(separator: ":")[0])
        for words in [["post", account, "hello"], ["history", account], ["channels", name], ["members", account]] {
          let outcome = try await ChildProcess.run(ferry, words, environment: environment)
          if words[0] == "post" { #expect(outcome.code != 0, "\(words)") }
          written.append(("\(round): \(words)", outcome.output + outcome.errors))
        }
      }
      for words in [["check"], ["plan"], ["providers"], ["status"], ["dead"]] {
        let outcome = try await ChildProcess.run(ferry, words, environment: environment)
        written.append(("\(round): \(words)", outcome.output + outcome.errors))
      }
    }
    try await written.append(contentsOf: relay(folder))
    for place in places.values { await place.close() }
    for (what, text) in written { #expect(!text.contains(Self.mark), "\(what): \(text)") }
    for file in ["s.db", "s.db-wal", "s.db-shm"] {
      let bytes = FileManager.default.contents(atPath: folder.file(file)) ?? Data()
      #expect(!String(decoding: bytes, as: UTF8.self).contains(Self.mark), "\(file)")
    }
  }

  /// What a relay with these accounts says and answers.
  private func relay(_ folder: TemporaryFolder) async throws -> [(what: String, text: String)] {
    let ready = folder.file("ready")
    let child = try ChildProcess(
      ChildProcess.built("ferry"), ["relay", "--config", folder.file("s.yaml"), "--ready-file", ready])
    let url = try #require(try await ServedBridge.ready(ready, child)["relay"])
    let loop = try LoopExecutor(name: "secrets")
    let client = HTTPClient(loop: loop, guard: AddressGuard(allowedHosts: ["127.0.0.1"]), logger: .silent)
    var written: [(what: String, text: String)] = []
    for path in ["/healthz", "/readyz", "/metrics", "/status", "/dead", "/nothing", "/hooks/twilio"] {
      for token in ["", "Bearer \(Self.mark)-relay", "Bearer wrong"] {
        var request = ClientRequest(method: "GET", url: url + path)
        if !token.isEmpty { request.headers.set("Authorization", token) }
        try #require(child.isRunning, "\(child.errors)")
        let response = try await client.send(request)
        let body = try await response.collect(upTo: 1 << 20)
        written.append(("\(path) \(token.prefix(8))", String(decoding: body, as: UTF8.self)))
      }
    }
    child.signal(15)
    _ = await child.wait()
    loop.stop()
    return written + [("relay", child.output + child.errors)]
  }

  // MARK: The relay's listener

  /// A relay with one webhook, and a client that talks to it.
  private func withListener(_ body: (HTTPClient, String) async throws -> Void) async throws {
    let place = try await PlaceKind.twilio.open()
    let folder = try TemporaryFolder()
    let clock = SystemClock()
    let account = try place.account(webhook: "http://127.0.0.1:1/hooks/a", clock: clock)
    let relay = try InnerRelay(
      files: folder.file("r"), accounts: ["a": account, "m": MemoryProvider()],
      bridges: [
        Bridge(
          name: "b",
          routes: Bridge.mesh([Address(account: "a", channel: place.room), Address(account: "m", channel: "room")]),
          mirror: [.messages])
      ], publicURL: "http://127.0.0.1:1", clock: clock)
    let loop = try LoopExecutor(name: "listener")
    let client = HTTPClient(loop: loop, guard: AddressGuard(allowedHosts: ["127.0.0.1"]), logger: .silent)
    try await body(client, relay.url)
    await relay.kill()
    await place.close()
    loop.stop()
  }

  /// The routes are read from the source, so that a new one is asked too.
  @Test("every path of the relay's listener that is not for everybody wants the token")
  func routes() async throws {
    let folder = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(3).joined(separator: "/")
    let source = try String(
      decoding: Data(contentsOf: URL(fileURLWithPath: folder + "/Sources/FerryRelay/RelayListener.swift")),
      as: UTF8.self)
    let routes = source.split(separator: "\n").compactMap { line -> String? in
      let words = line.split(separator: "\"")
      guard words.count >= 3, words[0].drop(while: { $0 == " " }) == "case " else { return nil }
      return String(words[1])
    }
    #expect(routes.contains("status") && routes.contains("dead"))
    try await withListener { client, url in
      for route in routes where !["healthz", "readyz", "metrics", "files"].contains(route) {
        for method in ["GET", "POST"] {
          for path in ["/\(route)", "/\(route)/1/retry", "/dead/1/\(route)", "//\(route)", "/%73tatus"] {
            for token in [nil, "Bearer ", "Bearer wrong", "Basic dDBrZW46", "t0ken", "Bearer t0ke", "Bearer t0kenn"] {
              var request = ClientRequest(method: method, url: url + path)
              if let token { request.headers.set("Authorization", token) }
              let status = try await client.send(request).status
              #expect([401, 403, 404, 405].contains(status), "\(method) \(path) \(token ?? ""): \(status)")
            }
          }
        }
      }
      var request = ClientRequest(method: "GET", url: url + "/status")
      request.headers.set("Authorization", "Bearer t0ken")
      #expect(try await client.send(request).status == 200)
    }
  }

  @Test("a webhook that is not signed, or signed for another address or body, is refused before it is read")
  func webhooks() async throws {
    try await withListener { client, url in
      for signature in [nil, "", "AAAA", String(repeating: "A", count: 10_000)] {
        var request = ClientRequest(method: "POST", url: url + "/hooks/a")
        if let signature { request.headers.set("X-Twilio-Signature", signature) }
        request.headers.set("Content-Type", "application/x-www-form-urlencoded")
        request.body = .bytes(Array("EventType=onMessageAdded&Body=intruder".utf8))
        let status = try await client.send(request).status
        #expect(status == 403 || (status == 431 && (signature?.count ?? 0) > 9000), "\(signature?.prefix(9) ?? "none")")
      }
    }
  }

  @Test("no path leads out of the folder of files, and none puts a header into an answer")
  func paths() async throws {
    try await withListener { client, url in
      for path in [
        "/files/../ferry.db/x", "/files/%2e%2e%2fferry.db/x", "/files/..%2f..%2fetc%2fpasswd/x", "/files//x",
        "/files/x",
        "/files/%00/x", "/files/a%0d%0aX-Evil:%201/x", "/files/x/%0d%0aX-Evil:%201", "/hooks/../status",
        "/%0d%0aX-Evil:%201",
      ] {
        let response = try await client.send(ClientRequest(method: "GET", url: url + path))
        #expect([400, 401, 403, 404].contains(response.status), "\(path): \(response.status)")
        #expect(response.headers["X-Evil"] == nil, "\(path)")
      }
    }
  }

  // MARK: Bombs

  @Test("a file that declares too much is not read, and one that declares nothing is read up to the limit")
  func bombs() async throws {
    let folder = try TemporaryFolder()
    let spool = try Spool(folder: folder.file("spool"), limit: 1 << 20)
    for size in [nil, 1 << 40 as Int64] {
      let read = Locked(0)
      let endless = ByteStream(size: size) { () async throws(FerryError) -> [UInt8]? in
        read.withLock { $0 += 65_536 }
        return [UInt8](repeating: 0, count: 65_536)
      }
      let error = await #expect(throws: FerryError.self) {
        _ = try await spool.store(endless, declaredType: "image/png")
      }
      #expect(error?.code == .tooLarge)
      #expect(error?.retry == .never)
      #expect(read.withLock { $0 } <= (size == nil ? 1 << 20 + 65_536 : 0))
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder.file("spool")).isEmpty)
    }
  }

  @Test("an image is one by its content, and what is not is never shown in place")
  func disguise() async throws {
    let folder = try TemporaryFolder()
    let spool = try Spool(folder: folder.file("spool"), limit: 1 << 20)
    let page = try await spool.store(.bytes(Array("<script>alert(1)</script>".utf8)), declaredType: "text/html")
    #expect(page.mediaType == "text/html")
    let image = try await spool.store(.bytes([0xff, 0xd8, 0xff, 0xe0]), declaredType: "text/html")
    #expect(image.mediaType == "image/jpeg")
  }
}
