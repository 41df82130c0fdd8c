import FerryChat
import FerryCore
import FerryRuntime
import FerryTransport
import LocalProvider
import Testing

@Suite(.timeLimit(.minutes(1))) struct APITests {
  @Test func aMessageIsPostedReadEditedAndDeleted() async throws {
    try await withServer { server async throws in
      let posted = try await server.send(
        "POST", "/v1/rooms/lobby/messages",
        #"{"client_id":"k1","author":{"id":"ada","name":"Ada"},"text":"hello","time":"2016-08-05T03:10:50.122Z"}"#)
      #expect(posted.status == 201)
      let id = try #require(posted.json["id"]?.string)
      #expect(posted.headers["Location"] == "/v1/rooms/lobby/messages/\(id)")
      #expect(posted.json["time"]?.string == "2016-08-05T03:10:50.122Z")
      let again = try await server.send(
        "POST", "/v1/rooms/lobby/messages", #"{"client_id":"k1","author":{"id":"ada"},"text":"other"}"#)
      #expect(again.status == 200 && again.json == posted.json)

      let path = "/v1/rooms/lobby/messages/\(id)"
      #expect(try await server.send("GET", path).json == posted.json)
      let edited = try await server.send("PATCH", path, #"{"text":"hello, world","revision":0}"#)
      #expect(edited.status == 200 && edited.json["revision"]?.integer == 1)
      #expect(try await server.send("PATCH", path, #"{"text":"late","revision":0}"#).refusal == "conflict")
      #expect(try await server.send("PUT", path + "/reactions/%F0%9F%91%8D?user=bob").status == 204)
      let reacted = try await server.send("GET", path).json["reactions"]?.array?.first
      #expect(reacted?["emoji"]?.string == "👍")
      #expect(try await server.send("DELETE", path + "/reactions/%F0%9F%91%8D", #"{"by":{"id":"bob"}}"#).status == 204)
      #expect(try await server.send("DELETE", path).status == 204)
      #expect(try await server.send("DELETE", path).status == 204)
      let left = try await server.send("GET", path)
      #expect(left.json["text"]?.string == "" && left.json["deleted"]?.string != nil)
      #expect(try await server.send("PATCH", path, #"{"text":"x"}"#).status == 404)

      let log = try await server.send("GET", "/v1/events?room=lobby&limit=500").json
      let kinds = log["events"]?.array?.map { $0["event"]?["kind"]?.string ?? "" }
      #expect(kinds == ["message", "edit", "reaction", "reaction", "delete"])
      #expect(log["next"] == nil)
    }
  }

  @Test func aBatchIsPostedInOneRequest() async throws {
    try await withServer { server async throws in
      let items = (0..<200).map { #"{"client_id":"b\#($0)","author":{"id":"ada"},"text":"\#($0)"}"# }
      let body = "{\"messages\":[\(items.joined(separator: ","))]}"
      let first = try await server.send("POST", "/v1/rooms/lobby/messages", body)
      #expect(first.status == 201 && first.json["messages"]?.array?.count == 200)
      let again = try await server.send("POST", "/v1/rooms/lobby/messages", body)
      #expect(again.status == 200 && again.json == first.json)
      let found = try await server.send("GET", "/v1/rooms/lobby/messages?client_id=b7&client_id=no&client_id=b3")
      #expect(found.json["messages"]?.array?.map { $0["text"]?.string } == ["7", "3"])
      let newest = try await server.send("GET", "/v1/rooms/lobby/messages?limit=2")
      #expect(newest.json["messages"]?.array?.map { $0["text"]?.string } == ["199", "198"])
      let next = try #require(newest.json["next"]?.string)
      let older = try await server.send("GET", "/v1/rooms/lobby/messages?limit=2&before=\(next)")
      #expect(older.json["messages"]?.array?.map { $0["text"]?.string } == ["197", "196"])
      let oldest = try await server.send("GET", "/v1/rooms/lobby/messages?limit=1&order=oldest&after=\(next)")
      #expect(oldest.json["messages"]?.array?.map { $0["text"]?.string } == ["199"])
      #expect(oldest.json["next"] == nil)
    }
  }

  @Test func roomsMembersAndReads() async throws {
    try await withServer { server async throws in
      #expect(try await server.send("PUT", "/v1/rooms/lobby", #"{"title":"The lobby"}"#).status == 201)
      #expect(try await server.send("PUT", "/v1/rooms/lobby").json["title"]?.string == "The lobby")
      #expect(try await server.send("PUT", "/v1/rooms/lobby/members/bob", #"{"name":"Bob"}"#).status == 201)
      #expect(try await server.send("PUT", "/v1/rooms/lobby/members/bob", #"{"name":"Bob"}"#).status == 200)
      let members = try await server.send("GET", "/v1/rooms/lobby/members").json
      #expect(members == ["members": [["id": "bob", "name": "Bob"]]])
      let id =
        try await server.send("POST", "/v1/rooms/lobby/messages", #"{"author":{"id":"ada"},"text":"x"}"#)
        .json["id"]?.string ?? ""
      #expect(try await server.send("PUT", "/v1/rooms/lobby/reads/bob", "{\"id\":\"\(id)\"}").status == 204)
      let reads = try await server.send("GET", "/v1/rooms/lobby/reads").json["reads"]?.array
      #expect(reads?.count == 1 && reads?[0]["id"]?.string == id && reads?[0]["state"]?.string == "read")
      #expect(try await server.send("POST", "/v1/rooms/lobby/typing", #"{"by":{"id":"bob"},"on":true}"#).status == 204)
      let rooms = try await server.send("GET", "/v1/rooms").json["rooms"]?.array
      #expect(rooms?.count == 1 && rooms?[0]["last"]?["text"]?.string == "x" && rooms?[0]["members"]?.integer == 1)
      #expect(try await server.send("DELETE", "/v1/rooms/lobby/members/bob").status == 204)
      #expect(try await server.send("GET", "/v1/rooms/lobby/members").json["members"]?.array?.isEmpty == true)
    }
  }

  @Test func roomsSayWhereAUserStands() async throws {
    try await withServer { server async throws in
      var ids: [String] = []
      for text in ["one", "two", "three", "four"] {
        ids.append(
          try await server.chat.post(Draft(author: bob, text: text), to: lobby, by: .owner).message.message.id.rawValue)
      }
      _ = try await server.chat.post(Draft(author: ada, text: "mine"), to: lobby, by: .owner)
      try await server.chat.delete(MessageID(ids[3]), in: lobby, by: .owner)
      func standing(_ path: String, _ token: String) async throws -> JSONValue? {
        let answer = try await server.send("GET", path, token: token).json
        return answer["rooms"]?.array?.first ?? answer
      }
      #expect(try await standing("/v1/rooms", "owner")?["unread"] == nil)
      #expect(try await standing("/v1/rooms?user=ada", "owner")?["unread"]?.integer == 3)
      #expect(try await standing("/v1/rooms", "ada's")?["unread"]?.integer == 3)
      _ = try await server.send("PUT", "/v1/rooms/lobby/reads/ada", "{\"id\":\"\(ids[1])\"}")
      for path in ["/v1/rooms", "/v1/rooms/lobby", "/v1/rooms?user=bob"] {
        let ada = try await standing(path, "ada's")
        #expect(ada?["unread"]?.integer == 1 && ada?["read"]?.string == ids[1], "\(path)")
      }
      #expect(try await server.send("GET", "/v1/rooms", token: "ada's").json["user"]?.string == "ada")
      #expect(try await server.send("GET", "/v1/rooms").json["user"] == nil)
      let many = (0..<150).map { Draft(author: bob, text: "\($0)") }
      _ = try await server.chat.post(many, to: lobby, by: .owner)
      #expect(try await standing("/v1/rooms", "ada's")?["unread"]?.integer == 100)
    }
  }

  @Test func messagesAreFoundByAPartOfTheirText() async throws {
    try await withServer { server async throws in
      for text in ["Plain text", "100% of_it", "100 percent ofXit", "a\\b", "it's \"quoted\"", "日本語です"] {
        _ = try await server.chat.post(Draft(author: ada, text: text), to: lobby, by: .owner)
      }
      for (part, count) in [
        ("TEXT", 1), ("0%25", 1), ("f_i", 1), ("100", 2), ("%5C", 1), ("'s%20%22", 1), ("%E6%97%A5%E6%9C%AC", 1),
        ("", 6), ("zzz", 0),
      ] {
        let found = try await server.send("GET", "/v1/rooms/lobby/messages?text=\(part)").json["messages"]?.array
        #expect(found?.count == count, "\(part)")
      }
      let page = try await server.send("GET", "/v1/rooms/lobby/messages?text=i&limit=1").json
      let next = try #require(page["next"]?.string)
      let rest = try await server.send("GET", "/v1/rooms/lobby/messages?text=i&before=\(next)").json
      #expect(page["messages"]?.array?.first?["text"]?.string == "it's \"quoted\"")
      #expect(rest["messages"]?.array?.count == 3 && rest["next"] == nil)
    }
  }

  @Test func aPageSaysUpToWhichEventItIs() async throws {
    try await withServer { server async throws in
      _ = try await server.chat.post(Draft(author: ada, text: "x"), to: lobby, by: .owner)
      let head = try await server.chat.head()
      #expect(try await server.send("GET", "/v1/rooms/lobby/messages").json["sequence"]?.integer == head)
      #expect(try await server.send("GET", "/v1/rooms").json["sequence"]?.integer == head)
    }
  }

  @Test(arguments: [nil, "", "wrong", "owner ", "Owner", "ada"])
  func whoHasNoTokenGetsNothing(_ token: String?) async throws {
    try await withServer { server async throws in
      for (method, path) in [
        ("GET", "/v1/rooms"), ("POST", "/v1/rooms/lobby/messages"), ("GET", "/v1/events"), ("POST", "/v1/files"),
        ("GET", "/v1/files/\(String(repeating: "a", count: 64))"), ("GET", "/v1/live"),
        ("GET", "/v1/rooms?token=owner"),
      ] {
        let answer = try await server.send(method, path, method == "POST" ? "{}" : nil, token: token)
        #expect(answer.status == 401 && answer.refusal == "bad_credentials", "\(method) \(path)")
        #expect(answer.headers["WWW-Authenticate"] == "Bearer")
      }
      #expect(try await server.send("GET", "/healthz", token: nil).json == ["status": "ok"])
      #expect(try await server.chat.rooms().isEmpty)
    }
  }

  /// Status by who asks: owner, ada (the author), bob, a moderator.
  @Test(
    arguments: [
      ("PATCH", "/v1/rooms/lobby/messages/ID", #"{"text":"changed"}"#, [200, 200, 403, 200]),
      ("DELETE", "/v1/rooms/lobby/messages/ID", nil, [204, 204, 403, 204]),
      ("POST", "/v1/rooms/lobby/messages", #"{"author":{"id":"ada"},"text":"x"}"#, [201, 201, 403, 403]),
      ("POST", "/v1/rooms/lobby/messages", #"{"text":"x"}"#, [400, 201, 201, 201]),
      ("POST", "/v1/rooms/lobby/messages", #"{"author":{"id":"ada"},"text":"x","time":0}"#, [201, 403, 403, 403]),
      ("PUT", "/v1/rooms/lobby/members/ada", nil, [201, 201, 403, 201]),
      ("DELETE", "/v1/rooms/lobby/members/ada", nil, [204, 204, 403, 204]),
      ("PUT", "/v1/rooms/lobby/messages/ID/reactions/x?user=ada", nil, [204, 204, 403, 403]),
      ("PUT", "/v1/rooms/lobby/messages/ID/reactions/x", nil, [400, 204, 204, 204]),
      ("PUT", "/v1/rooms/lobby/reads/ada", #"{"id":"ID"}"#, [204, 204, 403, 403]),
      ("POST", "/v1/rooms/lobby/typing", #"{"by":{"id":"ada"}}"#, [204, 204, 403, 403]),
      ("PUT", "/v1/rooms/lobby", #"{"title":"x"}"#, [200, 403, 403, 200]),
      ("GET", "/v1/rooms/lobby/messages", nil, [200, 200, 200, 200]),
    ] as [(String, String, String?, [Int])])
  func whoMayDoWhat(_ method: String, _ path: String, _ body: String?, _ statuses: [Int]) async throws {
    for (token, status) in zip(["owner", "ada's", "bob's", "mo's"], statuses) {
      try await withServer { server async throws in
        let id = try await server.chat.post(Draft(author: ada, text: "mine"), to: lobby, by: .owner)
          .message.message.id.rawValue
        let answer = try await server.send(
          method, path.replacing("ID", with: id), body?.replacing("ID", with: id), token: token)
        #expect(answer.status == status, "\(token): \(answer.text)")
      }
    }
  }

  @Test(
    arguments: [
      ("POST", "/v1/rooms/lobby/messages", "", 400, "bad_request"),
      ("POST", "/v1/rooms/lobby/messages", "{", 400, "bad_data"),
      ("POST", "/v1/rooms/lobby/messages", "[]", 400, "bad_data"),
      ("POST", "/v1/rooms/lobby/messages", #"{"text":7,"author":{"id":"a"}}"#, 400, "bad_data"),
      ("POST", "/v1/rooms/lobby/messages", #"{"text":"x","author":{"name":"a"}}"#, 400, "bad_data"),
      ("POST", "/v1/rooms/lobby/messages", #"{"text":"x","author":{"id":"a"},"format":"html"}"#, 400, "bad_data"),
      ("POST", "/v1/rooms/lobby/messages", #"{"text":"x","author":{"id":"a"},"time":"now"}"#, 400, "bad_data"),
      ("POST", "/v1/rooms/lobby/messages", #"{"messages":[]}"#, 400, "bad_request"),
      ("POST", "/v1/rooms/lobby/messages", #"{"messages":[{"messages":[]}]}"#, 400, "bad_request"),
      ("PATCH", "/v1/rooms/lobby/messages/1", "{}", 400, "bad_request"),
      ("PATCH", "/v1/rooms/lobby/messages/1", #"{"text":"x"}"#, 404, "not_found"),
      ("GET", "/v1/rooms/nowhere/messages", nil, 404, "not_found"),
      ("GET", "/v1/rooms/lobby/messages?limit=0", nil, 400, "bad_request"),
      ("GET", "/v1/rooms/lobby/messages?limit=501", nil, 400, "bad_request"),
      ("GET", "/v1/rooms/lobby/messages?limit=many", nil, 400, "bad_request"),
      ("GET", "/v1/rooms/lobby/messages?order=up", nil, 400, "bad_request"),
      ("GET", "/v1/rooms/lobby/messages?after=%27%20OR%201=1", nil, 400, "bad_request"),
      ("GET", "/v1/events?after=-1", nil, 400, "bad_request"),
      ("PUT", "/v1/rooms/lobby/reads/ada", "{}", 400, "bad_request"),
      ("PUT", "/v1/rooms/%00", nil, 400, "bad_request"),
      ("GET", "/v1/files/..%2f..%2fchat.db", nil, 404, "not_found"),
      ("GET", "/v1/files/%2e%2e", nil, 404, "not_found"),
      ("GET", "/", nil, 404, "not_found"), ("GET", "/v2/rooms", nil, 404, "not_found"),
      ("GET", "/v1/rooms/lobby/messages/1/reactions", nil, 404, "not_found"),
      ("DELETE", "/v1/rooms", nil, 405, "method_not_allowed"),
      ("PUT", "/v1/files", "", 405, "method_not_allowed"),
    ] as [(String, String, String?, Int, String)])
  func badRequestsGetAClearRefusal(
    _ method: String, _ path: String, _ body: String?, _ status: Int, _ code: String
  ) async throws {
    try await withServer { server async throws in
      _ = try await server.chat.makeRoom(lobby)
      let answer = try await server.send(method, path, body)
      #expect(answer.status == status && answer.refusal == code, "\(answer.status) \(answer.text)")
      #expect(answer.json["error"]?["message"]?.string?.isEmpty == false)
      if status == 405 { #expect(answer.headers["Allow"] != nil) }
    }
  }

  @Test func whatIsNotJSONIsRefusedAsSuch() async throws {
    try await withServer { server async throws in
      let form = try await server.send(
        "POST", "/v1/rooms/lobby/messages", "text=x", type: "application/x-www-form-urlencoded")
      #expect(form.status == 415)
      var request = ClientRequest(
        method: "POST", url: server.url + "/v1/rooms/lobby/messages", headers: ["Authorization": "Bearer owner"])
      request.body = .bytes(Array(#"{"author":{"id":"a"},"text":""#.utf8) + [0xff, 0xfe] + Array(#""}"#.utf8))
      #expect(try await server.client.send(request).status == 400, "invalid UTF-8")
      let deep = String(repeating: "[", count: 100_000)
      #expect(
        try await server.send("POST", "/v1/rooms/lobby/messages", #"{"attributes":"# + deep).status == 400)
      let deepButClosed = String(repeating: "[", count: 600) + String(repeating: "]", count: 600)
      let answer = try await server.send(
        "POST", "/v1/rooms/lobby/messages", #"{"author":{"id":"a"},"text":"x","attributes":\#(deepButClosed)}"#)
      #expect(answer.status == 400 || answer.status == 201)
      let long = String(repeating: "x", count: 65_537)
      #expect(
        try await server.send("POST", "/v1/rooms/lobby/messages", "{\"author\":{\"id\":\"a\"},\"text\":\"\(long)\"}")
          .status == 413)
      #expect(
        try await server.send(
          "PATCH", "/v1/rooms/lobby/messages/1", long + long + String(repeating: "y", count: 1 << 20)
        ).status == 413)
    }
  }

  @Test func anyRoomNameWorksInAPath() async throws {
    try await withServer { server async throws in
      let adapter = try server.adapter()
      for name in ["a/b", "a b+c", "räum", "日本語", "100%", "?x=1#y", "👩‍👩‍👧", "..", ".", "a:b:c"] {
        let room = ChannelID(name)
        let id = try await adapter.post(
          OutgoingMessage(key: "k", author: ada, text: name), to: room)
        #expect(try await server.chat.message(id, in: room).message.text == name)
        #expect(try await adapter.find("k", in: room) == .found(id))
      }
    }
  }
}
