import FerryConfig
import FerryCore
import Testing

@Suite struct ConfigurationTests {
  static let root = String(#filePath.split(separator: "/Tests/", maxSplits: 1)[0])

  static let environment = [
    "FERRY_LOCAL_TOKEN": "local-token", "FERRY_CONSOLE_TOKEN": "console-token", "FERRY_READ_TOKEN": "read-token",
    "BOB_TOKEN": "bob-token",
    "FACADE_SECRET": "facade-secret", "REHEARSAL_TOKEN": "rehearsal-token", "PUSHER_MASTER_KEY": "master-key",
    "APP_TOKEN": "app-token", "TWILIO_AUTH_TOKEN": "twilio-token", "TWILIO_API_SECRET": "twilio-secret",
    "TWILIO_SHARED_KEY": "twilio-key", "BACKENDLESS_KEY": "backendless-key", "BACKENDLESS_PASSWORD": "backendless-word",
  ]

  @Test("the demo is what the documentation promises")
  func demo() throws {
    let demo = try Configuration.load(path: Self.root + "/config/demo.yaml", environment: [:])
    #expect(Set(demo.accounts.keys) == ["here", "site", "support", "app"])
    #expect(demo.accounts["here"]?.provider == "local")
    let bridge = try #require(demo.bridges.first)
    #expect(demo.bridges.count == 1)
    #expect(bridge.name == "lobby")
    #expect(
      bridge.addresses.map(\.description) == ["here:lobby", "support:lobby", "site:chatroom", "app:realtime-example"])
    #expect(bridge.directions.count == 12)
    #expect(bridge.mirror == Set(BridgeSection.Mirror.allCases))
    #expect(demo.relay.listen == ListenAddress(host: "127.0.0.1", port: 8090))
    #expect(demo.relay.token?.reveal() == "demo-token")
    #expect(demo.relay.allowHosts == ["127.0.0.1"])
    let serve = try #require(demo.serve)
    #expect(serve.local?.listen.port == 8080)
    #expect(serve.local?.tokens.map { $0.token.reveal() } == ["demo-token"])
    #expect(serve.facades.map(\.provider) == ["pusher", "twilio", "backendless"])
    #expect(serve.facades.map(\.listen.port) == [8082, 8081, 8083])
  }

  @Test("the example holds every key, and all of them are understood")
  func example() throws {
    let example = try Configuration.load(
      path: Self.root + "/config/ferry.example.yaml", environment: Self.environment)
    #expect(example.path == Self.root + "/config/ferry.example.yaml")
    #expect(example.bridges.map(\.name) == ["lobby", "news"])
    let lobby = try #require(example.bridges.first)
    #expect(lobby.author == "{name} (bridged)")
    #expect(lobby.editFallback == .note)
    #expect(lobby.deleteFallback == .skip)
    let news = try #require(example.bridges.last)
    #expect(news.directions.map(\.to) == [Address("site:news"), Address("site:archive")])
    #expect(news.mirror == BridgeSection.defaultMirror)
    #expect(example.relay.publicURL == "https://bridge.example.org")
    #expect(example.relay.journal == Self.root + "/config/ferry.db")
    #expect(example.relay.retention == .seconds(30 * 86400))
    #expect(example.identities["alice"] == ["here": "alice", "site": "alice99"])
    let local = try #require(example.serve?.local)
    #expect(local.tokens.map(\.user) == [nil, "bob"])
    #expect(local.tokens.map(\.moderator) == [true, false])
    #expect(local.fileBytes == 100 << 20)
  }

  @Test("what is left out has its default")
  func defaults() throws {
    let least = try Configuration.parse("relay: {}")
    #expect(least.accounts.isEmpty)
    #expect(least.bridges.isEmpty)
    #expect(least.serve == nil)
    #expect(least.relay.listen == ListenAddress(host: "127.0.0.1", port: 8090))
    #expect(least.relay.publicURL == nil)
    #expect(least.relay.journal == "ferry.db")
    #expect(least.relay.token == nil)
    #expect(least.relay.allowHosts.isEmpty)
    #expect(least.relay.imageBytes == 104_857_600)
    #expect(least.relay.retention == .seconds(30 * 86_400))
    #expect(least.relay.spoolBytes == 1_073_741_824)
    #expect(least.relay.stripLocation == false)
    #expect(least.relay.hopLimit == 10)
    #expect(try Configuration.parse("relay: { retention: forever }").relay.retention == nil)
  }

