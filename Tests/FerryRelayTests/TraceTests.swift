import FerryCore
import FerryRelay
import FerryRuntime
import FerryStorage
import FerryTestKit
import FerryTransport
import FoundationEssentials
import Testing

private let ann = Author(id: "ann", name: "Ann")
private let here = Address(account: "here", channel: RelayRig.room)
private let there = Address(account: "there", channel: RelayRig.room)

@Suite(.timeLimit(.minutes(2))) struct TraceTests {
  @Test func aMessageIsFoundByEveryIdThatItHas() async throws {
    let rig = try RelayRig(["here": MemoryProvider(), "there": MemoryProvider()])
    try await rig.relaying { relay, journal async throws in
      let id = rig.say("secret words", at: "here")
      let copy = try #require(await rig.wait(for: 1, at: "there").first)
      try await until { try await journal.counts().values.allSatisfy { $0.pending == 0 } }
      let bridges = rig.bridges
      let first = try await RelayTrace(of: id.rawValue, at: here, in: journal, bridges)
      let sent = try #require(first.messages.first)
      #expect(first.messages.count == 1)
      #expect(sent.address == here)
      #expect(sent.message == id)
      #expect(sent.copies.map(\.id) == [copy.id])
      #expect(sent.copies.map(\.address) == [there])
      #expect(sent.events.map(\.kind) == ["message"])
      #expect(sent.events.first?.deliveries.map(\.state) == ["settled"])
      #expect(sent.events.first?.deliveries.map(\.attempts) == [1])
      #expect(sent.bridges.map(\.name) == ["pair"])
      let event = try #require(sent.events.first)
      let key = try #require(sent.copies.first?.key)
      for (other, place) in [
        (copy.id.rawValue, there), (copy.id.rawValue, nil), (event.key.rawValue, here), (key.rawValue, nil),
        (key.rawValue, there), (id.rawValue, nil),
      ] as [(String, Address?)] {
        let trace = try await RelayTrace(of: other, at: place, in: journal, bridges)
        #expect(trace.messages.contains { $0.address == here && $0.message == id }, "\(other) at \(place as Any)")
      }
      let json = String(decoding: try JSONEncoder().encode(first), as: UTF8.self)
      #expect(!json.contains("secret words"))
    }
  }

  @Test func editsReactionsAndFailuresAreTold() async throws {
    let rig = try RelayRig(
      ["here": MemoryProvider(), "there": MemoryProvider()], mirror: [.messages, .edits, .reactions])
    try await rig.relaying { relay, journal async throws in
      rig["there"].failNext(2, with: FerryError(.unavailable, "The service is down.", retry: .after(.milliseconds(1))))
      let id = rig.say("one", at: "here")
      let copy = try #require(await rig.wait(for: 1, at: "there").first)
      rig["here"].change(id, to: "two", in: RelayRig.room)
      rig["there"].react("+1", to: copy.id, in: RelayRig.room, by: ann)
      rig["here"].remove(id, in: RelayRig.room, by: ann)
      try await until {
        let trace = try await journal.trace(id.rawValue, at: here)
        let events = trace.first?.received ?? []
        return events.count >= 3 && events.allSatisfy { $0.deliveries.allSatisfy { $0.state == .settled } }
      }
      let trace = try await RelayTrace(of: copy.id.rawValue, at: there, in: journal, rig.bridges)
      let message = try #require(trace.messages.first)
      #expect(message.events.map(\.kind) == ["message", "edit", "reaction"])
      #expect(message.copies.map(\.revision) == [1])
      let failures = try #require(message.events.first?.deliveries.first)
      #expect(failures.attempts == 3)
      #expect(failures.failures.count == 2)
      #expect(failures.failures.allSatisfy { $0.error.contains("The service is down.") })
      // What a bridge does not mirror is not journaled, and an event of another bridge would say why it was not.
      #expect(message.events.allSatisfy { $0.skipped.isEmpty })
    }
  }

  @Test func deadLettersAreTold() async throws {
    let rig = try RelayRig(["here": MemoryProvider(), "there": MemoryProvider()])
    try await rig.relaying { relay, journal async throws in
      rig["there"].failNext(1, with: FerryError(.forbidden, "You are banned."))
      rig["there"].failNext(1, .batch, with: FerryError(.forbidden, "You are banned."))
      let id = rig.say("one", at: "here")
      try await until { try await journal.counts().values.contains { $0.dead == 1 } }
      let trace = try await RelayTrace(of: id.rawValue, at: nil, in: journal, rig.bridges)
      let sent = try #require(trace.messages.first?.events.first?.deliveries.first)
      #expect(sent.state == "dead")
      #expect(sent.error?.contains("You are banned.") == true)
      #expect(try await journal.deadLetters().map(\.delivery) == [sent.id])
    }
  }

  @Test func theJournalIsReadWhileItIsBeingWritten() async throws {
    let rig = try RelayRig(["here": MemoryProvider(), "there": MemoryProvider()])
    let id = try await rig.relaying { _, _ async throws in
      let reading = try Journal(reading: rig.journalPath)
      defer { reading.close() }
      let id = rig.say("one", at: "here")
      await rig.wait(for: 1, at: "there")
      try await until { try await reading.trace(id.rawValue).first?.copies.count == 1 }
      let error = await #expect(throws: FerryError.self) { try await reading.move(to: "1", "here", RelayRig.room) }
      #expect(error?.code == .storage)
      return id
    }
    let after = try Journal(reading: rig.journalPath)
    #expect(try await after.trace(id.rawValue, at: here).first?.copies.count == 1)
    after.close()
    let missing = #expect(throws: FerryError.self) { try Journal(reading: rig.folder.file("none.db")) }
    #expect(missing?.code == .notFound)
  }

  @Test func onlyTheTokenOpensTheTrace() async throws {
    let rig = try RelayRig(["here": MemoryProvider(), "there": MemoryProvider()])
    try await rig.relaying { relay, journal async throws in
      let listener = try RelayListener(relay: relay, token: "t0ken")
      let id = rig.say("one", at: "here")
      try await until { try await !journal.trace(id.rawValue).isEmpty }
      func status(_ query: String, _ token: String?) async -> Int {
        var request = HTTPRequest(method: "GET", path: "/api/trace", rawQuery: query)
        if let token { request.headers.set("Authorization", "Bearer \(token)") }
        return await listener.handle(request).status
      }
      #expect(await status("id=\(id)", nil) == 401)
      #expect(await status("id=\(id)", "wrong") == 401)
      #expect(await status("id=\(id)", "t0ken") == 200)
      #expect(await status("id=\(id)&address=here%3Aroom", "t0ken") == 200)
      #expect(await status("id=\(id)&address=nonsense", "t0ken") == 400)
      #expect(await status("id=unknown", "t0ken") == 404)
      #expect(await status("", "t0ken") == 400)
    }
  }

  @Test(
    "a send's key leads back to its stamp, whatever is in it",
    arguments: [("a", "b", "c"), ("a", "b|c\\d", "e|0|1"), ("acc", "x:y|", "note/k|3"), ("a", "日本|", "|")])
  func keys(account: String, channel: String, id: String) {
    let origin = Address(account: AccountName(account), channel: ChannelID(channel))
    let stamp = Stamp(bridge: "b-1", origin: origin, id: MessageID(id), revision: 2, part: 1 << 20)
    #expect(Stamp(key: stamp.key) == stamp)
    for text in ["", "|", "a|b|c|0|0", "a|b:c|d|0", "a|b:c|d|0|x", "a|b:c\\", id] {
      #expect(Stamp(key: SendKey(text)) == nil)
    }
  }
}
