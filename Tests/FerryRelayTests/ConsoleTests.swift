import FerryCore
import FerryRelay
import FerryRuntime
import FerryStorage
import FerryTestKit
import FerryTransport
import FoundationEssentials
import Testing

private let token = "acting-token"
private let readToken = "reading-token"
private let refused = FerryError(.badRequest, "The service refuses this. Shorten it.")

extension RelayRig {
  static func pair() throws -> RelayRig { try RelayRig(["here": MemoryProvider(), "there": MemoryProvider()]) }
}

/// Asks a relay's listener as a browser's console would.
private struct Asker: Sendable {
  let listener: RelayListener

  init(_ relay: Relay, token: String? = token, listenHost: String? = nil) throws {
    let facts = ConsoleFacts(
      version: "1", providers: ["here": "memory"], settings: [ConsoleSetting(key: "a", value: "b", kind: "written")])
    listener = try RelayListener(relay: relay, token: token, readToken: readToken, facts: facts, listenHost: listenHost)
  }

  func ask(
    _ method: String, _ path: String, query: String = "", token given: String? = token, body: String = "",
    _ headers: HTTPHeaders = [:]
  ) async -> HTTPResponse {
    var headers = headers
    if let given { headers.set("Authorization", "Bearer \(given)") }
    if headers["Host"] == nil { headers.set("Host", "127.0.0.1:8090") }
    if !body.isEmpty, headers["Content-Type"] == nil { headers.set("Content-Type", "application/json") }
    return await listener.handle(
      HTTPRequest(
        method: method, path: "/api/\(path)", rawQuery: query, headers: headers,
        body: body.isEmpty ? .none : .bytes(Array(body.utf8))))
  }

  func json(_ path: String, query: String = "") async throws -> JSONValue {
    let response = await ask("GET", path, query: query)
    #expect(response.status == 200, "\(path)")
    return try JSONDecoder().decode(JSONValue.self, from: Data(bytes(response)))
  }

  func bytes(_ response: HTTPResponse) -> [UInt8] {
    guard case .bytes(let bytes) = response.body else { return [] }
    return bytes
  }
}

