import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import FoundationEssentials
import Testing

@testable import BackendlessProvider

/// What goes out beside a message, and how its files do.
@Suite(.timeLimit(.minutes(2))) struct AdapterPublishingTests {
  @Test(arguments: BackendlessAdapter.Settings.Receive.allCases)
  func `a selector chooses what is heard, and by the account's own headers Ferry is heard there`(
    receive: BackendlessAdapter.Settings.Receive
  ) async throws {
    try await AdapterRig.serving { rig in
      let adapter = rig.adapter {
        $0.table = nil
        $0.receive = receive
        $0.headers = ["room": "a", "n": "20"]
        $0.selector = "room = 'a' AND n > 10"
      }
      try await rig.running(adapter) { inbox in
        try await rig.send("POST", "/messaging/lobby", ["message": "elsewhere", "headers": ["room": "b", "n": 20]])
        try await rig.publish("without")
        let id = try await adapter.post(AdapterRig.message("here"), to: "lobby")
        #expect(await inbox.message("here")?.id == id)
        try await rig.send("POST", "/messaging/lobby", ["message": "quiet", "headers": ["room": "a", "n": 10]])
        try await rig.send("POST", "/messaging/lobby", ["message": "loud", "headers": ["room": "a", "n": 11]])
        #expect(await inbox.story(2) == ["+here", "+loud"])
      }
    }
  }

  @Test(arguments: ["ChatMessage", nil])
  func `messages and notices go out with the account's headers, under its subtopic`(table: String?) async throws {
    try await AdapterRig.serving { rig in
      let adapter = rig.adapter {
        $0.table = table
        $0.headers = ["room": "a"]
        $0.subtopic = "news.local"
      }
      func subscription(_ subtopic: String) async throws -> String {
        let body: JSONValue = ["subtopic": .string(subtopic), "selector": "room = 'a'"]
        return try #require(
          try await rig.send("POST", "/messaging/lobby/subscribe", body)["subscriptionId"]?.string)
      }
      let (news, other) = (try await subscription("news.*"), try await subscription("sports.*"))
      _ = try await adapter.post(AdapterRig.message("hello"), to: "lobby")
      try await adapter.setMember(Membership(member: AdapterRig.ann), of: "lobby", present: true)
      let heard = try await rig.send("GET", "/messaging/lobby/\(news)")["messages"]?.array ?? []
      #expect(heard.map { $0["data"]?["messageText"] } == ["hello", "joined"])
      // Ferry's own mark is among them.
      #expect(heard.allSatisfy { $0["headers"]?["room"] == "a" && FerryMark($0["headers"]?["ferry"]) != nil })
      #expect(try await rig.send("GET", "/messaging/lobby/\(other)")["messages"] == [])
    }
  }

  @Test func `what became of a message can be asked for`() async throws {
    try await AdapterRig.serving { rig in
      let api = rig.adapter().api
      let id = try await api.publish(["text": "now"], to: "lobby", as: nil, doing: "publish")
      #expect(try await api.status(of: MessageID(id), doing: "ask") == "published")
      let later = try await rig.send(
        "POST", "/messaging/lobby", ["message": "later", "publishAt": 4_102_444_800_000])["messageId"]
      let waiting = MessageID(try #require(later?.string))
      #expect(try await api.status(of: waiting, doing: "ask") == "scheduled")
      try await rig.send("DELETE", "/messaging/\(waiting)")
      #expect(try await api.status(of: waiting, doing: "ask") == "cancelled")
      #expect(try await api.status(of: "message:NONE", doing: "ask") == "unknown")
    }
  }

  @Test func `the service's other spellings of what became of a message are understood`() async throws {
    try await AdapterRig.serving(filter: { request in
      guard request.method == "GET", request.path.contains("/messaging/") else { return nil }
      return HTTPResponse(
        status: 200, headers: ["Content-Type": "application/json"], body: .bytes(Array(#"{"status":"CANCELED"}"#.utf8)))
    }) { rig async throws in
      #expect(try await rig.adapter().api.status(of: "message:1", doing: "ask") == "cancelled")
    }
  }

  @Test func `a file may be uploaded as Base64`() async throws {
    let seen = Locked<[String]>([])
    try await AdapterRig.serving(filter: { request in
      if request.path.contains("/files/") {
        let line = "\(request.method) \(request.headers["Content-Type"] ?? "")"
        seen.withLock { $0.append(line) }
      }
      return nil
    }) { rig in
      let adapter = rig.adapter { $0.uploads = .base64 }
      let bytes = Crypto.randomBytes(100_001)
      let reference = try await adapter.upload(.bytes(bytes), name: "a.png", mediaType: "image/png", to: "lobby")
      #expect(seen.withLock { $0 } == ["PUT text/plain"])
      let file = try await adapter.attachment(reference)
      #expect(file.mediaType?.hasPrefix("image/png") == true)
      #expect(try await file.collect(upTo: 1 << 20) == bytes)
      let listed = try await rig.send("GET", "/files/tmpChatFiles?pattern=*").array
      #expect(listed?.map { $0["size"]?.integer } == [100_001])
    }
  }

  @Test(arguments: 0...10, [1, 2, 3, 4, 7])
  func `Base64 is made piece by piece, with its size known before`(count: Int, piece: Int) async throws {
    let bytes = (0..<count).map { UInt8($0 * 25) }
    let rest = Locked(bytes[...])
    let stream = ByteStream(size: Int64(count)) { () async throws(FerryError) -> [UInt8]? in
      rest.withLock { rest in
        defer { rest = rest.dropFirst(piece) }
        return rest.isEmpty ? nil : Array(rest.prefix(piece))
      }
    }
    let file = Base64File(stream)
    let text = try await file.body.collect(upTo: 100)
    #expect(text == [UInt8](Data(bytes).base64EncodedData()) && file.body.size == Int64(text.count))
  }
}
