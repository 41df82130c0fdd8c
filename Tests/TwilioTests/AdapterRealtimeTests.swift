import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import TwilioProvider

@Suite struct RealtimeSessionTests {
  private static func packet(_ header: JSONValue, _ payload: JSONValue? = nil) -> [UInt8] {
    guard let payload else { return TwilsockPacket(header: header).encoded() }
    return TwilsockPacket(header: header, json: payload).encoded()
  }

  /// A session that has greeted, and its greeting's id.
  private static func begun() -> (RealtimeSession, String) {
    var session = RealtimeSession(salt: "x")
    let hello = session.begin(token: "jwt")
    return (session, hello.id ?? "")
  }

  private static func reply(_ id: String, _ code: Int64, _ payload: JSONValue? = nil) -> [UInt8] {
    packet(["id": .string(id), "method": "reply", "status": ["code": .integer(code), "status": "x"]], payload)
  }

  @Test func `the greeting shows the token and asks for typing`() {
    var session = RealtimeSession(salt: "s")
    let hello = session.begin(token: "jwt")
    #expect(hello.method == "init")
    #expect(hello.header["token"]?.string == "jwt")
    let registration = hello.header["registrations"]?.array?.first
    #expect(registration?["product"]?.string == "ip_messaging")
    #expect(registration?["message_types"]?.array == ["twilio.ipmsg.typing_indicator"])
    #expect(hello.id == "TMs-000000000001")
  }

  @Test func `the service lets us in, or says why not`() {
    for (code, ending) in [
      (401, RealtimeSession.Ending.Advice.denied), (403, .denied), (429, .later(2500)), (500, .reconnect),
    ] {
      var (session, id) = Self.begun()
      let payload: JSONValue? = code == 429 ? ["backoff_policy": ["reconnect_min_ms": 2500]] : nil
      let actions = session.receive(Self.reply(id, Int64(code), payload))
      guard case .end(let end)? = actions.first else {
        Issue.record("\(code) is no end")
        continue
      }
      #expect(end.advice == ending)
      #expect(!session.isReady)
    }
    var (session, id) = Self.begun()
    let actions = session.receive(Self.reply(id, 200))
    #expect(actions == [.ready])
    #expect(session.isReady)
  }

