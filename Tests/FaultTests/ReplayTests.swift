import FerryCore
import FerryRelay
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

/// Twilio signs a webhook without a time, so a signature never gets old. Whoever has seen one may send it again whenever he
/// likes: that changes nothing (G2, G8).
@Suite(.timeLimit(.minutes(5))) struct ReplayTests {
  private struct Scene: Sendable {
    let place: any Place
    let memory: MemoryProvider
    let gate: HookGate
    let folder: TemporaryFolder
    let client: HTTPClient

    var texts: [String] { memory.messages(in: "room").map(\.text) }
    /// Everything that Ferry has ever written.
    var writes: [MemoryProvider.Write: Int] {
      let kinds: [MemoryProvider.Write] = [.post, .edit, .delete, .member, .mark, .react]
      return Dictionary(uniqueKeysWithValues: kinds.map { ($0, memory.calls($0)) })
    }

    func begin() async throws -> InnerRelay {
      let account = try place.account(webhook: "\(gate.server.url)/hooks/a", clock: SystemClock())
      let relay = try InnerRelay(
        files: folder.file("r"), accounts: ["a": account, "m": memory],
        bridges: [
          Bridge(
            name: "b",
            routes: Bridge.mesh([Address(account: "a", channel: place.room), Address(account: "m", channel: "room")]),
            mirror: Set(Bridge.Mirrored.allCases))
        ], publicURL: gate.server.url, clock: SystemClock())
      gate.lead(to: relay.url)
      try await relay.waitUntilReady()
      return relay
    }

    /// Something new goes through, so what came before it was dealt with.
    func pass(_ text: String) async throws {
      _ = try await place.say(text, picture: nil)
      _ = await memory.wait(in: "room") { $0.contains { $0.text == text } ? true : nil }
    }

    /// Sends what was recorded again, in the order given, to the relay itself.
    func replay(_ hooks: [HookGate.Recorded], to relay: InnerRelay) async throws {
      for hook in hooks {
        // Asked again where the relay wants to be: a service would, and so would an attacker.
        var status = 503
        while status == 503 { status = try await client.send(hook.request(to: relay.url)).status }
        #expect(status == 200, "\(hook.event ?? "")")
      }
    }
  }

  private func withScene(_ body: (Scene) async throws -> Void) async throws {
    let loop = try LoopExecutor(name: "replay")
    let client = HTTPClient(loop: loop, guard: AddressGuard(allowedHosts: ["127.0.0.1"]), logger: .silent)
    let scene = Scene(
      place: try await PlaceKind.twilio.open(), memory: MemoryProvider(),
      gate: try HookGate(loop: loop, client: client),
      folder: try TemporaryFolder(), client: client)
    try await body(scene)
    await scene.gate.close()
    await scene.place.close()
    loop.stop()
  }

  /// Everything that a webhook can tell of messages.
  ///
  /// Returns what the other side shows in the end.
  private func talk(_ scene: Scene) async throws -> [String] {
    let place = scene.place
    // What was said before the service knew whom to call was found by looking.
    while !scene.gate.recorded.contains(where: { $0.event == "onMessageAdded" }) {
      try await scene.pass("hello \(scene.texts.count)")
    }
    let (start, already) = (scene.texts, scene.gate.recorded.count)
    let kept = try await place.say("one", picture: nil)
    try await scene.pass("one and a half")
    for text in ["uno", "eins"] {
      try await place.change(kept, to: text)
      _ = await scene.memory.wait(in: "room") { $0.contains { $0.text == text } ? true : nil }
    }
    let gone = try await place.say("two", picture: nil)
    try await scene.pass("three")
    try await place.remove(gone)
    _ = await scene.memory.wait(in: "room") { $0.contains { $0.text == "two" } ? nil : true }
    // What the relay found by looking may be announced later.
    func isTold() -> Bool {
      let events = scene.gate.recorded.dropFirst(already).compactMap(\.event)
      return events.count { $0 == "onMessageAdded" } >= 4 && events.count { $0 == "onMessageUpdated" } >= 2
        && events.contains("onMessageRemoved")
    }
    while !isTold() { try await SystemClock().sleep(for: .milliseconds(5)) }
    return start + ["eins", "one and a half", "three"]
  }

  @Test("signed webhooks that are sent again, in any order, at any time, change nothing and deliver nothing")
  func twilio() async throws {
    try await withScene { scene in
      var relay = try await scene.begin()
      let shown = try await talk(scene)
      let hooks = scene.gate.recorded
      #expect(scene.texts == shown)
      let writes = scene.writes
      for order in [hooks, hooks.reversed(), hooks + hooks] { try await scene.replay(order, to: relay) }
      try await scene.pass("four")
      #expect(scene.texts == shown + ["four"])
      var expected = writes
      expected[.post, default: 0] += 1
      #expect(scene.writes == expected)

      // A relay that has just begun knows them from its journal.
      await relay.kill()
      relay = try await scene.begin()
      try await scene.replay(hooks.reversed() + hooks, to: relay)
      try await scene.pass("five")
      #expect(scene.texts == shown + ["four", "five"])
      expected[.post, default: 0] += 1
      #expect(scene.writes == expected)
      await relay.kill()
    }
  }

  @Test("only Twilio's service calls the relay: whoever adds another one adds it to this suite")
  func others() async throws {
    for kind in PlaceKind.allCases {
      let place = try await kind.open()
      let account = try place.account(webhook: "http://127.0.0.1:1/hooks/a", clock: SystemClock())
      #expect((account is any WebhookReceiver) == (kind == .twilio), "\(kind)")
      await place.close()
    }
  }
}
