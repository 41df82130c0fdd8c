import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import PusherProvider

@Suite(.timeLimit(.minutes(5))) struct FacadeLimitTests {
  // MARK: Connections

  @Test(arguments: [(PusherFacade.Settings.Overflow.quota, UInt16(4004)), (.capacity, 4100)])
  func `one connection too many is told so and may come when another has gone`(
    overflow: PusherFacade.Settings.Overflow, code: UInt16
  ) async throws {
    try await Service.serving(adjust: { ($0.connections, $0.overflow) = (2, overflow) }) { service in
      let (one, two) = (try await service.connect(), try await service.connect())
      let three = try await service.socket()
      #expect(try await three.nextText().hasPrefix(#"{"event":"pusher:error","data":{"code":\#(code),"#))
      #expect(await three.nextClose() == code)
      #expect(try await service.send("GET", "/apps/1001/connections").text == #"{"connections":2}"#)
      // Seen by the other when it has gone.
      try await two.subscribe("presence-a", as: "two")
      try await one.subscribe("presence-a", as: "one")
      _ = try await two.next()
      one.close()
      #expect(try await two.next().contains("member_removed"))
      // It left its channels under the same lock under which it went.
      let four = try await service.connect()
      #expect(try await four.isQuiet())
    }
  }

  @Test func `a wrong path is upgraded and told 4005`() async throws {
    try await Service.serving { service in
      let socket = try await service.client.webSocket("ws://127.0.0.1:\(service.server.port)/demo-key?protocol=7")
      #expect(try await socket.nextText().hasPrefix(#"{"event":"pusher:error","data":{"code":4005,"#))
      #expect(await socket.nextClose() == 4005)
    }
  }

  @Test func `who proves nothing in half a minute is let go, when that is asked for`() async throws {
    let clock = ManualClock()
    try await Service.serving(clock: clock, adjust: { $0.authorizedConnections = true }) { service in
      let nobody = try await service.connect()
      try await nobody.subscribe("chatroom")
      let (signedIn, onPrivate, onPresence) = (
        try await service.connect(), try await service.connect(), try await service.connect()
      )
      try await signedIn.signIn(#"{"id":"ann"}"#)
      try await onPrivate.subscribe("private-a")
      try await onPresence.subscribe("presence-a", as: "ann")
      await clock.waitForSleepers()
      clock.advance(by: .seconds(30))
      #expect(try await nobody.next().hasPrefix(#"{"event":"pusher:error","data":{"code":4009,"#))
      #expect(await nobody.socket.nextClose() == 4009)
      for client in [signedIn, onPrivate, onPresence] { #expect(try await client.isQuiet()) }
    }
  }

  // MARK: Subscriptions

  @Test func `a presence channel takes a hundred members, each with as many connections as they like`() async throws {
    try await Service.serving { service in
      var members: [Connection] = []
      for index in 0..<100 {
        let client = try await service.connect()
        #expect(try await client.subscribe("presence-a", as: "u\(index)").contains("subscription_succeeded"))
        members.append(client)
      }
      let over = try await service.connect()
      #expect(
        try await over.subscribe("presence-a", as: "u100").hasPrefix(#"{"event":"pusher:error","data":{"code":null,"#))
      let error = try await over.next()
      #expect(
        error.hasPrefix(
          #"{"event":"pusher:subscription_error","channel":"presence-a","data":"{\"type\":\"LimitReached\","#))
      #expect(error.contains(#"\"status\":4100}"#))
      #expect(try await over.subscribe("presence-a", as: "u7").contains(#"\"count\":100"#))
      #expect(
        try await service.send("GET", "/apps/1001/channels/presence-a", [("info", "user_count,subscription_count")])
          .text == #"{"occupied":true,"subscription_count":101,"user_count":100}"#)
      _ = members
    }
  }

  @Test func `a connection takes so many subscriptions and no more`() async throws {
    try await Service.serving(adjust: { $0.channelsPerConnection = 2 }) { service in
      let client = try await service.connect()
      try await client.subscribe("a")
      try await client.subscribe("b")
      #expect(try await client.subscribe("c").contains("2 subscriptions already"))
      #expect(try await client.next().contains("LimitReached"))
      #expect(try await client.subscribe("a").contains("subscription_succeeded"))
    }
  }

  @Test(arguments: [
    (#"{"user_id":"\#(String(repeating: "u", count: 128))"}"#, nil),
    (#"{"user_id":"\#(String(repeating: "u", count: 129))"}"#, "Invalid user_id"),
    (#"{"user_id":"u","user_info":"\#(String(repeating: "x", count: 1022))"}"#, nil),
    (#"{"user_id":"u","user_info":"\#(String(repeating: "x", count: 1023))"}"#, "Invalid user_info"),
    (#"{"user_id":"u","user_info":{"a":\#(nested(63))}}"#, nil),
    (#"{"user_id":"u","user_info":{"a":\#(nested(64))}}"#, "Invalid user_info"),
  ])
  func `members have limits`(channelData: String, refusal: String?) {
    #expect(Self.refusal(of: channelData)?.prefix(refusal?.count ?? 0) == refusal?[...])
  }

  private static func nested(_ levels: Int) -> String {
    String(repeating: "[", count: levels) + String(repeating: "]", count: levels)
  }

  private static func refusal(of channelData: String) -> String? {
    do throws(Refusal) {
      _ = try PresenceList.Member(channelData: channelData)
      return nil
    } catch { return error.text }
  }

  @Test func `a strict service refuses a second subscription and the first goes on`() async throws {
    try await Service.serving(adjust: { $0.strict = true }) { service in
      let client = try await service.connect()
      try await client.subscribe("a")
      #expect(try await client.subscribe("a") == FrameText.error(nil, "Existing subscription to channel a"))
      #expect(try await client.next().contains("pusher:subscription_error"))
      try await service.trigger("e", on: "a", data: "1")
      #expect(try await client.next() == #"{"event":"e","channel":"a","data":"1"}"#)
    }
  }

  // MARK: Encrypted channels

  @Test(arguments: ["private-encrypted-a", "private-encrypted-cache-a"])
  func `ciphertext passes untouched`(channel: String) async throws {
    try await Service.serving { service in
      let client = try await service.connect()
      #expect(try await client.subscribe(channel).contains("subscription_succeeded"))
      if channel.contains("cache") { #expect(try await client.next().contains("pusher:cache_miss")) }
      let data =
        #"{"nonce": "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB","ciphertext":"6hkTq+k8EvBSDHeex7/BTfeFZ0LLCb6hzt42RT8="}"#
      try await service.trigger("e", on: channel, data: data)
      #expect(try await client.next() == FrameText.event("e", channel: channel, data: data))
      client.send(#"{"event":"client-x","channel":"\#(channel)","data":1}"#)
      #expect(try await client.next().contains("Client event rejected"))
      let late = try await service.connect()
      try await late.subscribe(channel)
      if channel.contains("cache") {
        #expect(try await late.next() == FrameText.event("e", channel: channel, data: data))
      }
    }
  }

  @Test func `an event for an encrypted channel has no other, and a batch may hold several`() async throws {
    try await Service.serving { service in
      let refused = try await service.trigger("e", on: "private-encrypted-a", "b", data: "{}")
      #expect(refused.status == 400)
      #expect(refused.text.contains("multiple channels"))
      let batch =
        #"{"batch":[{"name":"e","channel":"private-encrypted-a","data":"{}"},"#
        + #"{"name":"e","channel":"private-encrypted-b","data":"{}"}]}"#
      #expect(try await service.send("POST", "/apps/1001/batch_events", body: batch).status == 200)
    }
  }

  // MARK: Numbers of subscribers

  private static func count(_ count: Int, on channel: String = "a") -> String {
    #"{"event":"pusher_internal:subscription_count","channel":"\#(channel)","data":"{\"subscription_count\":\#(count)}"}"#
  }

  @Test func `everybody on a channel is told how many they are`() async throws {
    try await Service.serving(adjust: { $0.subscriptionCount = true }) { service in
      let (one, two) = (try await service.connect(), try await service.connect())
      #expect(try await one.subscribe("a").contains("subscription_succeeded"))
      #expect(try await one.next() == Self.count(1))
      try await two.subscribe("a")
      #expect(try await two.next() == Self.count(2))
      #expect(try await one.next() == Self.count(2))
      two.close()
      #expect(try await one.next() == Self.count(1))
      try await one.subscribe("presence-a", as: "ann")
      #expect(try await one.isQuiet())
    }
  }

  @Test func `many subscribers are told once in five seconds, and only of a change`() async throws {
    let clock = ManualClock()
    try await Service.serving(clock: clock, adjust: { $0.subscriptionCount = true }) { service in
      var clients: [Connection] = []
      for _ in 0..<102 {
        let client = try await service.connect()
        try await client.subscribe("a")
        clients.append(client)
      }
      // The first to be many were told so at once, the next not yet.
      let last = try #require(clients.last)
      #expect(try await clients[100].next() == Self.count(101))
      #expect(try await last.isQuiet())
      await clock.waitForSleepers()
      clock.advance(by: .seconds(5))
      #expect(try await last.next() == Self.count(102))
      await clock.waitForSleepers()
      clock.advance(by: .seconds(5))
      // Nothing had changed; the next change is told at once.
      let another = try await service.connect()
      try await another.subscribe("a")
      #expect(try await last.next() == Self.count(103))
      clients[0].close()
      #expect(try await last.isQuiet())
      await clock.waitForSleepers()
      clock.advance(by: .seconds(5))
      #expect(try await last.next() == Self.count(102))
    }
  }
}
