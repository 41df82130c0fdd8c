import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import PusherProvider

@Suite(.timeLimit(.minutes(1))) struct SilenceTests {
  /// A service that greets and confirms, and then says nothing more, whatever it is asked.
  @Test func `a service that has fallen silent is asked, and left when it does not answer`() async throws {
    struct Seen {
      var sockets = 0
      var pings = 0
    }
    let seen = Observed(Seen())
    let loop = try LoopExecutor(name: "silence")
    defer { loop.stop() }
    let server = try HTTPServer(
      HTTPServer.Settings(stopTimeout: .milliseconds(100)), loop: loop, logger: .silent
    ) { _ in
      HTTPResponse(
        status: 101,
        body: .webSocket(subprotocol: nil, settings: WebSocketSettings()) { socket in
          seen.update { $0.sockets += 1 }
          socket.send(FrameText.established(socketID: "1.2", activityTimeout: 120))
          socket.send(FrameText.event("pusher_internal:subscription_succeeded", channel: "a", data: "{}"))
          while case .text(let text) = await socket.next() {
            if text == FrameText.ping { seen.update { $0.pings += 1 } }
          }
        })
    }
    let clock = ManualClock()
    let adapter = PusherAdapter(
      settings: PusherAdapter.Settings(
        appID: "1", key: "k", secret: Secret("s"), host: "127.0.0.1", port: server.port, tls: false),
      client: HTTPClient(loop: loop, logger: .silent), clock: clock, logger: .silent)
    let inbox = RecordingInbox()
    await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { await server.run() }
      group.addTask { try await adapter.run([Subscription(channel: "a")], into: inbox) }
      await inbox.connected()
      while seen.value.sockets < 2 {
        await clock.waitForSleepers()
        clock.advance(by: .seconds(1))
        await Task.yield()
      }
      #expect(seen.value.pings >= 1)
      let record = await inbox.wait { $0.gaps.isEmpty ? nil : $0 }
      #expect(record?.connections.contains { $0.reason == "the service does not answer" } == true)
      group.cancelAll()
    }
  }
}

