import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import BackendlessProvider

@Suite(.timeLimit(.minutes(5))) struct FacadeEngineTests {
  @Test func `the first poll answers as each version's clients know it`() async throws {
    try await Service.serving { service in
      let (sid, four) = try await service.open(.four)
      let times = #""pingInterval":25000,"pingTimeout":20000"#
      #expect(four.text == #"0{"sid":"\#(sid)","upgrades":["websocket"],\#(times),"maxPayload":1000000}"#)
      #expect(four.headers["Content-Type"] == "text/plain; charset=UTF-8")
      let (old, three) = try await service.open(.three)
      let open = #"0{"sid":"\#(old)","upgrades":["websocket"],\#(times)}"#
      #expect(three.text == "\(open.utf16.count):\(open)2:40")
    }
  }

  @Test func `version 4 joins over polling and takes the WebSocket, message for message`() async throws {
    try await Service.serving { service in
      let (sid, _) = try await service.open()
      let joined = try await service.post("40/APPID,", sid)
      #expect(joined.text == "ok" && joined.headers["Content-Type"] == "text/html")
      #expect(try await service.poll(sid).text == #"40/APPID,{"sid":"\#(sid)"}"#)
      async let waiting = service.poll(sid)
      let socket = try await service.socket(sid: sid)
      socket.send("2probe")
      #expect(try await socket.nextText() == "3probe")
      #expect(try await waiting.text == "6")
      // The first subscription still rides on polling, after the probe.
      _ = try await service.post(
        #"42/APPID,["SUB_ON",{"id":"VukZ","name":"PUB_SUB_CONNECT","options":{"channel":"room"}}]"#, sid)
      socket.send("5")
      #expect(try await socket.nextText() == #"42/APPID,["SUB_RES",{"id":"VukZ","data":"connected"}]"#)
      #expect(try await service.poll(sid).text == "6")
    }
  }

  @Test func `version 3 joins with its query and without its comma`() async throws {
    try await Service.serving { service in
      for body in ["0/APPID?apiKey=KEY&clientId=4A7A&userToken=null,", "0/APPID", "0/APPID,"] {
        let (sid, _) = try await service.open(.three)
        _ = try await service.post(EnginePayload.encode([EnginePacket(.message, body)], version: .three), sid, .three)
        #expect(try await service.poll(sid, .three).text == "9:40/APPID,")
      }
    }
  }

  @Test func `a client whose session's key is wrong may bring it when it joins`() async throws {
    try await Service.serving { service in
      let socket = try await service.socket(.three, query: "apiKey=&clientId=x")
      _ = try await socket.nextText()
      #expect(try await socket.nextText() == "40")
      socket.send("40/APPID?apiKey=KEY&clientId=x,")
      #expect(try await socket.nextText() == "40/APPID,")
    }
  }

  @Test func `the binary payloads of version 3 are taken`() async throws {
    try await Service.serving { service in
      let (sid, _) = try await service.open(.three)
      let packets = [EnginePacket(.ping), EnginePacket(.message, "0/APPID")]
      _ = try await service.post("", sid, .three, bytes: EnginePayload.encodeBinary(packets))
      #expect(try await service.poll(sid, .three).text == "1:39:40/APPID,")
    }
  }

  @Test func `a client may poll for ever`() async throws {
    try await Service.serving { service in
      for version in [EngineVersion.three, .four] {
        let (sid, _) = try await service.open(version)
        let subscribe = [
          "0/APPID,", #"2/APPID,["SUB_ON",{"id":"c","name":"PUB_SUB_CONNECT","options":{"channel":"room"}}]"#,
          #"2/APPID,["SUB_ON",{"id":"m","name":"PUB_SUB_MESSAGES","options":{"channel":"room"}}]"#,
        ]
        for text in subscribe {
          let body = EnginePayload.encode([EnginePacket(.message, text)], version: version)
          #expect(try await service.post(body, sid, version).text == "ok")
        }
        #expect(try EnginePayload.decode(try await service.poll(sid, version).bytes, version: version).count == 3)
        async let waiting = service.poll(sid, version)
        try await service.publish("hällo 😀", to: "room")
        let packets = try EnginePayload.decode(try await waiting.bytes, version: version)
        guard case .event("SUB_RES", let data) = try SocketPacket(try unwrap(packets.first?.text, "none")).content
        else { throw FerryError(.badData, "no event") }
        #expect(data?["data"]?["message"] == "hällo 😀")
        #expect(data?["id"] == "m")
      }
    }
  }

  @Test func `lengths in version 3 are the same in units and in characters`() async throws {
    try await Service.serving { service in
      let (sid, _) = try await service.open(.three)
      let text = #"2/APPID,["SUB_ON",{"id":"😀","name":"PUB_SUB_CONNECT","options":{"channel":"room"}}]"#
      let packets = [EnginePacket(.message, "0/APPID,"), EnginePacket(.message, text)]
      _ = try await service.post(EnginePayload.encode(packets, version: .three), sid, .three)
      let answer = try await service.poll(sid, .three).text
      #expect(answer.hasSuffix(#"42/APPID,["SUB_RES",{"id":"\ud83d\ude00","data":"connected"}]"#), "\(answer)")
      #expect(answer.utf16.count == answer.unicodeScalars.count)
    }
  }

  @Test(arguments: [
    ("GET", "EIO=4&transport=polling&sid=nobody", 1, "Session ID unknown"),
    ("POST", "EIO=4&transport=polling&sid=nobody", 1, "Session ID unknown"),
    ("POST", "EIO=4&transport=polling", 2, "Bad handshake method"),
    ("GET", "EIO=4&transport=flash", 0, "Transport unknown"), ("GET", "EIO=4", 0, "Transport unknown"),
    ("GET", "EIO=4&transport=websocket", 3, "Bad request"),
    ("GET", "EIO=2&transport=polling", 5, "Unsupported protocol version"),
    ("GET", "EIO=x&transport=polling", 5, "Unsupported protocol version"),
  ])
  func `what is no session is refused in the transport's own words`(
    method: String, query: String, code: Int, message: String
  ) async throws {
    try await Service.serving { service in
      let answer = try await service.raw(method, "/APPID/?\(query)")
      #expect(answer.status == 400 && answer.text == #"{"code":\#(code),"message":"\#(message)"}"#)
    }
  }

  @Test func `refusals have each version's shape`() async throws {
    try await Service.serving { service in
      let four = try await service.socket(query: "apiKey=WRONG&clientId=x")
      _ = try await four.nextText()
      four.send("40/APPID,")
      #expect(try await four.nextText() == #"44/APPID,{"message":"Invalid api key"}"#)
      four.send("40/OTHER,")
      #expect(try await four.nextText() == #"44/OTHER,{"message":"Invalid namespace"}"#)
      // Who has not joined is not listened to.
      four.send(#"42/APPID,["SUB_ON",{"id":"c","name":"PUB_SUB_CONNECT","options":{"channel":"room"}}]"#)
      four.send("40")
      #expect(try await four.nextText().hasPrefix(#"40{"sid":"#))
      let three = try await service.socket(.three, query: "apiKey=WRONG&clientId=x")
      _ = try await three.nextText()
      _ = try await three.nextText()
      three.send("40/APPID?apiKey=WRONG,")
      #expect(try await three.nextText() == #"44/APPID,"Invalid api key""#)
    }
  }

  @Test func `the server asks version 4 and lets go who does not answer`() async throws {
    let clock = ManualClock()
    try await Service.serving(clock: clock) { service in
      let listener = try await service.connect()
      await clock.waitForSleepers()
      clock.advance(by: .seconds(26))
      #expect(try await listener.next() == "2")
      listener.socket.send("3")
      // Answered in order: the pong has been taken when this is.
      #expect(try await listener.isQuiet())
      for _ in 0..<44 {
        await clock.waitForSleepers()
        clock.advance(by: .seconds(1))
      }
      #expect(try await listener.next() == "2")
      await clock.waitForSleepers()
      clock.advance(by: .seconds(1))
      #expect(await listener.socket.nextClose() == 1000)
    }
  }

  @Test func `in version 3 the client asks and the server answers`() async throws {
    let clock = ManualClock()
    try await Service.serving(clock: clock) { service in
      let listener = try await service.connect(.three)
      listener.socket.send("2")
      #expect(try await listener.next() == "3")
      listener.socket.send("2probe")
      #expect(try await listener.next() == "3probe")
      await clock.waitForSleepers()
      clock.advance(by: .seconds(46))
      #expect(await listener.socket.nextClose() == 1000)
    }
  }

  @Test func `who opens a session and joins nothing is let go`() async throws {
    let clock = ManualClock()
    try await Service.serving(clock: clock) { service in
      let socket = try await service.socket()
      _ = try await socket.nextText()
      await clock.waitForSleepers()
      clock.advance(by: .seconds(25))
      #expect(try await socket.nextText() == "2")
      socket.send("3")
      socket.send("40")
      _ = try await socket.nextText()
      await clock.waitForSleepers()
      clock.advance(by: .seconds(21))
      #expect(await socket.nextClose() == 1000)
    }
  }

  @Test func `rubbish ends the session`() async throws {
    try await Service.serving { service in
      for text in ["", "x", "9", "4", "42/APPID,[", "451-[\"x\"]"] {
        let socket = try await service.socket()
        _ = try await socket.nextText()
        socket.send(text)
        #expect(await socket.nextClose() == 1000, "\(text)")
      }
      let (sid, _) = try await service.open()
      #expect(try await service.post("x", sid).status == 400)
      #expect(try await service.poll(sid).json["code"] == 1)
    }
  }

  @Test func `a body that is too large ends the session`() async throws {
    try await Service.serving(adjust: { $0.engine.payloadBytes = 1000 }) { service in
      let (sid, _) = try await service.open()
      #expect(try await service.post("4" + String(repeating: "x", count: 2000), sid).status == 413)
      #expect(try await service.poll(sid).json["code"] == 1)
    }
  }

  @Test func `two polls at once end the session`() async throws {
    try await Service.serving { service in
      let (sid, _) = try await service.open()
      async let one = service.poll(sid)
      async let two = service.poll(sid)
      let answers = try await [one, two].map(\.text)
      #expect(answers.contains("1"), "\(answers)")
      #expect(try await service.poll(sid).json["code"] == 1)
    }
  }

  @Test func `a poller that does not fetch is let go`() async throws {
    try await Service.serving(adjust: { $0.engine.queueBytes = 4000 }) { service in
      let (sid, _) = try await service.open()
      _ = try await service.post(
        "40/APPID,\u{1e}42/APPID,[\"SUB_ON\",{\"id\":\"m\",\"name\":\"PUB_SUB_MESSAGES\",\"options\":{\"channel\":\"room\"}}]",
        sid)
      for _ in 0..<5 { try await service.publish(.string(String(repeating: "x", count: 1500)), to: "room") }
      #expect(try await service.poll(sid).json["code"] == 1)
    }
  }

  @Test func `where too much waits for all who poll, those furthest behind are let go`() async throws {
    let clock = ManualClock()
    try await Service.serving(clock: clock, adjust: { $0.queuedBytes = 10_000 }) { service in
      var sids: [String] = []
      for channels in [["a"], ["a", "b"], ["a", "b", "c"]] {
        let (sid, _) = try await service.open()
        sids.append(sid)
        _ = try await service.post("40/APPID,", sid)
        for channel in channels {
          let options = "{\"channel\":\"\(channel)\"}"
          _ = try await service.post(
            "42/APPID,[\"SUB_ON\",{\"id\":\"\(channel)\",\"name\":\"PUB_SUB_MESSAGES\",\"options\":\(options)}]",
            sid)
        }
      }
      for channel in ["a", "b", "c"] {
        try await service.publish(.string(String(repeating: "x", count: 2000)), to: channel)
      }
      // Two, four and six thousand bytes wait, and some more.
      await clock.waitForSleepers()
      clock.advance(by: .seconds(1))
      await clock.waitForSleepers()
      #expect(try await service.poll(sids[2]).json["code"] == 1)
      #expect(try await service.poll(sids[1]).text.contains("xxx"))
      #expect(try await service.poll(sids[0]).text.contains("xxx"))
    }
  }

  @Test func `there are no more sessions than are allowed`() async throws {
    try await Service.serving(adjust: { $0.sessions = 1 }) { service in
      let (sid, _) = try await service.open()
      let refused = try await service.raw("GET", "/APPID/?\(service.query)&EIO=4&transport=polling")
      #expect(refused.status == 400 && refused.json["code"] == 4)
      #expect(try await service.post("1", sid).text == "ok")
      _ = try await service.open()
    }
  }

  @Test func `a rehearsed outage ends every session`() async throws {
    let rehearsal = Rehearsal(Rehearsal.Plan(), token: "t", clock: SystemClock())
    try await Service.serving(rehearsal: rehearsal) { service in
      let listener = try await service.connect()
      let handler = rehearsal.wrap(service.facade.handle)
      var request = HTTPRequest(method: "POST", path: "/ferry/rehearsal", headers: ["Authorization": "Bearer t"])
      request.body = .bytes(Array(#"{"close_sockets":4000}"#.utf8))
      #expect(await handler(request).status == 200)
      #expect(await listener.socket.nextClose() == 1000)
      _ = try await service.connect()
    }
  }
}
