import FerryChat
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import BackendlessProvider

/// Rows, published messages and messages of the chat as one and the same.
@Suite(.timeLimit(.minutes(5))) struct FacadeChatTests {
  private func history(_ service: Service, _ room: ChannelID) async throws -> [Message] {
    try await service.chat.history(of: room, order: .oldestFirst, limit: 100).messages
      .filter { $0.deleted == nil }.map(\.message)
  }

  @Test func `a row that is saved and published is one message, edited and deleted with it`() async throws {
    try await Service.serving { service in
      let row = try await service.call(
        "PUT", "/data/ChatMessage", ["userName": "ann", "messageText": "hello", "channel": "room"]
      ).json
      let id = try unwrap(row["objectId"]?.string, "no id")
      try await service.publish(row, to: "room")
      try await service.publish(row, to: "room")
      let messages = try await history(service, "room")
      #expect(messages.map(\.text) == ["hello"] && messages.first?.author.name == "ann")
      #expect(try await service.chat.message(byClientID: SendKey(id), in: "room") != nil)
      try await service.call("PUT", "/data/ChatMessage", ["objectId": .string(id), "messageText": "hello, edited"])
      #expect(try await history(service, "room").map { [$0.text, String($0.revision)] } == [["hello, edited", "1"]])
      try await service.call("PUT", "/data/ChatMessage", ["objectId": .string(id), "seen": true])
      #expect(try await history(service, "room").first?.revision == 1)
      try await service.call("DELETE", "/data/ChatMessage/\(id)")
      #expect(try await history(service, "room").isEmpty)
    }
  }

  @Test func `rows of an app with one room have no channel, and are the message that was published`() async throws {
    let folder = try TemporaryFolder()
    let id = try await Service.serving(folder: folder) { service in
      let row = try await service.call("PUT", "/data/ChatMessage", ["userName": "ann", "messageText": "hello"]).json
      #expect(try await service.chat.rooms().isEmpty)
      try await service.publish(row, to: "room")
      try await service.publish(row, to: "other")
      #expect(try await history(service, "room").map(\.text) == ["hello"])
      #expect(try await history(service, "other").map(\.text) == ["hello"])
      return try unwrap(row["objectId"]?.string, "no id")
    }
    try await Service.serving(folder: folder) { service in
      let row = try await service.call("PUT", "/data/ChatMessage", ["objectId": .string(id), "messageText": "new"]).json
      try await service.publish(row, to: "room")
      #expect(try await history(service, "room").map(\.text) == ["new"])
      try await service.call("DELETE", "/data/ChatMessage/\(id)")
      #expect(try await history(service, "room").isEmpty)
    }
  }

  @Test func `a row that moves to another channel is a message there`() async throws {
    try await Service.serving { service in
      let row = try await service.call("PUT", "/data/ChatMessage", ["messageText": "a", "channel": "one"]).json
      try await service.call("PUT", "/data/ChatMessage", ["objectId": row["objectId"] ?? .null, "channel": "two"])
      #expect(try await history(service, "one").isEmpty)
      #expect(try await history(service, "two").map(\.text) == ["a"])
    }
  }

  @Test func `rows that are written and deleted in bulk are messages too`() async throws {
    try await Service.serving { service in
      try await service.call(
        "POST", "/data/bulk/ChatMessage",
        [["messageText": "a", "channel": "room"], ["messageText": "b", "channel": "room"], ["channel": "room"]])
      #expect(try await history(service, "room").map(\.text) == ["a", "b"])
      try await service.call("PUT", "/data/bulk/ChatMessage?where=messageText%3D'a'", ["messageText": "c"])
      #expect(try await history(service, "room").map(\.text) == ["c", "b"])
      try await service.call("POST", "/data/bulk/ChatMessage/delete", ["where": "channel = 'room'"])
      #expect(try await history(service, "room").isEmpty)
    }
  }

  @Test func `strings and messages of other shapes are messages, anything else is only passed on`() async throws {
    try await Service.serving { service in
      let listener = try await service.connect()
      try await listener.join("room")
      let user = try await service.user("bob@example.com")
      let messages: [JSONValue] = [
        "bare", ["text": "dictionary", "userEmail": "ann@example.com"], 42, ["nothing": "here"], [1, 2], true,
      ]
      for message in messages {
        try await service.call("POST", "/messaging/room", ["message": message], token: user.token)
        #expect(try await listener.data(of: "m")["message"] == message)
      }
      let history = try await history(service, "room")
      #expect(history.map(\.text) == ["bare", "dictionary"])
      #expect(history.map(\.author.name) == ["bob@example.com", "ann@example.com"])
      #expect(history.map(\.author.id.rawValue) == [user.id, user.id])
    }
  }

  @Test func `a picture of this service is a file of the message, and others are links`() async throws {
    try await Service.serving { service in
      let saved = try await service.raw(
        "PUT", "/APPID/KEY/files/binary/tmpChatFiles/1.png", body: Array("iVBORw0KGgoBAgM=".utf8), type: "text/plain")
      let url = try unwrap(saved.json.string, saved.text)
      for picture in [url, "https://example.org/cat.png", "javascript:alert(1)"] {
        try await service.publish(["userName": "ann", "pictureUrl": .string(picture)], to: "room")
      }
      let attachments = try await history(service, "room").flatMap(\.attachments)
      #expect(attachments.count == 2)
      guard case .provider(let sha256) = attachments[0].reference else { throw FerryError(.badData, "no file") }
      #expect(attachments[0].mediaType == "image/png" && attachments[0].size == 11 && sha256.utf8.count == 64)
      #expect(attachments[1].reference == .url("https://example.org/cat.png"))
    }
  }

  @Test func `what is written in the chat is a row, a message in real time and a change of the table`() async throws {
    try await Service.serving { service in
      let listener = try await service.connect()
      try await listener.join("room")
      for event in ["created", "updated", "deleted"] {
        listener.subscribe(
          "OBJECTS_CHANGES", event,
          ["event": .string(event), "tableName": "ChatMessage", "whereClause": "channel = 'room'"])
        try await listener.ready()
      }
      let bob = Author(id: "bob", name: "Bob")
      let posted = try await service.chat.post(Draft(author: bob, text: "from the page"), to: "room", by: .owner)
      let row = try await listener.data(of: "created")
      #expect(row["messageText"] == "from the page" && row["userName"] == "Bob" && row["channel"] == "room")
      #expect(row["___class"] == "ChatMessage" && row["pictureUrl"] == nil)
      let message = try await listener.data(of: "m")
      #expect(message["message"] == row && message["publisherId"] == "Bob")
      let id = try unwrap(row["objectId"]?.string, "no id")
      #expect(try await service.call("GET", "/data/ChatMessage/\(id)").json == row)

      let messageID = posted.message.message.id
      _ = try await service.chat.edit(messageID, in: "room", to: Change(text: "changed"), by: .owner)
      #expect(try await listener.data(of: "updated")["messageText"] == "changed")
      // And back: a client of this service edits what was written on the page.
      try await service.call("PUT", "/data/ChatMessage", ["objectId": .string(id), "messageText": "back"])
      #expect(try await listener.data(of: "updated")["messageText"] == "back")
      #expect(try await history(service, "room").map(\.text) == ["back"])
      try await service.chat.delete(messageID, in: "room", by: .owner)
      #expect(try await listener.data(of: "deleted") == ["objectId": .string(id)])
      #expect(try await service.call("GET", "/data/ChatMessage/\(id)").code == 1000)
      #expect(try await listener.isQuiet())
    }
  }

  @Test func `a text with pictures in the chat is a row for each, and goes as one`() async throws {
    try await Service.serving { service in
      let listener = try await service.connect()
      try await listener.join("room")
      let file = try await service.chat.store(.bytes(FacadeFilesTests.png), name: "cat.png", mediaType: "image/png")
      let draft = Draft(
        author: Author(id: "bob", name: "Bob"), text: "two cats",
        attachments: [
          Attachment(name: "cat.png", mediaType: "image/png", reference: .provider(file.sha256)),
          Attachment(name: "x.png", mediaType: "image/png", reference: .url("https://example.org/x.png")),
        ])
      let posted = try await service.chat.post(draft, to: "room", by: .owner)
      var messages: [JSONValue] = []
      for _ in 0..<3 { messages.append(try await listener.data(of: "m")["message"] ?? .null) }
      #expect(messages[0]["messageText"] == "two cats" && messages[0]["pictureUrl"] == nil)
      let url = try unwrap(messages[1]["pictureUrl"]?.string, "no picture")
      #expect(url == "\(service.server.url)/APPID/KEY/files/tmpChatFiles/\(file.sha256).png")
      #expect(try await service.raw("GET", url).bytes == FacadeFilesTests.png)
      #expect(messages[2]["pictureUrl"] == "https://example.org/x.png" && messages[2]["messageText"] == nil)
      let rows = try await service.call("POST", "/data/ChatMessage/find", ["where": "channel = 'room'"]).json.array
      #expect(rows == messages)
      // An edit from this side leaves the other rows' pictures where they are.
      try await service.call(
        "PUT", "/data/ChatMessage", ["objectId": messages[0]["objectId"] ?? .null, "messageText": "x"])
      #expect(try await history(service, "room").map { [$0.text, String($0.attachments.count)] } == [["x", "2"]])
      try await service.chat.delete(posted.message.message.id, in: "room", by: .owner)
      #expect(try await service.call("POST", "/data/ChatMessage/count", [:]).text == "0")
    }
  }

  @Test func `the parts of one message are changed and deleted by themselves`() async throws {
    try await Service.serving { service in
      let listener = try await service.connect()
      try await listener.join("room")
      let urls = ["https://example.org/1.png", "https://example.org/2.png"]
      let draft = Draft(
        author: Author(id: "bob", name: "Bob"), text: "cats",
        attachments: urls.map { Attachment(name: "x", mediaType: "image/png", reference: .url($0)) })
      _ = try await service.chat.post(draft, to: "room", by: .owner)
      var ids: [String] = []
      for _ in 0..<3 { ids.append(try await listener.data(of: "m")["message"]?["objectId"]?.string ?? "") }
      func parts() async throws -> [String] {
        try await history(service, "room").flatMap { message in
          [message.text]
            + message.attachments.map { if case .url(let url) = $0.reference { String(url.suffix(5)) } else { "" } }
        }
      }
      try await service.call("PUT", "/data/ChatMessage", ["objectId": .string(ids[2]), "seen": true])
      #expect(try await parts() == ["cats", "1.png", "2.png"])
      try await service.call("DELETE", "/data/ChatMessage/\(ids[1])")
      #expect(try await parts() == ["cats", "2.png"])
      try await service.call("DELETE", "/data/ChatMessage/\(ids[0])")
      #expect(try await parts() == ["", "2.png"])
      try await service.call("DELETE", "/data/ChatMessage/\(ids[2])")
      #expect(try await parts() == [])
    }
  }

  @Test func `what was written in the chat before the facade ran is a row when it runs`() async throws {
    let folder = try TemporaryFolder()
    let chat = try ChatService(path: folder.file("chat.db"), files: folder.file("files"), logger: .silent)
    let bob = Author(id: "bob", name: "Bob")
    _ = try await chat.post(Draft(author: bob, text: "early"), to: "room", by: .owner)
    chat.close()
    for _ in 0..<2 {
      try await Service.serving(folder: folder) { service in
        _ = try await service.chat.post(Draft(clientID: "once", author: bob, text: "late"), to: "room", by: .owner)
        var rows: [JSONValue] = []
        while rows.count < 2 {
          rows = try await service.call("POST", "/data/ChatMessage/find", [:]).json.array ?? []
        }
        #expect(rows.map { $0["messageText"] } == ["early", "late"])
      }
    }
  }

  @Test func `what the facade writes before it runs is its own`() async throws {
    let folder = try TemporaryFolder()
    let service = try Service(clock: SystemClock(), folder: folder, rehearsal: nil) { _ in }
    defer {
      service.chat.close()
      service.loop.stop()
    }
    var request = HTTPRequest(
      method: "PUT", path: "/APPID/KEY/data/ChatMessage", headers: ["Content-Type": "application/json"])
    request.body = .bytes(JSONText.bytes(of: ["messageText": "hello", "channel": "room"]))
    #expect(await service.facade.handle(request).status == 200)
    await withDiscardingTaskGroup { group in
      group.addTask { await service.facade.run() }
      let count = HTTPRequest(method: "GET", path: "/APPID/KEY/data/ChatMessage/count")
      for _ in 0..<20 {
        guard case .bytes(let bytes) = await service.facade.handle(count).body else { continue }
        #expect(String(decoding: bytes, as: UTF8.self) == "1")
      }
      group.cancelAll()
    }
  }

  /// Section 5 of the service's reference: what the picture chat does, call for call.
  @Test func `the picture chat's calls do what its pages show`() async throws {
    try await Service.serving { service in
      let (ann, bob) = (try await service.user("ann@example.com"), try await service.user("bob@example.com"))
      let listener = try await service.connect(.three, token: bob.token)
      try await listener.join("realtime_example")
      for event in ["updated", "deleted"] {
        listener.subscribe("OBJECTS_CHANGES", event, ["event": .string(event), "tableName": "ChatMessage"])
        try await listener.ready()
      }
      let notice: JSONValue = ["userName": "ann", "messageText": "joined", "___class": "ChatMessage"]
      try await service.call("POST", "/messaging/realtime_example", ["message": notice], token: ann.token)
      #expect(try await listener.data(of: "m")["message"] == notice)

      let text = try await service.call(
        "PUT", "/data/ChatMessage", ["userName": "ann", "messageText": "hello"], token: ann.token
      ).json
      #expect(text["ownerId"]?.string == ann.id)
      try await service.call("POST", "/messaging/realtime_example", ["message": text], token: ann.token)
      #expect(try await listener.data(of: "m")["message"] == text)

      let upload = try await service.raw(
        "PUT", "/APPID/KEY/files/binary/tmpChatFiles/9F78.png?overwrite=true", body: Array("iVBORw0KGgoBAgM=".utf8),
        type: "text/plain", headers: [("user-token", ann.token)])
      let picture = try await service.call(
        "PUT", "/data/ChatMessage", ["userName": "ann", "pictureUrl": upload.json], token: ann.token
      ).json
      try await service.call("POST", "/messaging/realtime_example", ["message": picture], token: ann.token)
      let shown = try await listener.data(of: "m")["message"]
      #expect(shown == picture && shown?["messageText"] == nil)
      #expect(try await service.raw("GET", shown?["pictureUrl"]?.string ?? "").bytes == FacadeFilesTests.png)

      let edited: JSONValue = ["objectId": text["objectId"] ?? .null, "messageText": "hello, edited"]
      try await service.call("PUT", "/data/ChatMessage", edited, token: ann.token)
      #expect(try await listener.data(of: "updated")["messageText"] == "hello, edited")
      let id = try unwrap(picture["objectId"]?.string, "no id")
      try await service.call("DELETE", "/data/ChatMessage/\(id)", token: ann.token)
      #expect(try await listener.data(of: "deleted") == ["objectId": .string(id)])
      let history = try await history(service, "realtime_example")
      // The notice is no message of the chat: it makes ann a member.
      #expect(history.map(\.text) == ["hello, edited"])
      #expect(try await service.chat.members(of: "realtime_example").map(\.name) == ["ann"])
      #expect(history.allSatisfy { $0.author.id.rawValue == ann.id && $0.author.name == "ann" })
    }
  }

  @Test func `notices are members who come and go, saved or not, and a setting names them`() async throws {
    try await Service.serving { service in
      try await service.publish("joined", to: "room", ["publisherId": "ann"])
      let row: JSONValue = ["userName": "bob", "messageText": "joined", "channel": "room"]
      let saved = try await service.call("PUT", "/data/ChatMessage", row).json
      try await service.publish(saved, to: "room")
      #expect(try await service.chat.members(of: "room").map(\.name).sorted() == ["ann", "bob"])
      #expect(try await history(service, "room").isEmpty)
      // That somebody goes is told by Ferry's mark alone: people do write "left".
      try await service.publish("left", to: "room", ["publisherId": "ann"])
      #expect(try await history(service, "room").map(\.text) == ["left"])
      try await service.publish(
        "left", to: "room", ["publisherId": "ann", "headers": ["ferry": #"{"notice":"left"}"#]])
      #expect(try await service.chat.members(of: "room").map(\.name) == ["bob"])
      try await service.publish(
        "left", to: "empty", ["publisherId": "ann", "headers": ["ferry": #"{"notice":"left"}"#]])
    }
    try await Service.serving(adjust: { $0.fields.joinNotice = nil }) { service in
      try await service.publish("joined", to: "room", ["publisherId": "ann"])
      #expect(try await history(service, "room").map(\.text) == ["joined"])
    }
  }

  @Test func `whoever comes and goes on the chat page is told of by the app's notice, once`() async throws {
    try await Service.serving { service in
      let listener = try await service.connect()
      try await listener.join("room")
      // The chat is followed from the first write on.
      try await service.publish("hello", to: "room")
      #expect(try await listener.data(of: "m")["message"] == "hello")
      try await service.chat.join(Author(id: "7", name: "eve"), "room", by: .owner)
      let came = try await listener.data(of: "m")
      #expect(came["message"]?["userName"] == "eve" && came["message"]?["messageText"] == "joined")
      #expect(came["headers"]?["ferry"]?.string?.contains("joined") == true)
      try await service.chat.leave("7", "room", by: .owner)
      #expect(try await listener.data(of: "m")["headers"]?["ferry"]?.string?.contains("left") == true)
      #expect(try await history(service, "room").map(\.text) == ["hello"])
      // Whose coming was told by the notice is not told of again.
      try await service.publish("joined", to: "room", ["publisherId": "ann"])
      #expect(try await listener.data(of: "m")["message"] == "joined")
      #expect(try await listener.isQuiet())
    }
  }
}
