import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import PusherProvider

@Suite(.timeLimit(.minutes(1))) struct FacadeRequestTests {
  @Test func `an event goes to everybody on its channels but the one excluded`() async throws {
    try await Service.serving { service in
      let (one, two) = (try await service.connect(), try await service.connect())
      try await one.subscribe("a")
      try await one.subscribe("b")
      try await two.subscribe("a")
      let data = #"{"text":"h\#u{e9}llo \"you\"\n"}"#
      let answer = try await service.trigger("new_message", on: "a", "b", data: data)
      #expect(answer.status == 200)
      #expect(answer.text == "{}")
      let frame = FrameText.event("new_message", channel: "a", data: data)
      #expect(try await one.next() == frame)
      #expect(try await one.next() == FrameText.event("new_message", channel: "b", data: data))
      #expect(try await two.next() == frame)
      try await service.trigger("e", on: "a", data: "1", except: one.socketID)
      #expect(try await two.next() == #"{"event":"e","channel":"a","data":"1"}"#)
      #expect(try await one.isQuiet())
      try await service.trigger("e", on: "a", data: "2", except: "1.1")
      #expect(try await one.next().contains(#""data":"2""#))
    }
  }

  @Test func `a batch is delivered in order and refused whole`() async throws {
    try await Service.serving { service in
      let client = try await service.connect()
      try await client.subscribe("a")
      func batch(_ names: [String]) -> String {
        let items = names.enumerated().map { #"{"name":"\#($1)","channel":"a","data":"\#($0)"}"# }
        return #"{"batch":[\#(items.joined(separator: ","))]}"#
      }
      let refused = try await service.send(
        "POST", "/apps/1001/batch_events", body: batch(["e", "e", "pusher:x"]))
      #expect(refused.status == 400)
      let accepted = try await service.send("POST", "/apps/1001/batch_events", body: batch((0..<10).map { "e\($0)" }))
      #expect(accepted.text == "{}")
      for index in 0..<10 {
        #expect(try await client.next() == #"{"event":"e\#(index)","channel":"a","data":"\#(index)"}"#)
      }
    }
  }

  @Test func `the publisher is told the attributes it asks for`() async throws {
    try await Service.serving { service in
      let client = try await service.connect()
      try await client.subscribe("a")
      try await client.subscribe("presence-a", as: "ann")
      let answer = try await service.trigger(
        "e", on: "a", "presence-a", data: "1", info: "user_count,subscription_count")
      #expect(
        answer.json == [
          "channels": [
            "a": ["subscription_count": 1], "presence-a": ["subscription_count": 1, "user_count": 1],
          ]
        ])
      let item = #"{"name":"e","channel":"a","data":"1""#
      let batch = try await service.send(
        "POST", "/apps/1001/batch_events", body: #"{"batch":[\#(item)},\#(item),"info":"subscription_count"}]}"#)
      #expect(batch.json == ["batch": [[:], ["subscription_count": 1]]])
    }
  }

  @Test func `channels can be asked about`() async throws {
    try await Service.serving { service in
      let (one, two) = (try await service.connect(), try await service.connect())
      try await one.subscribe("a")
      try await one.subscribe("presence-a", as: "ann")
      try await two.subscribe("presence-a", as: "bob")
      func get(_ path: String, _ parameters: [(name: String, value: String)] = []) async throws -> JSONValue? {
        try await service.send("GET", "/apps/1001/\(path)", parameters).json
      }
      #expect(try await get("channels") == ["channels": ["a": [:], "presence-a": [:]]])
      #expect(
        try await get("channels", [("filter_by_prefix", "presence-"), ("info", "user_count")])
          == ["channels": ["presence-a": ["user_count": 2]]])
      #expect(
        try await get("channels/presence-a", [("info", "user_count,subscription_count")])
          == ["occupied": true, "user_count": 2, "subscription_count": 2])
      #expect(try await get("channels/none") == ["occupied": false])
      #expect(try await get("channels/presence-a/users") == ["users": [["id": "ann"], ["id": "bob"]]])
    }
  }

  @Test(arguments: [
    ("channels", "user_count", 400), ("channels", "age", 400), ("channels/a", "user_count", 400),
    ("channels/a", "cache", 400), ("channels/a/users", "", 400), ("channels/a%20b", "", 400), ("stats", "", 404),
    ("events", "", 404),
  ])
  func `what makes no sense is refused`(path: String, info: String, status: Int) async throws {
    try await Service.serving { service in
      let answer = try await service.send("GET", "/apps/1001/\(path)", info.isEmpty ? [] : [("info", info)])
      #expect(answer.status == status, "\(answer.text)")
      #expect(!answer.text.isEmpty)
    }
  }

  @Test func `a wrong secret, a stale time, an unknown app and too much data have their texts`() async throws {
    try await Service.serving { service in
      let path = "/apps/1001/events"
      let body = #"{"name":"e","channel":"a","data":"1"}"#
      let wrong = try await service.send(
        "POST", path, body: body, key: AppKey(key: "demo-key", secret: Secret("wrong")))
      #expect(wrong.status == 401)
      #expect(
        wrong.text.hasPrefix(#"Invalid signature: you should have sent HmacSHA256Hex("POST\n/apps/1001/events\n"#))
      let stale = try await service.send("POST", path, body: body, skew: -601)
      #expect(stale.status == 401)
      #expect(stale.text.hasPrefix("Timestamp expired: Given timestamp ("))
      let unknown = try await service.send("POST", "/apps/1002/events", body: body)
      #expect(unknown.status == 404)
      let large = try await service.trigger("e", on: "a", data: String(repeating: "x", count: 10_241))
      #expect(large.status == 413)
      #expect(large.text.contains("10240"))
      #expect(try await service.raw("GET", "/").status == 404)
      #expect(try await service.raw("GET", "/app/demo-key?protocol=7").status == 426)
    }
  }

  @Test func `a cache channel keeps its last event for those who come later`() async throws {
    let clock = ManualClock()
    try await Service.serving(clock: clock) { service in
      let client = try await service.connect()
      try await client.subscribe("cache-a")
      #expect(try await client.next() == #"{"event":"pusher:cache_miss","channel":"cache-a","data":"{}"}"#)
      try await service.trigger("e", on: "cache-a", data: "1")
      try await service.trigger("e", on: "cache-a", data: "2")
      let later = try await service.connect()
      #expect(try await later.subscribe("cache-a").contains("subscription_succeeded"))
      #expect(try await later.next() == #"{"event":"e","channel":"cache-a","data":"2"}"#)
      try await later.subscribe("cache-a")
      #expect(try await later.isQuiet())
      clock.advance(by: .seconds(60))
      let state = try await service.send("GET", "/apps/1001/channels/cache-a", [("info", "cache")])
      #expect(state.json == ["occupied": true, "cache": ["data": "2", "ttl": 1740]])
      clock.advance(by: .seconds(1740))
      let expired = try await service.send("GET", "/apps/1001/channels/cache-a", [("info", "cache")])
      #expect(expired.json == ["occupied": true])
    }
  }

  @Test func `what a cache channel keeps outlives the facade`() async throws {
    let store = MemoryCacheStore()
    _ = try await Service.serving(store: store) { try await $0.trigger("e", on: "private-cache-a", data: "1") }
    try await Service.serving(store: store) { service in
      let client = try await service.connect()
      try await client.subscribe("private-cache-a")
      #expect(try await client.next() == #"{"event":"e","channel":"private-cache-a","data":"1"}"#)
    }
  }

  @Test func `an event that cannot be kept is neither delivered nor acknowledged`() async throws {
    struct FullStore: PusherCacheStore {
      func keep(_ event: String, for channel: String) async throws(FerryError) {
        throw FerryError(.storage, "The disk is full.")
      }
      func kept(_ channel: String) async throws(FerryError) -> (event: String, age: Double)? { nil }
      func prune(olderThan seconds: Double) async throws(FerryError) -> Bool { false }
      func nextNumber(_ name: String) async throws(FerryError) -> Int64 { 1 }
    }
    try await Service.serving(store: FullStore()) { service in
      let client = try await service.connect()
      try await client.subscribe("a")
      #expect(try await service.trigger("e", on: "a", "cache-a", data: "1").status == 503)
      #expect(try await client.isQuiet())
      #expect(try await service.trigger("e", on: "a", data: "1").status == 200)
    }
  }
}
