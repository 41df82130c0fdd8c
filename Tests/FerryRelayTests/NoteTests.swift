import FerryCore
import FerryRuntime
import FerryStorage
import FerryTestKit
import Testing

@testable import FerryRelay

/// What stands in for an edit where a destination cannot edit.
@Suite(.timeLimit(.minutes(2))) struct NoteTests {
  @Test("a note of which nobody can say whether it was sent is a dead letter, for a person to look")
  func unknownOutcome() async throws {
    let there = MemoryProvider {
      $0.edits = false
      $0.certainty = .none
    }
    let rig = try RelayRig(["here": MemoryProvider(), "there": there])
    try await rig.relaying { _, journal async throws in
      let id = rig.say("text", at: "here")
      await rig.wait(for: 1, at: "there")
      there.failNext(1, with: FerryError(.timedOut, "Nobody answers.", retry: .now, didNotAct: false))
      rig["here"].change(id, to: "better text", in: RelayRig.room)
      try await until { try await !journal.deadLetters().isEmpty }
      #expect(try await journal.deadLetters().first?.reason.hasPrefix("outcome_unknown") == true)
      #expect(rig.texts(at: "there") == ["text"])
    }
  }
}
