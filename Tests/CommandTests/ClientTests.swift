import FerryCore
import FerryRuntime
import FerryTestKit
import FoundationEssentials
import Testing

@Suite(.timeLimit(.minutes(3))) struct ClientTests {
  @Test func aPostPrintsItsIdAndAppearsInTheHistoryByteForByte() async throws {
    try await withServer { ferry, server in
      let text = "tabs\tand \"quotes\", naïve 日本語 👩‍👩‍👧 <b>\\"
      let post = try await ferry.run("post", server.local("lobby"), text, "--as", "guest7")
      #expect(post.code == 0, "\(post.errors)")
      let id = post.output.dropLast()
      let history = try await ferry.run("history", server.local("lobby"), "--json")
      let line = try #require(try lines(history.output).first)
      #expect(line["kind"] == "message")
      #expect(line["address"] == "local:lobby")
      #expect(line["id"]?.string == String(id))
      #expect(line["author"]?["name"] == "guest7")
      #expect(line["text"]?.string == text)
      #expect(line["edited"] == .null)
      #expect(line["reply_to"] == .null)
      #expect(line["origin"] == .null)
      #expect(line["attachments"] == [])
      #expect(Timestamp(iso8601: line["time"]?.string ?? "") != nil)
    }
  }

  @Test func aKeyPostsOnce() async throws {
    try await withServer { ferry, server in
      let first = try await ferry.run("post", server.local("lobby"), "once", "--key", "k1")
      let second = try await ferry.run("post", server.local("lobby"), "once", "--key", "k1")
      let history = try await ferry.run("history", server.local("lobby"), "--json")
      #expect(first.output == second.output)
      #expect(try lines(history.output).count == 1)
    }
  }

  @Test func textComesFromStandardInputAndOnlyTheLastLineFeedIsTheShells() async throws {
    try await withServer { ferry, server in
      _ = try await ferry.run("post", server.local("lobby"), "-", input: "line one\nline two\n\n")
      let piped = try await ferry.run("post", server.local("lobby"), input: "piped")
      let empty = try await ferry.run("post", server.local("lobby"), input: "")
      let nothing = try await ferry.run("post", server.local("lobby"), "")
      let history = try await ferry.run("history", server.local("lobby"), "--json")
      #expect(piped.code == 0)
      #expect(empty.code == 64)
      #expect(nothing.code == 64)
      #expect(try lines(history.output).map { $0["text"]?.string } == ["line one\nline two\n", "piped"])
    }
  }

  @Test func editDeleteAndReplyAct() async throws {
    try await withServer { ferry, server in
      let room = server.local("lobby")
      let first = String(try await ferry.run("post", room, "frist", "--as", "ann").output.dropLast())
      _ = try await ferry.run("post", room, "an answer", "--as", "bob", "--reply", first)
      let edit = try await ferry.run("post", room, "first", "--as", "ann", "--edit", first)
      let foreign = try await ferry.run(
        "post", server.local("lobby", token: "ann-token"), "mine", "--edit", "nothing", "--as", "ann")
      let history = try lines(try await ferry.run("history", room, "--json").output)
      #expect(edit.code == 0, "\(edit.errors)")
      #expect(foreign.code == 65)
      #expect(history.map { $0["text"]?.string } == ["first", "an answer"])
      #expect(history[0]["edited"]?.string != nil)
      #expect(history[1]["reply_to"]?.string == first)
      let delete = try await ferry.run("post", room, "--delete", first, "--as", "ann")
      #expect(delete.code == 0, "\(delete.errors)")
      #expect(try lines(try await ferry.run("history", room, "--json").output).count == 1)
    }
  }

  @Test func aPictureIsStoredAndItsDigestIsTold() async throws {
    try await withServer { ferry, server in
      var picture: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]
      picture += Crypto.randomBytes(100_000)
      let path = "\(ferry.folder)/p.png"
      try Data(picture).write(to: URL(fileURLWithPath: path))
      let post = try await ferry.run("post", server.local("lobby"), "look", "--image", path)
      #expect(post.code == 0, "\(post.errors)")
      let line = try lines(try await ferry.run("history", server.local("lobby"), "--json").output)[0]
      let attachment = try #require(line["attachments"]?.array?.first)
      #expect(attachment["name"] == "p.png")
      #expect(attachment["type"] == "image/png")
      #expect(attachment["size"]?.integer == Int64(picture.count))
      #expect(attachment["sha256"]?.string == Crypto.hex(Crypto.digest(.sha256, of: picture)))
      let missing = try await ferry.run("post", server.local("lobby"), "look", "--image", path + ".no")
      #expect(missing.code == 65)
    }
  }

  @Test func tailPrintsWhatHappensOneObjectALine() async throws {
    try await withServer { ferry, server in
      let room = server.local("lobby")
      _ = try await ferry.run("post", room, "before")
      let tail = try ChildProcess(ChildProcess.built("ferry"), ["tail", room, "--json"])
      await until { tail.errors.contains("is connected") }
      let id = String(try await ferry.run("post", room, "hello", "--as", "ann").output.dropLast())
      _ = try await ferry.run("post", room, "hello!", "--as", "ann", "--edit", id)
      _ = try await ferry.run("post", room, "--as", "ann", "--delete", id)
      await until { (try? lines(tail.output).count) == 3 }
      let seen = try lines(tail.output)
      #expect(seen.map { $0["kind"]?.string } == ["message", "edit", "delete"])
      #expect(seen.allSatisfy { $0["id"]?.string == id })
      tail.signal(2)
      #expect(await tail.wait() == 130)
    }
  }

  @Test func tailOfAServiceThatIsDownSaysSoOnce() async throws {
    try await withFerry { _ in
      let tail = try ChildProcess(
        ChildProcess.built("ferry"), ["tail", "local+http://t@127.0.0.1:1/lobby", "--verbose"])
      await until { tail.errors.split(separator: "\n").count { $0.contains("not connected") } >= 3 }
      #expect(tail.errors.split(separator: "\n").count { $0.contains("local is connecting: ") } == 1)
      tail.signal(2)
      #expect(await tail.wait() == 130)
    }
  }

  @Test func explainNamesAnAccountThatIsNotThere() async throws {
    try await withFerry { ferry in
      let config = try ferry.write(
        "c.yaml", "accounts: { here: { provider: local, url: 'http://127.0.0.1:1', token: t } }")
      let outcome = try await ferry.run("explain", "hree:lobby", "1", "--config", config)
      #expect(outcome.code == 78)
      #expect(
        outcome.errors.contains("has no account \"hree\"") && outcome.errors.contains("here"), "\(outcome.errors)")
    }
  }

  @Test func tailSincePrintsTheHistoryFirstAndNothingTwice() async throws {
    try await withServer { ferry, server in
      let room = server.local("lobby")
      for text in ["one", "two"] { _ = try await ferry.run("post", room, text) }
      let tail = try ChildProcess(
        ChildProcess.built("ferry"), ["tail", room, "--json", "--since", "2020-01-01T00:00:00Z"])
      await until { (try? lines(tail.output).count) == 2 }
      _ = try await ferry.run("post", room, "three")
      await until { (try? lines(tail.output).count) == 3 }
      #expect(try lines(tail.output).map { $0["text"]?.string } == ["one", "two", "three"])
      tail.signal(15)
      _ = await tail.wait()
    }
  }

  @Test func aWrongTokenIsExitCode77AndTheTokenIsNotShown() async throws {
    try await withServer { ferry, server in
      let outcome = try await ferry.run("post", server.local("lobby", token: "wrong-token"), "x")
      #expect(outcome.code == 77)
      #expect(!outcome.errors.contains("wrong-token"))
      let pusher = try await ferry.run("post", server.pusher("chatroom", secret: "wrong-secret"), "x")
      #expect(pusher.code == 77, "\(pusher.errors)")
      #expect(!pusher.errors.contains("wrong-secret"))
    }
  }

  @Test func aServerThatIsNotThereIsExitCode69() async throws {
    try await withFerry { ferry in
      let outcome = try await ferry.run("post", "local+http://t@127.0.0.1:1/lobby", "x")
      #expect(outcome.code == 69, "\(outcome.errors)")
    }
  }

  @Test func channelsMembersAndPusherWork() async throws {
    try await withServer { ferry, server in
      _ = try await ferry.run("post", server.local("lobby"), "x", "--as", "ann")
      #expect(try await ferry.run("channels", server.local("lobby")).output == "local:lobby\n")
      #expect(try await ferry.run("members", server.local("lobby")).code == 0)
      let posted = try await ferry.run("post", server.pusher("chatroom"), "x", "--as", "ann")
      #expect(posted.code == 0, "\(posted.errors)")
      let history = try await ferry.run("history", server.pusher("chatroom"))
      #expect(history.code == 69)
      #expect(history.errors.contains("keeps no history"))
    }
  }

  @Test func serveEndsOnSIGTERMWithExitCode0AndGoesOnWithItsData() async throws {
    try await withFerry { ferry in
      let first = try await ferry.serve()
      _ = try await ferry.run("post", first.local("lobby"), "kept")
      #expect(await first.stop() == 0)
      let second = try await ferry.serve()
      #expect(try lines(try await ferry.run("history", second.local("lobby"), "--json").output).count == 1)
      #expect(await second.stop() == 0)
    }
  }
}

func lines(_ text: String) throws -> [JSONValue] {
  try text.split(separator: "\n").map { try JSONDecoder().decode(JSONValue.self, from: Data($0.utf8)) }
}

/// Polls; the suite's time limit ends what never comes about.
func until(_ condition: () -> Bool) async {
  while !condition() { try? await SystemClock().sleep(for: .milliseconds(5)) }
}
