import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import PusherProvider

@Suite(.timeLimit(.minutes(2))) struct FacadeLifeTests {
  // MARK: The end

  @Test func `clients are let go a few at a time, within a second, and told to come back`() async throws {
    let clock = ManualClock()
    try await Service.serving(clock: clock) { service in
      var sockets: [WebSocket] = []
      for _ in 0..<120 { sockets.append(try await service.connect().socket) }
      async let closing: Void = service.facade.closeAll()
      for _ in 0..<2 {
        await clock.waitForSleepers()
        clock.advance(by: .milliseconds(50))
      }
      await closing
      for socket in sockets {
        #expect(try await socket.nextText().hasPrefix(#"{"event":"pusher:error","data":{"code":4200,"#))
        #expect(await socket.nextClose() == 4200)
      }
      // Who comes back at once is told to wait.
      let late = try await service.socket()
      #expect(try await late.nextText().contains(#""code":4100"#))
      #expect(await late.nextClose() == 4100)
    }
  }

  // MARK: Slow readers

  @Test func `a reader that falls behind is told 4100 and disturbs nobody`() async throws {
    try await Service.serving(adjust: { ($0.queueBytes, $0.closeTimeout) = (64 << 10, .seconds(100)) }) { service in
      let (slow, quick) = (try await service.connect(), try await service.connect())
      try await slow.subscribe("a")
      try await quick.subscribe("a")
      let data = String(repeating: "x", count: 10_000)
      let frame = FrameText.event("e", channel: "a", data: data)
      var count = 0
      // Far more than the system's own buffers hold.
      while service.facade.hub.withLock({ $0.connections.count }) == 2, count < 20_000 {
        count += 1
        let event = try PublishedEvent(name: "e", channels: ["a"], data: data)
        try await service.facade.publish([event])
        #expect(try await quick.next() == frame)
      }
      #expect(count < 20_000)
      // What it had been sent before, whole, and then why there is no more.
      var received = 0
      while case .text(let text) = await slow.socket.next() {
        #expect(text == frame)
        received += 1
      }
      #expect(slow.socket.closing?.code == 4100)
      #expect(received < count)
      #expect(try await quick.isQuiet())
    }
  }

  // MARK: What cache channels keep

  @Test func `what is too old to be shown is removed`() async throws {
    let clock = ManualClock()
    let store = MemoryCacheStore(clock: clock)
    try await Service.serving(clock: clock, store: store) { service in
      try await service.trigger("e", on: "cache-a", data: "1")
      for _ in 0..<6 {
        await clock.waitForSleepers()
        clock.advance(by: .seconds(300))
      }
      // Half an hour to the second: shown no more, kept still.
      await clock.waitForSleepers()
      #expect(try await store.kept("cache-a")?.age == 1800)
      clock.advance(by: .seconds(300))
      // Seen by a later one: as long as something is kept, it is looked at again.
      try await service.trigger("e", on: "cache-b", data: "1")
      await clock.waitForSleepers()
      clock.advance(by: .seconds(300))
      await clock.waitForSleepers()
      #expect(try await store.kept("cache-a") == nil)
      #expect(try await store.kept("cache-b") != nil)
    }
  }

  @Test func `a store forgets what is older and keeps counting`() async throws {
    let clock = ManualClock()
    let store = MemoryCacheStore(clock: clock)
    try await store.keep("old", for: "a")
    #expect(try await store.nextNumber("n") == 1)
    clock.advance(by: .seconds(1801))
    try await store.keep("new", for: "b")
    #expect(try await store.prune(olderThan: 1800))
    #expect(try await store.kept("a") == nil)
    #expect(try await store.kept("b")?.event == "new")
    #expect(try await store.nextNumber("n") == 2)
    clock.advance(by: .seconds(1801))
    #expect(try await !store.prune(olderThan: 1800))
  }

  // MARK: Rehearsals

  @Test func `while writes are echoed, senders get their own`() async throws {
    var plan = Rehearsal.Plan()
    plan.echo = true
    let rehearsal = Rehearsal(plan, token: "t", clock: SystemClock())
    try await Service.serving(rehearsal: rehearsal) { service in
      let client = try await service.connect()
      try await client.subscribe("private-a")
      try await service.trigger("e", on: "private-a", data: "1", except: client.socketID)
      #expect(try await client.next() == #"{"event":"e","channel":"private-a","data":"1"}"#)
      client.send(#"{"event":"client-x","channel":"private-a","data":"1"}"#)
      #expect(try await client.next() == #"{"event":"client-x","channel":"private-a","data":"1"}"#)
    }
  }

  @Test(arguments: [UInt16(4200), 4100, 4001, 4300, 4999, 1011])
  func `every socket is closed with the code that is asked for`(code: UInt16) async throws {
    let rehearsal = Rehearsal(Rehearsal.Plan(), token: "t", clock: SystemClock())
    try await Service.serving(rehearsal: rehearsal) { service in
      let (one, two) = (try await service.connect(), try await service.connect())
      let answer = try await service.raw(
        "POST", "/ferry/rehearsal", headers: ["Authorization": "Bearer t"],
        body: Array(#"{"close_sockets":\#(code)}"#.utf8))
      #expect(answer.status == 200)
      #expect(await one.socket.nextClose() == code)
      #expect(await two.socket.nextClose() == code)
      // And may come back.
      #expect(try await service.connect().isQuiet())
    }
  }

  // MARK: Paths

  @Test func `everything works behind a prefix that clients do not sign`() async throws {
    try await Service.serving { service in
      let socket = try await service.client.webSocket(
        "ws://127.0.0.1:\(service.server.port)/some/where/app/demo-key?protocol=7")
      #expect(try await socket.nextText().contains("connection_established"))
      let body = Array(#"{"name":"e","channel":"a","data":"1"}"#.utf8)
      let query = service.appKey.signed(
        method: "POST", path: "/apps/1001/events", body: body, seconds: service.clock.now().milliseconds / 1000
      ).map { "\($0.name)=\($0.value)" }.joined(separator: "&")
      #expect(try await service.raw("POST", "/some/where/apps/1001/events?\(query)", body: body).status == 200)
      #expect(try await service.raw("POST", "/apps/1001/events?\(query)", body: body).status == 200)
      #expect(try await service.raw("POST", "/apps/1001/batch_events?\(query)", body: body).status == 401)
    }
  }

  @Test(arguments: ["app", "apps", "users", "channels", "events"])
  func `channels and users may be called like parts of the path`(name: String) async throws {
    try await Service.serving { service in
      let client = try await service.connect()
      try await client.signIn(#"{"id":"\#(name)"}"#)
      try await client.subscribe(name)
      let channel = try await service.send("GET", "/apps/1001/channels/\(name)")
      #expect(channel.text == #"{"occupied":true}"#)
      let users = try await service.send("GET", "/apps/1001/channels/\(name)/users")
      #expect(users.text.contains("only presence channels have users"))
      let terminated = try await service.send("POST", "/users/\(name)/terminate_connections", body: "{}")
      #expect(terminated.status == 200)
      #expect(try await client.next().contains(#""code":4009"#))
      #expect(try await service.send("POST", "/apps/1001/users/\(name)/terminate_connections").status == 200)
    }
  }

  @Test func `there are the old way of publishing and a few extras`() async throws {
    try await Service.serving { service in
      #expect(try await service.raw("GET", "/up").text == #"{"health":"OK"}"#)
      #expect(try await service.send("GET", "/apps/1001/connections").text == #"{"connections":0}"#)
      #expect(try await service.raw("GET", "/apps/1001/connections").status == 401)
      let (one, two) = (try await service.connect(), try await service.connect())
      try await one.subscribe("presence-a", as: "ann")
      try await two.subscribe("a")
      try await one.subscribe("a")
      let users = try await service.send("GET", "/apps/1001/channels/presence-a/users", [("with_user_info", "1")])
      #expect(users.text == #"{"users":[{"id":"ann","user_info":{"name":"ann!"}}]}"#)
      let answer = try await service.send(
        "POST", "/apps/1001/channels/a/events", [("name", "old"), ("socket_id", one.socketID)], body: #"{"b":1}"#)
      #expect(answer.status == 202)
      #expect(answer.text == "{}")
      #expect(try await two.next() == #"{"event":"old","channel":"a","data":"{\"b\":1}"}"#)
      #expect(try await one.isQuiet())
      #expect(try await service.send("POST", "/apps/1001/channels/a/events", body: "x").status == 400)
    }
  }
}
