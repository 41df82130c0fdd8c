import FerryChat
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import BackendlessProvider

@Suite(.timeLimit(.minutes(5))) struct FacadeUsersTests {
  @Test func `a user registers, logs in and out`() async throws {
    try await Service.serving { service in
      let body: JSONValue = ["email": "ann@example.com", "password": "secret-1", "name": "Ann", "blUserLocale": "en"]
      let registered = try await service.call("POST", "/users/register", body)
      #expect(registered.status == 200 && registered.json["password"] == nil && registered.json["name"] == "Ann")
      let id = try unwrap(registered.json["objectId"], "no id")
      #expect(registered.json["ownerId"] == id && registered.json["___class"] == "Users")
      #expect(try await service.call("POST", "/users/register", body).code == 3033)
      for bad: JSONValue in [["email": "x"], ["password": "x"], ["email": "", "password": "x"], [:]] {
        #expect(try await service.call("POST", "/users/register", bad).code == 3011)
      }
      for (login, password) in [("ann@example.com", "wrong"), ("nobody", "secret-1"), ("ann@example.com", "")] {
        let refused = try await service.call(
          "POST", "/users/login", ["login": .string(login), "password": .string(password)])
        #expect(refused.status == 401 && refused.code == 3003)
        #expect(refused.json["message"] == "Invalid login or password")
      }
      let login = try await service.call("POST", "/users/login", ["login": "ANN@example.com", "password": "secret-1"])
      #expect(login.json["objectId"] == id && login.json["password"] == nil)
      let token = try unwrap(login.json["user-token"]?.string, "no token")
      #expect(try await service.call("GET", "/users/isvalidusertoken/\(token)").text == "true")
      #expect(try await service.call("GET", "/users/isvalidusertoken/other").text == "false")
      let row = try await service.call("PUT", "/data/Notes", ["n": 1], token: token)
      #expect(row.json["ownerId"] == id)
      #expect(try await service.call("GET", "/data/Users/\(id.string ?? "")").json["email"] == "ann@example.com")
      let found = try await service.call("POST", "/data/Users/find", ["where": "email = 'ann@example.com'"]).json
      #expect(found.array?.count == 1 && found.array?.first?["password"] == nil)
      #expect(try await service.call("GET", "/users/logout", token: token).status == 200)
      #expect(try await service.call("GET", "/users/isvalidusertoken/\(token)").text == "false")
      for (method, path) in [("GET", "/users/logout"), ("GET", "/info"), ("GET", "/data/Notes")] {
        let stale = try await service.call(method, path, token: token)
        #expect(stale.status == 401 && stale.code == 3064)
      }
      for nobody in ["null", "undefined", ""] {
        #expect(try await service.call("GET", "/info", token: nobody).status == 200)
      }
    }
  }

  @Test func `guests have a token at once`() async throws {
    try await Service.serving { service in
      let guest = try await service.call("POST", "/users/register/guest").json
      #expect(guest["userStatus"] == "GUEST")
      let token = try unwrap(guest["user-token"]?.string, "no token")
      #expect(try await service.call("GET", "/users/isvalidusertoken/\(token)").text == "true")
    }
  }

  @Test func `users change themselves only, and not who they are`() async throws {
    try await Service.serving { service in
      let (ann, bob) = (try await service.user("ann@x"), try await service.user("bob@x"))
      let change: JSONValue = ["name": "Ann", "email": "bob@x", "userStatus": "ADMIN", "password": "new"]
      let answer = try await service.call("PUT", "/users/\(ann.id)", change, token: ann.token)
      #expect(answer.json["name"] == "Ann" && answer.json["email"] == "ann@x")
      #expect(answer.json["userStatus"] == "ENABLED" && answer.json["password"] == nil)
      #expect(try await service.call("POST", "/users/login", ["login": "ann@x", "password": "pw"]).code == 3003)
      #expect(try await service.call("POST", "/users/login", ["login": "ann@x", "password": "new"]).status == 200)
      for token in [bob.token, nil] {
        #expect(
          try await service.call("PUT", "/data/Users", ["objectId": .string(ann.id), "name": "x"], token: token).code
            == 4000)
      }
      #expect(try await service.call("DELETE", "/data/Users/\(ann.id)", token: ann.token).code == 4000)
      #expect(try await service.call("POST", "/data/bulk/Users/delete", ["where": "name = 'Ann'"]).code == 4000)
      #expect(try await service.call("PUT", "/data/Users", ["email": "eve@x"]).code == 501)
    }
  }

  @Test func `a session ends after an hour of silence, and not before`() async throws {
    let clock = ManualClock()
    try await Service.serving(clock: clock) { service in
      let user = try await service.user("ann@x")
      for _ in 0..<3 {
        clock.advance(by: .seconds(3000))
        #expect(try await service.call("GET", "/info", token: user.token).status == 200)
      }
      clock.advance(by: .seconds(3600))
      #expect(try await service.call("GET", "/info", token: user.token).code == 3064)
    }
  }

  @Test func `users and sessions outlive a restart, and neither passwords nor tokens are readable in the file`()
    async throws
  {
    let folder = try TemporaryFolder()
    let token = try await Service.serving(folder: folder) { service in
      try await service.call("POST", "/users/register", ["email": "ann@x", "password": "open-sesame"])
      let login = try await service.call("POST", "/users/login", ["login": "ann@x", "password": "open-sesame"])
      return try unwrap(login.json["user-token"]?.string, "no token")
    }
    try await Service.serving(folder: folder) { service in
      #expect(try await service.call("GET", "/info", token: token).status == 200)
      let documents = try await service.chat.read { transaction in
        try ["passwords", "sessions", "identities", "table/Users"].flatMap { try transaction.documents(in: $0) }
      }
      #expect(documents.count == 4)
      for document in documents {
        for secret in ["open-sesame", token] {
          #expect(!document.json.contains(secret) && !document.id.contains(secret))
        }
      }
    }
  }

  @Test func `two of one name cannot register at once`() async throws {
    try await Service.serving { service in
      let codes = try await withThrowingTaskGroup(of: Int64?.self) { group in
        for _ in 0..<8 {
          group.addTask {
            try await service.call("POST", "/users/register", ["email": "ann@x", "password": "pw"]).code
          }
        }
        var codes: [Int64?] = []
        for try await code in group { codes.append(code) }
        return codes
      }
      #expect(codes.count { $0 == nil } == 1 && codes.count { $0 == 3033 } == 7)
    }
  }
}
