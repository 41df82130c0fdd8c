import FerryCore
import FerryRuntime
import FerryTestKit
import Testing

@testable import TwilioProvider

@Suite(.timeLimit(.minutes(2))) struct TwilioNameTests {
  @Test func `a name that changes while it is asked for is asked for again`() async throws {
    let twilio = ScriptedTwilio()
    try await AdapterRig.listening(twilio: twilio) { rig in
      let names = rig.adapter.names
      func rename(to name: String, whileAsked: Bool) {
        let change: @Sendable (String) -> Void = { line in
          guard line == "GET Users/alice" else { return }
          twilio.state.update { $0.users["alice"] = name }
          names.mayHaveChanged("alice")
        }
        if whileAsked { twilio.meanwhile.withLock { $0 = change } } else { change("GET Users/alice") }
      }
      twilio.state.update { $0.users["alice"] = "Alice" }
      // The first time, and when she is known.
      for (old, new) in [("Alice", "Alicia"), ("Alison", "Ali")] {
        rename(to: old, whileAsked: false)
        rename(to: new, whileAsked: true)
        #expect(await names.name(of: "alice") == old)
        twilio.meanwhile.withLock { $0 = nil }
        #expect(await names.name(of: "alice") == new)
        let asked = twilio.requests("GET Users/alice").count
        #expect(await names.name(of: "alice") == new)
        #expect(twilio.requests("GET Users/alice").count == asked)
      }
    }
  }
}
