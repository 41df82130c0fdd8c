import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import PusherProvider

/// An adapter that runs against a facade of its own.
private struct Rig: Sendable {
  let service: Service
  let adapter: PusherAdapter
  let inbox: RecordingInbox
  let proxy: FaultProxy

  static let stamp = Stamp(bridge: "lobby", origin: Address(account: "here", channel: "lobby"), id: "1")

  /// Runs the adapter on `channels` while `body` works.
  static func running(
    _ channels: String..., secret: String = "demo-secret", marker: Bool = true,
    inbox: RecordingInbox = RecordingInbox(), lastSeen: Timestamp? = nil,
    adjust: @escaping @Sendable (inout PusherFacade.Settings) -> Void = { _ in },
    _ body: @escaping @Sendable (Rig) async throws -> Void
  ) async throws {
    try await Service.serving(adjust: adjust) { service in
      let proxy = try await FaultProxy.start(to: service.server.port)
      var settings = PusherAdapter.Settings(
        appID: "1001", key: "demo-key", secret: Secret(secret), host: "127.0.0.1", port: proxy.port, tls: false)
      settings.marker = marker
      let adapter = PusherAdapter(
        settings: settings, client: service.client, clock: SystemClock(), logger: .silent)
      let rig = Rig(service: service, adapter: adapter, inbox: inbox, proxy: proxy)
      let subscriptions = channels.map { Subscription(channel: ChannelID($0), lastSeen: lastSeen) }
      do {
        try await withThrowingTaskGroup(of: Void.self) { group in
          if !subscriptions.isEmpty {
            group.addTask { try await adapter.run(subscriptions, into: inbox) }
            if secret == "demo-secret" { await inbox.connected() }
          }
          defer { group.cancelAll() }
          try await body(rig)
        }
      } catch {
        await proxy.close()
        throw error
      }
      await proxy.close()
    }
  }

  static func message(_ text: String, id: String = Crypto.randomHex(bytes: 6), revision: Int = 0) -> OutgoingMessage {
    var stamp = Self.stamp
    stamp.id = MessageID(id)
    stamp.revision = revision
    return OutgoingMessage(key: stamp.key, author: Author(id: "ann", name: "Ann"), text: text, stamp: stamp)
  }

  /// Everything that was posted, in order.
  var texts: [String] {
    inbox.now.events.compactMap { if case .posted(let message) = $0.kind { message.text } else { nil } }
  }
}

