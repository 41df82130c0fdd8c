import FerryCore
import FerryRuntime
import FerryStorage
import FerryTestKit
import Testing

@testable import FerryRelay

private let ann = Author(id: "ann", name: "Ann")
private let a: ChannelID = "a"
private let b: ChannelID = "b"

@Suite(.timeLimit(.minutes(3))) struct ReloadTests {
  private func bridge(
    _ name: BridgeName, _ accounts: [AccountName], _ channel: ChannelID = a, author: String = "{name}"
  ) -> Bridge {
    Bridge(
      name: name, routes: Bridge.mesh(accounts.map { Address(account: $0, channel: channel) }),
      mirror: Set(Bridge.Mirrored.allCases), author: AuthorTemplate(author))
  }

  private func rig() throws -> RelayRig {
    try RelayRig(
      ["here": MemoryProvider(), "there": MemoryProvider(), "site": MemoryProvider(), "depot": MemoryProvider()],
      [bridge("one", ["here", "there"]), bridge("two", ["site", "depot"])])
  }

  private func listening(_ names: [AccountName], _ relay: Relay) async throws {
    try await until {
      let states = try await relay.status().accounts
      return names.allSatisfy { name in states.contains { $0.name == name && $0.state == "connected" } }
    }
  }

  @Test func onlyWhatDiffersIsConnectedAnew() async throws {
    let rig = try rig()
    try await rig.relaying { relay, _ async throws in
      try await listening(["here", "there", "site", "depot"], relay)
      let fresh = MemoryProvider()
      var settings = relay.settings
      settings.accounts["depot"] = fresh
      settings.bridges[0] = bridge("one", ["here", "there"], author: "{name} from {account}")
      let changes = try await relay.change(to: settings, replacing: ["depot"])
      #expect(changes.connected == ["depot"])
      #expect(changes.kept == ["here", "site", "there"])
      #expect(changes.bridgesChanged == ["one"])
      #expect(changes.bridgesAdded.isEmpty && changes.bridgesRemoved.isEmpty && changes.parked.isEmpty)
      try await listening(["depot"], relay)
      for name in ["here", "there", "site"] as [AccountName] { #expect(rig[name].runs == 1, "\(name)") }
      #expect(fresh.runs == 1)
      // The changed rules hold for what comes over the old connections, and the new account is written to.
      rig["here"].say("1", by: ann, in: a)
      rig["site"].say("2", by: ann, in: a)
      let copy = await rig["there"].wait(in: a) { $0.first }
      #expect(copy?.author.name == "Ann from here")
      #expect(await fresh.wait(in: a) { $0.first?.text } == "2")
      #expect(rig["depot"].messages(in: a).isEmpty)
      fresh.say("3", by: ann, in: a)
      #expect(await rig["site"].wait(in: a) { $0.count == 2 ? $0.last?.text : nil } == "3")
    }
  }

  @Test func bridgesComeAndGoAndLoseNothing() async throws {
    let rig = try rig()
    try await rig.relaying { relay, journal async throws in
      try await listening(["here", "there", "site", "depot"], relay)
      // Cannot be delivered now, and then is no longer bridged.
      rig["there"].pause()
      rig["here"].say("kept for later", by: ann, in: a)
      let lane = LaneID(bridge: "one", destination: Address(account: "there", channel: a))
      try await until { try await journal.counts()[lane]?.pending == 1 }
      rig["there"].failNext(1000, with: FerryError(.unavailable, "Down.", retry: .after(.milliseconds(20))))
      rig["there"].pause(false)
      var settings = relay.settings
      let one = settings.bridges.removeFirst()
      settings.accounts["there"] = nil
      settings.bridges.append(bridge("three", ["here", "site"], b))
      let again = relay.accountsListeningElsewhere(with: settings.bridges)
      #expect(again == ["here", "site", "there"])
      let freshHere = MemoryProvider()
      let freshSite = MemoryProvider()
      settings.accounts["here"] = freshHere
      settings.accounts["site"] = freshSite
      let changes = try await relay.change(to: settings, replacing: ["here", "site"])
      #expect(changes.bridgesAdded == ["three"])
      #expect(changes.bridgesRemoved == ["one"])
      #expect(changes.disconnected == ["there"])
      #expect(changes.kept == ["depot"])
      #expect(rig["depot"].runs == 1)
      #expect(changes.parked.first { $0.lane == lane }?.deliveries == 1)
      #expect(try await relay.status().lanes.first { $0.parked }?.destination == lane.destination)
      try await listening(["here", "site", "depot"], relay)
      freshHere.say("new", by: ann, in: b)
      #expect(await freshSite.wait(in: b) { $0.first?.text } == "new")
      // Bridged again, it is delivered.
      let freshThere = MemoryProvider()
      settings.bridges.append(one)
      settings.accounts["there"] = freshThere
      let anew = relay.accountsListeningElsewhere(with: settings.bridges)
      #expect(anew == ["here"])
      settings.accounts["here"] = MemoryProvider()
      _ = try await relay.change(to: settings, replacing: ["there", "here"])
      #expect(await freshThere.wait(in: a) { $0.first?.text } == "kept for later")
    }
  }

  @Test func whatIsWrongChangesNothing() async throws {
    let rig = try rig()
    try await rig.relaying { relay, _ async throws in
      try await listening(["here", "there", "site", "depot"], relay)
      var settings = relay.settings
      settings.bridges.append(bridge("bad", ["here", "nowhere"]))
      let error = await #expect(throws: FerryError.self) { try await relay.change(to: settings, replacing: []) }
      #expect(error?.code == .badConfiguration)
      #expect(relay.settings.bridges.count == 2)
      rig["here"].say("1", by: ann, in: a)
      #expect(await rig["there"].wait(in: a) { $0.first?.text } == "1")
      for account in rig.accounts.values { #expect(account.runs == 1) }
    }
  }

  @Test func manyChangesUnderLoadLoseAndDoubleNothing() async throws {
    let rig = try rig()
    try await rig.relaying { relay, _ async throws in
      try await listening(["here", "there", "site", "depot"], relay)
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          for number in 0..<600 {
            rig["here"].say("\(number)", by: ann, in: a)
            if number % 20 == 0 { try await SystemClock().sleep(for: .milliseconds(5)) }
          }
        }
        for round in 0..<20 {
          var settings = relay.settings
          settings.bridges[0] = bridge("one", ["here", "there"], author: round % 2 == 0 ? "{name}!" : "{name}")
          _ = try await relay.change(to: settings, replacing: [])
        }
        try await group.waitForAll()
      }
      let texts = await rig["there"].wait(in: a) { $0.count >= 600 ? $0.map(\.text) : nil }
      #expect(texts == (0..<600).map(String.init))
      #expect(rig["here"].runs == 1)
    }
  }

  @Test func aSendThatHangsIsCutOffAndFoundAgain() async throws {
    let clock = ManualClock()
    var rig = try rig()
    rig.clock = clock
    let ready = rig
    try await ready.relaying { relay, journal async throws in
      try await listening(["here", "there", "site", "depot"], relay)
      ready["there"].pause()
      ready["here"].say("1", by: ann, in: a)
      let lane = LaneID(bridge: "one", destination: Address(account: "there", channel: a))
      try await until { try await journal.open(lane, limit: 1).first?.state == .sending }
      var settings = relay.settings
      settings.bridges[0] = bridge("one", ["here", "there"], author: "{name}!")
      let final = settings
      async let changes = relay.change(to: final, replacing: [])
      // Time goes on until the change no longer waits for the send.
      let mover = Task {
        while !Task.isCancelled {
          await clock.waitForSleepers()
          clock.advance(by: .seconds(1))
          await Task.yield()
        }
      }
      #expect(try await changes.bridgesChanged == ["one"])
      mover.cancel()
      ready["there"].pause(false)
      #expect(await ready["there"].wait(in: a) { $0.first?.text } == "1")
      try await until { try await journal.counts().isEmpty }
      #expect(ready["there"].messages(in: a).count == 1)
    }
  }

  @Test func lanesThatHangAreWaitedForTogether() async throws {
    let clock = ManualClock()
    var rig = try RelayRig(
      ["here": MemoryProvider(), "there": MemoryProvider(), "site": MemoryProvider()],
      [bridge("one", ["here", "there", "site"])])
    rig.clock = clock
    let ready = rig
    try await ready.relaying { relay, journal async throws in
      try await listening(["here", "there", "site"], relay)
      ready["there"].pause()
      ready["site"].pause()
      ready["here"].say("1", by: ann, in: a)
      for account in ["there", "site"] as [AccountName] {
        let lane = LaneID(bridge: "one", destination: Address(account: account, channel: a))
        try await until { try await journal.open(lane, limit: 1).first?.state == .sending }
      }
      var settings = relay.settings
      settings.bridges[0] = bridge("one", ["here", "there", "site"], author: "{name}!")
      let final = settings
      async let changes = relay.change(to: final, replacing: [])
      await clock.waitForSleepers(2, for: .seconds(10))
      clock.advance(by: .seconds(10))
      #expect(try await changes.bridgesChanged == ["one"])
      ready["there"].pause(false)
      ready["site"].pause(false)
    }
  }

  @Test func whoIsTypingIsSeenToEndAfterAChange() async throws {
    let clock = ManualClock()
    var rig = try rig()
    rig.clock = clock
    let ready = rig
    try await ready.relaying { relay, _ async throws in
      try await listening(["here", "there", "site", "depot"], relay)
      ready["here"].type(Typing(channel: a, by: ann, on: true))
      try await until { ready["there"].typing.map(\.on) == [true] }
      var settings = relay.settings
      settings.bridges[1] = bridge("two", ["site", "depot"], author: "{name}!")
      _ = try await relay.change(to: settings, replacing: [])
      try await until {
        clock.advance(by: .seconds(1))
        return ready["there"].typing.map(\.on) == [true, false]
      }
    }
  }

  @Test func typingThatIsToldToTheOldRulesIsPassedOnByTheNew() async throws {
    let clock = ManualClock()
    var rig = try rig()
    rig.clock = clock
    let ready = rig
    try await ready.relaying { relay, _ async throws in
      try await listening(["here", "there", "site", "depot"], relay)
      // Whoever takes typing in has looked up where it goes before the change.
      let old = relay.table.withLock { $0.typing }
      var settings = relay.settings
      settings.bridges[1] = bridge("two", ["site", "depot"], author: "{name}!")
      _ = try await relay.change(to: settings, replacing: [])
      settings.bridges[1] = bridge("two", ["site", "depot"], author: "{name}?")
      _ = try await relay.change(to: settings, replacing: [])
      old.typing(Typing(channel: a, by: ann, on: true), at: "here")
      try await until { ready["there"].typing.map(\.on) == [true] }
      // Nobody says that it is over.
      try await until {
        clock.advance(by: .seconds(1))
        return ready["there"].typing.map(\.on) == [true, false]
      }
    }
  }
}
