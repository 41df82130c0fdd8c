import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import TwilioProvider

@Suite(.timeLimit(.minutes(1))) struct TwilioOutageTests {
  private static func place(_ index: Int64) -> Cursor {
    Place(index: index, message: "IMx", conversation: ScriptedTwilio.conversation).cursor
  }

  @Test func `after a long outage pages are read twice rather than kept`() async throws {
    let twilio = ScriptedTwilio()
    twilio.state.update { state in
      for index in 0..<2600 { state.messages.append(ScriptedTwilio.message(Int64(index), "\(index)")) }
    }
    try await AdapterRig.listening(twilio: twilio, cursor: Self.place(99)) { rig in
      #expect(rig.inbox.now.texts == (100..<2600).map { "\($0)" })
      // 26 pages, the newest five of which were let go.
      let pages = twilio.requests("GET Conversations/\(ScriptedTwilio.conversation)/Messages")
      #expect(pages.count >= 31)
    }
  }

  @Test func `an edit and a deletion during an outage survive the many messages after them`() async throws {
    let twilio = ScriptedTwilio()
    let inbox = RecordingInbox()
    for index in 0..<5 { twilio.add(ScriptedTwilio.message(Int64(index), "text \(index)")) }
    try await AdapterRig.listening(twilio: twilio, inbox: inbox, cursor: Self.place(-1)) { rig in
      _ = await rig.inbox.message("text 4")
    }
    twilio.state.update { state in
      state.messages[1].body = "edited"
      state.messages[1].updated = "2026-01-02T03:05:00Z"
      state.messages.remove(at: 3)
      for index in 5..<2500 { state.messages.append(ScriptedTwilio.message(Int64(index), "text \(index)")) }
    }
    try await AdapterRig.listening(twilio: twilio, inbox: inbox, cursor: Self.place(4)) { rig in
      #expect(rig.inbox.now.edits.map(\.text) == ["edited"])
      #expect(rig.inbox.now.deletions.map(\.id.rawValue) == [ScriptedTwilio.sid("IM", 3)])
      #expect(rig.inbox.now.texts == (0..<2500).map { "text \($0)" })
      // Nothing but the page that tells it, and the one message that is gone, was asked for to find this.
      #expect(
        rig.twilio.requests("GET Conversations/\(ScriptedTwilio.conversation)/Messages/").map { $0.path.suffix(34) }
          == [Substring(ScriptedTwilio.sid("IM", 3))])
    }
  }

  @Test func `a webhook that shows a gap does not hide the edit before it`() async throws {
    let adjust: @Sendable (inout TwilioAdapter.Settings) -> Void = { settings in
      settings.webhook = AdapterRig.webhook
      settings.poll = .seconds(600)
    }
    try await AdapterRig.listening(adjust: adjust) { rig in
      rig.twilio.add(ScriptedTwilio.message(0, "zero"))
      #expect(await rig.announce(AdapterRig.announcement("onMessageAdded", ScriptedTwilio.message(0, "zero"))) == 200)
      rig.twilio.state.update { state in
        state.messages[0].body = "edited"
        state.messages[0].updated = "2026-01-02T03:05:00Z"
        for index in 1..<250 { state.messages.append(ScriptedTwilio.message(Int64(index), "\(index)")) }
      }
      let last = ScriptedTwilio.message(249, "249")
      #expect(await rig.announce(AdapterRig.announcement("onMessageAdded", last)) == 200)
      #expect(await rig.inbox.wait { $0.edits.first }?.text == "edited")
    }
  }
}
