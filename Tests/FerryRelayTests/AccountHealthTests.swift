import FerryCore
import FerryRuntime
import FerryStorage
import FerryTestKit
import Testing
@testable import FerryRelay

@Suite struct AccountHealthTests {
  @Test("trying again after a failure is no news, and hides neither the reason nor since when")
  func retrying() {
    let clock = ManualClock()
    let health = AccountHealth("a", .connecting, clock: clock, logger: .silent, metrics: Metrics())
    health.connection(ConnectionState(.connecting))
    #expect(health.snapshot.state == ConnectionState(.connecting))
    // Some adapters say why they connect again, some that they failed and then that they try.
    health.connection(ConnectionState(.connecting, reason: "nobody answers"))
    #expect(health.snapshot.state == ConnectionState(.degraded, reason: "nobody answers"))
    let since = health.snapshot.since
    for _ in 0..<3 {
      clock.advance(by: .seconds(10))
      health.connection(ConnectionState(.connecting))
      #expect(health.snapshot.state == ConnectionState(.degraded, reason: "nobody answers"))
      health.connection(ConnectionState(.degraded, reason: "nobody answers"))
    }
    #expect(health.snapshot.since == since)
    health.connection(ConnectionState(.connected))
    #expect(health.snapshot.state == ConnectionState(.connected))
    #expect(health.snapshot.since > since)
  }

  @Test("a lane tells when it tries again: after its own pause, or the account's, whichever is longer")
  func nextAttempt() {
    let clock = ManualClock()
    let health = AccountHealth("a", .connected, clock: clock, logger: .silent, metrics: Metrics())
    let lane = LaneID(bridge: "b", destination: Address(account: "a", channel: "c"))
    #expect(health.nextAttempt(of: lane) == nil)
    health.pauses(lane, for: .seconds(30))
    #expect(health.nextAttempt(of: lane) == clock.now().advanced(by: .seconds(30)))
    clock.advance(by: .seconds(31))
    #expect(health.nextAttempt(of: lane) == nil)
    health.failed(lane, FerryError(.badCredentials, "refused"), isWriting: true)
    #expect(health.nextAttempt(of: lane) != nil)
  }
}
