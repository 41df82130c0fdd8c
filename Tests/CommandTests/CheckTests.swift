import FerryCore
import FerryTestKit
import Testing

@Suite(.timeLimit(.minutes(3))) struct CheckTests {
  @Test func whatTheBridgesNeedIsCreatedOnceAndTold() async throws {
    try await withServer { ferry, server in
      let config = try ferry.write(
        "check.yaml",
        """
        accounts:
          app: { provider: backendless, server_url: "\(server.urls["backendless"] ?? "")", app_id: APP, api_key: KEY, table: Lines }
          here: { provider: local, url: "\(server.urls["local"] ?? "")", token: secret-token }
          support: { provider: twilio, account_sid: AC00000000000000000000000000000001, auth_token: t, service_sid: IS00000000000000000000000000000001, api_url: "\(server.urls["twilio"] ?? "")" }
        bridges:
          news: { between: [app:news, here:news, support:news] }
        """)
      func made(_ more: String...) async throws -> [String: [String]?] {
        let outcome = try await ferry.run(["check", "--config", config, "--json"] + more)
        #expect(outcome.code == 0, "\(outcome.errors)\(outcome.output)")
        return Dictionary(
          uniqueKeysWithValues: try lines(outcome.output).map { line in
            (line["account"]?.string ?? "", line["created"]?.array?.compactMap(\.string))
          })
      }
      // Only when it is asked for.
      #expect(try await made() == ["app": nil, "here": nil, "support": nil])
      let first = try await made("--create")
      #expect(first["here"] == ["the room news"])
      #expect(first["support"] == ["the conversation news"])
      let columns = "channel, ferry, ferryTime, messageText, pictureUrl, userName"
      #expect(first["app"] == ["the table Lines with the columns \(columns)"])
      #expect(try await made("--create") == ["app": [], "here": [], "support": []])
      let plain = try await ferry.run("check", "--config", config, "--create")
      #expect(plain.output.split(separator: "\n").count { $0 == "  created: nothing, all is there" } == 3)
    }
  }

  @Test func anEditLeavesTheAuthorAlone() async throws {
    try await withServer { ferry, server in
      let channel = server.backendless("room")
      let post = try await ferry.run("post", channel, "frist", "--as", "ann")
      #expect(post.code == 0, "\(post.errors)")
      let edit = try await ferry.run("post", channel, "first", "--edit", String(post.output.dropLast()))
      #expect(edit.code == 0, "\(edit.errors)")
      let history = try lines(try await ferry.run("history", channel, "--json").output)
      #expect(history.map { $0["text"]?.string } == ["first"])
      #expect(history.map { $0["author"]?["name"]?.string } == ["ann"])
    }
  }
}