  @Test func `typing is told, and everything but replies is confirmed`() {
    var (session, _) = Self.begun()
    let actions = session.receive(
      Self.packet(
        ["id": "TM1", "method": "notification", "message_type": "twilio.ipmsg.typing_indicator"],
        ["channel_sid": "CH1", "identity": "bob", "typing_timeout": 6]))
    #expect(actions.last == .typing(conversation: "CH1", identity: "bob", seconds: 6))
    guard case .send(let confirmation)? = actions.first else {
      Issue.record("not confirmed")
      return
    }
    #expect(confirmation.method == "reply" && confirmation.id == "TM1")
    #expect(confirmation.header["status"]?["code"]?.integer == 200)
    let ping = session.receive(Self.packet(["id": "TM2", "method": "ping"]))
    #expect(ping.count == 1)
    let reply = session.receive(Self.reply("TM9", 200))
    #expect(reply.count == 1)
    if case .reply(let id, _)? = reply.first { #expect(id == "TM9") } else { Issue.record("no reply") }
  }

  @Test func `how the service closes says when to come back`() {
    for (code, advice) in [
      (308, RealtimeSession.Ending.Advice.later(0)), (401, .denied), (406, .denied), (417, .denied), (410, .reconnect),
      (500, .reconnect),
    ] {
      var (session, _) = Self.begun()
      let actions = session.receive(
        Self.packet(["id": "TM1", "method": "close", "status": ["code": .integer(Int64(code))]]))
      guard case .end(let end)? = actions.last else {
        Issue.record("\(code) is no end")
        continue
      }
      #expect(end.advice == advice)
    }
  }

  @Test func `a token that ends is renewed, and a refused one ends the connection`() {
    var (session, id) = Self.begun()
    _ = session.receive(Self.reply(id, 200))
    let update = session.receive(
      Self.packet(["id": "TM1", "method": "client_update", "client_update_type": "token_about_to_expire"]))
    #expect(update.last == .renew)
    let other = session.receive(Self.packet(["id": "TM2", "method": "client_update", "client_update_type": "x"]))
    #expect(other.count == 1)
    let packet = session.renew(token: "new")
    #expect(packet.method == "update" && packet.header["token"]?.string == "new")
    let done = session.receive(Self.reply(packet.id ?? "", 200))
    #expect(done.isEmpty)
    let again = session.renew(token: "newer")
    let refused = session.receive(Self.reply(again.id ?? "", 401))
    if case .end(let end)? = refused.first { #expect(end.advice == .denied) } else { Issue.record("no end") }
  }

  @Test func `nonsense is passed over`() {
    var (session, _) = Self.begun()
    var random = SeededGenerator(seed: 3)
    for _ in 0..<500 {
      let bytes = (0..<Int(random.next() % 80)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      let actions = session.receive(bytes)
      #expect(actions.isEmpty)
    }
    for header: JSONValue in [
      [:], ["method": 1], ["method": "reply"],
      ["method": "notification", "message_type": "twilio.ipmsg.typing_indicator"],
      ["method": "close", "status": 1],
    ] {
      let actions = session.receive(Self.packet(header, ["channel_sid": 1, "typing_timeout": "x"]))
      #expect(!actions.contains { if case .typing = $0 { true } else { false } })
    }
    let long = session.receive(
      Self.packet(
        ["method": "notification", "message_type": "twilio.ipmsg.typing_indicator"],
        ["channel_sid": "CH1", "identity": "bob", "typing_timeout": .integer(.max)]))
    #expect(long == [.typing(conversation: "CH1", identity: "bob", seconds: 60)])
  }
}

@Suite(.timeLimit(.minutes(3))) struct RealtimeTests {
  /// What the socket's other end has seen and says.
  private struct Far: Sendable {
    var tokens: [String] = []
    var typed: [String] = []
    var sockets: [WebSocket] = []
    var initCode: Int64 = 200
    var typingCode: Int64 = 200
    var confirmed = 0
    var configured = 0
  }

  private static func answer(_ packet: TwilsockPacket, _ far: inout Far) -> TwilsockPacket? {
    func reply(_ extra: [String: JSONValue] = [:], code: Int64 = 200, _ payload: JSONValue = .null) -> TwilsockPacket {
      var header = extra
      header["id"] = packet.id.map { .string($0) }
      header["method"] = "reply"
      header["status"] = ["code": .integer(code), "status": "x"]
      return TwilsockPacket(header: .object(header), json: payload)
    }
    switch packet.method {
    case "init", "update":
      far.tokens.append(packet.header["token"]?.string ?? "")
      return reply(code: far.initCode)
    case "message":
      let path = packet.header["http_request"]?["path"]?.string
      if path == "/Client/v2/Configuration" {
        far.configured += 1
        return reply(
          ["http_status": ["code": 200]], ["links": ["typing": "https://aim.example.org/v2/typing"]])
      }
      guard path == "/v2/typing", packet.header["http_request"]?["host"]?.string == "aim.example.org" else {
        return reply(["http_status": ["code": 404]])
      }
      guard far.typingCode == 200 else {
        defer { far.typingCode = 200 }
        return reply(["http_status": ["code": .integer(far.typingCode)]], ["code": 50430])
      }
      far.typed.append(Form(decoding: packet.payload)["ChannelSid"] ?? "")
      return reply(["http_status": ["code": 200]], ["typing_timeout": 5])
    case "reply":
      far.confirmed += 1
      return nil
    default: return nil
    }
  }

  private static func with(
    clock: any FerryClock = SystemClock(), far: Observed<Far> = Observed(Far()), isRunning: Bool = true,
    users: [String: String] = ["bob": "Bob"],
    _ body: @escaping @Sendable (AdapterRig, Observed<Far>) async throws -> Void
  ) async throws {
    let twilio = ScriptedTwilio()
    twilio.state.update { $0.users = users }
    let handler: @Sendable (HTTPRequest) async -> HTTPResponse = { request in
      guard request.path == "/v3/wsconnect" else { return await twilio.handle(request) }
      return HTTPResponse(
        status: 101,
        body: .webSocket(subprotocol: nil, settings: WebSocketSettings()) { socket in
          far.update { $0.sockets.append(socket) }
          while case .binary(let bytes) = await socket.next() {
            guard let packet = try? TwilsockPacket(bytes) else { continue }
            if let answer = far.update({ Self.answer(packet, &$0) }) { socket.send(answer.encoded()) }
          }
        })
    }
    try await AdapterRig.with(
      clock: clock, twilio: twilio, listening: isRunning ? Subscription(channel: "lobby") : nil, handler: handler,
      adjust: { settings in
        settings.apiKey = ScriptedTwilio.key
        settings.apiSecret = Secret("api-secret")
        settings.serviceSID = ScriptedTwilio.service
        settings.poll = .seconds(3600)
      }
    ) { rig in try await body(rig, far) }
  }

  private static func typing(_ identity: String, _ seconds: Int64 = 6) -> [UInt8] {
    let payload: JSONValue = [
      "channel_sid": .string(ScriptedTwilio.conversation), "identity": .string(identity),
      "typing_timeout": .integer(seconds),
    ]
    return TwilsockPacket(
      header: ["id": "TM1", "method": "notification", "message_type": "twilio.ipmsg.typing_indicator"], json: payload
    ).encoded()
  }

  private static func on(_ isOn: Bool = true) -> Typing {
    Typing(channel: "lobby", by: Author(id: "ann", name: "Ann"), on: isOn)
  }

  /// Sends typing until the connection is there, which messages do not wait for.
  private static func typeWhenConnected(_ rig: AdapterRig, _ far: Observed<Far>) async throws {
    _ = await far.wait { $0.configured > 0 ? true : nil }
    while true {
      do { return try await rig.adapter.setTyping(on()) } catch {
        guard FerryError.wrap(error).code == .unavailable else { throw error }
        await Task.yield()
      }
    }
  }

  @Test func `typing is heard with who it is, and ends by itself`() async throws {
    let clock = ManualClock()
    try await Self.with(clock: clock) { rig, far in
      let socket = try #require(await far.wait { $0.tokens.isEmpty ? nil : $0.sockets.first })
      socket.send(Self.typing("ferry"))
      socket.send(Self.typing("bob", 6))
      let typing = await rig.inbox.wait { $0.typing.first }
      #expect(typing == Typing(channel: "lobby", by: Author(id: "bob", name: "bob"), on: true))
      while !rig.inbox.now.typing.contains(where: { !$0.on }) {
        clock.advance(by: .seconds(1))
        await Task.yield()
      }
      #expect(rig.inbox.now.typing.last?.by.id == "bob")
      let confirmed = await far.wait { $0.confirmed >= 2 ? true : nil }
      #expect(confirmed == true)
    }
  }

  @Test func `typing is shown where the service's configuration says, and not again while it shows`() async throws {
    try await Self.with { rig, far in
      try await Self.typeWhenConnected(rig, far)
      for _ in 0..<3 { try await rig.adapter.setTyping(Self.on()) }
      try await rig.adapter.setTyping(Self.on(false))
      #expect(far.value.typed == [ScriptedTwilio.conversation])
      // Ferry's own identity was made a participant, which is nobody's news.
      let joined = await rig.twilio.state.wait { state in
        state.requests.first { $0.line.hasSuffix("Participants") && $0.method == "POST" }
      }
      #expect(joined?.form["Identity"] == "ferry")
    }
  }

  @Test func `whoever is no participant becomes one and tries again`() async throws {
    let far = Observed(Far())
    far.update { $0.typingCode = 403 }
    try await Self.with(far: far, isRunning: false) { rig, far in
      try await rig.adapter.setTyping(Self.on())
      #expect(far.value.typed == [ScriptedTwilio.conversation])
      #expect(rig.twilio.requests("POST").map(\.path) == ["Conversations/lobby/Participants"])
    }
  }

  @Test func `the identity that types gets a name once, unless it has one`() async throws {
    for (name, given) in [("ferry", "Someone"), ("", "Someone"), ("The bridge", "The bridge")] {
      let far = Observed(Far())
      far.update { $0.typingCode = 403 }
      try await Self.with(far: far, isRunning: false, users: ["ferry": name]) { rig, _ in
        try await rig.adapter.setTyping(Self.on())
        #expect(rig.twilio.state.value.users["ferry"] == given)
        try await rig.adapter.join("lobby")
        #expect(rig.twilio.requests("GET").count { $0.path == "Users/ferry" } == 1)
      }
    }
  }

  @Test func `without a run it connects, types and leaves`() async throws {
    try await Self.with(isRunning: false) { rig, far in
      try await rig.adapter.setTyping(Self.on())
      #expect(far.value.typed == [ScriptedTwilio.conversation])
      let token = try #require(far.value.tokens.first)
      let verified = try AccessToken.verified(
        token, secret: { _ in Secret("api-secret") }, now: SystemClock().now().advanced(by: .seconds(1)))
      #expect(verified.identity == "ferry")
      #expect(verified.serviceSID == ScriptedTwilio.service)
    }
  }

  @Test func `the token is good for an hour, also where the clock is behind`() async throws {
    let clock = ManualClock()
    try await Self.with(clock: clock) { _, far in
      let token = try #require(await far.wait { $0.tokens.first })
      for seconds in [-119, 3599] {
        let now = clock.now().advanced(by: .seconds(seconds))
        let read = try AccessToken.verified(token, secret: { _ in Secret("api-secret") }, now: now)
        #expect(read.identity == "ferry")
      }
    }
  }

  @Test func `a token that is refused is told as that`() async throws {
    let far = Observed(Far())
    far.update { $0.initCode = 401 }
    try await Self.with(far: far, isRunning: false) { rig, _ in
      let error = await #expect(throws: FerryError.self) { try await rig.adapter.setTyping(Self.on()) }
      #expect(error?.code == .badCredentials)
      #expect(error?.retry == .never)
    }
  }

  @Test func `messages arrive while typing is refused`() async throws {
    let far = Observed(Far())
    far.update { $0.initCode = 403 }
    try await Self.with(far: far) { rig, far in
      _ = await far.wait { $0.tokens.isEmpty ? nil : true }
      #expect(rig.inbox.now.connections.last?.phase == .connected)
    }
  }

  @Test func `the token is renewed when the service asks, and the connection when it is lost`() async throws {
    try await Self.with { rig, far in
      try await Self.typeWhenConnected(rig, far)
      let socket = try #require(far.value.sockets.first)
      socket.send(
        TwilsockPacket(header: ["id": "TM1", "method": "client_update", "client_update_type": "token_about_to_expire"])
          .encoded())
      _ = await far.wait { $0.tokens.count >= 2 ? true : nil }
      socket.close(code: 1001, reason: "restart")
      _ = await far.wait { $0.sockets.count >= 2 && $0.tokens.count >= 3 ? true : nil }
      #expect(far.value.sockets.count == 2)
    }
  }

  @Test func `without an API key there is no typing, and it says why`() async throws {
    try await AdapterRig.with { rig in
      let error = await #expect(throws: FerryError.self) { try await rig.adapter.setTyping(Self.on()) }
      #expect(error?.code == .unsupported)
      #expect(error?.message.contains("api_key") == true)
    }
  }
}
