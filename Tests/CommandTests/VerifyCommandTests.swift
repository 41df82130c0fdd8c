import FerryCore
import FerryTestKit
import FoundationEssentials
import Testing

@Suite struct VerifyCommandTests {
  private static let lines = (1...5).map { number in
    #"{"time":"2016-08-05T03:10:0\#(number)Z","kind":"message","author":"ada","text":"said \#(number)"}"# + "\n"
  }

  private func summary(_ outcome: ChildProcess.Outcome) throws -> JSONValue {
    try JSONDecoder().decode(JSONValue.self, from: Data(outcome.output.utf8))
  }

  @Test func twoEqualFilesAreEqual() async throws {
    try await withFerry { ferry in
      let first = try ferry.write("first.jsonl", Self.lines.joined())
      let second = try ferry.write("second.jsonl", Self.lines.joined())
      let outcome = try await ferry.run("verify", first, second)
      #expect(outcome.code == 0, "\(outcome.errors)")
      #expect(outcome.output.contains("identical  5"))
      #expect(outcome.output.hasSuffix("Equal.\n"))
    }
  }

  @Test func aLostMessageIsNamedAndTheCodeIs65() async throws {
    try await withFerry { ferry in
      let first = try ferry.write("first.jsonl", Self.lines.joined())
      let second = try ferry.write("second.jsonl", (Self.lines[..<2] + Self.lines[3...]).joined())
      let report = "\(ferry.folder)/report.jsonl"
      let outcome = try await ferry.run("verify", first, second, "--json", "--report", report)
      #expect(outcome.code == 65, "\(outcome.errors)")
      let summary = try summary(outcome)
      #expect(summary["ok"] == false)
      #expect(summary["outcomes"]?["missing"] == 1)
      #expect(summary["outcomes"]?["identical"] == 4)
      #expect(summary["examples"]?.array?.first?["from"]?["time"] == "2016-08-05T03:10:03.000Z")
      let lines = String(decoding: try #require(FileManager.default.contents(atPath: report)), as: UTF8.self)
      #expect(lines.split(separator: "\n").count == 5)
      #expect(lines.contains(#""outcome":"missing""#))
      let readable = try await ferry.run("verify", first, second)
      #expect(readable.output.contains("missing:\n  "))
      #expect(readable.output.hasSuffix("NOT EQUAL: 1 records differ.\n"))
    }
  }

  @Test func whatAServiceBetweenCouldNotHoldIsAReasonToNameIt() async throws {
    try await withFerry { ferry in
      let said = #"{"time":"2016-08-05T03:10:01Z","id":"m1","author":"ada","text":"hello"}"# + "\n"
      let liked = #"{"time":"2016-08-05T03:10:02Z","kind":"reaction","id":"m1","author":"bob","emoji":"+1"}"# + "\n"
      let first = try ferry.write("first.jsonl", said + liked)
      let second = try ferry.write("second.jsonl", said)
      let outcome = try await ferry.run("verify", first, second)
      #expect(outcome.code == 65)
      #expect(outcome.errors.contains("backendless"), "\(outcome.output)\(outcome.errors)")
      #expect(outcome.errors.contains("--through"))
      let through = try await ferry.run("verify", first, second, "--through", "backendless")
      #expect(through.code == 0, "\(through.output)")
      // No service loses a message.
      let nothing = try ferry.write("nothing.jsonl", "")
      let lost = try await ferry.run("verify", first, nothing)
      #expect(lost.code == 65)
      #expect(!lost.errors.contains("--through"), "\(lost.errors)")
    }
  }

  @Test func whatIsSortedByTimeIsConvertedAsThePlanSays() async throws {
    try await withServer { ferry, server in
      let times = ["10:00:00", "12:00:00", "11:00:00", "12:00:10", "12:00:05"]
      let lines = times.map { #"{"time":"2016-08-05T\#($0)Z","author":"ada","text":"said at \#($0)"}"# + "\n" }
      let file = try ferry.write("told.jsonl", lines.joined())
      let to = server.backendless("lobby")
      let plan = try await ferry.run("plan", "--migrate", file, to, "--json")
      let order = try summary(plan)["items"]?.array?.first { $0["what"] == "order" }
      #expect(order?["outcome"] == "converted" && order?["count"] == 1, "\(plan.output)\(plan.errors)")
      let imported = try await ferry.run("import", file, to, "--json", "--state", ferry.folder + "/state")
      #expect(imported.code == 0, "\(imported.errors)")
      let verified = try await ferry.run("verify", file, to, "--json")
      #expect(verified.code == 0, "\(verified.output)\(verified.errors)")
      let account = try summary(verified)
      #expect(account["losses"]?["order:time"] == 1)
      #expect(account["outcomes"]?["reordered"] == 0)
    }
  }

  @Test func whatIsNeitherFileNorAddressIsAnErrorOfUsage() async throws {
    try await withFerry { ferry in
      let file = try ferry.write("first.jsonl", Self.lines.joined())
      let outcome = try await ferry.run("verify", file, "nowhere")
      #expect(outcome.code == 64)
      #expect(outcome.errors.contains("there is no file \"nowhere\", and it is no address"))
      let alone = try await ferry.run("verify", "nowhere")
      #expect(alone.code == 64)
      #expect(alone.errors.contains("TO is missing"))
    }
  }

  @Test func aMigrationIsPlannedFromASample() async throws {
    try await withFerry { ferry in
      let file = try ferry.write("first.jsonl", Self.lines.joined())
      let outcome = try await ferry.run("plan", "--migrate", file, "twilio")
      #expect(outcome.code == 0, "\(outcome.errors)")
      #expect(outcome.output.contains("looked at all 5 records"))
      #expect(outcome.output.contains("messages"))
      #expect(outcome.output.contains("at the destination's rate limit"))
      let json = try summary(try await ferry.run("plan", "--migrate", file, "out.ferry", "--json"))
      #expect(json["messages"] == 5)
      #expect(json["items"]?.array?.allSatisfy { $0["outcome"] == "kept" } == true)
      let usage = try await ferry.run("plan", "--migrate", file)
      #expect(usage.code == 64)
    }
  }

  @Test func aRoomEqualsItselfByEitherName() async throws {
    try await withServer { ferry, server in
      for number in 1...3 {
        #expect(try await ferry.run("post", server.local("lobby"), "said \(number)").code == 0)
      }
      let equal = try await ferry.run("verify", server.local("lobby"), server.local("lobby"))
      #expect(equal.code == 0, "\(equal.output) \(equal.errors)")
      #expect(!(equal.output + equal.errors).contains("secret-token"))
      _ = try await ferry.run("post", server.local("other"), "said 1")
      let different = try await ferry.run("verify", server.local("lobby"), server.local("other"))
      #expect(different.code == 65)
      let plan = try await ferry.run("plan", "--migrate", server.local("lobby"), "backendless", "--json")
      #expect(try summary(plan)["messages"] == 3, "\(plan.errors)")
      let silent = try await ferry.run("plan", "--migrate", server.pusher("room"), "backendless")
      #expect(silent.code == 0)
      #expect(silent.output.contains("everything"))
    }
  }
}
