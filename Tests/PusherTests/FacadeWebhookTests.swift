import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import PusherProvider

@Suite(.timeLimit(.minutes(2))) struct FacadeWebhookTests {
  /// A facade that tells a receiver, under a clock that stands still.
  private static func told(
    _ events: Set<WebhookEvent.Kind> = Set(WebhookEvent.Kind.allCases), batch: Bool = false,
    adjust: @escaping @Sendable (inout PusherFacade.Settings) -> Void = { _ in },
    _ body: @escaping @Sendable (Service, HookReceiver, ManualClock) async throws -> Void
  ) async throws {
    try await HookReceiver.receiving { receiver in
      let clock = ManualClock()
      try await Service.serving(
        clock: clock,
        adjust: { settings in
          settings.webhooks = [WebhookSettings(url: receiver.url, events: events, batch: batch)]
          adjust(&settings)
        }
      ) { try await body($0, receiver, clock) }
    }
  }

  @Test func `the documented body has the documented signature`() {
    let key = AppKey(key: "278d425bdf160c739803", secret: Secret("7ad3773142a6692b25b8"))
    #expect(
      key.signature(of: #"{"time_ms":1327078148132,"events":[{"name":"channel_occupied","channel":"my-channel"}]}"#)
        == "c19001ae3963ccb13bf618e5b16ba9848e7e74df0993aa0689168e341c6833cf")
  }

  @Test func `a hook is JSON, signed over its very bytes, its time in milliseconds`() async throws {
    try await Self.told { service, receiver, clock in
      try await service.connect().subscribe("chatroom")
      let hook = try unwrap(await receiver.hooks(1).first, "no hook")
      #expect(hook.type == "application/json")
      #expect(hook.key == "demo-key")
      #expect(hook.signature == service.appKey.signature(of: hook.body))
      #expect(
        hook.body
          == #"{"events":[{"channel":"chatroom","name":"channel_occupied"}],"time_ms":\#(clock.now().milliseconds)}"#)
    }
  }

  @Test func `each kind of event has its keys`() async throws {
    try await Self.told(adjust: { $0.subscriptionCount = true }) { service, receiver, clock in
      let (one, two) = (try await service.connect(), try await service.connect())
      try await one.subscribe("presence-a", as: "ann")
      one.send(#"{"event":"client-x","channel":"presence-a","data":{"b":1}}"#)
      try await two.subscribe("private-cache-a")
      _ = try await two.next()
      two.send(#"{"event":"client-y","channel":"private-cache-a","data":"text"}"#)
      let events = await receiver.events(7)
      #expect(
        Set(events) == [
          ["name": "channel_occupied", "channel": "presence-a"],
          ["name": "member_added", "channel": "presence-a", "user_id": "ann"],
          [
            "name": "client_event", "channel": "presence-a", "event": "client-x", "data": #"{"b":1}"#,
            "socket_id": .string(one.socketID), "user_id": "ann",
          ],
          ["name": "channel_occupied", "channel": "private-cache-a"],
          ["name": "cache_miss", "channel": "private-cache-a"],
          ["name": "subscription_count", "channel": "private-cache-a", "subscription_count": 1],
          [
            "name": "client_event", "channel": "private-cache-a", "event": "client-y", "data": "text",
            "socket_id": .string(two.socketID),
          ],
        ])
      // In the order in which they happened, as far as one channel is concerned.
      let names = events.filter { $0["channel"] == "presence-a" }.compactMap { $0["name"]?.string }
      #expect(names == ["channel_occupied", "member_added", "client_event"])
      two.send(#"{"event":"pusher:unsubscribe","data":{"channel":"private-cache-a"}}"#)
      #expect(
        await receiver.events(8).last == [
          "name": "subscription_count", "channel": "private-cache-a", "subscription_count": 0,
        ])
      await clock.waitForSleepers()
    }
  }

  @Test func `only the chosen kinds are told`() async throws {
    try await Self.told([.memberAdded]) { service, receiver, _ in
      let client = try await service.connect()
      try await client.subscribe("cache-a")
      _ = try await client.next()
      try await client.subscribe("presence-a", as: "ann")
      #expect(await receiver.events(1) == [["name": "member_added", "channel": "presence-a", "user_id": "ann"]])
    }
  }

  @Test func `who leaves is told after three seconds, in order`() async throws {
    try await Self.told { service, receiver, clock in
      let client = try await service.connect()
      try await client.subscribe("presence-a", as: "ann")
      _ = await receiver.events(2)
      client.close()
      await clock.waitForSleepers()
      clock.advance(by: .milliseconds(2999))
      await clock.waitForSleepers()
      #expect(receiver.state.value.hooks.count == 2)
      clock.advance(by: .milliseconds(1))
      #expect(
        await receiver.events(4).suffix(2) == [
          ["name": "member_removed", "channel": "presence-a", "user_id": "ann"],
          ["name": "channel_vacated", "channel": "presence-a"],
        ])
    }
  }

  @Test func `who comes back in time has neither left nor come`() async throws {
    try await Self.told { service, receiver, clock in
      let first = try await service.connect()
      try await first.subscribe("presence-a", as: "ann")
      first.close()
      await clock.waitForSleepers()
      clock.advance(by: .seconds(2))
      let second = try await service.connect()
      try await second.subscribe("presence-a", as: "ann")
      clock.advance(by: .seconds(2))
      try await second.subscribe("other")
      #expect(
        await receiver.events(3) == [
          ["name": "channel_occupied", "channel": "presence-a"],
          ["name": "member_added", "channel": "presence-a", "user_id": "ann"],
          ["name": "channel_occupied", "channel": "other"],
        ])
    }
  }

  @Test func `the time to come back begins anew at each leaving`() {
    var notices = Notices(kinds: [.channelOccupied, .channelVacated])
    let start = Timestamp(milliseconds: 0)
    func after(_ seconds: Int64) -> Timestamp { start.advanced(by: .seconds(seconds)) }
    notices.occupied("a")
    notices.vacated("a", now: after(0))
    notices.occupied("a")
    notices.vacated("a", now: after(2))
    for job in notices.schedule.take(at: after(3)) {
      if case .vacated(let channel, let number) = job { notices.settleVacated(channel, number: number) }
    }
    var events = notices.takeEvents().events
    #expect(events == [.channelOccupied("a")])
    for job in notices.schedule.take(at: after(5)) {
      if case .vacated(let channel, let number) = job { notices.settleVacated(channel, number: number) }
    }
    events = notices.takeEvents().events
    #expect(events == [.channelVacated("a")])
  }

  @Test func `a hook that is not taken is sent again, later each time, and nothing overtakes it`() async throws {
    try await Self.told { service, receiver, clock in
      receiver.state.update { $0.statuses = [500, 302, 404] }
      let client = try await service.connect()
      try await client.subscribe("a")
      try await client.subscribe("b")
      for (attempt, delay) in [1, 2, 4].enumerated() {
        _ = await receiver.hooks(attempt + 1)
        await clock.waitForSleepers()
        clock.advance(by: .seconds(delay))
      }
      let hooks = await receiver.hooks(5)
      #expect(Set(hooks.prefix(4).map(\.body)).count == 1)
      #expect(hooks.map { $0.events.first?["channel"]?.string } == ["a", "a", "a", "a", "b"])
    }
  }

  @Test func `after five minutes a hook is given up and counted, and the next has its turn`() async throws {
    try await Self.told { service, receiver, clock in
      receiver.state.update { $0.statuses = Array(repeating: 503, count: 10) }
      let client = try await service.connect()
      try await client.subscribe("a")
      for (attempt, delay) in [1, 2, 4, 8, 16, 32, 60, 60, 60].enumerated() {
        _ = await receiver.hooks(attempt + 1)
        await clock.waitForSleepers()
        clock.advance(by: .seconds(delay))
      }
      _ = await receiver.hooks(10)
      try await client.subscribe("b")
      let hooks = await receiver.hooks(11)
      #expect(hooks.last?.events == [["name": "channel_occupied", "channel": "b"]])
      #expect(service.metrics.value("ferry_pusher_facade_webhook_drops_total") == 1)
    }
  }

  @Test func `a facade that stops gives up what was not taken and counts it`() async throws {
    try await HookReceiver.receiving { receiver in
      receiver.state.update { $0.isHeld = true }
      let metrics = try await Service.serving(adjust: { $0.webhooks = [WebhookSettings(url: receiver.url)] }) {
        let client = try await $0.connect()
        try await client.subscribe("a")
        _ = await receiver.hooks(1)
        return $0.metrics
      }
      #expect(metrics.value("ferry_pusher_facade_webhook_drops_total") == 1)
      receiver.state.update { $0.isHeld = false }
    }
  }

  @Test func `hooks that wait go together when that is asked for`() async throws {
    try await HookReceiver.receiving { slow in
      try await HookReceiver.receiving { quick in
        slow.state.update { $0.isHeld = true }
        try await Service.serving(adjust: {
          $0.webhooks = [
            WebhookSettings(url: slow.url, batch: true), WebhookSettings(url: quick.url, events: [.channelOccupied]),
          ]
        }) { service in
          let client = try await service.connect()
          try await client.subscribe("first")
          _ = await slow.hooks(1)
          for index in 0..<5 { try await client.subscribe("c\(index)") }
          // Whatever one of them has been told, waits for the other.
          #expect(await quick.hooks(6).map(\.events.count) == Array(repeating: 1, count: 6))
          slow.state.update { $0.isHeld = false }
          let hooks = await slow.hooks(2)
          #expect(hooks[0].events.count == 1)
          #expect(hooks[1].events.compactMap { $0["channel"]?.string } == (0..<5).map { "c\($0)" })
          #expect(hooks[1].signature == service.appKey.signature(of: hooks[1].body))
        }
      }
    }
  }

  // MARK: Configuration

  @Test func `webhooks and what else there is are read from the configuration`() throws {
    let yaml = """
      { app_id: '1', key: k, secret: s, connections: 7, channels_per_connection: 8,
        over_connections: capacity, authorized_connections: true,
        subscription_count: true, watchlist: true, strict: true, tutorial: anonymous_chat,
        webhooks: [{url: 'https://a/b'}, {url: 'http://u:p@c:8/', events: [subscription_count, client_event], batch: true}] }
      """
    let settings = try PusherFacade.Settings(ConfigNode.parse(yaml).mapping())
    #expect(settings.connections == 7)
    #expect(settings.channelsPerConnection == 8)
    #expect(settings.overflow == .capacity)
    #expect(settings.authorizedConnections && settings.subscriptionCount && settings.watchlist && settings.strict)
    #expect(settings.tutorial == .anonymousChat)
    #expect(settings.webhooks.map(\.url) == ["https://a/b", "http://u:p@c:8/"])
    #expect(settings.webhooks.map(\.events) == [Set(WebhookEvent.Kind.allCases), [.subscriptionCount, .clientEvent]])
    #expect(settings.webhooks.map(\.batch) == [false, true])
    #expect(WebhookSettings.place(of: "http://u:p@c:8/x?y=z") == "c:8")
  }

  @Test(arguments: [
    "connections: 0", "channels_per_connection: 0", "connections: many", "over_connections: 4004", "strict: 1",
    "watchlist: yes",
    "tutorial: quickstart", "webhooks: {url: 'http://a'}", "webhooks: [http://a]", "webhooks: [{batch: true}]",
    "webhooks: [{url: 'ftp://a'}]", "webhooks: [{url: 'http://'}]", "webhooks: [{url: 'http:///x'}]",
    "webhooks: [{url: 'http://a b'}]", "webhooks: [{url: 'http://a', events: []}]",
    "webhooks: [{url: 'http://a', events: [member_aded]}]", "webhooks: [{url: 'http://a', event: [member_added]}]",
    "webhooks: [{url: 'http://a', events: [subscription_count]}]",
  ])
  func `what is wrong is told with its place`(keys: String) throws {
    let mapping = try ConfigNode.parse("{app_id: '1', key: k, secret: s, \(keys)}").mapping()
    let error = #expect(throws: FerryError.self) { try PusherFacade.Settings(mapping) }
    #expect(error?.code == .badConfiguration)
    #expect(error?.message.hasPrefix("ferry.yaml:1:") == true, "\(error?.message ?? "")")
  }
}

