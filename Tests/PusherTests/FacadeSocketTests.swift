import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import PusherProvider

@Suite(.timeLimit(.minutes(1))) struct FacadeSocketTests {
  @Test func `the greeting comes first and names a socket id of two numbers`() async throws {
    try await Service.serving { service in
      let socket = try await service.socket()
      socket.send(FrameText.ping)
      let greeting = try await socket.nextText()
      let id = try unwrap(Frame(text: greeting)?.data?.parsed["socket_id"]?.string, greeting)
      #expect(greeting == FrameText.established(socketID: id, activityTimeout: 120))
      #expect(PublishedEvent.isSocketID(id))
      #expect(try await socket.nextText() == #"{"event":"pusher:pong","data":"{}"}"#)
    }
  }

  @Test(arguments: [
    (["pusher-channels-protocol-7"], "pusher-channels-protocol-7"), ([], nil), (["other"], nil),
    (["pusher-channels-protocol-5", "pusher-channels-protocol-6"], "pusher-channels-protocol-6"),
  ])
  func `an offered subprotocol is chosen`(offered: [String], chosen: String?) async throws {
    try await Service.serving { service in
      let socket = try await service.socket(subprotocols: offered)
      #expect(socket.subprotocol == chosen)
    }
  }

  @Test(arguments: [
    ("wrong-key", "?protocol=7", 4001), ("demo-key", "", 4008), ("demo-key", "?protocol=x", 4006),
    ("demo-key", "?protocol=4", 4007), ("demo-key", "?protocol=8", 4007),
  ])
  func `who is not welcome is told twice`(key: String, query: String, code: UInt16) async throws {
    try await Service.serving { service in
      let socket = try await service.socket(key: key, query: query)
      let error = try await socket.nextText()
      #expect(error.hasPrefix(#"{"event":"pusher:error","data":{"code":\#(code),"message":""#), "\(error)")
      #expect(await socket.nextClose() == code)
    }
  }

  @Test(arguments: ["5", "6", "7"]) func `the protocols in use are accepted`(version: String) async throws {
    try await Service.serving { service in
      let socket = try await service.socket(query: "?client=Pysher&version=1.0.7&protocol=\(version)")
      #expect(try await socket.nextText().contains("connection_established"))
    }
  }

  @Test func `a ping is answered whatever its data`() async throws {
    try await Service.serving { service in
      let client = try await service.connect()
      for data in [#""""#, "{}", "[]", "null", "7"] {
        client.send(#"{"event":"pusher:ping","data":\#(data)}"#)
        #expect(try await client.next() == FrameText.pong)
      }
      client.send(#"{"event":"pusher:ping"}"#)
      #expect(try await client.next() == FrameText.pong)
    }
  }

  @Test func `a subscription is confirmed with an empty object as a string, and again when repeated`() async throws {
    try await Service.serving { service in
      let client = try await service.connect()
      let confirmation = #"{"event":"pusher_internal:subscription_succeeded","channel":"chatroom","data":"{}"}"#
      #expect(try await client.subscribe("chatroom") == confirmation)
      client.send(#"{"event":"pusher:subscribe","data":{"channel":"chatroom","auth":""}}"#)
      #expect(try await client.next() == confirmation)
      try await service.trigger("e", on: "chatroom", data: "x")
      #expect(try await client.next() == #"{"event":"e","channel":"chatroom","data":"x"}"#)
      #expect(try await client.isQuiet())
    }
  }

  @Test func `after unsubscribing nothing more comes, and doing it twice is an error`() async throws {
    try await Service.serving { service in
      let client = try await service.connect()
      try await client.subscribe("a")
      try await client.subscribe("b")
      client.send(#"{"event":"pusher:unsubscribe","data":{"channel":"a"}}"#)
      #expect(try await client.isQuiet())
      try await service.trigger("e", on: "a", "b", data: "1")
      #expect(try await client.next() == #"{"event":"e","channel":"b","data":"1"}"#)
      client.send(#"{"event":"pusher:unsubscribe","data":{"channel":"a"}}"#)
      #expect(try await client.next().contains("No current subscription to channel a"))
    }
  }

  @Test func `a bad signature is told what was expected, in both events, and the socket stays`() async throws {
    try await Service.serving { service in
      let client = try await service.connect()
      client.send(FrameText.subscribe(to: "private-a", auth: "demo-key:0badc0de"))
      let text =
        "Invalid signature: Expected HMAC SHA256 hex digest of \(client.socketID):private-a, but got 0badc0de"
      #expect(try await client.next() == FrameText.error(nil, text))
      let data = #"{"type":"AuthError","error":"\#(text)","status":401}"#
      #expect(
        try await client.next() == FrameText.event("pusher:subscription_error", channel: "private-a", data: data))
      #expect(try await client.subscribe("private-a").contains("subscription_succeeded"))
    }
  }

  @Test(arguments: [nil, "", "demo-key", "other-key:00", ":", "demo-key:"])
  func `half a signature is refused`(auth: String?) async throws {
    try await Service.serving { service in
      let client = try await service.connect()
      client.send(FrameText.subscribe(to: "private-a", auth: auth))
      #expect(try await client.next().hasPrefix(#"{"event":"pusher:error","data":{"code":null,"message":"Invalid "#))
      #expect(try await client.next().contains("pusher:subscription_error"))
      #expect(try await client.isQuiet())
    }
  }

  @Test func `another connection's signature is no good`() async throws {
    try await Service.serving { service in
      let (one, two) = (try await service.connect(), try await service.connect())
      two.send(
        FrameText.subscribe(
          to: "private-a", auth: service.appKey.channelAuth(socketID: one.socketID, channel: "private-a")))
      #expect(try await two.next().contains("Invalid signature"))
    }
  }

  @Test func `members are announced once a person, when the first connection comes and the last goes`() async throws {
    try await Service.serving { service in
      let watcher = try await service.connect()
      #expect(
        try await watcher.subscribe("presence-a", as: "w")
          == #"{"event":"pusher_internal:subscription_succeeded","channel":"presence-a","data":"{\"presence\":"#
          + #"{\"ids\":[\"w\"],\"hash\":{\"w\":{\"name\":\"w!\"}},\"count\":1}}"}"#)
      let (phone, laptop) = (try await service.connect(), try await service.connect())
      #expect(try await phone.subscribe("presence-a", as: "ann").contains(#"\"count\":2"#))
      #expect(
        try await watcher.next()
          == #"{"event":"pusher_internal:member_added","channel":"presence-a","data":"{\"user_id\":\"ann\","#
          + #"\"user_info\":{\"name\":\"ann!\"}}"}"#)
      #expect(try await laptop.subscribe("presence-a", as: "ann").contains(#"\"count\":2"#))
      #expect(try await phone.isQuiet())
      phone.close()
      _ = await phone.socket.nextClose()
      #expect(try await watcher.isQuiet())
      // The second goes without a word.
      laptop.send(#"{"event":"pusher:unsubscribe","data":{"channel":"presence-a"}}"#)
      #expect(
        try await watcher.next()
          == #"{"event":"pusher_internal:member_removed","channel":"presence-a","data":"{\"user_id\":\"ann\"}"}"#)
      #expect(try await watcher.isQuiet())
    }
  }

  @Test func `who vanishes is announced like who leaves`() async throws {
    try await Service.serving { service in
      let proxy = try await FaultProxy.start(to: service.server.port)
      let watcher = try await service.connect()
      try await watcher.subscribe("presence-a", as: "w")
      let phone = try await service.connect(port: proxy.port)
      try await phone.subscribe("presence-a", as: "ann")
      #expect(try await watcher.next().contains("member_added"))
      await proxy.cut()
      #expect(try await watcher.next().contains("member_removed"))
      await proxy.close()
    }
  }

  @Test func `a number as a user id becomes a string`() async throws {
    try await Service.serving { service in
      let client = try await service.connect()
      let data = #"{ "user_id" : 10 }"#
      let auth = service.appKey.channelAuth(socketID: client.socketID, channel: "presence-a", channelData: data)
      client.send(FrameText.subscribe(to: "presence-a", auth: auth, channelData: data))
      #expect(try await client.next().contains(#"{\"presence\":{\"ids\":[\"10\"],\"hash\":{\"10\":{}},\"count\":1}}"#))
    }
  }

  @Test func `a client event goes to the others, as a string, with the sender's id on presence`() async throws {
    try await Service.serving { service in
      let (one, two) = (try await service.connect(), try await service.connect())
      try await one.subscribe("presence-a", as: "ann")
      try await two.subscribe("presence-a", as: "bob")
      _ = try await one.next()
      one.send(#"{"event":"client-typing","channel":"presence-a","data":{"on":true,"a":1}}"#)
      #expect(
        try await two.next()
          == #"{"event":"client-typing","channel":"presence-a","data":"{\"a\":1,\"on\":true}","user_id":"ann"}"#)
      one.send(#"{"event":"client-typing","channel":"presence-a","data":"{\"on\":true}"}"#)
      #expect(try await two.next().contains(#""data":"{\"on\":true}""#))
      one.send(#"{"event":"client-typing","channel":"presence-a"}"#)
      #expect(try await two.next().contains(#""data":"{}""#))
      #expect(try await one.isQuiet())
    }
  }

  @Test func `client events have rules`() async throws {
    try await Service.serving { service in
      let client = try await service.connect()
      try await client.subscribe("a")
      for (channel, data) in [
        ("a", "1"), ("private-b", "1"), ("private-encrypted-b", "1"),
        ("private-b", "\"\(String(repeating: "x", count: 10_241))\""),
      ] {
        client.send(#"{"event":"client-x","channel":"\#(channel)","data":\#(data)}"#)
        #expect(try await client.next().contains("Client event rejected"))
      }
      client.send(#"{"event":"x","channel":"a","data":1}"#)
      #expect(try await client.next().contains("pusher:error"))
      client.send(#"{"event":"pusher:x","channel":"a","data":1}"#)
      #expect(try await client.next().contains("pusher:error"))
    }
    try await Service.serving(adjust: { $0.clientEvents = false }) { service in
      let client = try await service.connect()
      try await client.subscribe("private-a")
      client.send(#"{"event":"client-x","channel":"private-a","data":1}"#)
      #expect(try await client.next().contains("you must enable this feature"))
    }
  }

  @Test func `the eleventh client event of a second is refused and the twelfth second's is not`() async throws {
    let clock = ManualClock()
    try await Service.serving(clock: clock) { service in
      let (one, two) = (try await service.connect(), try await service.connect())
      try await one.subscribe("private-a")
      try await two.subscribe("private-a")
      for index in 0..<11 { one.send(#"{"event":"client-x","channel":"private-a","data":\#(index)}"#) }
      #expect(try await one.next().hasPrefix(#"{"event":"pusher:error","data":{"code":4301,"#))
      for index in 0..<10 { #expect(try await two.next().contains(#""data":"\#(index)""#)) }
      clock.advance(by: .seconds(1))
      one.send(#"{"event":"client-x","channel":"private-a","data":"again"}"#)
      #expect(try await two.next().contains("again"))
    }
  }

  @Test func `a silent client is asked by a frame and let go with 4201`() async throws {
    let response = try await Service.serving { service in
      await service.facade.handle(HTTPRequest(method: "GET", path: "/app/demo-key", rawQuery: "protocol=7"))
    }
    guard case .webSocket(_, let settings, _) = response.body else { throw FerryError(.badData, "no socket") }
    #expect(settings.pingAfter == .seconds(120))
    #expect(settings.pongTimeout == .seconds(30))
    #expect(settings.deadCode == 4201)
  }

  @Test func `the server's end is told with a code that brings clients back`() async throws {
    let socket = try await Service.serving { service in
      return try await service.connect().socket
    }
    #expect(await socket.nextClose() == 4200)
  }
}
