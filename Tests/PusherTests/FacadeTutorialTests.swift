import FerryCore
import FerryRuntime
import FerryTransport
import Testing

@testable import PusherProvider

/// The anonymous-chat tutorial's server, seen by its app.
@Suite(.timeLimit(.minutes(1))) struct FacadeTutorialTests {
  private static func playing(
    store: MemoryCacheStore = MemoryCacheStore(), _ body: @escaping @Sendable (Service) async throws -> Void
  ) async throws {
    try await Service.serving(store: store, adjust: { $0.tutorial = .anonymousChat }, body)
  }

  private static let form: HTTPHeaders = ["Content-Type": "application/x-www-form-urlencoded"]
  private static let json: HTTPHeaders = ["Content-Type": "application/json; charset=utf-8"]

  @Test func `a message is published and answered with the same number`() async throws {
    try await Self.playing { service in
      let client = try await service.connect()
      try await client.subscribe("chatroom")
      let first = try await service.raw(
        "POST", "/messages", headers: Self.form, body: Array("sender=anon%201&text=h%C3%A9llo+you".utf8))
      #expect(first.status == 200)
      #expect(first.text == #"{"ID":1,"sender":"anon 1","success":200,"text":"h\#u{e9}llo you"}"#)
      #expect(
        try await client.next()
          == #"{"event":"new_message","channel":"chatroom","data":"{\"ID\":1,\"sender\":\"anon 1\",\"text\":"#
          + "\\\"h\u{e9}llo you\\\"}\"}")
      let second = try await service.raw(
        "POST", "/messages", headers: Self.json, body: Array(#"{"sender":"anon 2","text":"hi"}"#.utf8))
      #expect(second.text == #"{"ID":2,"sender":"anon 2","success":200,"text":"hi"}"#)
      #expect(try await client.next().contains(#"\"ID\":2,"#))
    }
  }

  @Test func `typing names the sender and says so`() async throws {
    try await Self.playing { service in
      let client = try await service.connect()
      try await client.subscribe("chatroom")
      let answer = try await service.raw("POST", "/typing", headers: Self.form, body: Array("sender=ann".utf8))
      #expect(answer.text == #"{"success":200}"#)
      #expect(
        try await client.next()
          == #"{"event":"user_typing","channel":"chatroom","data":"{\"sender\":\"ann\",\"text\":\"ann is typing...\"}"}"#
      )
    }
  }

  @Test(arguments: [(form, "ID=7"), (json, #"{"ID":7}"#), (json, #"{"ID":"7"}"#)])
  func `a receipt carries the number as a string, however it came`(headers: HTTPHeaders, body: String) async throws {
    try await Self.playing { service in
      let client = try await service.connect()
      try await client.subscribe("chatroom")
      let answer = try await service.raw("POST", "/delivered", headers: headers, body: Array(body.utf8))
      #expect(answer.text == #"{"success":200}"#)
      #expect(
        try await client.next()
          == #"{"event":"message_delivered","channel":"chatroom","data":"{\"ID\":\"7\"}"}"#)
    }
  }

  @Test func `numbers go on after a restart, and what is refused uses none up`() async throws {
    let store = MemoryCacheStore()
    let body = Array("sender=a&text=b".utf8)
    try await Self.playing(store: store) { service in
      _ = try await service.raw("POST", "/messages", headers: Self.form, body: body)
      let large = Array("sender=a&text=\(String(repeating: "x", count: 10_240))".utf8)
      #expect(try await service.raw("POST", "/messages", headers: Self.form, body: large).status == 413)
    }
    try await Self.playing(store: store) { service in
      let answer = try await service.raw("POST", "/messages", headers: Self.form, body: body)
      #expect(answer.text == #"{"ID":2,"sender":"a","success":200,"text":"b"}"#)
    }
  }

  @Test(arguments: [
    ("/messages", form, "sender=a"), ("/messages", form, ""), ("/messages", json, "{"), ("/messages", json, "[]"),
    ("/messages", json, #"{"sender":"a","text":null}"#), ("/messages", json, #"{"sender":{},"text":"b"}"#),
    ("/typing", form, "text=a"), ("/delivered", form, "id=1"),
  ])
  func `half a request is refused`(path: String, headers: HTTPHeaders, body: String) async throws {
    try await Self.playing { service in
      let answer = try await service.raw("POST", path, headers: headers, body: Array(body.utf8))
      #expect(answer.status == 400)
    }
  }

  @Test func `there is no tutorial unless it is asked for`() async throws {
    try await Service.serving { service in
      for path in ["/messages", "/typing", "/delivered"] {
        let answer = try await service.raw("POST", path, headers: Self.form, body: Array("sender=a&text=b&ID=1".utf8))
        #expect(answer.status == 404)
      }
    }
    try await Self.playing { service in
      let other = try await service.raw("POST", "/other", body: Array("a=b".utf8))
      let read = try await service.raw("GET", "/messages")
      #expect([other.status, read.status] == [404, 404])
    }
  }
}