  @Test("two readings mean the same when they come to the same")
  func meanings() throws {
    func meaning(_ text: String, _ environment: [String: String] = [:]) throws -> Secret? {
      try Configuration.parse("accounts:\n  a: \(text)", environment: environment).accounts["a"]?.node.meaning
    }
    let plain = try meaning("{ provider: local, url: \"http://x\", token: secret }")
    #expect(try meaning("{ token: secret,   provider: local, url: 'http://x' } # moved") == plain)
    #expect(try meaning("{ provider: local, url: \"http://x\", token: other }") != plain)
    #expect(try meaning("{ provider: local, url: \"http://x\", token: \"${T}\" }", ["T": "secret"]) == plain)
    #expect(try meaning("{ provider: local, url: \"http://x\", token: \"${T}\" }", ["T": "other"]) != plain)
    #expect("\(try #require(plain))" == "<secret>")
  }

  @Test("a provider reads its own keys, again and again, and misspelt ones are refused")
  func providerKeys() throws {
    let text = "accounts:\n  a: { provider: x, url: u, tokn: t }\n"
    let account = try #require(try Configuration.parse(text).accounts["a"])
    for _ in 0..<2 {
      let mapping = account.mapping
      #expect(try mapping.required("url").string() == "u")
      _ = mapping.optional("token")
      let error = #expect(throws: FerryError.self) { try mapping.finish() }
      #expect(error?.message == "ferry.yaml:2:29: unknown key \"tokn\"; did you mean \"token\"?")
    }
  }

  @Test("a provider that does not exist is named where it stands")
  func unknownProvider() throws {
    let text = "accounts:\n  a: { provider: pushr }\nserve: { facades: [{ provider: x, listen: a:1 }] }\n"
    let configuration = try Configuration.parse(text)
    let error = configuration.accounts["a"]?.unknownProvider(valid: ["local", "pusher"])
    #expect(error?.message == "ferry.yaml:2:18: unknown provider \"pushr\"; did you mean \"pusher\"?")
    let facade = configuration.serve?.facades.first?.unknownProvider(valid: ["pusher"])
    #expect(facade?.message == "ferry.yaml:3:32: unknown provider \"x\"; valid here: pusher")
  }

  @Test("between three addresses there are six directions")
  func directions() throws {
    let configuration = try Configuration.parse(
      "accounts: { a: { provider: x } }\nbridges: { b: { between: [\"a:1\", \"a:2\", \"a:3:4\"] } }")
    let bridge = try #require(configuration.bridges.first)
    #expect(bridge.directions.count == 6)
    #expect(Set(bridge.directions).count == 6)
    #expect(bridge.directions.allSatisfy { $0.from != $0.to })
    #expect(bridge.addresses.last?.channel == "3:4")
  }

  @Test("a configuration prints no secret")
  func printsNoSecret() throws {
    let text = """
      accounts: { a: { provider: x, secret: hunter2 } }
      relay: { token: hunter2 }
      serve: { local: { listen: "a:1", tokens: [hunter2] }, facades: [{ provider: x, listen: "a:2", secret: hunter2 }] }
      """
    let configuration = try Configuration.parse(text)
    var dumped = ""
    dump(configuration, to: &dumped)
    #expect(!dumped.contains("hunter2"))
    #expect(!"\(configuration)".contains("hunter2"))
    #expect(dumped.contains("<secret>"))
  }

  @Test(
    "addresses to listen at",
    arguments: [
      ("127.0.0.1:8090", "127.0.0.1:8090"), ("localhost:0", "localhost:0"), ("[::1]:80", "[::1]:80"), ("::1:80", nil),
      (":80", nil), ("a:", nil), ("a:70000", nil), ("a:+1", nil), ("http://a:80", nil), ("a b:80", nil),
    ] as [(String, String?)])
  func listenAddresses(text: String, expected: String?) {
    #expect(ListenAddress(text)?.description == expected)
  }
}
