import FerryChat
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import BackendlessProvider

@Suite(.timeLimit(.minutes(5))) struct FacadeMessagingTests {
  @Test func `what became of a message is known, and what was delivered cannot be called back`() async throws {
    try await Service.serving { service in
      let published = try await service.publish("hi", to: "комната 1", ["publishPolicy": "PUBSUB"])
      #expect(published.json["status"] == "scheduled")
      let id = try unwrap(published.json["messageId"]?.string, "no id")
      let status = try await service.call("GET", "/messaging/\(id)")
      #expect(status.json == ["errorMessage": .null, "messageId": .string(id), "status": "published"])
      #expect(try await service.call("DELETE", "/messaging/\(id)").code == 5040)
      #expect(try await service.call("GET", "/messaging/message:none").json["status"] == "unknown")
      let escaped = id.replacing(":", with: "%3A")
      #expect(try await service.call("GET", "/messaging/\(escaped)").json["status"] == "published")
    }
  }

  @Test(
    arguments: [
      [:], ["message": .null], ["message": "x", "publishAt": -1], ["message": "x", "repeatEvery": "often"],
    ] as [JSONValue])
  func `what is no message is refused`(body: JSONValue) async throws {
    try await Service.serving { service in
      let answer = try await service.call("POST", "/messaging/room", body)
      #expect(answer.status == 400 && answer.code != nil)
    }
  }

  @Test func `a delayed message goes out at its time, and one that was cancelled does not`() async throws {
    let clock = ManualClock()
    try await Service.serving(clock: clock) { service in
      let listener = try await service.connect()
      try await listener.join("room")
      let at = JSONValue.integer(clock.now().milliseconds + 10_000)
      let later = try await service.publish("later", to: "room", ["publishAt": at])
      let id = try unwrap(later.json["messageId"]?.string, "no id")
      let never = try await service.publish("never", to: "room", ["publishAt": at]).json["messageId"]?.string ?? ""
      #expect(try await service.call("GET", "/messaging/\(id)").json["status"] == "scheduled")
      let cancelled = try await service.call("DELETE", "/messaging/\(never)")
      #expect(cancelled.json["status"] == "cancelled")
      #expect(try await service.call("DELETE", "/messaging/\(never)").code == 5040)
      #expect(try await service.call("GET", "/messaging/\(never)").json["status"] == "cancelled")
      await clock.waitForSleepers()
      clock.advance(by: .seconds(9))
      await clock.waitForSleepers()
      #expect(try await listener.isQuiet())
      clock.advance(by: .seconds(2))
      let message = try await listener.data(of: "m")
      #expect(message["message"] == "later" && message["messageId"]?.string == id && message["publishAt"] == at)
      #expect(try await service.call("GET", "/messaging/\(id)").json["status"] == "published")
      await clock.waitForSleepers()
      #expect(try await listener.isQuiet())
    }
  }

  @Test func `a repeated message goes out until it expires, each time under an id of its own`() async throws {
    let clock = ManualClock()
    try await Service.serving(clock: clock) { service in
      let listener = try await service.connect()
      try await listener.join("room")
      let end = JSONValue.integer(clock.now().milliseconds + 25_000)
      try await service.publish("tick", to: "room", ["repeatEvery": 10, "repeatExpiresAt": end])
      var ids: Set<String> = []
      for round in 0..<3 {
        if round > 0 {
          await clock.waitForSleepers()
          clock.advance(by: .seconds(10))
        }
        ids.insert(try await listener.data(of: "m")["messageId"]?.string ?? "")
      }
      #expect(ids.count == 3)
      await clock.waitForSleepers()
      clock.advance(by: .seconds(4))
      await clock.waitForSleepers()
      clock.advance(by: .seconds(10))
      await clock.waitForSleepers()
      #expect(try await listener.isQuiet())
    }
  }

  @Test func `messages that wait outlive a restart, and those missed go out once`() async throws {
    let clock = ManualClock()
    let folder = try TemporaryFolder()
    try await Service.serving(clock: clock, folder: folder) { service in
      let at = JSONValue.integer(clock.now().milliseconds + 10_000)
      try await service.publish("waiting", to: "room", ["publishAt": at])
      try await service.publish("again", to: "room", ["publishAt": at, "repeatEvery": 7])
    }
    clock.advance(by: .seconds(100))
    try await Service.serving(clock: clock, folder: folder) { service in
      let reader = try await service.chat.reader(of: "room", after: 0)
      var texts: [String] = []
      while texts.count < 2 {
        for case .event(let logged) in try await reader.next() {
          if case .posted(let message) = try logged.event().kind { texts.append(message.text) }
        }
      }
      #expect(texts == ["waiting", "again"])
      await clock.waitForSleepers()
      clock.advance(by: .seconds(8))
      guard case .event(let third)? = try await reader.next().first, case .posted(let message) = try third.event().kind
      else { throw FerryError(.badData, "nothing came") }
      #expect(message.text == "again")
      reader.close()
    }
  }

  @Test func `repetitions are reckoned from the first`() {
    var publication = Publication(id: "message:1", channel: "c", message: "x")
    func next(_ now: Int64, _ last: Int64) -> Int64? {
      BackendlessFacade.next(
        after: Timestamp(milliseconds: now), of: publication, last: Timestamp(milliseconds: last))?.milliseconds
    }
    #expect(next(5000, 5000) == nil)
    publication.repeatEvery = 10
    #expect(next(5000, 5000) == 15_000)
    #expect(next(5999, 5000) == 15_000)
    #expect(next(36_000, 5000) == 45_000)
    publication.repeatExpiresAt = 44_999
    #expect(next(36_000, 5000) == nil)
    publication.repeatEvery = .max
    #expect(next(36_000, 5000) == nil)
  }

  @Test func `whoever asks again and again gets what is new of the last minute, once`() async throws {
    let clock = ManualClock()
    try await Service.serving(clock: clock) { service in
      try await service.publish("before", to: "room")
      let all = try await service.call("POST", "/messaging/room/subscribe").json["subscriptionId"]?.string ?? ""
      let some =
        try await service.call(
          "POST", "/messaging/room/subscribe", ["selector": "city = 'Dallas' and temperature > 60", "subtopic": "a.*"]
        ).json["subscriptionId"]?.string ?? ""
      func poll(_ id: String) async throws -> [JSONValue] {
        try await service.call("GET", "/messaging/room/\(id)").json["messages"]?.array ?? ["none"]
      }
      #expect(try await poll(all) == [])
      try await service.publish("elsewhere", to: "other")
      try await service.publish("old", to: "room")
      clock.advance(by: .seconds(61))
      let options: [String: JSONValue] = [
        "publisherId": "ann", "subtopic": "a.b", "headers": ["city": "Dallas", "temperature": 62],
      ]
      let id = try await service.publish(["text": "new"], to: "room", options).json["messageId"] ?? .null
      let expected: JSONValue = [
        "messageId": id, "data": ["text": "new"], "publishedAt": .integer(clock.now().milliseconds),
        "publisherId": "ann",
        "headers": [
          "city": "Dallas", "temperature": "62", "BL_APPLICATION_ID": "APPID", "DSId": "ferry",
          "DSDstClientId": .string(all),
        ],
      ]
      #expect(try await poll(all) == [expected])
      #expect(try await poll(all) == [])
      try await service.publish(
        "cold", to: "room", ["headers": ["city": "Dallas", "temperature": 5], "subtopic": "a.b"])
      try await service.publish(
        "apart", to: "room", ["headers": ["city": "Dallas", "temperature": 70], "subtopic": "b"])
      #expect(try await poll(some).map { $0["data"] } == [["text": "new"]])
      #expect(try await poll(all).map { $0["data"] } == ["cold", "apart"])
      #expect(try await service.call("GET", "/messaging/room/unknown").code == 5002)
      #expect(try await service.call("GET", "/messaging/other/\(all)").code == 5002)
      #expect(try await service.call("POST", "/messaging/room/subscribe", ["selector": "x ="]).code == 1017)
    }
  }

  @Test func `subtopics match up to the star`() {
    #expect(Subtopic.matches("stocks.nasdaq.msft", "stocks.*") && Subtopic.matches("stocks", "stocks.*"))
    #expect(Subtopic.matches("a", "a") && Subtopic.matches(nil, nil) && Subtopic.matches("a", "*"))
    #expect(!Subtopic.matches("stock", "stocks.*") && !Subtopic.matches(nil, "a") && !Subtopic.matches("a.b", "a"))
  }

  @Test func `a deleted channel takes its messages with it`() async throws {
    try await Service.serving { service in
      try await service.publish("hi", to: "room")
      #expect(try await service.chat.rooms().map(\.id) == ["room"])
      #expect(try await service.call("DELETE", "/messaging/channels/room").status == 200)
      #expect(try await service.chat.rooms().isEmpty)
      #expect(try await service.call("DELETE", "/messaging/channels/room").status == 404)
      try await service.publish("hi again", to: "room")
    }
  }

  @Test func `what became of a message is forgotten after an hour`() async throws {
    let clock = ManualClock()
    try await Service.serving(clock: clock) { service in
      let old = try await service.publish("old", to: "room").json["messageId"]?.string ?? ""
      clock.advance(by: .seconds(3601))
      let new = try await service.publish("new", to: "room").json["messageId"]?.string ?? ""
      #expect(try await service.call("GET", "/messaging/\(old)").json["status"] == "unknown")
      #expect(try await service.call("GET", "/messaging/\(new)").json["status"] == "published")
    }
  }
}
