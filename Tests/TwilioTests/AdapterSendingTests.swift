import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import TwilioProvider

@Suite(.timeLimit(.minutes(3))) struct TwilioSendingTests {
  @Test func `a post says who, what and for whom, and wakes no webhook`() async throws {
    try await AdapterRig.with { rig in
      var message = AdapterRig.outgoing("Grüße & ☕ = +1")
      message.replyTo = "IM9"
      let id = try await rig.adapter.post(message, to: "lobby")
      let request = try #require(rig.twilio.requests("POST").first)
      #expect(request.path == "Conversations/lobby/Messages")
      #expect(request.form["Author"] == "Ann")
      #expect(request.form["Body"] == "Grüße & ☕ = +1")
      #expect(request.form["DateCreated"] == nil)
      #expect(request.headers["X-Twilio-Webhook-Enabled"] == nil)
      #expect(request.headers["Authorization"]?.hasPrefix("Basic QUNh") == true)
      #expect(request.headers["Content-Type"]?.hasPrefix("application/x-www-form-urlencoded") == true)
      let ferry = try #require(FerryAttributes(request.form["Attributes"] ?? ""))
      #expect(ferry.stamp == message.stamp)
      #expect(ferry.key == message.key.rawValue)
      #expect(ferry.author == "ann-1")
      #expect(ferry.replyTo == "IM9")
      #expect(id.rawValue == ScriptedTwilio.sid("IM", 0))
    }
  }

  @Test func `an empty text, which Twilio refuses, is a zero-width space there and empty again here`() async throws {
    try await AdapterRig.listening { rig in
      _ = try await rig.adapter.post(AdapterRig.outgoing(""), to: "lobby")
      #expect(rig.twilio.requests("POST").first?.form["Body"] == "\u{200B}")
      rig.twilio.add(ScriptedTwilio.message(7, "\u{200B}"), ScriptedTwilio.message(8, "a\u{200B}b"))
      _ = await rig.inbox.message("a\u{200B}b")
      #expect(rig.inbox.now.texts.contains(""))
    }
  }

  @Test func `with a service the paths name it`() async throws {
    try await AdapterRig.with(adjust: { $0.serviceSID = ScriptedTwilio.service }) { rig in
      #expect(
        rig.adapter.messagesURL("a/b c").hasSuffix(
          "/v1/Services/\(ScriptedTwilio.service)/Conversations/a%2Fb%20c/Messages"))
      _ = try await rig.adapter.post(AdapterRig.outgoing("x"), to: "lobby")
    }
  }

  @Test func `what is old is dated back, to the second, and remembered to the millisecond`() async throws {
    let clock = ManualClock()
    let old = clock.now().advanced(by: .milliseconds(-61_001))
    try await AdapterRig.with(clock: clock) { rig in
      _ = try await rig.adapter.post(AdapterRig.outgoing("old", time: old), to: "lobby")
      let recent = clock.now().advanced(by: .milliseconds(-59_000))
      _ = try await rig.adapter.post(AdapterRig.outgoing("recent", time: recent), to: "lobby")
      let posts = rig.twilio.requests("POST")
      #expect(posts[0].form["DateCreated"] == TwilioDate.seconds(old))
      #expect(posts[0].form["DateUpdated"] == TwilioDate.seconds(old))
      let ferry = try #require(FerryAttributes(posts[0].form["Attributes"] ?? ""))
      #expect(ferry.time == old)
      #expect(ferry.sent == clock.now())
      #expect(posts[1].form["DateCreated"] == nil)
      #expect(FerryAttributes(posts[1].form["Attributes"] ?? "")?.time == recent)
    }
  }

  @Test func `a name that is too long is shortened, and one that is missing replaced`() throws {
    func author(_ id: String, _ name: String) throws -> String? {
      let message = OutgoingMessage(key: "k", author: Author(id: UserID(id), name: name), text: "x")
      return try TwilioAdapter.form(of: message, now: Timestamp(milliseconds: 0))["Author"]
    }
    #expect(try author("a", "") == "a")
    #expect(try author("", "") == "unknown")
    #expect(try author("a", String(repeating: "é", count: 300))?.utf8.count == 256)
  }

  @Test func `a file goes with its message, one at a time`() throws {
    let file = OutgoingAttachment(
      name: "a.png", mediaType: "image/png", size: 1, sha256: "ab", reference: .provider("ME1"))
    var message = AdapterRig.outgoing("")
    message.attachments = [file]
    let form = try TwilioAdapter.form(of: message, now: Timestamp(milliseconds: 0))
    #expect(form["MediaSid"] == "ME1")
    #expect(form["Body"] == nil)
    #expect(FerryAttributes(form["Attributes"] ?? "")?.sha256 == "ab")
    message.attachments = [file, file]
    #expect(throws: FerryError.self) { try TwilioAdapter.form(of: message, now: Timestamp(milliseconds: 0)) }
    message.attachments = [file]
    message.attachments[0].reference = .url("http://x")
    #expect(throws: FerryError.self) { try TwilioAdapter.form(of: message, now: Timestamp(milliseconds: 0)) }
  }

  @Test func `a conversation that is missing is created where that is wanted, and else named`() async throws {
    try await AdapterRig.with { rig in
      rig.twilio.state.update { $0.exists = false }
      let error = await #expect(throws: FerryError.self) {
        try await rig.adapter.post(AdapterRig.outgoing("x"), to: "lobby")
      }
      #expect(error?.code == .notFound)
      #expect(error?.didNotAct == true)
      #expect(error?.message.contains("create: true") == true)
    }
    try await AdapterRig.with(adjust: { $0.create = true }) { rig in
      rig.twilio.state.update { $0.exists = false }
      _ = try await rig.adapter.post(AdapterRig.outgoing("x"), to: "lobby")
      let lines = rig.twilio.requests("POST").map(\.line)
      #expect(
        lines == ["POST Conversations/lobby/Messages", "POST Conversations", "POST Conversations/lobby/Messages"])
      #expect(
        rig.twilio.requests("POST Conversations").first { $0.path == "Conversations" }?.form["UniqueName"] == "lobby")
      // By SID there is nothing to create.
      let error = await #expect(throws: FerryError.self) {
        try await rig.adapter.post(AdapterRig.outgoing("x"), to: ChannelID("CH" + String(repeating: "0", count: 32)))
      }
      #expect(error?.code == .notFound)
    }
  }

  @Test func `somebody else may create it at the same time`() async throws {
    try await AdapterRig.with(adjust: { $0.create = true }) { rig in
      rig.twilio.refuse("POST Conversations/lobby/Messages", 404, code: 20404)
      rig.twilio.refuse("POST Conversations", 409, code: 50353)
      _ = try await rig.adapter.post(AdapterRig.outgoing("x"), to: "lobby")
    }
  }

  @Test func `a file that is gone is a reason to upload it again, not to create the conversation`() async throws {
    try await AdapterRig.with(adjust: { $0.create = true }) { rig in
      rig.twilio.refuse("POST Conversations/lobby/Messages", 404, code: 50507)
      let error = await #expect(throws: FerryError.self) {
        try await rig.adapter.post(AdapterRig.outgoing("x"), to: "lobby")
      }
      #expect(error?.retry == .now)
      #expect(error?.didNotAct == true)
      #expect(rig.twilio.requests("POST Conversations").count == 1)
    }
  }

  @Test func `what another request held up is tried again, and not for ever`() async throws {
    try await AdapterRig.with { rig in
      rig.twilio.refuse("POST Conversations/lobby/Messages", 409, code: 50514, times: 2)
      _ = try await rig.adapter.post(AdapterRig.outgoing("x"), to: "lobby")
      #expect(rig.twilio.requests("POST").count == 3)
      rig.twilio.refuse("POST Conversations/lobby/Messages", 409, code: 50391, times: 9)
      let error = await #expect(throws: FerryError.self) {
        try await rig.adapter.post(AdapterRig.outgoing("y"), to: "lobby")
      }
      #expect(error?.code == .conflict)
      #expect(error?.retry == .now)
      #expect(error?.didNotAct == true)
      #expect(rig.twilio.requests("POST").count == 7)
    }
  }

  @Test func `being told to slow down is passed on, longer each time, and nothing is repeated`() async throws {
    try await AdapterRig.with { rig in
      rig.twilio.refuse("POST", 429, code: 20429, times: 2)
      for most in [1, 2] {
        let error = await #expect(throws: FerryError.self) {
          try await rig.adapter.post(AdapterRig.outgoing("x"), to: "lobby")
        }
        guard case .after(let wait)? = error?.retry else { throw FerryError(.badData, "no time") }
        #expect(wait <= .seconds(most))
        #expect(error?.didNotAct == true)
      }
      #expect(rig.twilio.requests("POST").count == 2)
    }
  }

  @Test func `an answer that is no JSON leaves open what became of the message`() async throws {
    try await AdapterRig.with { rig in
      rig.twilio.answer("POST", 201, "no message")
      let error = await #expect(throws: FerryError.self) {
        try await rig.adapter.post(AdapterRig.outgoing("x"), to: "lobby")
      }
      #expect(error?.code == .outcomeUnknown)
      #expect(error?.didNotAct == false)
    }
  }

  // MARK: Changing

  @Test func `an edit keeps others' attributes and the key of the post`() async throws {
    try await AdapterRig.with { rig in
      let id = try await rig.adapter.post(AdapterRig.outgoing("frist"), to: "lobby")
      rig.twilio.state.update { state in
        var ferry = JSONText.value(state.messages[0].attributes)?.object ?? [:]
        ferry["reactions"] = ["👍"]
        state.messages[0].attributes = (try? String(decoding: ServiceJSON.bytes(.object(ferry)), as: UTF8.self)) ?? ""
      }
      let edit = AdapterRig.outgoing("first", revision: 5)
      try await rig.adapter.edit(id, in: "lobby", to: edit)
      let form = try #require(rig.twilio.requests("POST Conversations/lobby/Messages/").last?.form)
      #expect(form["Body"] == "first")
      #expect(form["Author"] == nil)
      let attributes = try #require(JSONText.value(form["Attributes"] ?? ""))
      #expect(attributes["reactions"]?.array == ["👍"])
      let ferry = try #require(FerryAttributes(attributes))
      #expect(ferry.stamp == edit.stamp)
      #expect(ferry.key == AdapterRig.outgoing("frist").key.rawValue)
      #expect(try await rig.adapter.find(AdapterRig.outgoing("frist").key, in: "lobby") == .found(id))
    }
  }

  @Test func `attributes without room or without sense are left alone`() async throws {
    try await AdapterRig.with { rig in
      for attributes in ["{\"a\":\"" + String(repeating: "x", count: 4050) + "\"}", "not JSON", "[1]"] {
        rig.twilio.state.update { state in
          state.messages = [ScriptedTwilio.message(0, "x")]
          state.messages[0].attributes = attributes
        }
        try await rig.adapter.edit(MessageID(ScriptedTwilio.sid("IM", 0)), in: "lobby", to: AdapterRig.outgoing("y"))
        let form = try #require(rig.twilio.requests("POST").last?.form)
        #expect(form["Body"] == "y")
        #expect(form["Attributes"] == nil)
      }
    }
  }

  @Test func `what Twilio cannot edit is refused before it is sent`() async throws {
    try await AdapterRig.with { rig in
      rig.twilio.state.update { state in
        state.messages = [ScriptedTwilio.message(0, "x")]
        state.messages[0].media = [["sid": "ME1"]]
      }
      let error = await #expect(throws: FerryError.self) {
        try await rig.adapter.edit(MessageID(ScriptedTwilio.sid("IM", 0)), in: "lobby", to: AdapterRig.outgoing("y"))
      }
      #expect(error?.code == .unsupported)
      #expect(rig.twilio.requests("POST").isEmpty)
      let gone = await #expect(throws: FerryError.self) {
        try await rig.adapter.edit("IM7", in: "lobby", to: AdapterRig.outgoing("y"))
      }
      #expect(gone?.code == .notFound)
    }
  }

  @Test func `deleting what is gone succeeds`() async throws {
    try await AdapterRig.with { rig in
      let id = try await rig.adapter.post(AdapterRig.outgoing("x"), to: "lobby")
      for _ in 0..<2 { try await rig.adapter.delete(id, in: "lobby", as: nil, stamp: AdapterRig.stamp) }
      #expect(rig.twilio.state.value.messages.isEmpty)
    }
  }

  // MARK: Settling

  @Test func `a send is found however many came after it, and absent when it never came`() async throws {
    try await AdapterRig.with { rig in
      let id = try await rig.adapter.post(AdapterRig.outgoing("x", id: "7"), to: "lobby")
      rig.twilio.state.update { state in
        for index in 1...250 {
          var message = ScriptedTwilio.message(Int64(index), "later")
          message.created = TwilioDate.seconds(SystemClock().now())
          state.messages.append(message)
        }
      }
      #expect(try await rig.adapter.find(AdapterRig.outgoing("x", id: "7").key, in: "lobby") == .found(id))
      #expect(rig.twilio.requests("GET").count == 3)
      #expect(try await rig.adapter.find("lobby|here:lobby|8|0|0", in: "lobby") == .absent)
      rig.twilio.state.update { $0.exists = false }
      #expect(try await rig.adapter.find("k", in: "lobby") == .absent)
    }
  }

  @Test func `looking ends at what is older than the send, which back-dated messages are not`() async throws {
    let clock = ManualClock()
    try await AdapterRig.with(clock: clock) { rig in
      func find() async throws -> (Finding, pages: Int) {
        let before = rig.twilio.requests("GET").count
        let finding = try await rig.adapter.find(AdapterRig.outgoing("x", id: "8").key, in: "lobby")
        return (finding, rig.twilio.requests("GET").count - before)
      }
      rig.twilio.state.update { state in
        for index in 0..<1000 {
          var message = ScriptedTwilio.message(Int64(index), "x")
          message.created = TwilioDate.seconds(clock.now().advanced(by: .seconds(Int64(index - 1000) * 60)))
          state.messages.append(message)
        }
      }
      // Tried by this process just now: the first page that is all older tells.
      rig.twilio.refuse("POST", 503, code: 20503)
      _ = try? await rig.adapter.post(AdapterRig.outgoing("x", id: "8"), to: "lobby")
      var (finding, pages) = try await find()
      #expect(finding == .absent)
      #expect(pages == 2)
      // What was dated back counts by when it was written.
      rig.twilio.state.update { state in
        for index in 900..<1000 {
          state.messages[index].created = "2016-01-01T00:00:00Z"
          var ferry = FerryAttributes()
          ferry.sent = clock.now()
          state.messages[index].attributes = ferry.text()
        }
      }
      (finding, pages) = try await find()
      #expect(finding == .absent)
      #expect(pages == 2)
    }
  }

  @Test func `a send of another process is looked for a week back, and up to the bridge's last message`() async throws {
    let clock = ManualClock()
    try await AdapterRig.with(clock: clock) { rig in
      rig.twilio.state.update { state in
        for index in 0..<500 {
          var message = ScriptedTwilio.message(Int64(index), "x")
          message.created = TwilioDate.seconds(clock.now().advanced(by: .seconds(Int64(index - 500) * 86_400)))
          var ferry = FerryAttributes()
          ferry.stamp = index == 150 ? AdapterRig.stamp : nil
          ferry.key = "k\(index)"
          message.attributes = ferry.text()
          state.messages.append(message)
        }
      }
      let interrupted = try await rig.adapter.find("lobby|here:lobby|8|0|0", in: "lobby")
      #expect(interrupted == .absent)
      #expect(rig.twilio.requests("GET").count == 4)
      // A person's key has no bridge whose messages could tell.
      #expect(try await rig.adapter.find("by-hand", in: "lobby") == .absent)
      #expect(rig.twilio.requests("GET").count == 6)
      #expect(try await rig.adapter.find("k399", in: "lobby") == .found(MessageID(ScriptedTwilio.sid("IM", 399))))
    }
  }

  @Test func `thirty a second are written to a conversation and no more`() async throws {
    let clock = ManualClock()
    try await AdapterRig.with(clock: clock) { rig in
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          for number in 0..<31 { _ = try await rig.adapter.post(AdapterRig.outgoing("\(number)"), to: "lobby") }
        }
        await clock.waitForSleepers()
        #expect(rig.twilio.requests("POST").count == 30)
        clock.advance(by: .seconds(1))
        try await group.waitForAll()
      }
      #expect(rig.twilio.requests("POST").count == 31)
    }
  }

  @Test func `channels are listed by unique name`() async throws {
    try await AdapterRig.with { rig in
      let channels = try await rig.adapter.channels()
      #expect(channels == [ChannelSummary(id: "lobby", name: "The lobby")])
    }
  }

  @Test func `a list that leads to another server is not followed`() async throws {
    try await AdapterRig.with { rig in
      rig.twilio.answer(
        "GET", 200,
        [
          "meta": ["key": "conversations", "next_page_url": "http://127.0.0.2:1/v1/Conversations"], "conversations": [],
        ])
      let error = await #expect(throws: FerryError.self) { try await rig.adapter.channels() }
      #expect(error?.code == .badData)
    }
  }

  @Test(arguments: [
    ("https://a.example:443/x", "https://A.example", true), ("https://a.example/x", "https://a.example:443", true),
    ("http://a.example/x", "https://a.example", false), ("https://a.example.evil.org/x", "https://a.example", false),
    ("https://a.example@evil.org/x", "https://a.example", false),
    ("https://a.example\\@evil.org", "https://a.example", false),
    ("//evil.org/x", "https://a.example", false), ("/v1/x", "https://a.example/v1", true),
    ("x", "https://a.example", false),
  ])
  func `what is the same server`(url: String, base: String, isSame: Bool) {
    #expect((TwilioAPI.resolve(url, at: base) != nil) == isSame)
  }
}
