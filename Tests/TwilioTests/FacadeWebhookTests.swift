import FerryChat
import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import TwilioProvider

private let ada = Author(id: "ada", name: "Ada Lovelace")
private let lobby: ChannelID = "lobby"

@Suite(.timeLimit(.minutes(5))) struct FacadeWebhookTests {
  /// A rig with a receiver that is told of everything.
  private func withHooks(
    retries: Int = 0, _ body: @escaping @Sendable (FacadeRig, HookReceiver) async throws -> Void
  ) async throws {
    let rig = try FacadeRig {
      $0.postWebhookRetries = retries
      $0.webhookRetryDelay = .zero
    }
    defer { rig.close() }
    let receiver = try HookReceiver(loop: rig.loop)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { await receiver.server.run() }
      defer { group.cancelAll() }
      try await configure(rig, receiver.url)
      try await body(rig, receiver)
    }
  }

  private func configure(_ rig: FacadeRig, _ url: String) async throws {
    var form: Form = [("PostWebhookUrl", url), ("Method", "POST")]
    for event in WebhookRules.postActions { form.add("Filters", event) }
    let answer = try await rig.post("Configuration/Webhooks", form)
    #expect(answer.status == 200)
  }

  @Test func `what the page does is always told, signed, with its author`() async throws {
    try await withHooks { rig, receiver in
      try await rig.running {
        try await rig.chat.join(ada, lobby, by: .owner)
        let id = try await rig.chat.post(Draft(author: ada, text: "one"), to: lobby, by: .owner).message.message.id
        _ = try await rig.chat.edit(id, in: lobby, to: Change(text: "two"), by: .owner)
        try await rig.chat.mark(ReadMark(upTo: id, by: ada, state: .read), in: lobby, by: .owner)
        try await rig.chat.delete(id, in: lobby, by: .owner, as: ada)
        try await rig.chat.leave("ada", lobby, by: .owner)
        let calls = await receiver.wait(for: 7)
        #expect(
          calls.map(\.event) == [
            "onUserAdded", "onParticipantAdded", "onMessageAdded", "onMessageUpdated", "onParticipantUpdated",
            "onMessageRemoved", "onParticipantRemoved",
          ])
        #expect(calls.allSatisfy { $0.isSigned && $0.form["Source"] == "SDK" && $0.form["ClientIdentity"] == "ada" })
        #expect(calls[2].form["Body"] == "one")
        // What was deleted is told as it was.
        #expect(calls[5].form["Body"] == "two")
        #expect(calls[5].form["Index"] == "0")
        #expect(calls[5].form["DateRemoved"] != nil)
        #expect(calls[6].form["ParticipantSid"] == calls[1].form["ParticipantSid"])
      }
    }
  }

  @Test func `what was put down is sent after a restart, once`() async throws {
    try await withHooks { rig, receiver in
      for n in 0..<5 {
        try await rig.post("Conversations/lobby/Messages", [("Body", "\(n)")], announced: true)
      }
      // The facade's work has never run. Now it does, twice.
      for round in 0..<2 {
        try await rig.running { _ = await receiver.wait(for: 5 + round) }
        try await rig.post("Conversations/lobby/Messages", [("Body", "\(5 + round)")], announced: true)
      }
      try await rig.running { _ = await receiver.wait(for: 7) }
      #expect(receiver.calls.value.map { $0.form["Body"] } == (0..<7).map { "\($0)" })
    }
  }

  @Test func `a delivery is repeated as often as configured, and then given up`() async throws {
    try await withHooks(retries: 1) { rig, receiver in
      receiver.statuses.withLock { $0 = [503, 504, 200, 404, 200] }
      try await rig.running {
        for body in ["a", "b", "c", "d"] {
          try await rig.post("Conversations/lobby/Messages", [("Body", body)], announced: true)
        }
        let calls = await receiver.wait(for: 5)
        #expect(calls.map { $0.form["Body"] } == ["a", "a", "b", "c", "d"])
        #expect(calls.map { $0.form["RetryCount"] } == ["0", "1", "0", "0", "0"])
        #expect(calls[0].token == calls[1].token)
        #expect(calls[1].token != calls[2].token)
      }
    }
  }

  @Test func `a message that is refused is told to nobody`() async throws {
    try await withHooks { rig, receiver in
      try await rig.running {
        try await rig.post("Conversations/lobby", [("State", "closed")])
        let refused = try await rig.post("Conversations/lobby/Messages", [("Body", "no")], announced: true)
        #expect(refused.code == 50377)
        _ = try? await rig.chat.post(Draft(author: ada, text: "no"), to: lobby, by: .owner)
        try await rig.post("Conversations", [("UniqueName", "open")])
        try await rig.post("Conversations/open/Messages", [("Body", "yes")], announced: true)
        #expect(await receiver.wait(for: 1).map { $0.form["Body"] } == ["yes"])
      }
    }
  }

  @Test func `timers run out by themselves, and it is told`() async throws {
    try await withHooks { rig, receiver in
      try await rig.running {
        try await rig.post("Conversations/lobby", [("Timers.Inactive", "PT1M")])
        // Whoever waits for the timer.
        await rig.clock.waitForSleepers(1)
        rig.clock.advance(by: .seconds(61))
        let call = await receiver.wait(for: 1)[0]
        #expect(call.event == "onConversationStateUpdated")
        #expect(call.form["StateTo"] == "inactive")
        #expect(call.form["Reason"] == "TIMER")
        #expect(try await rig.get("Conversations/lobby")["state"] == "inactive")
      }
    }
  }
}
