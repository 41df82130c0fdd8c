import FerryCore
import FerryRelay
import FerryRuntime
import FerryStorage
import FerryTestKit
import FerryTransport
import Testing

private let down = FerryError(.unavailable, "The service is down.", retry: .now)
/// Whether it acted has to be asked, which works.
private let unanswered = FerryError(.timedOut, "The service is down.", retry: .now, didNotAct: false)

@Suite(.timeLimit(.minutes(2))) struct AccountStateTests {
  /// Many channels, each bridged to one of its own at the other account.
  private func rig(channels: Int, there: MemoryProvider, clock: any FerryClock) throws -> RelayRig {
    let bridges = (0..<channels).map { number in
      let channel = ChannelID("room\(number)")
      return Bridge(
        name: BridgeName("b\(number)"),
        routes: [Address(account: "here", channel: channel): [Address(account: "there", channel: channel)]],
        mirror: [.messages])
    }
    var rig = try RelayRig(["here": MemoryProvider(), "there": there], bridges)
    rig.clock = clock
    return rig
  }

  private func account(_ name: AccountName, _ relay: Relay) async throws -> RelayStatus.Account {
    try #require(try await relay.status().accounts.first { $0.name == name })
  }

  /// Nothing is under way: all wait, and the next attempt is to come.
  private func waits(_ account: RelayStatus.Account, at clock: ManualClock) -> Bool {
    account.lanesWaiting == 100 && account.nextAttempt.map { $0 > clock.now().iso8601 } ?? false
  }

  @Test(
    "a hundred lanes try one at a time while nothing can be sent, whatever else works", arguments: [down, unanswered])
  func hundredLanes(error: FerryError) async throws {
    let clock = ManualClock()
    let there = MemoryProvider { $0.batch = 1 }
    let rig = try rig(channels: 100, there: there, clock: clock)
    try await rig.relaying { relay, journal async throws in
      // An outage: everything that is written fails.
      there.failNext(10_000, with: error)
      for number in 0..<100 {
        rig["here"].say("x", by: Author(id: "ann", name: "Ann"), in: ChannelID("room\(number)"))
      }
      // Those that failed while it was not yet known to be the account's fault pause by themselves first.
      try await until {
        if waits(try await account("there", relay), at: clock) { return true }
        clock.advance(by: .milliseconds(50))
        return false
      }
      let afterFirst = there.calls(.post)
      // Those that were under way when the first failed, each once, and the few that found out.
      #expect(afterFirst <= 150)
      let state = try await account("there", relay)
      #expect(state.state == "degraded")
      #expect(state.reason?.contains("The service is down.") == true)
      #expect(state.lastError?.message.contains("The service is down.") == true)
      #expect(state.nextAttempt != nil)
      #expect(rig.metrics.value("ferry_account_state", ["account": "there", "state": "degraded"]) == 1)
      let listener = try RelayListener(relay: relay, token: nil)
      #expect(await listener.handle(HTTPRequest(method: "GET", path: "/readyz")).status == 503)
      // An hour in steps of a minute, the longest pause: one attempt in each.
      for step in 1...20 {
        clock.advance(by: .seconds(60))
        try await until {
          let now = try await account("there", relay)
          return there.calls(.post) > afterFirst + step - 1 && waits(now, at: clock)
        }
        #expect(there.calls(.post) <= afterFirst + 60 * step)
      }
      #expect(there.calls(.post) == afterFirst + 20)
      // The service comes back: the next attempt succeeds, and all go on without waiting for one another.
      there.failNoMore()
      clock.advance(by: .seconds(60))
      try await until { try await journal.counts().isEmpty }
      let well = try await account("there", relay)
      #expect(well.state == "idle")
      #expect(well.lanesWaiting == 0)
      #expect(well.lastOut != nil)
      #expect(await listener.handle(HTTPRequest(method: "GET", path: "/readyz")).status == 200)
      for number in 0..<100 { #expect(there.messages(in: ChannelID("room\(number)")).count == 1) }
    }
  }

  @Test func oneServiceThatCannotBeReachedLeavesTheOthersAtWork() async throws {
    let rig = try RelayRig([
      "here": MemoryProvider(), "there": MemoryProvider(), "locked": MemoryProvider(credentialsAreGood: false),
    ])
    try await rig.relaying { relay, journal async throws in
      try await until { try await account("locked", relay).state == "bad_credentials" }
      for number in 1...20 { rig.say("\(number)", at: "here") }
      await rig.wait(for: 20, at: "there")
      #expect(rig.texts(at: "there") == (1...20).map(String.init))
      let here = try await account("here", relay)
      #expect(here.state == "connected")
      #expect(here.lastIn != nil && here.lastEvent == here.lastIn)
      #expect(try await account("there", relay).lastOut != nil)
      let locked = try await account("locked", relay)
      #expect(locked.reason?.contains("bad credentials") == true)
      // Kept for when a person has mended it.
      let lane = LaneID(bridge: "pair", destination: Address(account: "locked", channel: RelayRig.room))
      #expect(try await journal.counts()[lane]?.pending == 20)
      let listener = try RelayListener(relay: relay, token: nil)
      #expect(await listener.handle(HTTPRequest(method: "GET", path: "/readyz")).status == 503)
    }
  }

  @Test func aMessageThatIsRefusedSaysNothingAgainstTheAccount() async throws {
    let rig = try RelayRig(["here": MemoryProvider(), "there": MemoryProvider { $0.batch = 1 }])
    try await rig.relaying { relay, journal async throws in
      rig["there"].failNext(10, with: FerryError(.badRequest, "Not this."))
      for number in 1...11 { rig.say("\(number)", at: "here") }
      await rig.wait(for: 1, at: "there")
      #expect(rig.texts(at: "there") == ["11"])
      #expect(try await account("there", relay).state == "connected")
      #expect(try await journal.deadLetters().count == 10)
    }
  }
}