@Suite(.timeLimit(.minutes(1))) struct AdapterSendingTests {
  @Test func `a send whose answer was lost is found, one that did not arrive is absent`() async throws {
    try await Rig.running { rig in
      let (first, second) = (Rig.message("1"), Rig.message("2"))
      _ = try await rig.adapter.post(first, to: "a")
      await rig.proxy.swallowAnswers(method: "POST")
      let error = await #expect(throws: FerryError.self) { try await rig.adapter.post(second, to: "a") }
      #expect(error?.didNotAct == false)
      #expect(try await rig.adapter.find(second.key, in: "a") == .found(Marker.messageID(second.key)))
      #expect(try await rig.adapter.find(Rig.message("3").key, in: "a") == .absent)
    }
  }

  @Test func `the very first send of a bridge can be settled too`() async throws {
    try await Rig.running { rig in
      let message = Rig.message("1")
      // The answer that is lost is the one to the marker's preparation.
      await rig.proxy.swallowAnswers(method: "POST")
      let error = await #expect(throws: FerryError.self) { try await rig.adapter.post(message, to: "a") }
      #expect(error?.didNotAct == true)
      #expect(try await rig.adapter.find(message.key, in: "a") == .absent)
      let id = try await rig.adapter.post(message, to: "a")
      #expect(try await rig.adapter.find(message.key, in: "a") == .found(id))
    }
  }

  @Test func `one bridge's sends do not hide another's`() async throws {
    try await Rig.running { rig in
      let message = Rig.message("1")
      _ = try await rig.adapter.post(message, to: "a")
      var stamp = Rig.stamp
      stamp.bridge = "other"
      _ = try await rig.adapter.post(
        OutgoingMessage(key: stamp.key, author: Author(id: "x", name: "x"), text: "2", stamp: stamp), to: "a")
      _ = try await rig.adapter.post(
        OutgoingMessage(key: "by-hand", author: Author(id: "x", name: "x"), text: "3"), to: "a")
      #expect(try await rig.adapter.find(message.key, in: "a") == .found(Marker.messageID(message.key)))
    }
  }

  /// Whoever has the app's key, which every client has, may listen to the channels that need no signature.
  @Test(arguments: ["private-a", "presence-a"])
  func `what is said on a signed channel is published on no other`(channel: String) async throws {
    try await Service.serving { service in
      let tap = Tap(service)
      try await ScriptedService.serving(tap.handle) { scripted in
        var settings = scripted.settings
        settings.secret = Secret("demo-secret")
        let adapter = PusherAdapter(
          settings: settings, client: service.client, clock: SystemClock(), logger: .silent)
        _ = try await adapter.post(Rig.message("one"), to: ChannelID(channel))
        _ = try await adapter.post([Rig.message("two"), Rig.message("three")], to: ChannelID(channel))
        var published: [String] = []
        for request in tap.seen.value.requests where request.hasPrefix("POST") {
          let body = try #require(request.split(separator: "\n").last.map(String.init))
          let value = try #require(JSONText.decode(JSONValue.self, from: body))
          let batch = (value["batch"]?.array ?? []).compactMap { $0["channel"] }
          published += ((value["channels"]?.array ?? []) + batch).compactMap(\.string)
        }
        #expect(published.contains(channel) && published.count > 5)
        #expect(published.allSatisfy { ChannelName($0)?.isSigned == true })
      }
    }
  }

  @Test func `without a marker nothing is certain`() async throws {
    try await Rig.running(marker: false) { rig in
      let message = Rig.message("1")
      _ = try await rig.adapter.post(message, to: "a")
      guard case .unknown = try await rig.adapter.find(message.key, in: "a") else {
        throw FerryError(.badData, "not unknown")
      }
    }
  }

  @Test func `a marker that was never set proves nothing`() async throws {
    try await Rig.running { rig in
      guard case .unknown(let reason) = try await rig.adapter.find(Rig.message("1").key, in: "a") else {
        throw FerryError(.badData, "not unknown")
      }
      #expect(reason.contains("30 minutes"))
    }
  }

  @Test(arguments: [
    (429, FerryError.Code.rateLimited, true), (500, .unavailable, false), (503, .unavailable, false),
    (401, .badCredentials, true), (413, .tooLarge, true), (403, .forbidden, true), (404, .notFound, true),
  ])
  func `a refusal says truly whether anything happened`(
    status: Int, code: FerryError.Code, didNotAct: Bool
  ) async throws {
    try await Rig.running(marker: false) { rig in
      await rig.proxy.answer(1, status: status, method: "POST")
      let error = await #expect(throws: FerryError.self) { try await rig.adapter.post(Rig.message("x"), to: "a") }
      #expect(error?.code == code)
      #expect(error?.didNotAct == didNotAct)
      // Only what is wrong with the message itself is given up; wrong credentials wait for a person.
      #expect((error?.retry == .never) == (status == 413 || status == 401))
    }
  }

  @Test func `a service without batches is told from an unknown app`() async throws {
    try await Rig.running(marker: false) { rig in
      await rig.proxy.answer(1, status: 404, method: "POST")
      let error = await #expect(throws: FerryError.self) {
        try await rig.adapter.post([Rig.message("1"), Rig.message("2")], to: "a")
      }
      // Each is then sent by itself.
      #expect(error?.retry == .never && error?.didNotAct == true)
    }
  }

  @Test func `no send is tried that cannot succeed`() async throws {
    try await Rig.running { rig in
      let long = await #expect(throws: FerryError.self) {
        try await rig.adapter.post(Rig.message(String(repeating: "x", count: 10_240)), to: "a")
      }
      #expect(long?.code == .tooLarge)
      #expect(long?.didNotAct == true)
      for channel in ["", "a b", "#a", "private-encrypted-a", String(repeating: "a", count: 165)] {
        let error = await #expect(throws: FerryError.self) {
          try await rig.adapter.post(Rig.message("x"), to: ChannelID(channel))
        }
        #expect(error?.retry == .never)
        #expect(error?.didNotAct == true)
      }
      let many = await #expect(throws: FerryError.self) {
        try await rig.adapter.post((0..<10).map { Rig.message("\($0)") }, to: "a")
      }
      #expect(many?.code == .badRequest)
    }
  }

  @Test func `channels are listed without the markers`() async throws {
    try await Rig.running("chatroom") { rig in
      let client = try await rig.service.connect()
      try await client.subscribe(Marker.channel(for: "chatroom", "lobby|x"))
      #expect(try await rig.adapter.channels().map(\.id) == ["chatroom"])
    }
  }

  @Test func `an attachment is a link, and what is not there is not found`() async throws {
    try await Rig.running { rig in
      let missing = await #expect(throws: FerryError.self) {
        try await rig.adapter.attachment(.url(rig.service.server.url + "/none"))
      }
      #expect(missing?.code == .notFound)
      await #expect(throws: FerryError.self) { try await rig.adapter.attachment(.provider("x")) }
      let guarded = HTTPClient(loop: rig.service.loop, logger: .silent)
      let settings = PusherAdapter.Settings(appID: "1", key: "k", secret: Secret("s"), host: "127.0.0.1")
      let adapter = PusherAdapter(settings: settings, client: guarded, clock: SystemClock(), logger: .silent)
      let refused = await #expect(throws: FerryError.self) {
        try await adapter.attachment(.url(rig.service.server.url + "/none"))
      }
      #expect(refused?.code == .addressRefused)
    }
  }
}
