import FerryCore
import FerryRelay
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

/// A service that announces what Ferry wrote a second time, under another id: stamps and links tell that it is ours (G5).
@Suite(.timeLimit(.minutes(5))) struct EchoTests {
  @Test(
    "what a service repeats of Ferry's writing is not carried back",
    arguments: [PlaceKind.local, .twilio, .pusher, .backendless])
  func echo(_ kind: PlaceKind) async throws {
    let place = try await kind.open()
    let memory = MemoryProvider()
    let folder = try TemporaryFolder()
    let relay = try InnerRelay(
      files: folder.file("r"),
      accounts: ["a": try place.account(webhook: "", clock: SystemClock()), "m": memory],
      bridges: [
        Bridge(
          name: "b",
          routes: Bridge.mesh([Address(account: "a", channel: place.room), Address(account: "m", channel: "room")]),
          mirror: Set(Bridge.Mirrored.allCases))
      ], publicURL: "http://127.0.0.1:1", clock: SystemClock())
    try await relay.waitUntilReady()
    place.server?.echoes.withLock { $0 = true }
    let texts = ["one", "two", "three"]
    for text in texts { memory.say(text, by: speaker, in: "room") }
    while try await place.shown().count(where: { $0.text.contains("three") }) < 2 {
      try await SystemClock().sleep(for: .milliseconds(5))
    }
    place.server?.echoes.withLock { $0 = false }
    #expect(try await place.shown().count { $0.text.contains("one") } == 2)
    // What is said there now comes behind the echoes.
    for text in ["an answer", "and one more"] {
      _ = try await place.say(text, picture: nil)
      _ = await memory.wait(in: "room") { $0.last?.text == text ? true : nil }
    }
    #expect(memory.messages(in: "room").map(\.text) == texts + ["an answer", "and one more"])
    await relay.kill()
    await place.close()
  }
}
