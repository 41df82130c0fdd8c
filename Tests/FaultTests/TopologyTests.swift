import FerryCore
import FerryRelay
import FerryRuntime
import FerryTestKit
import FoundationEssentials
import Testing

/// Bridges over real services that could go round in circles, and do not (G5).
@Suite(.timeLimit(.minutes(5))) struct TopologyTests {
  /// Accounts at services, and relays between them.
  private struct Yard {
    let folder: TemporaryFolder
    let places: [AccountName: any Place]

    init(_ kinds: [AccountName: PlaceKind]) async throws {
      folder = try TemporaryFolder()
      var places: [AccountName: any Place] = [:]
      for (name, kind) in kinds { places[name] = try await kind.open() }
      self.places = places
    }

    init(_ places: [AccountName: any Place]) throws {
      folder = try TemporaryFolder()
      self.places = places
    }

    /// Runs relays, each with a journal of its own, while `body` runs.
    func relaying(_ relays: [[(BridgeName, [AccountName])]], _ body: () async throws -> Void) async throws {
      var lives: [InnerRelay] = []
      for (number, bridges) in relays.enumerated() {
        var accounts: [AccountName: any ChatProvider] = [:]
        let clock = ShiftingClock(haste: 4)
        for name in Set(bridges.flatMap(\.1)) {
          accounts[name] = try places[name]?.account(webhook: "", clock: clock)
        }
        let made = bridges.map { name, members in
          let addresses = members.compactMap { member in
            places[member].map { Address(account: member, channel: $0.room) }
          }
          return Bridge(name: name, routes: Bridge.mesh(addresses), mirror: Set(Bridge.Mirrored.allCases))
        }
        let life = try InnerRelay(
          files: folder.file("relay\(number)"), accounts: accounts, bridges: made, publicURL: "http://127.0.0.1:1",
          clock: clock)
        try await life.waitUntilReady()
        lives.append(life)
      }
      try await body()
      for life in lives { await life.kill() }
    }

    func say(_ text: String, at account: AccountName) async throws {
      _ = try await places[account]?.say(text, picture: nil)
    }

    func texts(at account: AccountName) async throws -> [String] {
      try await places[account]?.shown().map(\.text) ?? []
    }

    /// What every account shows once there are so many in all, and there have been no more for a while.
    func quiet(_ total: Int) async throws -> [AccountName: [String]] {
      var (last, same) = ([AccountName: [String]](), 0)
      while same < 15 {
        var now: [AccountName: [String]] = [:]
        for name in places.keys { now[name] = try await texts(at: name).sorted() }
        let count = now.values.reduce(0) { $0 + $1.count }
        same = now == last && count >= total ? same + 1 : 0
        last = now
        try await SystemClock().sleep(for: .milliseconds(100))
      }
      return last
    }

    func close() async { for place in places.values { await place.close() } }
  }

  @Test("two relays on one pair of channels each make their copy, and none of the other's copies")
  func twoRelays() async throws {
    let yard = try await Yard(["a": .local, "b": .backendless])
    try await yard.relaying([[("first", ["a", "b"])], [("second", ["a", "b"])]]) {
      try await yard.say("from a", at: "a")
      try await yard.say("from b", at: "b")
      let all = ["from a", "from a", "from b"]
      let other = ["from a", "from b", "from b"]
      let shown = try await yard.quiet(6)
      #expect(shown == ["a": other, "b": all])
    }
    await yard.close()
  }

  @Test("a ring of bridges over three services, in one relay and in three", arguments: [1, 3])
  func ring(relays: Int) async throws {
    let yard = try await Yard(["a": .local, "b": .pusher, "c": .twilio])
    let bridges: [(BridgeName, [AccountName])] = [("ab", ["a", "b"]), ("bc", ["b", "c"]), ("ca", ["c", "a"])]
    try await yard.relaying(relays == 1 ? [bridges] : bridges.map { [$0] }) {
      for name in ["a", "b", "c"] as [AccountName] { try await yard.say("from \(name)", at: name) }
      let all = ["from a", "from b", "from c"]
      let shown = try await yard.quiet(9)
      #expect(shown == ["a": all, "b": all, "c": all])
    }
    await yard.close()
  }

  @Test("two bridges that share an address carry what is written there both ways, and no copy further")
  func sharedAddress() async throws {
    let yard = try await Yard(["a": .local, "b": .pusher, "c": .backendless])
    try await yard.relaying([[("ab", ["a", "b"]), ("bc", ["b", "c"])]]) {
      for name in ["a", "b", "c"] as [AccountName] { try await yard.say("from \(name)", at: name) }
      let shown = try await yard.quiet(7)
      #expect(
        shown == ["a": ["from a", "from b"], "b": ["from a", "from b", "from c"], "c": ["from b", "from c"]])
    }
    await yard.close()
  }

  @Test(
    "a room bridged to itself by two accounts gets one copy by each, and stops", arguments: [PlaceKind.local, .twilio])
  func toItself(_ kind: PlaceKind) async throws {
    let place = try await kind.open()
    let yard = try Yard(["a": place, "b": place])
    try await yard.relaying([[("self", ["a", "b"])]]) {
      try await yard.say("hello", at: "a")
      let shown = try await yard.quiet(6)
      #expect(shown["a"] == ["hello", "hello", "hello"])
    }
    await place.close()
  }

  @Test("a bot that repeats what it hears, without any mark, is one more message at each side")
  func bot() async throws {
    let yard = try await Yard(["a": .local, "b": .backendless])
    try await yard.relaying([[("b", ["a", "b"])]]) {
      try await yard.say("hello", at: "a")
      while try await yard.texts(at: "b").isEmpty { try await SystemClock().sleep(for: .milliseconds(20)) }
      for text in try await yard.texts(at: "b") { try await yard.say(text, at: "b") }
      let shown = try await yard.quiet(4)
      #expect(shown == ["a": ["hello", "hello"], "b": ["hello", "hello"]])
    }
    await yard.close()
  }

  @Test("an address bridged to itself in the configuration is refused with its place")
  func configured() async throws {
    let folder = try TemporaryFolder()
    let config = """
      accounts:
        here: { provider: local, url: "http://127.0.0.1:1", token: t }
      bridges:
        b: { between: ["here:lobby", "here:lobby"] }
      """
    try Data(config.utf8).write(to: URL(fileURLWithPath: folder.file("f.yaml")))
    let outcome = try await ChildProcess.run(
      ChildProcess.built("ferry"), ["relay", "--config", folder.file("f.yaml")])
    #expect(outcome.code == 78)
    #expect(outcome.errors.contains("f.yaml:4:"), "\(outcome.errors)")
  }
}
