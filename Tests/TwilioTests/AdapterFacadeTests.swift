import FerryChat
import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import TwilioProvider

/// The adapter and the facade, each of which was written from the same description, at each other.
@Suite(.timeLimit(.minutes(3))) struct TwilioAdapterAtFacadeTests {
  private struct Rig: Sendable {
    let url: String
    let client: HTTPClient
    let chat: ChatService

    func adapter(
      _ adjust: (inout TwilioAdapter.Settings) -> Void = { _ in }
    ) -> TwilioAdapter {
      var settings = TwilioAdapter.Settings(
        accountSID: ScriptedTwilio.account, authToken: Secret(AdapterRig.token), api: url)
      settings.poll = .milliseconds(20)
      settings.apiKey = ScriptedTwilio.key
      settings.apiSecret = Secret("api-secret")
      settings.serviceSID = ScriptedTwilio.service
      adjust(&settings)
      return TwilioAdapter(settings: settings, client: client, clock: SystemClock(), logger: .silent)
    }

    func post(_ path: String, _ form: Form) async throws {
      var request = ClientRequest(method: "POST", url: url + "/v1" + path, body: .bytes(Array(form.encoded.utf8)))
      request.headers = [
        "Authorization": TwilioAPI.basic(ScriptedTwilio.account, AdapterRig.token), "Content-Type": Form.mediaType,
      ]
      let response = try await client.send(request)
      let body = try await response.collect(upTo: 1 << 20)
      guard response.isSuccess else { throw FerryError(.internal, String(decoding: body, as: UTF8.self)) }
    }
  }

  private static func with(_ body: @escaping @Sendable (Rig) async throws -> Void) async throws {
    let folder = try TemporaryFolder()
    var settings = TwilioFacade.Settings(
      accountSID: ScriptedTwilio.account, authToken: Secret(AdapterRig.token), apiKey: ScriptedTwilio.key,
      apiSecret: Secret("api-secret"), serviceSID: ScriptedTwilio.service)
    settings.conversations = ["lobby"]
    let chat = try ChatService(
      path: folder.file("chat.db"), files: folder.file("files"), logger: .silent, limits: settings.chatLimits)
    defer { chat.close() }
    let loop = try LoopExecutor(name: "twilio-both")
    defer { loop.stop() }
    let client = HTTPClient(loop: loop, guard: AddressGuard(allowedHosts: ["127.0.0.1"]), logger: .silent)
    let facade = TwilioFacade(
      settings: settings, chat: chat, client: client, clock: SystemClock(), logger: .silent, metrics: nil)
    let server = try HTTPServer(
      HTTPServer.Settings(stopTimeout: .milliseconds(100)), loop: loop, logger: .silent, handler: facade.handle)
    try await withThrowingTaskGroup(of: Void.self) { group in
      defer { group.cancelAll() }
      group.addTask { await server.run() }
      group.addTask { await facade.run() }
      group.addTask { await chat.run() }
      try await body(Rig(url: server.url, client: client, chat: chat))
    }
  }

  @Test func `Ferry's own identity is a participant, and no member for people to see`() async throws {
    try await Self.with { rig in
      try await rig.post("/Conversations/lobby/Participants", [("Identity", "bob")])
      let ferry = rig.adapter()
      try await ferry.join("lobby")
      #expect(try await ferry.participants(of: "lobby").compactMap(\.identity).sorted() == ["bob", "ferry"])
      #expect(try await rig.chat.members(of: "lobby").map(\.id) == ["bob"])
    }
  }

  @Test func `typing of one identity is seen by another, and not by itself`() async throws {
    try await Self.with { rig in
      let ferry = rig.adapter()
      let bob = rig.adapter { $0.identity = "bob" }
      let inbox = RecordingInbox()
      try await withThrowingTaskGroup(of: Void.self) { group in
        defer { group.cancelAll() }
        group.addTask { try await ferry.run([Subscription(channel: "lobby")], into: inbox) }
        await inbox.connected()
        // Ferry's socket may not be there yet, and Twilio shows typing for five seconds before it is told again: so each
        // time somebody else types.
        var number = 0
        while inbox.now.typing.isEmpty {
          number += 1
          let name = "typist \(number)"
          let typist = rig.adapter { $0.identity = name }
          try await typist.setTyping(Typing(channel: "lobby", by: Author(id: "x", name: "x"), on: true))
        }
        try await ferry.setTyping(Typing(channel: "lobby", by: Author(id: "x", name: "x"), on: true))
        try await bob.setTyping(Typing(channel: "lobby", by: Author(id: "x", name: "x"), on: true))
        let typing = await inbox.wait { $0.typing.first { $0.by.id == "bob" } }
        #expect(typing?.on == true)
        #expect(!inbox.now.typing.contains { $0.by.id == "ferry" })
        #expect(
          !inbox.now.events.contains {
            if case .joined(let member) = $0.kind { member.member.id == "ferry" } else { false }
          })
      }
    }
  }

  @Test func `a phone's receipts are read as marks`() async throws {
    try await Self.with { rig in
      let adapter = rig.adapter()
      let inbox = RecordingInbox()
      try await rig.post(
        "/Conversations/lobby/Participants",
        [("MessagingBinding.Address", "+15550001"), ("MessagingBinding.ProxyAddress", "+15550002")])
      try await withThrowingTaskGroup(of: Void.self) { group in
        defer { group.cancelAll() }
        group.addTask { try await adapter.run([Subscription(channel: "lobby")], into: inbox) }
        await inbox.connected()
        let id = try await adapter.post(AdapterRig.outgoing("to a phone"), to: "lobby")
        let mark = await inbox.wait { $0.marks.first }
        #expect(mark?.upTo == id)
        #expect(mark?.state == .delivered)
        #expect(mark?.by?.id == "+15550001")
        // Too long for a phone: the error names the setting that shortens messages.
        let long = AdapterRig.outgoing(String(repeating: "x", count: 2000), id: "2")
        let error = await #expect(throws: FerryError.self) { try await adapter.post(long, to: "lobby") }
        #expect(error?.code == .tooLarge)
        #expect(error?.message.contains("messaging: true") == true)
      }
    }
  }

  @Test func `a conversation of its own is created, written to and read`() async throws {
    try await Self.with { rig in
      let adapter = rig.adapter { $0.create = true }
      let id = try await adapter.post(AdapterRig.outgoing("first"), to: "new/room ü")
      let history = try await adapter.history(of: "new/room ü", order: .oldestFirst, after: nil, limit: 10)
      #expect(history.messages.map(\.id) == [id])
      #expect(history.messages.first?.stamp == AdapterRig.stamp)
      #expect(history.messages.first?.revision == 0)
      let channels = try await adapter.channels().map(\.id)
      #expect(Set(channels) == ["lobby", "new/room ü"])
    }
  }

  @Test func `what is dated back keeps its time to the millisecond`() async throws {
    try await Self.with { rig in
      let adapter = rig.adapter()
      let time = Timestamp(milliseconds: 1_470_366_650_123)
      _ = try await adapter.post(AdapterRig.outgoing("old", time: time), to: "lobby")
      let history = try await adapter.history(of: "lobby", order: .newestFirst, after: nil, limit: 10)
      #expect(history.messages.first?.time == time)
      #expect(history.messages.first?.revision == 0)
    }
  }
}
