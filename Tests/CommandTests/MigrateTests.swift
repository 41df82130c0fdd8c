import FerryCore
import FerryRuntime
import FerryTestKit
import FoundationEssentials
import Testing

@Suite(.timeLimit(.minutes(5))) struct MigrateTests {
  /// Posts through the command line and returns the ids.
  private func fill(_ ferry: Ferry, _ room: String, _ count: Int) async throws -> [String] {
    var ids: [String] = []
    for number in 0..<count {
      let post = try await ferry.run("post", room, "message \(number)", "--as", "ann")
      ids.append(String(post.output.dropLast()))
    }
    return ids
  }

  private func history(_ ferry: Ferry, _ room: String) async throws -> [JSONValue] {
    let outcome = try await ferry.run("history", room, "--json", "--limit", "10000")
    return try outcome.output.split(separator: "\n").map {
      try JSONDecoder().decode(JSONValue.self, from: Data($0.utf8))
    }
  }

  @Test func aRoomMovesWholeAndASecondRunFindsEverythingThere() async throws {
    try await withServer { ferry, server in
      let (from, to) = (server.local("lobby"), server.local("copy of lobby"))
      let ids = try await fill(ferry, from, 5)
      _ = try await ferry.run("post", from, "changed", "--edit", ids[1])
      _ = try await ferry.run("post", from, "--delete", ids[2])
      let state = ferry.folder + "/state"
      let plan = try await ferry.run("migrate", from, to, "--plan", "--json", "--state", state)
      #expect(plan.code == 0, "\(plan.errors)")
      let first = try await ferry.run("migrate", from, to, "--json", "--state", state)
      #expect(first.code == 0, "\(first.errors)")
      let summary = try JSONDecoder().decode(JSONValue.self, from: Data(first.output.utf8))
      #expect(summary["state"] == "done")
      #expect(summary["messages"] == 4)
      let copied = try await history(ferry, to)
      #expect(copied.map { $0["text"]?.string } == ["message 0", "changed", "message 3", "message 4"])
      let original = try await history(ferry, from)
      #expect(copied.map { $0["time"] } == original.map { $0["time"] })
      #expect(copied.map { $0["edited"] } == original.map { $0["edited"] })
      #expect(copied.map { $0["origin"]?["id"] } == original.map { $0["id"] })
      for states in [state, ferry.folder + "/other"] {
        let again = try await ferry.run("migrate", from, to, "--state", states)
        #expect(again.code == 0, "\(again.errors)")
        #expect(try await history(ferry, to).count == 4)
      }
    }
  }

  @Test func followingMirrorsWhatComesMeanwhileAndEditsFindTheirCopies() async throws {
    try await withServer { ferry, server in
      let (from, to) = (server.local("lobby"), server.local("copy"))
      let ids = try await fill(ferry, from, 3)
      let child = try ChildProcess(
        ChildProcess.built("ferry"), ["migrate", from, to, "--follow", "--state", ferry.folder + "/state"])
      var copied: [JSONValue] = []
      while copied.count < 3 {
        copied = (try? await history(ferry, to)) ?? []
        guard child.isRunning else { throw FerryError(.unavailable, child.errors) }
      }
      _ = try await ferry.run("post", from, "later", "--as", "ann")
      _ = try await ferry.run("post", from, "changed", "--edit", ids[0])
      _ = try await ferry.run("post", from, "--delete", ids[1])
      let expected = ["changed", "message 2", "later"]
      var texts: [String?] = []
      while texts != expected {
        texts = try await history(ferry, to).map { $0["text"]?.string }
        guard child.isRunning else { throw FerryError(.unavailable, child.errors) }
      }
      child.signal(2)
      #expect(await child.wait() == 130)
      // The day after: nothing doubles.
      _ = try await ferry.run("post", from, "missed", "--as", "ann")
      let again = try await ferry.run("migrate", from, to, "--state", ferry.folder + "/state")
      #expect(again.code == 0, "\(again.errors)")
      #expect(try await history(ferry, to).map { $0["text"]?.string } == expected + ["missed"])
    }
  }

  @Test func followingABridgeOfTheConfigurationKeepsToItsRules() async throws {
    try await withServer { ferry, server in
      let (from, to) = (server.local("lobby"), server.local("copy"))
      let config = try ferry.write(
        "follow.yaml",
        """
        accounts:
          old: { provider: local, url: "\(server.urls["local"] ?? "")", token: secret-token }
          new: { provider: local, url: "\(server.urls["local"] ?? "")", token: secret-token }
        relay: { journal: \(ferry.folder)/relay.db }
        bridges:
          move: { from: "old:lobby", to: "new:copy", distinguish: false }
        """)
      _ = try await fill(ferry, from, 1)
      let child = try ChildProcess(
        ChildProcess.built("ferry"),
        ["migrate", "old:lobby", "new:copy", "--follow", "--config", config, "--state", ferry.folder + "/state"])
      var copied: [JSONValue] = []
      while copied.count < 1 {
        copied = (try? await history(ferry, to)) ?? []
        guard child.isRunning else { throw FerryError(.unavailable, child.errors) }
      }
      // They look alike, and the bridge says to leave them so.
      _ = try await ferry.run("post", from, "one", "--as", "bob")
      _ = try await ferry.run("post", from, "two", "--as", "BOB")
      while copied.count < 3 {
        copied = try await history(ferry, to)
        guard child.isRunning else { throw FerryError(.unavailable, child.errors) }
      }
      #expect(copied.map { $0["author"]?["name"]?.string } == ["ann", "bob", "BOB"])
      child.signal(2)
      #expect(await child.wait() == 130)
    }
  }

  @Test func anArchiveThatAMigrationKeptIsAddedTo() async throws {
    try await withServer { ferry, server in
      let (from, to) = (server.backendless("lobby"), server.local("copy"))
      let (archive, state) = (ferry.folder + "/kept.ferry", ferry.folder + "/state")
      func checked(_ arguments: String...) async throws -> String {
        let outcome = try await ferry.run(arguments)
        #expect(outcome.code == 0, "\(arguments): \(outcome.output)\(outcome.errors)")
        return outcome.output
      }
      _ = try await fill(ferry, from, 3)
      _ = try await checked("migrate", from, to, "--archive", archive, "--state", state)
      let first = try #require(FileManager.default.contents(atPath: archive + "/data/log/000001.jsonl"))
      // Where the first versions of Ferry kept their notes.
      let books = try FileManager.default.contentsOfDirectory(atPath: state)
      for book in books where book.hasPrefix("export-") {
        let end = try #require(book.firstRange(of: ".db")).lowerBound
        try FileManager.default.moveItem(atPath: "\(state)/\(book)", toPath: archive + book[end...])
      }
      _ = try await fill(ferry, from, 2)
      _ = try await checked("migrate", from, to, "--archive", archive, "--state", state)
      #expect(try await history(ferry, to).count == 5)
      #expect(try await checked("verify", archive).contains("5 messages, 2 segments"))
      #expect(FileManager.default.contents(atPath: archive + "/data/log/000001.jsonl") == first)
      _ = try await fill(ferry, from, 1)
      _ = try await checked("export", from, archive, "--state", state)
      #expect(try await checked("verify", archive).contains("6 messages, 3 segments"))
      _ = try await checked("verify", from, archive)
      // The notes are gone, and it says so.
      for file in try FileManager.default.contentsOfDirectory(atPath: ferry.folder) where file.contains("ferry.db") {
        try FileManager.default.removeItem(atPath: "\(ferry.folder)/\(file)")
      }
      let lost = try await ferry.run("export", from, archive)
      #expect(lost.code != 0 && lost.errors.contains("--state"), "\(lost.output)\(lost.errors)")
      #expect(try await checked("verify", archive).contains("6 messages, 3 segments"))
    }
  }

  @Test func whatCannotBeMovedIsRefusedInWords() async throws {
    try await withServer { ferry, server in
      let source = try await ferry.run("migrate", server.pusher("chatroom"), server.local("x"))
      #expect(source.code == 69)
      #expect(source.errors.contains("journal:"))
      let destination = try await ferry.run(
        "migrate", server.local("lobby"), server.pusher("chatroom"), "--state", ferry.folder + "/s")
      #expect(destination.code != 0)
      let same = try await ferry.run("migrate", server.local("lobby"), server.local("lobby"))
      #expect(same.code == 64)
      let missing = try await ferry.run(
        "migrate", server.local("nowhere"), server.local("x"), "--state", ferry.folder + "/s")
      #expect(missing.code == 65)
      #expect(missing.errors.contains("To go on"))
    }
  }
}
