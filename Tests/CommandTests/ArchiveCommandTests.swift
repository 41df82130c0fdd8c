import FerryCore
import FerryHistory
import FerryRuntime
import FerryTestKit
import FoundationEssentials
import Testing

@Suite(.timeLimit(.minutes(5))) struct ArchiveCommandTests {
  private static let ada = Author(id: "ada", name: "Ada")
  private static let start = Timestamp(milliseconds: 1_706_860_800_000)

  private func message(_ number: Int, in channel: ChannelID = "lobby") -> Record {
    .message(
      MessageRecord(
        channel: channel,
        message: Message(
          id: MessageID("\(channel)-\(number)"), author: Self.ada, text: "\(channel) \(number)",
          time: Timestamp(milliseconds: Self.start.milliseconds + Int64(number)))))
  }

  private func write(_ records: [Record], to path: String, source: String = "old:lobby") async throws {
    let writer = try ArchiveWriter(folder: path, header: ArchiveHeader(created: Self.start, source: source))
    try await writer.append(records)
    try await writer.finish()
  }

  private func kinds(_ path: String) async throws -> [String] {
    try await ArchiveReader(path).next(limit: 1000).map(\.kind)
  }

  private func texts(_ ferry: Ferry, _ room: String) async throws -> [String?] {
    try await ferry.run("history", room, "--json").output.split(separator: "\n").map {
      try JSONDecoder().decode(JSONValue.self, from: Data($0.utf8))["text"]?.string
    }
  }

  @Test func readMarksAreTakenWhenTheyAreAskedForAndNothingElseIsMixedIn() async throws {
    try await withServer { ferry, server in
      let (given, room) = ("\(ferry.folder)/given.ferry", server.local("lobby"))
      let mark = ReadMark(upTo: "lobby-1", by: Self.ada, state: .read)
      try await write(
        [message(1), .read(ReadRecord(channel: "lobby", mark: mark, time: Self.start)), message(2)], to: given)
      #expect(try await ferry.run("import", given, room).code == 0)
      let (plain, reads) = ("\(ferry.folder)/plain.ferry", "\(ferry.folder)/reads.ferry")
      #expect(try await ferry.run("export", room, plain).code == 0)
      #expect(try await kinds(plain).contains("read") == false)
      let outcome = try await ferry.run("export", room, reads, "--include", "reads, avatars")
      #expect(outcome.code == 0, "\(outcome.errors)")
      #expect(try await kinds(reads).contains("read"))
      #expect(try ArchiveReader(reads).header.include == ["reads", "avatars"])
      let unknown = try await ferry.run("export", room, "\(ferry.folder)/x.ferry", "--include", "raeds")
      #expect(unknown.code == 64)
      #expect(unknown.errors.contains("did you mean \"reads\"?"), "\(unknown.errors)")
      // To add to an archive is to go on with what it was begun with.
      for (arguments, name) in [
        ([room], "--include"), ([room, "--include", "reads,avatars", "--since", "2024-01-01T00:00:00Z"], "--since"),
        ([server.local("back"), "--include", "reads,avatars"], "the history of"),
      ] {
        _ = try await ferry.run("post", server.local("back"), "hello", "--as", "ann")
        let other = try await ferry.run(["export", arguments[0], reads] + arguments.dropFirst())
        #expect(other.code == 65, "\(name)")
        #expect(other.errors.contains(name), "\(other.errors)")
      }
      #expect(try await ferry.run("export", room, reads, "--include", "avatars,reads").code == 0)
    }
  }

  @Test func ofAnArchiveOfTwoChannelsTheSecondIsNotForgotten() async throws {
    try await withServer { ferry, server in
      let path = "\(ferry.folder)/two.ferry"
      try await write([message(1), message(1, in: "hall"), message(2)], to: path)
      let open = try await ferry.run("import", path, server.local("to"))
      #expect(open.code == 65)
      #expect(open.errors.contains("holds 2 channels, lobby, hall"), "\(open.errors)")
      #expect(try await ferry.run("import", path, server.local("to"), "--channel", "hall").code == 0)
      #expect(try await texts(ferry, server.local("to")) == ["hall 1"])
      let each = try await ferry.run("import", path, server.local("*"), "--json")
      #expect(each.code == 0, "\(each.errors)")
      #expect(try await texts(ferry, server.local("lobby")) == ["lobby 1", "lobby 2"])
      #expect(try await texts(ferry, server.local("hall")) == ["hall 1"])
    }
  }

  @Test func everyChannelOfASlackExportGoesIntoOneOfItsName() async throws {
    try await withServer { ferry, server in
      let path = ferry.folder + "/slack"
      for (name, text) in [
        ("channels.json", #"[{"id":"C1","name":"lobby"},{"id":"C2","name":"hall"}]"#), ("users.json", "[]"),
        ("lobby/2024-02-02.json", #"[{"type":"message","user":"U1","text":"one","ts":"1706860800.000200"}]"#),
        ("hall/2024-02-02.json", #"[{"type":"message","user":"U1","text":"two","ts":"1706860801.000200"}]"#),
      ] {
        let file = URL(fileURLWithPath: "\(path)/\(name)")
        try FileManager.default.createDirectory(
          at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: file)
      }
      let each = try await ferry.run("import", path, server.local("*"), "--format", "slack")
      #expect(each.code == 0, "\(each.errors)")
      #expect(try await texts(ferry, server.local("lobby")) == ["one"])
      #expect(try await texts(ferry, server.local("hall")) == ["two"])
    }
  }

  @Test func anArchiveKeptByAMigrationHoldsThatChannelAndAPlanMakesNone() async throws {
    try await withServer { ferry, server in
      let (from, to, archive) = (server.local("lobby"), server.local("copy"), "\(ferry.folder)/kept.ferry")
      let state = ["--state", "\(ferry.folder)/state", "--archive", archive]
      for number in 1...2 { _ = try await ferry.run("post", from, "said \(number)", "--as", "ann") }
      let plan = try await ferry.run(["migrate", from, to, "--plan"] + state)
      #expect(plan.code == 0, "\(plan.errors)")
      #expect(plan.output.contains("2 messages"), "\(plan.output)")
      #expect(!FileManager.default.fileExists(atPath: archive))
      let first = try await ferry.run(["migrate", from, to] + state)
      #expect(first.code == 0, "\(first.errors)")
      // Something of another channel gets into it.
      let writer = try ArchiveWriter(folder: archive, header: try ArchiveReader(archive).header)
      try await writer.append([message(1, in: "elsewhere")])
      try await writer.finish()
      _ = try await ferry.run("post", from, "said 3", "--as", "ann")
      let second = try await ferry.run(["migrate", from, to] + state)
      #expect(second.code == 0, "\(second.errors)")
      #expect(try await texts(ferry, to) == ["said 1", "said 2", "said 3"])
      let since = try await ferry.run(["migrate", from, to, "--since", "2024-01-01T00:00:00Z"] + state)
      #expect(since.code == 65)
      #expect(since.errors.contains("--since"), "\(since.errors)")
    }
  }

  @Test func aConfigurationThatIsGivenHasToBeRight() async throws {
    try await withFerry { ferry in
      let line = #"{"time":"2016-08-05T03:10:05Z","author":"ada","text":"hello"}"#
      let (file, same) = (try ferry.write("a.jsonl", line + "\n"), try ferry.write("b.jsonl", line + "\n"))
      let broken = try ferry.write("broken.yaml", "accounts: [\n")
      #expect(try await ferry.run("verify", file, same).code == 0)
      #expect(try await ferry.run("verify", file, same, "--config", broken).code == 78)
      #expect(try await ferry.run("verify", file, same, "--config", "\(ferry.folder)/missing.yaml").code != 0)
      let config = try ferry.write(
        "good.yaml",
        """
        accounts:
          here: { provider: local, url: "http://127.0.0.1:1", token: t }
          support: { provider: local, url: "http://127.0.0.1:2", token: t }
        """)
      let unknown = try await ferry.run("import", file, "here:x", "--config", config, "--as-of", "suport")
      #expect(unknown.code == 64, "\(unknown.errors)")
      #expect(unknown.errors.contains("did you mean \"support\"?"), "\(unknown.errors)")
    }
  }
}
