import FerryTestKit
import Testing

@Suite(.timeLimit(.minutes(2))) struct UsageTests {
  @Test func helpNamesEveryCommandAndGoesToStandardOutput() async throws {
    try await withFerry { ferry in
      let outcome = try await ferry.run("--help")
      #expect(outcome.code == 0)
      #expect(outcome.errors.isEmpty)
      for command in [
        "demo", "serve", "relay", "post", "tail", "history", "channels", "members", "check", "plan", "providers",
        "status",
        "dead",
      ] {
        #expect(outcome.output.contains("ferry \(command)"), "\(command) is missing")
        let help = try await ferry.run(command, "--help")
        #expect(help.code == 0)
        #expect(help.output.hasPrefix("ferry \(command)"))
      }
    }
  }

  @Test func withoutArgumentsTheHelpIsShownAndTheExitCodeIsUsage() async throws {
    try await withFerry { ferry in
      let outcome = try await ferry.run()
      #expect(outcome.code == 64)
    }
  }

  @Test(arguments: [
    (["psot", "a:b"], "there is no command \"psot\"; did you mean \"post\"?"),
    (["post"], "ADDRESS is missing"),
    (["post", "a:b", "text", "more"], "\"more\" is one argument too many"),
    (["post", "a:b", "text", "--ass", "me"], "there is no option --ass; did you mean \"as\"?"),
    (["post", "a:b", "text", "--as"], "--as needs a value"),
    (["post", "a:b", "text", "--image", "a.png", "--image", "b.png"], "--image is given twice"),
    (["history", "a:b", "--json=yes"], "--json takes no value"),
    (["tail", "lobby"], "\"lobby\" is not an address; write account:channel or a URL"),
    (["tail", "irc://x/y"], "no provider understands this kind of URL; see 'ferry providers'"),
  ])
  func whatIsTypedWrongIsExplainedWithExitCode64(_ arguments: [String], _ message: String) async throws {
    try await withFerry { ferry in
      let outcome = try await ferry.run(arguments)
      #expect(outcome.code == 64)
      #expect(outcome.output.isEmpty)
      #expect(outcome.errors.hasPrefix("ferry: \(message)\n"), "\(outcome.errors)")
    }
  }

  @Test func aMissingConfigurationIsExitCode78AndNamesTheFile() async throws {
    try await withFerry { ferry in
      let outcome = try await ferry.run(["check"], config: ferry.folder + "/missing.yaml")
      #expect(outcome.code == 78)
      #expect(outcome.errors.contains("missing.yaml"))
      #expect(outcome.errors.contains("FERRY_CONFIG"))
    }
  }

  @Test func aConfigurationThatIsNamedHasToBeThereWhereItIsNotNeededToo() async throws {
    try await withServer { ferry, server in
      let file = try ferry.write("a.jsonl", #"{"time":"2016-08-05T03:10:01Z","author":"ada","text":"hi"}"# + "\n")
      let state = ["--state", ferry.folder + "/state"]
      for arguments in [
        ["verify", file, file], ["import", file, server.local("lobby")] + state,
        ["migrate", server.local("lobby"), server.local("copy")] + state,
      ] {
        let outcome = try await ferry.run(arguments, config: ferry.folder + "/missing.yaml")
        #expect(outcome.code == 78, "\(arguments): \(outcome.output)\(outcome.errors)")
        #expect(outcome.errors.contains("missing.yaml") && outcome.errors.contains("FERRY_CONFIG"))
      }
    }
  }

  @Test func aMisspeltKeyIsExitCode78WithItsPlaceAndTheRightName() async throws {
    try await withFerry { ferry in
      let config = try ferry.write("bad.yaml", "acounts:\n  here: { provider: local }\n")
      let outcome = try await ferry.run("check", "--config", config)
      #expect(outcome.code == 78)
      #expect(outcome.errors == "ferry: \(config):1:1: unknown key \"acounts\"; did you mean \"accounts\"?\n")
    }
  }

  @Test func anUnknownAccountIsNamedWithTheNearest() async throws {
    try await withFerry { ferry in
      let config = try ferry.write(
        "one.yaml", "accounts:\n  here: { provider: local, url: \"http://127.0.0.1:9\", token: t }\n")
      let outcome = try await ferry.run("post", "hree:lobby", "x", "--config", config)
      #expect(outcome.code == 78)
      #expect(outcome.errors.contains("has no account \"hree\"; did you mean \"here\"?"))
    }
  }

  @Test func providersPrintsATableAndJSON() async throws {
    let names = ["local", "pusher", "twilio", "backendless"]
    try await withFerry { ferry in
      let table = try await ferry.run("providers")
      #expect(table.code == 0)
      #expect(table.output.split(separator: "\n")[0].split(separator: " ").map(String.init) == names)
      let json = try await ferry.run("providers", "--json")
      #expect(json.output.split(separator: "\n").count == names.count)
      #expect(json.output.contains("\"provider\":\"pusher\""))
    }
  }
}

@Suite(.timeLimit(.minutes(2))) struct PlanTests {
  @Test func thePlanOfTheDemoTellsOfEachLegAndNeedsNoServer() async throws {
    try await withFerry { ferry in
      let config = try ferry.write(
        "plan.yaml",
        """
        accounts:
          here: { provider: local, url: "http://127.0.0.1:1", token: t }
          site: { provider: pusher, app_id: "1", key: k, secret: s }
        bridges:
          lobby: { between: ["here:lobby", "site:chat"] }
          again: { from: "here:lobby", to: "site:chat" }
        """)
      let outcome = try await ferry.run("plan", "lobby", "--config", config)
      #expect(outcome.code == 0)
      #expect(outcome.output.hasPrefix("lobby\n  here:lobby -> site:chat\n    messages "), "\(outcome.output)")
      #expect(outcome.output.contains("\n  site:chat -> here:lobby\n"))
      #expect(outcome.output.hasSuffix("warning: here:lobby is copied to site:chat twice: by lobby and by again\n"))
      let json = try await ferry.run("plan", "--json", "--config", config)
      #expect(json.output.split(separator: "\n").count == 4)
      let unknown = try await ferry.run("plan", "loby", "--config", config)
      #expect(unknown.code == 64)
      #expect(unknown.errors.contains("has no bridge \"loby\"; did you mean \"lobby\"?"))
    }
  }
}
