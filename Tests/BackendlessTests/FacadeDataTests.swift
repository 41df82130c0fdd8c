import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import BackendlessProvider

@Suite(.timeLimit(.minutes(5))) struct FacadeDataTests {
  @Test func `a row is made, changed, read and deleted`() async throws {
    try await Service.serving { service in
      let made = try await service.call(
        "PUT", "/data/Notes", ["text": "hello", "created": 5, "ownerId": "x", "___jsonclass": "y", "n": .number(2.5)])
      let id = try unwrap(made.json["objectId"]?.string, made.text)
      #expect(id.utf8.count == 36 && id == id.uppercased())
      let created = try unwrap(made.json["created"]?.integer, "no created")
      #expect(created % 1000 == 0 && created > 1_700_000_000_000)
      let row: [String: JSONValue] = [
        "objectId": .string(id), "text": "hello", "n": .number(2.5), "created": .integer(created), "updated": .null,
        "ownerId": .null, "___class": "Notes",
      ]
      #expect(made.json == .object(row))
      #expect(try await service.call("GET", "/data/Notes/\(id)").json == .object(row))

      let changed = try await service.call("PUT", "/data/Notes", ["objectId": .string(id), "text": "changed", "x": 1])
      #expect(changed.json["text"] == "changed" && changed.json["n"] == .number(2.5) && changed.json["x"] == 1)
      #expect(changed.json["updated"]?.integer != nil && changed.json["created"]?.integer == created)
      #expect(try await service.call("PUT", "/data/Notes/\(id)", ["text": "again"]).json["text"] == "again")

      let deleted = try await service.call("DELETE", "/data/Notes/\(id)")
      #expect(deleted.json["deletionTime"]?.integer != nil)
      for (method, path) in [("GET", "/data/Notes/\(id)"), ("DELETE", "/data/Notes/\(id)")] {
        let gone = try await service.call(method, path)
        #expect(gone.status == 404 && gone.code == 1000)
        #expect(gone.json["message"] == .string("Entity with ID \(id) not found"))
        #expect(gone.json["errorData"] == [:])
      }
      #expect(try await service.call("PUT", "/data/Notes", ["objectId": "none", "text": ""]).code == 1000)
      for path in ["/data/Missing", "/data/Missing/x", "/data/Missing/first"] {
        #expect(try await service.call("GET", path).code == 1009)
      }
      #expect(try await service.call("POST", "/data/Missing/find", [:]).code == 1009)
      #expect(try await service.call("POST", "/data/Notes/find", [:]).json == [])
      #expect(try await service.call("GET", "/data/ChatMessage").json == [], "the chat's table is there from the start")
      #expect(try await service.call("GET", "/data/Notes/last").code == 1010)
    }
  }

  @Test func `an upsert with an id of one's own makes the row once`() async throws {
    try await Service.serving { service in
      let body: JSONValue = ["objectId": "my-own-id", "text": "a"]
      #expect(try await service.call("PUT", "/data/Notes/upsert", body).json["updated"] == .null)
      let second = try await service.call("PUT", "/data/Notes/upsert", body)
      #expect(second.json["objectId"] == "my-own-id" && second.json["updated"] != .null)
      #expect(try await service.call("POST", "/data/Notes/count", [:]).text == "1")
      #expect(try await service.call("PUT", "/data/Notes/upsert", ["objectId": "a b"]).code == 8000)
    }
  }

  @Test func `rows are found by conditions, in order, in pages`() async throws {
    let clock = ManualClock()
    try await Service.serving(clock: clock) { service in
      for second in 0..<6 {
        let items = (0..<4).map { index -> JSONValue in
          ["n": .integer(Int64(second * 4 + index)), "name": .string(index % 2 == 0 ? "even" : "odd")]
        }
        #expect(try await service.call("POST", "/data/bulk/Notes", .array(items)).json.array?.count == 4)
        clock.advance(by: .seconds(1))
      }
      let start = clock.now().milliseconds / 1000 * 1000 - 6000
      func numbers(_ body: JSONValue) async throws -> [Int64] {
        try await service.call("POST", "/data/Notes/find", body).json.array?.compactMap { $0["n"]?.integer } ?? [-1]
      }
      #expect(try await numbers([:]) == Array(0..<10))
      #expect(try await numbers(["pageSize": 100]) == Array(0..<24))
      #expect(try await numbers(["pageSize": 3, "offset": 22]) == [22, 23])
      #expect(try await numbers(["where": "name = 'odd'", "pageSize": 3, "offset": 1]) == [3, 5, 7])
      #expect(try await numbers(["where": "n >= 20 OR n < 2", "distinct": false]) == [0, 1, 20, 21, 22, 23])
      #expect(try await numbers(["sortBy": "n desc", "pageSize": 3]) == [23, 22, 21])
      #expect(try await numbers(["sortBy": "name asc,n desc", "pageSize": 3, "offset": 11]) == [0, 23, 21])
      #expect(try await numbers(["sortBy": ["created desc", "n asc"], "pageSize": 6]) == [20, 21, 22, 23, 16, 17])
      #expect(
        try await numbers(["sortBy": "created desc, n desc", "pageSize": 5, "offset": 2]) == [21, 20, 19, 18, 17])
      #expect(try await numbers(["sortBy": "created", "pageSize": 2]) == [0, 1])
      let between = "created >= \(start + 1000) and created < \(start + 3000) and name = 'even'"
      #expect(try await numbers(["where": .string(between)]) == [4, 6, 8, 10])
      #expect(try await numbers(["where": .string(between), "sortBy": "created desc,n desc"]) == [10, 8, 6, 4])
      #expect(try await numbers(["where": .string("created = \(start)")]) == [0, 1, 2, 3])
      #expect(try await numbers(["where": .string("created > \(start + 5000)")]) == [])
      #expect(try await numbers(["where": .string("created <= \(start - 1)")]) == [])
      let one = try await service.call("GET", "/data/Notes?where=n%3D5&property=n&pageSize=1").json
      #expect(one.array?.first?.object.map { Set($0.keys) } == ["objectId", "n", "___class"])
      let without = try await service.call("POST", "/data/Notes/find", ["pageSize": 1, "excludeProps": "n,name"]).json
      #expect(without.array?.first?["n"] == nil && without.array?.first?["created"] != nil)
      #expect(try await service.call("POST", "/data/Notes/count", ["where": "name = 'odd'"]).text == "12")
      #expect(try await service.call("GET", "/data/Notes/count?where=n%3C3").text == "3")
      #expect(try await service.call("GET", "/data/Notes/count").text == "24")
      #expect(try await service.call("GET", "/data/Notes/first").json["n"] == 0)
      #expect([20, 21, 22, 23].contains(try await service.call("GET", "/data/Notes/last").json["n"]?.integer ?? 0))
    }
  }

  @Test(
    arguments: [
      ["where": "n ="], ["where": "a.b c"], ["pageSize": 101], ["pageSize": 0], ["offset": -1], ["sortBy": "n down"],
      ["sortBy": "n; drop"], ["sortBy": "n", "offset": 20_000], ["loadRelations": "x"], ["groupBy": "n"],
    ] as [JSONValue])
  func `what cannot be found by is refused`(body: JSONValue) async throws {
    try await Service.serving { service in
      try await service.call("PUT", "/data/Notes", ["n": 1])
      let answer = try await service.call("POST", "/data/Notes/find", body)
      #expect([400, 501].contains(answer.status) && answer.code != nil, "\(answer.text)")
    }
  }

  @Test func `a condition is no SQL`() async throws {
    try await Service.serving { service in
      try await service.call("PUT", "/data/Notes", ["n": "x' OR '1'='1"])
      let clause: JSONValue = ["where": "n = 'x'' OR ''1''=''1'"]
      #expect(try await service.call("POST", "/data/Notes/count", clause).text == "1")
      for clause in ["n = 'x' UNION SELECT 1", "n = 'x'; DELETE FROM documents", "1=1", "n = (SELECT 1)"] {
        #expect(try await service.call("POST", "/data/Notes/count", ["where": .string(clause)]).code == 1017)
      }
      #expect(try await service.call("POST", "/data/Notes/count", [:]).text == "1")
    }
  }

  @Test func `many rows are made, changed and deleted at once`() async throws {
    try await Service.serving { service in
      let ids = try await service.call("POST", "/data/bulk/Notes", [["n": 1], ["n": 2], ["n": 3]]).json.array ?? []
      #expect(ids.count == 3)
      #expect(try await service.call("GET", "/data/Notes/\(ids[1].string ?? "")").json["n"] == 2)
      #expect(try await service.call("PUT", "/data/bulk/Notes?where=n%20%3E%201", ["m": "x"]).text == "2")
      #expect(try await service.call("POST", "/data/Notes/count", ["where": "m = 'x'"]).text == "2")
      let again = try await service.call("PUT", "/data/bulkupsert/Notes", [["objectId": ids[0], "n": 9], ["n": 4]]).json
      #expect(again.array?.first == ids[0] && again.array?.count == 2)
      #expect(try await service.call("POST", "/data/bulk/Notes/delete", ["where": "n >= 3"]).text == "3")
      #expect(try await service.call("POST", "/data/Notes/find", [:]).json.array?.map { $0["n"] } == [2])
      #expect(
        try await service.call("POST", "/data/bulk/Notes", .array(Array(repeating: [:], count: 101))).code == 8000)
      #expect(try await service.call("POST", "/data/bulk/Notes", ["n": 1]).code == 8000)
      #expect(try await service.call("POST", "/data/bulk/Notes/delete", [:]).code == 8010)
      #expect(try await service.call("POST", "/data/bulk/Notes", [["objectId": ids[1], "n": 9]]).code == 1101)
    }
  }

  @Test func `a table larger than a page is gone through`() async throws {
    try await Service.serving { service in
      for batch in 0..<6 {
        let items = (0..<100).map { JSONValue.object(["n": .integer(Int64(batch * 100 + $0))]) }
        try await service.call("POST", "/data/bulk/Notes", .array(items))
      }
      let found = try await service.call(
        "POST", "/data/Notes/find", ["where": "n >= 100 AND n < 550", "offset": 440, "pageSize": 100])
      #expect(found.json.array?.compactMap { $0["n"]?.integer } == Array(540..<550))
      let sorted = try await service.call(
        "POST", "/data/Notes/find", ["sortBy": "n desc", "offset": 300, "pageSize": 2])
      #expect(sorted.json.array?.compactMap { $0["n"]?.integer } == [299, 298])
      #expect(try await service.call("PUT", "/data/bulk/Notes?where=n%20%3E%200", ["m": 1]).text == "599")
      #expect(try await service.call("POST", "/data/bulk/Notes/delete", ["where": "m = 1"]).text == "599")
    }
  }

  @Test func `changes of a table are told to those whose condition is true`() async throws {
    try await Service.serving { service in
      let listener = try await service.connect()
      for event in ["created", "updated", "deleted", "upserted"] {
        listener.subscribe(
          "OBJECTS_CHANGES", event,
          ["event": .string(event), "tableName": "Notes", "whereClause": "channel = 'x'"])
        try await listener.ready()
      }
      for event in ["bulk-created", "bulk-updated", "bulk-deleted", "bulk-upserted"] {
        listener.subscribe("OBJECTS_CHANGES", event, ["event": .string(event), "tableName": "Notes"])
        try await listener.ready()
      }
      try await service.call("PUT", "/data/Notes", ["channel": "y"])
      try await service.call("PUT", "/data/Other", ["channel": "x"])
      let row = try await service.call("PUT", "/data/Notes", ["channel": "x", "text": "a"]).json
      #expect(try await listener.data(of: "created") == row)
      let id = try unwrap(row["objectId"], "no id")
      let changed = try await service.call("PUT", "/data/Notes", ["objectId": id, "text": "b"]).json
      #expect(try await listener.data(of: "updated") == changed)
      try await service.call("DELETE", "/data/Notes/\(id.string ?? "")")
      #expect(try await listener.data(of: "deleted") == ["objectId": id])
      let upserted = try await service.call("PUT", "/data/Notes/upsert", ["objectId": "u", "channel": "x"]).json
      #expect(try await listener.data(of: "upserted") == upserted)
      let ids = try await service.call("POST", "/data/bulk/Notes", [["channel": "x"], ["channel": "x"]]).json
      #expect(try await listener.data(of: "bulk-created") == ids)
      try await service.call("PUT", "/data/bulk/Notes?where=channel%3D'x'", ["text": "c"])
      #expect(try await listener.data(of: "bulk-updated") == ["whereClause": "channel='x'", "count": 3])
      try await service.call("POST", "/data/bulk/Notes/delete", ["where": "channel = 'x'"])
      #expect(try await listener.data(of: "bulk-deleted") == ["whereClause": "channel = 'x'", "count": 3])
      #expect(try await listener.isQuiet(), "what happens in bulk is told in bulk only")
    }
  }

  @Test func `relations, wrong bodies and wrong names are refused in the service's form`() async throws {
    try await Service.serving { service in
      #expect(try await service.call("POST", "/data/Notes/x/children", [:]).code == 501)
      #expect(try await service.call("PUT", "/data/Not-a-table", [:]).code == 1009)
      #expect(try await service.call("PUT", "/data/Notes", ["a b": 1]).code == 8000)
      let path = "/APPID/KEY/data/Notes"
      for (body, type) in [("{", "application/json"), ("{}", "text/plain"), ("{\"a\":", "application/json; charset=x")]
      {
        #expect(try await service.raw("PUT", path, body: Array(body.utf8), type: type).code == 8011)
      }
      #expect(try await service.raw("PUT", path, body: Array("[]".utf8), type: "application/json").code == 8000)
      let deep = String(repeating: "[", count: 5000) + String(repeating: "]", count: 5000)
      let answer = try await service.raw(
        "PUT", path, body: Array("{\"a\":\(deep)}".utf8), type: "application/json")
      #expect(answer.code == 8011)
    }
  }

  @Test(arguments: ["/APPID/WRONG/info", "/OTHER/KEY/data/Notes", "/APPID/WRONG/files/x.png", "/x/y/z"])
  func `another app or key is refused`(path: String) async throws {
    try await Service.serving { service in
      let answer = try await service.raw("GET", path)
      #expect(answer.status == 400 && answer.code == 2002)
    }
  }

  @Test func `pages of other origins may use it`() async throws {
    try await Service.serving { service in
      let preflight = try await service.raw(
        "OPTIONS", "/APPID/KEY/data/Notes",
        headers: [
          ("Origin", "http://page.example"), ("Access-Control-Request-Method", "PUT"),
          ("Access-Control-Request-Headers", "content-type,user-token"),
        ])
      #expect(preflight.status == 200)
      #expect(preflight.headers["Access-Control-Allow-Origin"] == "http://page.example")
      #expect(preflight.headers["Access-Control-Allow-Headers"] == "content-type,user-token")
      #expect(preflight.headers["Access-Control-Allow-Methods"]?.contains("DELETE") == true)
      #expect(try await service.call("GET", "/info").headers["Access-Control-Allow-Origin"] == "*")
    }
  }

  @Test func `clients are told where real time is`() async throws {
    try await Service.serving { service in
      let info = try await service.call("GET", "/info").json
      #expect(info["rtURL"]?.string == service.server.url && info["appId"] == "APPID")
      #expect(info["loggers"]?.array?.isEmpty == false)
      #expect(try await service.call("GET", "/rt/lookup").text == "\"\(service.server.url)\"")
      let odd = try await service.raw("GET", "/APPID/KEY/info", headers: [("Host", "evil\"/x")])
      #expect(odd.status == 400 || odd.json["rtURL"] == "http://localhost")
    }
    try await Service.serving(adjust: { $0.publicURL = "https://chat.example.org" }) { service in
      let info = try await service.call("GET", "/info").json
      #expect(info["rtURL"] == "https://chat.example.org")
    }
  }
}