@Suite(.timeLimit(.minutes(1))) struct AdapterTests {
  @Test func `a post is seen by an official client's eyes and comes back with its stamp`() async throws {
    try await Rig.running("chatroom") { rig in
      let client = try await rig.service.connect()
      try await client.subscribe("chatroom")
      let message = Rig.message("hello")
      let id = try await rig.adapter.post(message, to: "chatroom")
      let frame = try unwrap(Frame(text: try await client.next()), "no frame")
      #expect(frame.event == "new_message")
      #expect(frame.data?.parsed["sender"] == "Ann")
      #expect(frame.data?.parsed["text"] == "hello")
      #expect(frame.data?.parsed["ID"]?.string == id.rawValue)
      let echo = await rig.inbox.message("hello")
      #expect(echo?.id == id)
      #expect(echo?.stamp == message.stamp)
      #expect(echo?.author == Author(id: "ann", name: "Ann"))
    }
  }

  @Test func `what a person posts has no stamp`() async throws {
    try await Rig.running("chatroom") { rig in
      let message = OutgoingMessage(key: "k1", author: Author(id: "bob", name: "bob"), text: "by hand")
      let id = try await rig.adapter.post(message, to: "chatroom")
      let echo = await rig.inbox.message("by hand")
      #expect(echo?.id == id)
      #expect(echo?.stamp == nil)
      #expect(try await rig.adapter.find("k1", in: "chatroom") == .found(id))
    }
  }

  @Test(arguments: [true, false]) func `a batch arrives whole and in order`(marker: Bool) async throws {
    try await Rig.running("chatroom", marker: marker) { rig in
      let size = rig.adapter.capabilities.batch
      #expect(size == (marker ? 9 : 10))
      let messages = (0..<size).map { Rig.message("m\($0)") }
      let ids = try await rig.adapter.post(messages, to: "chatroom")
      #expect(ids == messages.map { Marker.messageID($0.key) })
      _ = await rig.inbox.message("m\(size - 1)")
      #expect(rig.texts == messages.map(\.text))
      let findings = try await rig.adapter.find(messages.map(\.key), in: "chatroom")
      if marker {
        #expect(findings == ids.map { .found($0) })
      } else {
        #expect(findings.count == size)
        #expect(rig.adapter.capabilities.certainty == .none)
      }
    }
  }

  @Test func `edits, deletes, typing, marks and reactions go there and back`() async throws {
    try await Rig.running("private-chat") { rig in
      let (adapter, channel) = (rig.adapter, ChannelID("private-chat"))
      let ann = Author(id: "ann", name: "Ann")
      let id = try await adapter.post(Rig.message("first"), to: channel)
      try await adapter.edit(id, in: channel, to: Rig.message("second", id: "1", revision: 1))
      try await adapter.delete(id, in: channel, as: ann, stamp: Rig.stamp)
      try await adapter.mark(ReadMark(upTo: id, by: ann, state: .delivered), in: channel)
      try await adapter.react(Reaction(message: id, by: ann, emoji: "+", added: true), in: channel)
      try await adapter.setTyping(Typing(channel: channel, by: ann, on: true, stamp: Rig.stamp))
      try await adapter.setTyping(Typing(channel: channel, by: ann, on: false, stamp: Rig.stamp))
      let record = await rig.inbox.wait { $0.events.count == 5 && $0.typing.count == 2 ? $0 : nil }
      let kinds = try unwrap(record, "not everything came").events.map(\.kind)
      guard case .edited(let edited) = kinds[1] else { throw FerryError(.badData, "no edit") }
      #expect(edited.text == "second")
      #expect(edited.id == id)
      #expect(edited.revision == 1)
      #expect(kinds[2] == .deleted(Deletion(id: id, by: Author(id: "Ann", name: "Ann"), stamp: Rig.stamp)))
      #expect(record?.typing.map(\.on) == [true, false])
      #expect(record?.typing.first?.by == ann)
    }
  }

  @Test func `people come and go on a presence channel, and Ferry is one of them`() async throws {
    try await Rig.running("presence-a") { rig in
      let client = try await rig.service.connect()
      #expect(try await client.subscribe("presence-a", as: "bob").contains(#"\"ferry\":{\"name\":\"Ferry\"}"#))
      client.close()
      let bob = Membership(member: Author(id: "bob", name: "bob!"))
      let events = await rig.inbox.wait { $0.events.count == 2 ? $0.events : nil }
      #expect(events?.map(\.kind) == [.joined(bob), .left(bob)])
    }
  }

  @Test func `members are listed without Ferry, and announced by events`() async throws {
    try await Rig.running("presence-a") { rig in
      let client = try await rig.service.connect()
      try await client.subscribe("presence-a", as: "bob")
      #expect(try await rig.adapter.members(of: "presence-a").map(\.id) == ["bob"])
      await #expect(throws: FerryError.self) { try await rig.adapter.members(of: "chatroom") }
      let ann = Membership(member: Author(id: "ann", name: "Ann"), stamp: Rig.stamp)
      try await rig.adapter.setMember(ann, of: "presence-a", present: true)
      try await rig.adapter.setMember(ann, of: "presence-a", present: false)
      let events = await rig.inbox.wait { $0.events.count == 3 ? $0.events : nil }
      #expect(events?.dropFirst().map(\.kind) == [.joined(ann), .left(ann)])
    }
  }

  @Test(arguments: [ErrorCode.overCapacity, .reconnect])
  func `after a close that asks for it the adapter comes back and tells the gap`(code: ErrorCode) async throws {
    try await Rig.running("chatroom", "private-a") { rig in
      let before = rig.inbox.now.connections.count { $0.phase == .connected }
      for connection in rig.service.facade.hub.withLock({ Array($0.connections.values) }) {
        PusherFacade.end(connection.socket, code, "again")
      }
      let record = await rig.inbox.wait { record in
        record.connections.count { $0.phase == .connected } > before && record.gaps.count == 2 ? record : nil
      }
      #expect(Set(record?.gaps.map(\.channel) ?? []) == ["chatroom", "private-a"])
      #expect(record?.gaps.allSatisfy { $0.start <= $0.end } == true)
      try await rig.service.trigger("new_message", on: "private-a", data: #"{"text":"after"}"#)
      #expect(await rig.inbox.message("after") != nil)
    }
  }

  @Test func `after the line is cut the adapter comes back and loses nothing that is said later`() async throws {
    try await Rig.running("chatroom") { rig in
      try await rig.service.trigger("new_message", on: "chatroom", data: #"{"text":"before"}"#)
      _ = await rig.inbox.message("before")
      await rig.proxy.cut()
      let gap = await rig.inbox.wait { $0.gaps.first }
      #expect(gap?.channel == "chatroom")
      try await rig.service.trigger("new_message", on: "chatroom", data: #"{"text":"after"}"#)
      #expect(await rig.inbox.message("after") != nil)
      #expect(rig.inbox.now.duplicates.isEmpty)
    }
  }

  @Test func `what was missed while no adapter ran is told as a gap, the first time nothing is`() async throws {
    try await Rig.running("chatroom") { rig in #expect(rig.inbox.now.gaps.isEmpty) }
    let start = Timestamp(milliseconds: 1_700_000_000_000)
    try await Rig.running("chatroom", lastSeen: start) { rig in
      let gap = await rig.inbox.wait { $0.gaps.first }
      #expect(gap?.start == start)
    }
  }

  @Test func `a key that the service does not know ends the run`() async throws {
    try await Service.serving { service in
      let settings = PusherAdapter.Settings(
        appID: "1001", key: "wrong", secret: Secret("x"), host: "127.0.0.1", port: service.server.port, tls: false)
      let adapter = PusherAdapter(
        settings: settings, client: service.client, clock: SystemClock(), logger: .silent)
      let inbox = RecordingInbox()
      let error = await #expect(throws: FerryError.self) {
        try await adapter.run([Subscription(channel: "a")], into: inbox)
      }
      #expect(error?.code == .badCredentials)
      #expect(error?.retry == .never)
      #expect(inbox.now.connections.last?.phase == .badCredentials)
      let post = await #expect(throws: FerryError.self) { try await adapter.post(Rig.message("x"), to: "a") }
      #expect(post?.code == .badCredentials)
      #expect(post?.didNotAct == true)
    }
  }

  @Test func `a wrong secret is told and the subscription repeated`() async throws {
    try await Rig.running("private-a", secret: "wrong") { rig in
      let state = await rig.inbox.wait { $0.connections.last { $0.phase == .degraded } }
      #expect(state?.reason?.contains("Invalid signature") == true)
    }
  }

  @Test func `events wait for the disk in their order`() async throws {
    let inbox = RecordingInbox()
    try await Rig.running("chatroom", inbox: inbox) { rig in
      inbox.failNext(2)
      for index in 0..<5 {
        try await rig.service.trigger("new_message", on: "chatroom", data: #"{"text":"m\#(index)"}"#)
      }
      _ = await inbox.message("m4")
      #expect(rig.texts == (0..<5).map { "m\($0)" })
    }
  }

  @Test func `more than a queue holds passes in order`() async throws {
    try await Rig.running("chatroom") { rig in
      for index in 0..<300 {
        let items = (0..<10).map { #"{"name":"new_message","channel":"chatroom","data":"m\#(index * 10 + $0)"}"# }
        _ = try await rig.service.send(
          "POST", "/apps/1001/batch_events", body: #"{"batch":[\#(items.joined(separator: ","))]}"#)
      }
      _ = await rig.inbox.message("m2999")
      #expect(rig.texts == (0..<3000).map { "m\($0)" })
    }
  }
}

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
    (401, .badCredentials, true), (413, .tooLarge, true), (403, .forbidden, true),
  ])
  func `a refusal says truly whether anything happened`(
    status: Int, code: FerryError.Code, didNotAct: Bool
  ) async throws {
    try await Rig.running(marker: false) { rig in
      await rig.proxy.answer(1, status: status, method: "POST")
      let error = await #expect(throws: FerryError.self) { try await rig.adapter.post(Rig.message("x"), to: "a") }
      #expect(error?.code == code)
      #expect(error?.didNotAct == didNotAct)
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