@Suite(.timeLimit(.minutes(2))) struct ConsoleTests {
  private static let reads = [
    "session", "status", "history", "configuration", "events", "dead", "trace", "body", "live",
  ]
  private static let actions = ["dead/retry", "dead/drop", "test"]

  @Test("nobody reads or acts without a token, and who may only look cannot act")
  func tokens() async throws {
    try await RelayRig.pair().relaying { relay, _ in
      let asker = try Asker(relay)
      for path in Self.reads {
        for wrong in [nil, "", "other", token + "x", String(token.dropLast())] {
          #expect(await asker.ask("GET", path, token: wrong).status == 401, "\(path)")
        }
      }
      #expect(await asker.ask("GET", "status", token: readToken).status == 200)
      for path in Self.actions {
        #expect(await asker.ask("POST", path, token: nil, body: "{}").status == 401, "\(path)")
        #expect(await asker.ask("POST", path, token: readToken, body: "{}").status == 403, "\(path)")
        #expect(await asker.ask("GET", path).status == 404, "\(path) by GET")
      }
      let closed = try Asker(relay, token: nil)
      #expect(await closed.ask("GET", "status").status == 401)
      #expect(await closed.ask("GET", "status", token: readToken).status == 401)
    }
  }

  @Test("pages of other sites may neither read nor act")
  func otherSites() async throws {
    try await RelayRig.pair().relaying { relay, _ in
      let asker = try Asker(relay)
      let body = #"{"ids":[1]}"#
      for headers: HTTPHeaders in [
        ["Sec-Fetch-Site": "cross-site"], ["Sec-Fetch-Site": "same-site"], ["Origin": "https://evil.example"],
        ["Origin": "null"], ["Origin": "http://127.0.0.1:8091"], ["Origin": "http://127.0.0.1:80900"],
      ] {
        #expect(await asker.ask("POST", "dead/retry", body: body, headers).status == 403, "\(headers)")
        #expect(await asker.ask("GET", "status", headers).status == 403, "\(headers)")
      }
      for headers: HTTPHeaders in [
        [:], ["Origin": "http://127.0.0.1:8090", "Sec-Fetch-Site": "same-origin"], ["Origin": "http://127.0.0.1:1"],
      ] { #expect(await asker.ask("POST", "dead/retry", body: body, headers).status == 200, "\(headers)") }
      // What a form of another site can send.
      for type in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let answer = await asker.ask("POST", "dead/retry", body: body, ["Content-Type": type])
        #expect(answer.status == 400)
      }
    }
  }

  @Test("the older paths follow the same rules")
  func olderPaths() async throws {
    try await RelayRig.pair().relaying { relay, _ in
      let listener = try Asker(relay).listener
      func ask(_ method: String, _ path: String, _ given: String, site: String? = nil) async -> Int {
        var headers: HTTPHeaders = ["Authorization": "Bearer \(given)"]
        if let site { headers.set("Sec-Fetch-Site", site) }
        return await listener.handle(HTTPRequest(method: method, path: path, headers: headers)).status
      }
      #expect(await ask("GET", "/status", readToken) == 200)
      #expect(await ask("GET", "/dead", readToken) == 200)
      #expect(await ask("POST", "/dead/1/drop", readToken) == 403)
      #expect(await ask("POST", "/dead/1/drop", token, site: "cross-site") == 403)
      #expect(await ask("POST", "/dead/1/drop", token) == 404)
      #expect(await ask("GET", "/dead/1/drop", token) == 404)
    }
  }

  @Test("bodies that are no requests are refused, and nothing crashes")
  func badBodies() async throws {
    try await RelayRig.pair().relaying { relay, _ in
      let asker = try Asker(relay)
      let deep = String(repeating: "[", count: 5000)
      for path in Self.actions {
        for body in ["{", "[]", "null", "{}", #"{"ids":"x"}"#, #"{"ids":[1.5]}"#, #"{"bridge":1,"from":2}"#, deep] {
          #expect(await asker.ask("POST", path, body: body).status == 400, "\(path) \(body.prefix(20))")
        }
        #expect(await asker.ask("POST", path, body: String(repeating: " ", count: 70_000)).status == 413)
      }
      let many = (0...1000).map(String.init).joined(separator: ",")
      #expect(await asker.ask("POST", "dead/retry", body: "{\"ids\":[\(many)]}").status == 400)
      #expect(await asker.ask("POST", "test", body: #"{"bridge":"none","from":"here:room"}"#).status == 400)
      #expect(await asker.ask("POST", "test", body: #"{"bridge":"pair","from":"here:other"}"#).status == 400)
      for query in [
        "limit=-1", "limit=0", "limit=abc", "limit=", "limit=999999999999999999999", "before=x", "before=-1",
      ] {
        #expect(await asker.ask("GET", "dead", query: query).status == 400, "\(query)")
        #expect(await asker.ask("GET", "events", query: query).status == 400, "\(query)")
      }
      for query in ["limit=1", "limit=100000", "before=0", "text=%00%27%22", "bridge=%3Cb%3E"] {
        #expect(await asker.ask("GET", "dead", query: query).status == 200, "\(query)")
        #expect(await asker.ask("GET", "events", query: query).status == 200, "\(query)")
      }
      #expect(await asker.ask("GET", "dead", query: "to=nonsense").status == 400)
    }
  }

  @Test("a name that others may have made to lead here is refused, with the right token too")
  func hosts() async throws {
    try await RelayRig.pair().relaying { relay, _ in
      let asker = try Asker(relay)
      for host in ["rebound.example.com:8090", "127.0.0.1.nip.example", "evil.example."] {
        #expect(await asker.ask("GET", "status", ["Host": host]).status == 403, "\(host)")
        #expect(await asker.ask("POST", "dead/retry", body: #"{"ids":[]}"#, ["Host": host]).status == 403, "\(host)")
      }
      for host in ["localhost:8090", "[::1]:8090", "::1", "192.0.2.1", "relay:8090", "a.localhost"] {
        #expect(await asker.ask("GET", "status", ["Host": host]).status == 200, "\(host)")
      }
      var settings = relay.settings
      settings.publicURL = "https://ferry.example.org:8443/bridge"
      let known = try Asker(Relay(settings), listenHost: "chat.example.net")
      for host in ["ferry.example.org", "FERRY.example.org:8443", "chat.example.net:8090"] {
        #expect(await known.ask("GET", "session", ["Host": host]).status == 200, "\(host)")
      }
      #expect(await known.ask("GET", "session", ["Host": "rebound.example.com"]).status == 403)
    }
  }

  @Test("dead letters are listed newest first, filtered, and decided about")
  func dead() async throws {
    let rig = try RelayRig.pair()
    try await rig.relaying { relay, journal in
      let asker = try Asker(relay)
      rig["there"].failNext(5, with: refused)
      // One by one: several in one request would fail together, and then each alone.
      for number in 1...5 {
        rig.say("text \(number)", at: "here")
        try await until { try await journal.counts().values.contains { $0.dead == number } }
      }
      let all = try await asker.json("dead")
      let letters = try #require(all["letters"]?.array)
      let ids = letters.compactMap { $0["id"]?.integer }
      #expect(all["count"]?.integer == 5)
      #expect(ids == ids.sorted(by: >))
      #expect(letters.allSatisfy { $0["attempts"]?.integer == 1 })
      #expect(letters.first?["reason"]?.string?.contains("refuses this") == true)
      #expect(letters.first?["from"]?.string == "here:room")
      #expect(try await asker.json("dead", query: "limit=2")["letters"]?.array?.count == 2)
      #expect(try await asker.json("dead", query: "before=\(ids[2])")["letters"]?.array?.count == 2)
      #expect(try await asker.json("dead", query: "bridge=other")["count"]?.integer == 0)
      #expect(try await asker.json("dead", query: "to=there:room&text=REFUSES")["count"]?.integer == 5)
      #expect(try await asker.json("dead", query: "text=nowhere")["count"]?.integer == 0)

      let trace = try await asker.json("trace", query: "id=%23\(ids[0])")
      #expect(
        trace["messages"]?.array?.first?["events"]?.array?.first?["deliveries"]?.array?.first?["id"]?.integer == ids[0])

      let one = await asker.ask("POST", "dead/drop", body: "{\"ids\":[\(ids[0]),999999]}")
      #expect(String(decoding: asker.bytes(one), as: UTF8.self) == #"{"done":1}"#)
      // Those that came after the decision are not meant.
      let some = await asker.ask("POST", "dead/retry", body: "{\"newest\":\(ids[3]),\"text\":\"refuses\"}")
      #expect(String(decoding: asker.bytes(some), as: UTF8.self) == #"{"done":2}"#)
      await rig.wait(for: 2, at: "there")
      #expect(rig.texts(at: "there") == ["text 1", "text 2"])
      #expect(try await asker.json("dead")["count"]?.integer == 2)
    }
  }

  @Test("a test message tells how long each leg took")
  func testMessage() async throws {
    let rig = try RelayRig(["a": MemoryProvider(), "b": MemoryProvider(), "c": MemoryProvider()])
    try await rig.relaying { relay, _ in
      let asker = try Asker(relay)
      rig["c"].failNext(1, with: refused)
      let lines = try await Self.run(asker)
      #expect(lines.map { $0["kind"]?.string ?? "" }.sorted() == ["end", "leg", "leg", "posted", "received"])
      #expect(lines.first?["kind"]?.string == "posted")
      #expect(lines.last?["kind"]?.string == "end")
      let legs = lines.filter { $0["kind"]?.string == "leg" }
      let good = try #require(legs.first { $0["to"]?.string == "b:room" })
      #expect(good["reason"] == nil)
      #expect((good["after"]?.integer ?? -1) >= 0)
      #expect(legs.first { $0["to"]?.string == "c:room" }?["reason"]?.string?.contains("refuses this") == true)
      #expect(rig.texts(at: "b") == rig.texts(at: "a"))
    }
  }

  @Test("a test message that cannot be posted says why")
  func testMessageRefused() async throws {
    let rig = try RelayRig.pair()
    try await rig.relaying { relay, _ in
      rig["here"].failNext(1, with: refused)
      let lines = try await Self.run(try Asker(relay), from: "here:room")
      #expect(lines.map { $0["kind"]?.string } == ["posted"])
      #expect(lines.first?["reason"]?.string?.contains("refuses this") == true)
    }
  }

  private static func run(_ asker: Asker, from: String = "a:room") async throws -> [JSONValue] {
    let answer = await asker.ask("POST", "test", body: "{\"bridge\":\"pair\",\"from\":\"\(from)\"}")
    #expect(answer.status == 200)
    guard case .stream(let stream) = answer.body else { return [] }
    let text = String(decoding: try await stream.collect(upTo: 1 << 20), as: UTF8.self)
    return try text.split(separator: "\n").map { try JSONDecoder().decode(JSONValue.self, from: Data($0.utf8)) }
  }

  @Test("the live stream begins at once and ends with the relay")
  func live() async throws {
    try await RelayRig.pair().relaying { relay, _ in
      let answer = try await Asker(relay).ask("GET", "live")
      guard case .stream(let stream) = answer.body else {
        Issue.record("no stream")
        return
      }
      let first = String(decoding: try #require(try await stream.next()), as: UTF8.self)
      #expect(first.hasPrefix("event: status\ndata: {"))
      #expect(first.hasSuffix("}\n\n"))
      relay.stop()
      let last = try await stream.next()
      #expect(last == nil)
    }
  }

  @Test("only so many follow at once, and those that leave make room")
  func followers() async throws {
    try await RelayRig.pair().relaying { relay, _ in
      let asker = try Asker(relay)
      var streams: [HTTPResponse] = []
      for _ in 0..<64 { streams.append(await asker.ask("GET", "live")) }
      #expect(streams.allSatisfy { $0.status == 200 })
      #expect(await asker.ask("GET", "live").status == 429)
      streams = []
      #expect(await asker.ask("GET", "live").status == 200)
    }
  }

  @Test("status and events tell what the relay did, and texts only when asked for")
  func status() async throws {
    let rig = try RelayRig.pair()
    try await rig.relaying { relay, journal in
      let asker = try Asker(relay)
      rig.say("words of mine", at: "here")
      await rig.wait(for: 1, at: "there")
      try await until { try await journal.counts().values.allSatisfy { $0.pending == 0 } }
      let status = try await asker.json("status")
      let here = try #require(status["accounts"]?.array?.first { $0["name"]?.string == "here" })
      #expect(here["state"]?.string == "connected")
      #expect(here["provider"]?.string == "memory")
      #expect(here["lastIn"]?.integer != nil)
      #expect(here["since"]?.integer != nil)
      let event = try #require(try await asker.json("events").array?.first)
      #expect(event["settled"]?.integer == 1)
      let key = try #require(event["key"]?.string)
      for path in ["status", "events", "dead", "history", "session", "configuration"] {
        #expect(!String(decoding: asker.bytes(await asker.ask("GET", path)), as: UTF8.self).contains("words of mine"))
      }
      let body = try await asker.json("body", query: "address=here:room&key=\(PercentEncoding.encode(key))")
      #expect(body["text"]?.string == "words of mine")
      #expect(await asker.ask("GET", "body", query: "address=here:room&key=none").status == 404)
      for path in Self.reads where !["trace", "body", "live"].contains(path) {
        let headers = await asker.ask("GET", path).headers
        #expect(headers["Cache-Control"] == "no-store")
        #expect(headers["X-Content-Type-Options"] == "nosniff")
      }
    }
  }

  @Test("a lane that waits tells how much, since when, why, and when it tries again")
  func lanes() async throws {
    let rig = try RelayRig.pair()
    try await rig.relaying { relay, _ in
      let asker = try Asker(relay)
      rig["there"].failNext(1000, with: FerryError(.unavailable, "Nobody is there.", retry: .after(.seconds(3600))))
      rig.say("one", at: "here")
      rig.say("two", at: "here")
      try await until {
        let status = try await asker.json("status")
        guard let lane = status["lanes"]?.array?.first(where: { $0["to"]?.string == "there:room" }) else {
          return false
        }
        return lane["pending"]?.integer == 2 && lane["next"]?.integer != nil
          && lane["error"]?.string?.contains("Nobody is there") == true && lane["oldest"]?.integer != nil
      }
    }
  }
}
