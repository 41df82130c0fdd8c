import FerryChat
import FerryCore
import FerryRuntime
import FerryTransport
import LocalProvider
import Testing

@Suite(.timeLimit(.minutes(10))) struct LiveTests {
  @Test func aSubscriberIsToldWhatHappensFromNowOn() async throws {
    try await withServer { server async throws in
      _ = try await server.chat.post(Draft(author: ada, text: "before"), to: lobby, by: .owner)
      let head = try await server.chat.head()
      let socket = try await server.socket()
      #expect(await socket.sendWaiting(#"{"type":"subscribe","room":"lobby"}"#))
      #expect(try await socket.json() == ["type": "subscribed", "room": "lobby", "sequence": .integer(head)])
      _ = try await server.chat.post(Draft(author: ada, text: "elsewhere"), to: "other", by: .owner)
      let posted = try await server.send(
        "POST", "/v1/rooms/lobby/messages", #"{"client_id":"k","author":{"id":"ada"},"text":"now"}"#)
      let event = try await socket.json()
      #expect(event["type"] == "event" && event["event"]?["kind"] == "message")
      #expect(event["event"]?["message"] == posted.json)
      #expect(try #require(event["sequence"]?.integer) > head)
      socket.close()
    }
  }

  @Test func aSubscriberToAllRoomsIsToldOfThoseThatAreMadeLaterToo() async throws {
    try await withServer { server async throws in
      let socket = try await server.socket()
      await socket.say(#"{"type":"subscribe","all":true}"#)
      let head = try await server.chat.head()
      #expect(try await socket.json() == ["type": "subscribed", "all": true, "sequence": .integer(head)])
      for room in ["lobby", "new", "*"] {
        _ = try await server.chat.post(Draft(author: ada, text: "x"), to: ChannelID(room), by: .owner)
        #expect(try await socket.json()["event"]?["room"]?.string == room)
      }
      try server.chat.setTyping(Typing(channel: "new", by: bob, on: true), by: .owner)
      #expect(try await socket.json()["type"] == "typing")
      await socket.say(#"{"type":"subscribe","all":true,"after":0}"#)
      #expect(try await socket.json()["sequence"]?.integer == 0)
      for _ in 0..<3 { #expect(try await socket.json()["type"] == "event") }
      await socket.say(#"{"type":"unsubscribe","all":true}"#)
      await socket.say(#"{"type":"subscribe"}"#)
      #expect(try await socket.json()["code"] == "bad_request")
      socket.close()
    }
  }

  @Test func aSubscriberResumesAfterEverySequence() async throws {
    try await withServer { server async throws in
      let ids = try await server.chat.post((0..<20).map { Draft(author: ada, text: "\($0)") }, to: lobby, by: .owner)
        .map(\.message.message.id)
      _ = try await server.chat.edit(ids[3], in: lobby, to: Change(text: "edited"), by: .owner)
      try await server.chat.delete(ids[4], in: lobby, by: .owner)
      let log = try await server.chat.events(of: lobby, after: 0, limit: 100).map(\.sequence)
      let socket = try await server.socket()
      for (index, after) in log.enumerated() {
        await socket.say("{\"type\":\"subscribe\",\"room\":\"lobby\",\"after\":\(after)}")
        var frame = try await socket.json()
        while frame["type"] != "subscribed" { frame = try await socket.json() }
        #expect(frame["sequence"]?.integer == after)
        for expected in log.dropFirst(index + 1) { #expect(try await socket.json()["sequence"]?.integer == expected) }
      }
      socket.close()
    }
  }

  @Test func aSlowReaderResumesWithNothingLostAndHoldsUpNobody() async throws {
    try await withServer { server async throws in
      let slow = try await server.socket()
      let quick = try await server.socket()
      for socket in [slow, quick] {
        await socket.say(#"{"type":"subscribe","room":"lobby"}"#)
        #expect(try await socket.json()["type"] == "subscribed")
      }
      // 12 MB: more than the sockets' buffers hold.
      let text = String(repeating: "x", count: 32_000)
      let total = 384
      async let written: Void = {
        for batch in 0..<(total / 64) {
          let drafts = (0..<64).map { Draft(author: ada, text: "\(batch * 64 + $0) \(text)") }
          _ = try await server.chat.post(drafts, to: lobby, by: .owner)
        }
      }()
      for expected in 0..<total { #expect(try await quick.numbered().number == expected) }
      try await written
      // The slow one reads some, goes away, and comes back where it was.
      var last: Int64 = 0
      for expected in 0..<100 {
        let (number, sequence) = try await slow.numbered()
        #expect(number == expected)
        last = sequence
      }
      slow.close()
      let again = try await server.socket()
      await again.say("{\"type\":\"subscribe\",\"room\":\"lobby\",\"after\":\(last)}")
      #expect(try await again.json()["type"] == "subscribed")
      for expected in 100..<total { #expect(try await again.numbered().number == expected) }
      again.close()
      quick.close()
    }
  }

  @Test func typingIsPassedOnAndEnds() async throws {
    try await withServer { server async throws in
      let socket = try await server.socket()
      await socket.say(#"{"type":"subscribe","room":"lobby"}"#)
      #expect(try await socket.json()["type"] == "subscribed")
      let adas = try await server.socket(token: "ada's")
      await adas.say(#"{"type":"typing","room":"lobby"}"#)
      let on = try await socket.json()
      #expect(on["type"] == "typing" && on["by"]?["id"] == "ada" && on["on"] == true && on["room"] == "lobby")
      _ = try await server.send("POST", "/v1/rooms/lobby/messages", #"{"text":"done"}"#, token: "ada's")
      #expect(try await socket.json()["on"] == false)
      #expect(try await socket.json()["type"] == "event")
      await adas.say(#"{"type":"typing","room":"lobby","by":{"id":"bob"}}"#)
      #expect(try await adas.json()["code"] == "forbidden")
      socket.close()
      adas.close()
    }
  }

  @Test func badFramesAreRefusedAndTheSocketGoesOn() async throws {
    try await withServer { server async throws in
      let head = try await server.chat.head()
      let socket = try await server.socket()
      for (frame, code) in [
        ("", "bad_data"), ("{", "bad_data"), ("[]", "bad_data"), ("{}", "bad_request"),
        (#"{"type":"shout"}"#, "bad_request"), (#"{"type":"subscribe"}"#, "bad_request"),
        (#"{"type":"subscribe","room":""}"#, "bad_request"), (#"{"type":"subscribe","room":7}"#, "bad_data"),
        (#"{"type":"subscribe","room":"lobby","after":\#(head + 10)}"#, "conflict"),
        (#"{"type":"typing","room":"lobby"}"#, "bad_request"),
      ] {
        await socket.say(frame)
        let answer = try await socket.json()
        #expect(answer["type"] == "error" && answer["code"] == .string(code), "\(frame): \(answer)")
      }
      socket.send([1, 2, 3])
      #expect(try await socket.json()["code"] == "bad_request")
      await socket.say(#"{"type":"subscribe","room":"lobby","unknown":true}"#)
      #expect(try await socket.json()["type"] == "subscribed")
      await socket.say(#"{"type":"unsubscribe","room":"lobby"}"#)
      await socket.say(#"{"type":"nothing"}"#)
      #expect(try await socket.json()["type"] == "error")
      _ = try await server.chat.post(Draft(author: ada, text: "unheard"), to: lobby, by: .owner)
      await socket.say(#"{"type":"nothing"}"#)
      #expect(try await socket.json()["type"] == "error", "nothing is heard from a room one has left")
      socket.close()
    }
  }

  @Test func aSocketNeedsAToken() async throws {
    try await withServer { server async throws in
      await #expect(throws: FerryError.self) { _ = try await server.socket(token: "wrong") }
      let inQuery = try await server.client.webSocket(
        "ws" + server.url.dropFirst(4) + "/v1/live?token=owner", settings: .init(), deadline: .seconds(10))
      inQuery.close()
    }
  }
}

extension WebSocket {
  /// The number at the start of the next message's text, and its sequence.
  fileprivate func numbered() async throws -> (number: Int, sequence: Int64) {
    struct Frame: Decodable {
      let sequence: Int64
      let event: Wire.Event
    }
    guard case .text(let text) = try #require(await next()) else { return (-1, 0) }
    let frame = try Wire.value(Frame.self, from: text.utf8)
    return (Int(frame.event.message?.text.prefix { $0 != " " } ?? "") ?? -1, frame.sequence)
  }
}
