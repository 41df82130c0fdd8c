import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import PusherProvider

@Suite(.timeLimit(.minutes(1))) struct AdapterClientEventTests {
  private static let ann = Author(id: "ann", name: "Ann")

  private static func whisper(_ settings: inout PusherAdapter.Settings) {
    settings.profile.events.typing = ["client-typing"]
    settings.profile.events.typingStopped = ["client-stop-typing"]
    settings.profile.events.read = ["client-seen"]
    settings.profile.events.delete = ["client-gone"]
  }

  private static func typing(_ channel: ChannelID, _ on: Bool = true) -> Typing {
    Typing(channel: channel, by: ann, on: on, stamp: Rig.stamp)
  }

  @Test func `typing, reads and deletes leave as client events where the names say so`() async throws {
    try await Rig.running("private-a", "chatroom", settings: Self.whisper) { rig in
      let client = try await rig.service.connect()
      try await client.subscribe("private-a")
      try await rig.adapter.setTyping(Self.typing("private-a"))
      try await rig.adapter.setTyping(Self.typing("private-a", false))
      try await rig.adapter.mark(ReadMark(upTo: "7", by: Self.ann, state: .read, stamp: Rig.stamp), in: "private-a")
      try await rig.adapter.delete("7", in: "private-a", as: Self.ann, stamp: Rig.stamp)
      var names: [String] = []
      for _ in 0..<4 {
        let frame = try unwrap(Frame(text: try await client.next()), "no frame")
        names.append(frame.event)
        #expect(frame.data?.parsed["ferry"]?["bridge"] == "lobby")
        #expect(frame.data?.parsed["sender"] == "Ann")
      }
      #expect(names == ["client-typing", "client-stop-typing", "client-seen", "client-gone"])
      // A public channel offers none; the HTTP API takes their place, and the adapter hears itself.
      try await rig.adapter.setTyping(Self.typing("chatroom"))
      let heard = await rig.inbox.wait { $0.typing.first }
      #expect(heard == Self.typing("chatroom"))
    }
  }

  @Test func `while nobody listens the HTTP API takes their place`() async throws {
    try await Rig.running(settings: Self.whisper) { rig in
      let client = try await rig.service.connect()
      try await client.subscribe("private-a")
      try await rig.adapter.setTyping(Self.typing("private-a"))
      #expect(Frame(text: try await client.next())?.event == "typing")
    }
  }

  @Test func `client events of others are understood, and who sent them is vouched for`() async throws {
    try await Rig.running("presence-a", settings: Self.whisper) { rig in
      let client = try await rig.service.connect()
      try await client.subscribe("presence-a", as: "bob")
      client.send(FrameText.client("client-typing", channel: "presence-a", json: #"{"sender":"Mallory"}"#))
      client.send(FrameText.client("client-seen", channel: "presence-a", json: #""{\"ID\":7}""#))
      let typing = await rig.inbox.wait { $0.typing.first }
      #expect(typing?.by == Author(id: "bob", name: "Mallory"))
      let read = await rig.inbox.event { if case .read = $0.kind { true } else { false } }
      #expect(read?.kind == .read(ReadMark(upTo: "7", by: Author(id: "bob", name: "bob"), state: .read)))
    }
  }

  @Test func `a service that takes no client events is believed`() async throws {
    try await Rig.running("private-a", adjust: { $0.clientEvents = false }, settings: Self.whisper) { rig in
      let error = await #expect(throws: FerryError.self) {
        try await rig.adapter.mark(ReadMark(upTo: "7", by: Self.ann, state: .read), in: "private-a")
      }
      #expect(error?.code == .forbidden)
      #expect(error?.didNotAct == true && error?.retry == .never)
      // Typing may as well be lost.
      try await rig.adapter.setTyping(Self.typing("private-a"))
    }
  }

  /// A service that confirms every subscription and does with client events what a test says.
  private static func running(
    clock: any FerryClock, onEvent: @escaping @Sendable (WebSocket, String) -> Void,
    answersPings: Bool = true, _ body: @escaping @Sendable (PusherAdapter, RecordingInbox) async throws -> Void
  ) async throws {
    try await ScriptedService.serving { _ in
      ScriptedService.socket { socket in
        socket.send(FrameText.established(socketID: "1.2", activityTimeout: 120))
        while case .text(let text) = await socket.next() {
          guard let frame = Frame(text: text) else { continue }
          switch frame.event {
          case "pusher:subscribe":
            let channel = frame.data?.parsed["channel"]?.string ?? ""
            socket.send(FrameText.event("pusher_internal:subscription_succeeded", channel: channel, data: "{}"))
          case "pusher:ping": if answersPings { socket.send(FrameText.pong) }
          default: onEvent(socket, text)
          }
        }
      }
    } _: { scripted in
      var settings = scripted.settings
      settings.secret = Secret("s")
      whisper(&settings)
      let client = HTTPClient(loop: scripted.loop, logger: .silent)
      let adapter = PusherAdapter(settings: settings, client: client, clock: clock, logger: .silent)
      let inbox = RecordingInbox()
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await adapter.run([Subscription(channel: "private-a")], into: inbox) }
        await inbox.connected()
        defer { group.cancelAll() }
        try await body(adapter, inbox)
      }
    }
  }

  @Test func `ten a second leave and no more; what must arrive waits, what may be lost is lost`() async throws {
    let clock = ManualClock()
    let seen = Observed<[String]>([])
    try await Self.running(clock: clock, onEvent: { _, text in seen.update { $0.append(text) } }) { adapter, _ in
      for _ in 0..<10 { try await adapter.setTyping(Self.typing("private-a")) }
      let error = await #expect(throws: FerryError.self) { try await adapter.setTyping(Self.typing("private-a")) }
      #expect(error?.code == .rateLimited && error?.didNotAct == true)
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await adapter.mark(ReadMark(upTo: "7", by: Self.ann, state: .read), in: "private-a") }
        // Besides it two tasks of the connection sleep.
        await clock.waitForSleepers(3)
        _ = await seen.wait { $0.count == 10 ? true : nil }
        clock.advance(by: .milliseconds(1100))
        try await group.waitForAll()
      }
      #expect(seen.value.count == 11)
    }
  }

  @Test func `a connection that ends before the answer leaves the outcome open`() async throws {
    try await Self.running(
      clock: SystemClock(), onEvent: { socket, _ in socket.close(code: 4200, reason: "bye") }, answersPings: false
    ) { adapter, _ in
      let error = await #expect(throws: FerryError.self) {
        try await adapter.mark(ReadMark(upTo: "7", by: Self.ann, state: .read), in: "private-a")
      }
      #expect(error?.code == .unavailable && error?.didNotAct == false && error?.retry != .never)
    }
  }

  @Test func `over the limit the service says so, and the event may be sent later`() async throws {
    try await Self.running(
      clock: SystemClock(), onEvent: { socket, _ in socket.send(FrameText.error(.rateLimited, "too fast")) }
    ) { adapter, inbox in
      let states = inbox.now.connections.count
      let error = await #expect(throws: FerryError.self) {
        try await adapter.mark(ReadMark(upTo: "7", by: Self.ann, state: .read), in: "private-a")
      }
      #expect(error?.code == .rateLimited && error?.retry == .after(.seconds(1)))
      #expect(inbox.now.connections.count == states)
    }
  }

  @Test func `on a channel that is not listened to nothing is sent`() async throws {
    try await Self.running(clock: SystemClock(), onEvent: { _, _ in }) { adapter, _ in
      let error = await #expect(throws: FerryError.self) {
        try await adapter.mark(ReadMark(upTo: "7", by: Self.ann, state: .read), in: "private-b")
      }
      #expect(error?.code == .unavailable && error?.didNotAct == true)
    }
  }
}
