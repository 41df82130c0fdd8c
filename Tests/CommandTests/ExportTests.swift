import FerryCore
import FerryRuntime
import FerryTestKit
import FoundationEssentials
import Testing

@Suite(.timeLimit(.minutes(5))) struct ExportTests {
  private func json(_ text: String) throws -> JSONValue {
    try JSONDecoder().decode(JSONValue.self, from: Data(text.utf8))
  }

  @Test(arguments: ["lobby.ferry", "lobby.tar"])
  func aRoomGoesIntoAnArchiveAndBackAndNothingIsDoneTwice(file: String) async throws {
    try await withServer { ferry, server in
      let path = "\(ferry.folder)/\(file)"
      for number in 0..<4 { _ = try await ferry.run("post", server.local("lobby"), "message \(number)", "--as", "ann") }
      let export = try await ferry.run("export", server.local("lobby"), path, "--json")
      #expect(export.code == 0, "\(export.errors)")
      #expect(try json(export.output)["messages"] == 4)
      #expect(export.errors.contains("Chain head"))
      _ = try await ferry.run("post", server.local("lobby"), "message 4", "--as", "ann")
      let more = try await ferry.run("export", server.local("lobby"), path, "--json")
      #expect(try json(more.output)["messages"] == 1, "\(more.errors)")
      for expected in [5, 0] as [JSONValue] {
        let imported = try await ferry.run("import", path, server.local("back"), "--json")
        #expect(imported.code == 0, "\(imported.errors)")
        #expect(try json(imported.output)["messages"] == expected)
      }
      let history = try await ferry.run("history", server.local("back"), "--json")
      let texts = try history.output.split(separator: "\n").map { try json(String($0))["text"]?.string }
      #expect(texts == (0..<5).map { "message \($0)" })
    }
  }

  @Test func jsonLinesAreReadByTheirFieldsAndABrokenLineIsNamed() async throws {
    try await withServer { ferry, server in
      let path = try ferry.write(
        "log.jsonl",
        """
        {"when": "2016-08-05T03:10:50Z", "nick": "ann", "said": "hello"}
        {broken
        {"when": 1470366651, "nick": "bob", "said": "waves", "kind": "action"}
        """)
      let report = ferry.folder + "/report.jsonl"
      let outcome = try await ferry.run(
        "import", path, server.local("log"), "--fields", "time=when,author=nick,text=said", "--report", report, "--json"
      )
      #expect(outcome.code == 65, "\(outcome.errors)")
      #expect(try json(outcome.output)["messages"] == 2)
      let lines = String(decoding: FileManager.default.contents(atPath: report) ?? Data(), as: UTF8.self)
      #expect(lines.contains("log.jsonl, line 2"))
      let history = try await ferry.run("history", server.local("log"), "--json")
      let messages = try history.output.split(separator: "\n").map { try json(String($0)) }
      #expect(messages.map { $0["time"]?.string } == ["2016-08-05T03:10:50.000Z", "2016-08-05T03:10:51.000Z"])
      #expect(messages.map { $0["author"]?["name"]?.string } == ["ann", "bob"])
    }
  }

  @Test func whatIsWrongIsSaidWithACode() async throws {
    try await withServer { ferry, server in
      let room = server.local("lobby")
      #expect(try await ferry.run("export", room).code == 64)
      #expect(try await ferry.run("export", room, "\(ferry.folder)/x.ferry", "--since", "yesterday").code == 64)
      #expect(try await ferry.run("import", "\(ferry.folder)/nothing.ferry", room).code == 65)
      #expect(try await ferry.run("import", "\(ferry.folder)/nothing.jsonl", room, "--format", "yaml").code == 64)
      let missing = try await ferry.run("export", server.local("nowhere"), "\(ferry.folder)/n.ferry")
      #expect(missing.code == 65, "\(missing.errors)")
      let refused = try await ferry.run("export", server.local("lobby", token: "wrong"), "\(ferry.folder)/r.ferry")
      #expect(refused.code == 77, "\(refused.errors)")
      #expect(!FileManager.default.fileExists(atPath: "\(ferry.folder)/r.ferry"))
      #expect(!FileManager.default.fileExists(atPath: "\(ferry.folder)/r.ferry.work"))
      _ = try await ferry.run("post", room, "hello", "--as", "ann")
      let file = try ferry.write("file", "not a folder")
      for place in ["/proc/nowhere", "\(file)/x.ferry", "/proc/nowhere/x.tar"] {
        let nowhere = try await ferry.run("export", room, place)
        #expect(nowhere.code == 73, "\(place): \(nowhere.errors)")
        #expect(nowhere.errors.contains("cannot be made"), "\(nowhere.errors)")
        #expect(!nowhere.errors.contains("Cocoa"))
      }
      let archive = "\(ferry.folder)/s.ferry"
      #expect(try await ferry.run("export", room, archive).code == 0)
      let homeless = try await ferry.run("import", archive, server.local("copy"), "--state", "/proc/nowhere")
      #expect(homeless.code == 73, "\(homeless.errors)")
      #expect(homeless.errors.contains("Name another with --state."), "\(homeless.errors)")
      let config = try ferry.write("journal.yaml", "relay: { journal: \(ferry.folder)/none.db }\n")
      let journal = try await ferry.run("export", "journal:site:room", "\(ferry.folder)/j.ferry", "--config", config)
      #expect(journal.code == 65)
      #expect(journal.errors.contains("relay.journal"), "\(journal.errors)")
      let pusher = try await ferry.run("export", server.pusher("chatroom"), "\(ferry.folder)/p.ferry")
      #expect(pusher.code == 69)
      #expect(pusher.errors.contains("journal:"))
      for command in ["export", "import", "migrate"] {
        let help = try await ferry.run(command, "--help")
        #expect(help.code == 0 && help.output.contains("Examples"))
      }
    }
  }
}
