import FerryCore
import FerryRelay
import FerryRuntime
import FerryStorage
import FerryTestKit
import Testing

private let here = Address(account: "here", channel: RelayRig.room)

@Suite(.timeLimit(.minutes(10))) struct RetentionTests {
  @Test func aRunningRelayForgetsWhatIsOldAndGoesOn() async throws {
    let clock = ManualClock()
    let account = MemoryProvider(clock: clock)
    var rig = try RelayRig(["here": account, "there": MemoryProvider(clock: clock)])
    rig.clock = clock
    rig.retention = .seconds(7200)
    let ready = rig
    try await ready.relaying { _, journal async throws in
      let old = ready.say("old", at: "here")
      await ready.wait(for: 1, at: "there")
      try await until { try await journal.counts().isEmpty }
      // Twice the age, in steps in which whoever waits has its turn.
      for _ in 0..<240 {
        await clock.waitForSleepers()
        clock.advance(by: .seconds(60))
        for _ in 0..<20 { await Task.yield() }
      }
      try await until {
        clock.advance(by: .seconds(60))
        return try await journal.trace(old.rawValue, at: here).isEmpty
      }
      // What is said of it now is counted and goes nowhere; everything else goes on.
      account.change(old, to: "edited", in: RelayRig.room)
      let fresh = ready.say("fresh", at: "here")
      #expect(await ready.wait(for: 2, at: "there").map(\.text) == ["old", "fresh"])
      try await until { ready.metrics.value("ferry_events_forgotten_total", ["account": "here"]) == 1 }
      #expect(ready.metrics.value("ferry_pruned_total") >= 1)
      #expect(try await journal.trace(fresh.rawValue, at: here).count == 1)
      #expect(try await journal.deadLetters().isEmpty)
    }
  }
}
