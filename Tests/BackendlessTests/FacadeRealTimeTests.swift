import FerryChat
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import BackendlessProvider

@Suite(.timeLimit(.minutes(5))) struct FacadeRealTimeTests {
  @Test(arguments: [EngineVersion.three, .four])
  func `a message arrives with all its members, at every listener and at its publisher`(
    version: EngineVersion
  ) async throws {
    try await Service.serving { service in
      let listener = try await service.connect(version)
      try await listener.join("room", messages: "one")
      listener.subscribe("PUB_SUB_MESSAGES", "two", ["channel": "room", "event": "PUB_SUB_MESSAGES"])
      try await listener.ready()
      let answer = try await service.publish(
        ["text": "hi", "n": .number(1.5)], to: "room",
        ["publisherId": "ann", "headers": ["foo": 20, "on": true, "x": "y"], "subtopic": "a.b"])
      #expect(answer.json["status"] == "scheduled" && answer.json["errorMessage"] == .null)
      let id = try unwrap(answer.json["messageId"], "no id")
      #expect(id.string?.hasPrefix("message:") == true && id.string?.utf8.count == 44)
      var seen: Set<String> = []
      for _ in 0..<2 {
        let (name, data) = try await listener.event()
        #expect(name == "SUB_RES")
        seen.insert(data["id"]?.string ?? "")
        guard var message = data["data"]?.object else { throw FerryError(.badData, "no data") }
        #expect(message.removeValue(forKey: "timestamp")?.integer != nil)
        #expect(
          message == [
            "messageId": id, "message": ["text": "hi", "n": .number(1.5)], "publisherId": "ann", "subtopic": "a.b",
            "headers": ["foo": "20", "on": "true", "x": "y"], "pushSinglecast": .null, "pushBroadcast": .null,
            "publishPolicy": .null, "query": .null, "templateValues": .null, "publishAt": 0, "repeatEvery": 0,
            "repeatExpiresAt": 0,
          ])
      }
      #expect(seen == ["one", "two"])
      #expect(try await listener.isQuiet())
    }
  }

  @Test func `selectors choose by headers`() async throws {
    try await Service.serving { service in
      let listener = try await service.connect()
      try await listener.join("room", messages: "m", selector: "foo > 10 AND room = 'a'")
      try await service.publish("no", to: "room", ["headers": ["foo": 5, "room": "a"]])
      try await service.publish("no", to: "room", ["headers": ["foo": 20]])
      try await service.publish("no", to: "room")
      try await service.publish("yes", to: "room", ["headers": ["foo": 20, "room": "a"]])
      #expect(try await listener.data(of: "m")["message"] == "yes")
    }
  }

  @Test func `errors of subscriptions have a number and those of methods a string, and neither has data`() async throws
  {
    try await Service.serving { service in
      let listener = try await service.connect()
      let subscriptions: [(String, JSONValue)] = [
        ("RSO_CONNECT", ["name": "x"]), ("PUB_SUB_MESSAGES", ["channel": "room", "selector": "foo ="]),
        ("PUB_SUB_MESSAGES", [:]), ("OBJECTS_CHANGES", ["event": "x", "tableName": "T"]),
        ("OBJECTS_CHANGES", ["event": "created", "tableName": "T;"]), ("PUB_SUB_CONNECT", ["channel": ""]),
      ]
      for (name, options) in subscriptions {
        listener.subscribe(name, "s", options)
        let (event, data) = try await listener.event()
        #expect(event == "SUB_RES" && data["id"] == "s" && data["data"] == nil)
        #expect(data["error"]?["code"] == 5002 && data["error"]?["message"]?.string?.isEmpty == false)
      }
      for name in ["RSO_GET", "PUB_SUB_COMMAND"] {
        listener.send("MET_REQ", ["id": "x", "name": .string(name)])
        let (event, data) = try await listener.event()
        #expect(event == "MET_RES" && data["id"] == "x" && data["result"] == nil)
        #expect(data["error"]?["code"] == "5003")
      }
    }
  }

  @Test func `a command comes back to its sender too, after its answer`() async throws {
    try await Service.serving { service in
      let (one, two) = (try await service.connect(.three), try await service.connect())
      for listener in [one, two] {
        try await listener.join("room", messages: nil)
        listener.subscribe("PUB_SUB_COMMANDS", "k", ["channel": "room"])
        try await listener.ready()
      }
      one.send(
        "MET_REQ",
        [
          "id": "x", "name": "PUB_SUB_COMMAND",
          "options": ["channel": "room", "type": "T", "data": ["user": "ann", "on": true]],
        ])
      #expect(try await one.next() == #"42/APPID,["MET_RES",{"id":"x","result":null}]"#)
      let expected: JSONValue = [
        "type": "T", "data": ["user": "ann", "on": true], "connectionId": .string(one.sid), "userId": .null,
      ]
      #expect(try await one.data(of: "k") == expected)
      #expect(try await two.data(of: "k") == expected)
      one.send("MET_REQ", ["id": "y", "name": "PUB_SUB_COMMAND", "options": ["channel": "room", "type": "T"]])
      #expect(try await two.data(of: "k")["data"] == nil)
    }
  }

  @Test func `who is in a channel is listed once and then told`() async throws {
    try await Service.serving { service in
      let ann = try await service.user("ann@example.com")
      let watcher = try await service.connect()
      try await watcher.join("room", messages: nil)
      watcher.subscribe("PUB_SUB_USERS", "u", ["channel": "room"])
      try await watcher.ready()
      let anonymous: JSONValue = ["connectionId": .string(watcher.sid), "userId": .null]
      #expect(try await watcher.data(of: "u") == ["status": "LISTING", "data": [anonymous]])

      let other = try await service.connect(.three, token: ann.token)
      try await other.join("room", messages: nil)
      let known: JSONValue = ["connectionId": .string(other.sid), "userId": .string(ann.id)]
      #expect(try await watcher.data(of: "u") == ["status": "CONNECTED", "data": [known]])
      other.send("MET_REQ", ["id": "t", "name": "SET_USER_TOKEN"])
      let gone: JSONValue = ["connectionId": .string(other.sid), "userId": .null]
      #expect(try await watcher.data(of: "u") == ["status": "USERUPDATE", "data": [gone]])
      #expect(try await other.next() == #"42/APPID,["MET_RES",{"id":"t","result":null}]"#)
      other.send("MET_REQ", ["id": "t", "name": "SET_USER_TOKEN", "options": ["userToken": .string(ann.token)]])
      #expect(try await watcher.data(of: "u") == ["status": "USERUPDATE", "data": [known]])
      other.close()
      #expect(try await watcher.data(of: "u") == ["status": "DISCONNECTED", "data": [known]])
    }
  }

  @Test func `a token that is no good is an error on a method, and nobody on connecting`() async throws {
    try await Service.serving { service in
      let listener = try await service.connect(token: "STALE")
      listener.send("MET_REQ", ["id": "t", "name": "SET_USER_TOKEN", "options": ["userToken": "STALE"]])
      let (_, data) = try await listener.event()
      #expect(data["error"]?["code"] == "3064")
    }
  }

  @Test func `leaving ends what a channel's listeners are told, and coming back begins it again`() async throws {
    try await Service.serving { service in
      let (listener, other) = (try await service.connect(), try await service.connect())
      try await other.join("room")
      try await listener.join("room")
      listener.send("SUB_OFF", ["id": "c-room"])
      #expect(try await listener.isQuiet())
      try await service.publish("1", to: "room")
      #expect(try await other.data()["message"] == "1")
      #expect(try await listener.isQuiet())
      try await listener.join("room", messages: nil)
      try await service.publish("2", to: "room")
      #expect(try await listener.data()["message"] == "2")
      listener.send("SUB_OFF", ["id": "m"])
      #expect(try await listener.isQuiet())
      try await service.publish("3", to: "room")
      for text in ["2", "3"] { #expect(try await other.data()["message"]?.string == text) }
      #expect(try await listener.isQuiet())
    }
  }

  @Test func `the same ids after a reconnection, and twice on one connection, are one subscription`() async throws {
    try await Service.serving { service in
      let first = try await service.connect()
      try await first.join("room")
      first.socket.send("41/APPID,")
      first.close()
      let second = try await service.connect()
      try await second.join("room")
      try await second.join("room")
      try await service.publish("1", to: "room")
      #expect(try await second.data(of: "m")["message"] == "1")
      #expect(try await second.isQuiet())
    }
  }

  @Test func `subscriptions of one connection are limited`() async throws {
    try await Service.serving(adjust: { $0.subscriptions = 2 }) { service in
      let listener = try await service.connect()
      try await listener.join("room")
      listener.subscribe("PUB_SUB_MESSAGES", "n", ["channel": "room"])
      #expect(try await listener.event().data["error"]?["code"] == 5002)
      listener.send("SUB_OFF", ["id": "m"])
      listener.subscribe("PUB_SUB_MESSAGES", "n", ["channel": "room"])
      try await listener.ready()
    }
  }

  @Test func `typing commands are typing in the chat`() async throws {
    // Typing ends after five seconds by itself, on another clock than this machine's.
    try await Service.serving(clock: ManualClock()) { service in
      let ann = try await service.user("ann@example.com")
      let reader = try await service.chat.reader(of: "room", after: nil)
      // Who has read something is told live from then on.
      try await service.publish("first", to: "room")
      _ = try await reader.next()
      let listener = try await service.connect(token: ann.token)
      try await listener.join("room", messages: nil)
      listener.subscribe("PUB_SUB_COMMANDS", "k", ["channel": "room"])
      try await listener.ready()
      for (type, isOn) in [("USER_TYPING", true), ("USER_STOP_TYPING", false)] {
        listener.send(
          "MET_REQ", ["id": "x", "name": "PUB_SUB_COMMAND", "options": ["channel": "room", "type": .string(type)]])
        guard case .typing(let typing)? = try await reader.next().first else { throw FerryError(.badData, "none") }
        #expect(typing.on == isOn && typing.by == Author(id: UserID(ann.id), name: "ann@example.com"))
        #expect(try await listener.event().name == "MET_RES")
        #expect(try await listener.data(of: "k")["type"]?.string == type)
      }
      #expect(try await listener.isQuiet(), "what the chat tells of it is no second command")
      reader.close()
    }
  }

  @Test func `whoever types by commands is not told of once more, however fast`() async throws {
    try await Service.serving(clock: ManualClock()) { service in
      let ann = try await service.user("ann@example.com")
      let listener = try await service.connect(token: ann.token)
      try await listener.join("room", messages: nil)
      listener.subscribe("PUB_SUB_COMMANDS", "k", ["channel": "room"])
      try await listener.ready()
      var told = 0
      for number in 0..<40 {
        let type: JSONValue = number % 2 == 0 ? "USER_TYPING" : "USER_STOP_TYPING"
        listener.send("MET_REQ", ["id": "x", "name": "PUB_SUB_COMMAND", "options": ["channel": "room", "type": type]])
      }
      // Bob's is told after all that the chat has to tell of ann.
      var bobs = 0
      var heard: JSONValue = .null
      while heard["data"]?["user"] == nil || told < 40 {
        bobs += 1
        let bob = Author(id: UserID("bob\(bobs)"), name: "bob")
        try service.chat.setTyping(Typing(channel: "room", by: bob, on: true), by: .owner)
        let (name, data) = try await listener.event()
        guard name == "SUB_RES" else { continue }
        heard = data["data"] ?? .null
        if heard["connectionId"]?.string == listener.sid { told += 1 } else { #expect(heard["data"]?["user"] == "bob") }
      }
    }
  }

  @Test func `typing in the chat is a command`() async throws {
    try await Service.serving(clock: ManualClock()) { service in
      let listener = try await service.connect()
      try await listener.join("room", messages: nil)
      listener.subscribe("PUB_SUB_COMMANDS", "k", ["channel": "room"])
      try await listener.ready()
      // The first may type before the facade follows the chat.
      var number = 0
      var told: JSONValue = .null
      while told == .null {
        number += 1
        let bob = Author(id: UserID("bob\(number)"), name: "Bob\(number)")
        try service.chat.setTyping(Typing(channel: "room", by: bob, on: true), by: .owner)
        listener.send("MET_REQ", ["id": "x", "name": "NO_SUCH_METHOD"])
        let (name, data) = try await listener.event()
        if name == "SUB_RES" { told = data["data"] ?? .null }
      }
      let name = try unwrap(told["data"]?["user"]?.string, "no user")
      #expect(told["type"] == "USER_TYPING" && told["data"]?["on"] == true && told["userId"] == .null)
      #expect(told["connectionId"]?.string != nil)
      let bob = Author(id: UserID(name.lowercased()), name: name)
      try service.chat.setTyping(Typing(channel: "room", by: bob, on: false), by: .owner)
      while told["type"] != "USER_STOP_TYPING" {
        let (event, data) = try await listener.event()
        if event == "SUB_RES" { told = data["data"] ?? .null }
      }
      #expect(told["data"] == ["user": .string(name), "on": false])
    }
  }
}