@Suite struct ScheduleTests {
  private func at(_ seconds: Int64) -> Timestamp { Timestamp(milliseconds: seconds * 1000) }

  @Test func `jobs come due in the order of their times, and of their coming where these are equal`() {
    var schedule = Schedule<String>()
    #expect(schedule.next == nil)
    schedule.add("late", after: .seconds(30), now: at(0))
    schedule.add("b", after: .seconds(3), now: at(1))
    schedule.add("c", after: .seconds(3), now: at(1))
    schedule.add("a", after: .seconds(1), now: at(2))
    #expect(schedule.next == at(3))
    let none = schedule.take(at: at(2))
    let early = schedule.take(at: at(4))
    #expect(none.isEmpty)
    #expect(early == ["a", "b", "c"])
    #expect(schedule.next == at(30))
    let rest = schedule.take(at: at(1000))
    #expect(rest == ["late"])
    #expect(schedule.next == nil)
  }

  @Test func `many jobs come out as they went in`() {
    var schedule = Schedule<Int>()
    var taken: [Int] = []
    for index in 0..<1000 {
      schedule.add(index, after: .seconds(3), now: at(Int64(index)))
      taken += schedule.take(at: at(Int64(index)))
    }
    taken += schedule.take(at: at(2000))
    #expect(taken == Array(0..<1000))
  }

  @Test func `a clock that is set back holds nothing up`() {
    var schedule = Schedule<String>()
    schedule.add("a", after: .seconds(3), now: at(100))
    let due = schedule.take(at: at(50))
    #expect(due == ["a"])
  }
}
