import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import BackendlessProvider

@Suite(.timeLimit(.minutes(2))) struct AdapterTests {
  struct Way: Sendable, CustomTestStringConvertible {
    let engine: BackendlessAdapter.Settings.Engine
    let transport: BackendlessAdapter.Settings.Transport
    var testDescription: String { "engine \(engine.rawValue), \(transport.rawValue)" }

    static let all = BackendlessAdapter.Settings.Engine.allCases.flatMap { engine in
      BackendlessAdapter.Settings.Transport.allCases.map { Way(engine: engine, transport: $0) }
    }
  }

  @Test(arguments: Way.all) func `everything goes there and back by every way`(way: Way) async throws {
    try await AdapterRig.serving { rig in
      let adapter = rig.adapter {
        $0.engine = way.engine
        $0.transport = way.transport
      }
      try await rig.running(adapter) { inbox in
        let id = try await adapter.post(AdapterRig.message("one", id: "1"), to: "lobby")
        try await adapter.setTyping(Typing(channel: "lobby", by: AdapterRig.ann, on: true))
        try await adapter.edit(id, in: "lobby", to: AdapterRig.message("two 👩‍👩‍👧", id: "1", revision: 1))
        try await adapter.mark(ReadMark(upTo: id, by: AdapterRig.ann, state: .read), in: "lobby")
        try await adapter.delete(id, in: "lobby", as: nil, stamp: AdapterRig.stamp)
        let story = await inbox.story(4)
        #expect(Set(story) == ["+one", "~two 👩‍👩‍👧", "r\(id)", "-"])
        #expect(inbox.now.events.compactMap(\.stamp).count == 3)
        let typing = await inbox.wait { $0.typing.first }
        #expect(typing?.by == AdapterRig.ann)
        #expect(inbox.now.duplicates.isEmpty)
        guard way.transport == .auto else { return }
        // The session has gone over to the WebSocket by now, or soon will have.
        while adapter.live.withLock({ $0 })?.engine.transport == .polling { try await rig.say("on") }
      }
    }
  }

  @Test func `without a socket, messages are polled, and changes read from the table`() async throws {
    try await AdapterRig.serving { rig in
      let adapter = rig.adapter {
        $0.receive = .legacyPolling
        $0.poll = .seconds(1)
      }
      #expect(!adapter.capabilities.typing)
      try await rig.running(adapter) { inbox in
        let id = try await rig.say("from the app")
        #expect(await inbox.message("from the app") != nil)
        let own = try await adapter.post(AdapterRig.message("from Ferry"), to: "lobby")
        #expect(await inbox.message("from Ferry")?.id == own)
        try await rig.send("PUT", "/data/ChatMessage/\(id)", ["messageText": "edited"])
        try await rig.send("DELETE", "/data/ChatMessage/\(own)")
        let story = await inbox.story(4)
        #expect(Set(story) == ["+from the app", "+from Ferry", "~edited", "-"])
        await #expect(throws: FerryError.self) {
          try await adapter.setTyping(Typing(channel: "lobby", by: AdapterRig.ann, on: true))
        }
      }
    }
  }

  @Test func `what happened while nobody listened is read from the table`() async throws {
    try await AdapterRig.serving { rig in
      let before = try await rig.say("before the first run")
      let (old, gone, cursor) = try await rig.firstRun()
      try await rig.say("meanwhile")
      // Saved and never published.
      try await rig.save("only saved")
      try await rig.send("PUT", "/data/ChatMessage/\(old)", ["messageText": "changed meanwhile"])
      try await rig.send("DELETE", "/data/ChatMessage/\(gone)")
      try await rig.running(rig.adapter(), cursor: cursor, inbox: rig.inbox) { inbox in
        try await rig.say("afterwards")
        _ = await inbox.message("afterwards")
        let story = inbox.now.story
        #expect(story.prefix(2) == ["+old", "+gone"])
        #expect(Set(story.dropFirst(2).dropLast()) == ["+meanwhile", "+only saved", "~changed meanwhile", "-"])
        #expect(story.last == "+afterwards")
        #expect(inbox.now.duplicates.isEmpty)
        #expect(!inbox.now.events.contains { $0.key.rawValue == "m:\(before)" })
      }
    }
  }

  @Test func `after the line was cut nothing is missing, and nothing twice`() async throws {
    try await AdapterRig.serving { rig in
      let adapter = rig.adapter()
      try await rig.running(adapter) { inbox in
        try await rig.say("one")
        _ = await inbox.message("one")
        await rig.proxy.refuse()
        try await rig.say("two")
        let lost = try await rig.say("three")
        try await rig.send("PUT", "/data/ChatMessage/\(lost)", ["messageText": "three, edited"])
        try await rig.proxy.accept()
        try await rig.say("four")
        _ = await inbox.message("four")
        #expect(inbox.now.story == ["+one", "+two", "+three, edited", "+four"])
        #expect(inbox.now.duplicates.isEmpty)
      }
    }
  }

  @Test func `a message that was saved and not published is published by looking for it`() async throws {
    try await AdapterRig.serving { rig in
      let message = AdapterRig.message("halfway")
      let writer = rig.adapter().writer
      let row = try writer.row(message, in: "lobby", now: SystemClock().now())
      try await rig.send("PUT", "/data/ChatMessage/upsert", row)
      let watcher = rig.adapter { $0.table = nil }
      try await rig.running(watcher) { inbox in
        let adapter = rig.adapter()
        let id = MessageID(ChatWriter.objectID(message.key, in: "lobby"))
        #expect(try await adapter.find(message.key, in: "lobby") == .found(id))
        #expect(await inbox.message("halfway")?.id == id)
        #expect(inbox.now.events.last?.stamp == message.stamp)
        #expect(try await adapter.find("another", in: "lobby") == .absent)
        // Once it is certain, it is not published again.
        #expect(try await adapter.find(message.key, in: "lobby") == .found(id))
        try await rig.say("the end")
        _ = await inbox.message("the end")
        #expect(inbox.now.events.count + inbox.now.duplicates.count == 2)
      }
    }
  }

  @Test func `a post that is repeated is one message`() async throws {
    try await AdapterRig.serving { rig in
      let adapter = rig.adapter()
      try await rig.running(adapter) { inbox in
        let message = AdapterRig.message("again")
        let first = try await adapter.post(message, to: "lobby")
        let second = try await adapter.post(message, to: "lobby")
        #expect(first == second)
        try await rig.say("the end")
        _ = await inbox.message("the end")
        #expect(inbox.now.story == ["+again", "+the end"])
      }
    }
  }

  @Test func `the answer of either half may be lost`() async throws {
    try await AdapterRig.serving { rig in
      let adapter = rig.adapter()
      for method in ["PUT", "POST"] {
        let message = AdapterRig.message("lost \(method)")
        await rig.proxy.swallowAnswers(1, method: method)
        let error = await #expect(throws: FerryError.self) { try await adapter.post(message, to: "lobby") }
        #expect(error?.didNotAct == false)
        let id = MessageID(ChatWriter.objectID(message.key, in: "lobby"))
        let finding = try await adapter.find(message.key, in: "lobby")
        #expect(finding == .found(id))
      }
    }
  }

  @Test func `what may be saved and not published is taken back`() async throws {
    try await AdapterRig.serving { rig in
      let adapter = rig.adapter()
      await rig.proxy.answer(1, status: 403, method: "POST /APPID/KEY/messaging")
      let message = AdapterRig.message("forbidden")
      let error = await #expect(throws: FerryError.self) { try await adapter.post(message, to: "lobby") }
      #expect(error?.code == .forbidden)
      #expect(error?.didNotAct == true)
      let finding = try await adapter.find(message.key, in: "lobby")
      #expect(finding == .absent)
    }
  }

  @Test func `an account without a table publishes, hears, and reports gaps`() async throws {
    try await AdapterRig.serving { rig in
      let adapter = rig.adapter { $0.table = nil }
      let start = Timestamp(milliseconds: 1_700_000_000_000)
      try await rig.running(adapter, lastSeen: start) { inbox in
        #expect(inbox.now.gaps.map(\.start) == [start])
        let message = AdapterRig.message("hello")
        guard case .unknown = try await adapter.find(message.key, in: "lobby") else {
          Issue.record("what was never sent is claimed to be known")
          return
        }
        let id = try await adapter.post(message, to: "lobby")
        #expect(await inbox.message("hello")?.id == id)
        #expect(try await adapter.find(message.key, in: "lobby") == .found(id))
        await #expect(throws: FerryError.self) { try await adapter.edit(id, in: "lobby", to: message) }
        await #expect(throws: FerryError.self) {
          try await adapter.history(of: "lobby", order: .oldestFirst, after: nil, limit: 10)
        }
        await rig.proxy.cut()
        let gap = await inbox.wait { $0.gaps.count == 2 ? $0.gaps.last : nil }
        #expect(gap.map { $0.start <= $0.end } == true)
      }
    }
  }

  @Test func `the picture chat is followed message for message`() async throws {
    try await AdapterRig.serving { rig in
      let adapter = rig.adapter()
      try await rig.running(adapter) { inbox in
        try await rig.publish(["___class": "ChatMessage", "userName": "bob", "messageText": "joined"])
        // Its rows name no channel.
        let text = try await rig.say("hello", channel: nil)
        _ = await inbox.message("hello")
        var picture = try await rig.send(
          "PUT", "/data/ChatMessage", ["userName": "bob", "pictureUrl": "https://example.org/a.png"])
        if case .object(var row) = picture {
          row["___class"] = "ChatMessage"
          picture = .object(row)
        }
        try await rig.publish(picture)
        _ = await inbox.story(3)
        try await rig.send("PUT", "/data/ChatMessage", ["objectId": .string(text), "messageText": "hello, edited"])
        try await rig.send("DELETE", "/data/ChatMessage/\(picture["objectId"]?.string ?? "")")
        let story = await inbox.story(5)
        #expect(story.prefix(3) == [">bob", "+hello", "+"])
        #expect(Set(story.suffix(2)) == ["~hello, edited", "-"])
        #expect(inbox.now.events.compactMap(\.stamp).isEmpty)
      }
    }
  }

  @Test func `rows of other channels and tables are nobody's`() async throws {
    try await AdapterRig.serving { rig in
      let adapter = rig.adapter()
      try await rig.running(adapter) { inbox in
        try await rig.save("elsewhere", channel: "elsewhere")
        try await rig.save("nowhere", channel: nil)
        let other = try await rig.send("PUT", "/data/Order", ["messageText": "no chat", "channel": "lobby"])
        try await rig.publish(other)
        try await rig.save("here")
        #expect(await inbox.story(1) == ["+here"])
      }
    }
  }

  @Test func `an app of the chat page's kind is heard with its files`() async throws {
    try await AdapterRig.serving { rig in
      let adapter = rig.adapter()
      let bytes = Crypto.randomBytes(200_000)
      let reference = try await adapter.upload(
        .bytes(bytes), name: "a \"cat\".png", mediaType: "image/png", to: "lobby")
      guard case .provider(let url) = reference else {
        Issue.record("the file is elsewhere")
        return
      }
      #expect(url.contains("/APPID/KEY/files/tmpChatFiles/") && url.hasSuffix(".png"))
      #expect(try await adapter.attachment(reference).collect(upTo: 1 << 20) == bytes)
      #expect(try await rig.send("GET", "/files/tmpChatFiles?pattern=*").array?.count == 1)
      try await rig.running(adapter) { inbox in
        try await rig.publish(["userName": "bob", "pictureUrl": .string(url)])
        let message = await inbox.wait { record in
          for case .posted(let message) in record.events.map(\.kind) { return message }
          return nil
        }
        #expect(message?.attachments.first?.reference == reference)
      }
      let name = String(url.split(separator: "/").last ?? "")
      try await rig.send("DELETE", "/files/tmpChatFiles/\(name)")
      let error = await #expect(throws: FerryError.self) { try await adapter.attachment(reference) }
      #expect(error?.code == .notFound)
    }
  }

  @Test func `the channels are those that rows name, and a table is prepared with its columns`() async throws {
    try await AdapterRig.serving { rig in
      let adapter = rig.adapter()
      for channel in ["b", "it's", "a", "b", "комната"] { try await rig.save("x", channel: channel) }
      #expect(try await adapter.channels().map(\.name) == ["a", "b", "elsewhere", "it's", "комната"])
      #expect(try await rig.adapter { $0.table = "NotThere" }.channels().isEmpty)
      #expect(try await adapter.prepare().contains("ferryTime"))
      #expect(try await rig.send("POST", "/data/ChatMessage/count", ["where": "channel = 'ferry-check'"]) == 0)
      let stranger = rig.adapter { $0.place = .app(server: rig.proxy.url, id: "APPID", key: Secret("stolen")) }
      let error = await #expect(throws: FerryError.self) { try await stranger.channels() }
      #expect(error?.code == .badCredentials)
    }
  }

  @Test func `names from outside stay names`() async throws {
    try await AdapterRig.serving { rig in
      let adapter = rig.adapter()
      try await rig.save("secret")
      let page = try await adapter.history(of: "x' or '1'='1", order: .oldestFirst, after: nil, limit: 10)
      #expect(page.messages.isEmpty)
      for name in ["", "a/b", "a\\", "a\u{0}b"] {
        let error = await #expect(throws: FerryError.self) {
          try await adapter.history(of: ChannelID(name), order: .oldestFirst, after: nil, limit: 10)
        }
        #expect(error?.code == .badRequest)
      }
    }
  }
}

extension AdapterRig {
  /// A first run that hears two messages; their ids, and where it stood.
  fileprivate func firstRun() async throws -> (old: String, gone: String, Cursor?) {
    let ids = Locked<[String]>([])
    let cursor = try await running(adapter(), inbox: inbox) { inbox in
      for text in ["old", "gone"] {
        let id = try await self.say(text)
        ids.withLock { $0.append(id) }
        _ = await inbox.message(text)
      }
    }
    let all = ids.withLock { $0 }
    return (all.first ?? "", all.last ?? "", cursor)
  }
}
