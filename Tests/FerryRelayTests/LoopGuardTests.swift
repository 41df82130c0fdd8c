import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import FerryRelay
@testable import FerryStorage

private let here = Address(account: "here", channel: RelayRig.room)
private let there = Address(account: "there", channel: RelayRig.room)

@Suite(.timeLimit(.minutes(2))) struct LoopGuardTests {
  private var loops = LoopGuard()
  private var now = Timestamp(milliseconds: 0)
  private var events = 0

  private mutating func round(_ text: String, _ author: UserID = "bot", after pause: Duration = .seconds(1)) -> Int {
    now = now.advanced(by: pause)
    events += 1
    return loops.round(of: text, by: author, at: here, in: "pair", event: EventKey("e\(events)"), now: now).round
  }

  @Test mutating func whatGoesRoundIsCounted() {
    var counted = [round("hello", "ann")]
    for _ in 0..<4 { counted.append(round("hello")) }
    #expect(counted == [0, 1, 2, 3, 4])
    // Each round puts something before it.
    counted = [round("hi", "ann")]
    for text in ["a: hi", "<bot> a: hi", "<bot> <bot> a: hi", "[x] <bot> <bot> a: hi"] { counted.append(round(text)) }
    #expect(counted == [0, 1, 2, 3, 4])
    let long = String(repeating: "long text ", count: 500)
    counted = [round(long, "ann")]
    for prefix in ["", "x: ", "x: x: ", "x: x: x: "] { counted.append(round(prefix + long)) }
    #expect(counted == [0, 1, 2, 3, 4])
  }

  @Test mutating func whatPeopleRepeatIsNot() {
    // Many say the same, one says the same now and then, and nothing is nothing.
    for number in 0..<30 {
      let count = round("+1", UserID("u\(number)"))
      #expect(count <= 2)
    }
    // A program in a hurry: many that end alike, and many that are the same.
    for number in 0..<30 {
      let ending = round("Build \(number): passed", after: .milliseconds(10))
      #expect(ending == 0)
      let same = round("ERROR: disk full", after: .milliseconds(10))
      #expect(same < 3)
    }
    for _ in 0..<30 {
      let slow = round("all is well", after: .seconds(11))
      #expect(slow == 0)
      let empty = round("  ")
      #expect(empty == 0)
    }
  }

  @Test mutating func itsMemoryIsBounded() {
    for number in 0..<20_000 { _ = round("text \(number)", after: .milliseconds(1)) }
    for number in 0..<20_000 { _ = round("text \(number)", after: .seconds(1)) }
    #expect(loops.count <= 4096)
  }

  /// A full disk: the adapter hands the same event over until it can be written down.
  @Test func whatCannotBeWrittenDownIsNoLoop() async throws {
    let rig = try RelayRig(["here": MemoryProvider(), "there": MemoryProvider()])
    let journal = try Journal(path: rig.journalPath)
    defer { journal.close() }
    let settings = try rig.settings(journal)
    let relay = try Relay(settings)
    let health = try #require(relay.table.withLock { $0.healths["here"] })
    let inbox = AccountInbox(account: "here", relay: relay, health: health, settings)
    let events = ["hello", "hello"].enumerated().map { index, text in
      let message = Message(
        id: MessageID("m\(index)"), author: Author(id: "ann", name: "Ann"), text: text,
        time: Timestamp(milliseconds: 1))
      return Event(
        key: EventKey("e\(index)"), channel: RelayRig.room, time: message.time, kind: .posted(message),
        cursor: Cursor("1"))
    }
    // Behind the events in the same transaction, which then leaves nothing.
    try await journal.database.write { connection in
      try connection.execute("CREATE TRIGGER full BEFORE INSERT ON cursors BEGIN SELECT RAISE(ABORT, 'full'); END")
    }
    for _ in 0..<200 { await #expect(throws: FerryError.self) { try await inbox.accept(events) } }
    #expect(try await journal.counts().isEmpty)
    try await journal.database.write { try $0.execute("DROP TRIGGER full") }
    try await inbox.accept(events)
    #expect(try await journal.deadLetters().isEmpty)
    #expect(try await journal.counts().values.map(\.pending) == [2])
  }

  /// Other software that mirrors the same two channels, one way: what Ferry writes there comes back here as new.
  @Test func aForeignLoopEndsAndIsReported() async throws {
    let rig = try RelayRig(["here": MemoryProvider(), "there": MemoryProvider()])
    try await rig.relaying { relay, journal async throws in
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          var seen = 0
          while !Task.isCancelled {
            let all = await rig["there"].wait(in: RelayRig.room) { $0.count > seen ? $0 : nil } ?? []
            for message in all.dropFirst(seen) {
              rig["here"].say(
                "<\(message.author.name)> \(message.text)", by: Author(id: "mirror", name: "mirror"), in: RelayRig.room)
            }
            seen = all.count
          }
        }
        rig.say("round and round", at: "here")
        try await until { try await !journal.deadLetters().isEmpty }
        let dead = try await journal.deadLetters()
        #expect(dead.count == 1)
        #expect(dead.first?.reason.contains("loop") == true)
        try await until { try await journal.counts().values.allSatisfy { $0.pending == 0 } }
        #expect(rig.texts(at: "there").count == 11)
        // It is counted once it is written down.
        try await until { rig.metrics.value("ferry_loops_total", ["account": "here"]) == 1 }
        group.cancelAll()
        // The other way goes on; this one waits, and says why and for what.
        rig["there"].say("answer", by: Author(id: "bob", name: "Bob"), in: RelayRig.room)
        _ = await rig["here"].wait(in: RelayRig.room) { $0.contains { $0.text == "answer" } ? true : nil }
        try await until { try await Self.stopped(relay).count == 1 }
        #expect(try await Self.stopped(relay)["there:room"]?.contains("ferry dead retry") == true)
        rig.say("held back", at: "here")
        try await until { try await journal.counts()[Self.lane]?.pending == 1 }
      }
    }
    // Also after a restart.
    try await rig.relaying { relay, journal async throws in
      try await until { try await Self.stopped(relay).count == 1 }
      rig["there"].say("again", by: Author(id: "bob", name: "Bob"), in: RelayRig.room)
      _ = await rig["here"].wait(in: RelayRig.room) { $0.contains { $0.text == "again" } ? true : nil }
      #expect(!rig.texts(at: "there").contains("held back"))
      // Until a person sends what was stopped, which then comes first.
      let letter = try #require(try await journal.deadLetters().first)
      let listener = try RelayListener(relay: relay, token: "t")
      let answer = await listener.handle(
        HTTPRequest(method: "POST", path: "/dead/\(letter.delivery)/retry", headers: ["Authorization": "Bearer t"]))
      #expect(answer.status == 200)
      _ = await rig["there"].wait(in: RelayRig.room) { $0.last?.text == "held back" ? true : nil }
      #expect(rig.texts(at: "there").filter { $0.hasSuffix("round and round") }.count == 12)
      #expect(try await Self.stopped(relay).isEmpty)
    }
  }

  /// One person is enough for it where everybody chooses his name.
  @Test func aStopEndsByItselfTenMinutesAfterTheLastRound() async throws {
    let clock = ManualClock()
    var rig = try RelayRig(["here": MemoryProvider(), "there": MemoryProvider()])
    rig.clock = clock
    let ready = rig
    let end = clock.now().advanced(by: .seconds(600))
    try await ready.relaying { relay, journal async throws in
      ready.say("x", at: "here", by: "Ann")
      for _ in 1...11 { ready.say("x", at: "here", by: "Bob") }
      ready.say("held back", at: "here")
      try await until { try await Self.stopped(relay)["there:room"]?.contains(end.iso8601) == true }
      try await until { try await journal.counts()[Self.lane]?.pending ?? 0 > 0 }
      clock.advance(by: .seconds(300))
      #expect(try await Self.stopped(relay).count == 1)
    }
    // Also after a restart, and not before its time.
    try await ready.relaying { relay, journal async throws in
      clock.advance(by: .seconds(299))
      try await until { try await Self.stopped(relay)["there:room"]?.contains(end.iso8601) == true }
      #expect(!ready.texts(at: "there").contains("held back"))
      try await until {
        clock.advance(by: .seconds(1))
        return ready.texts(at: "there").contains("held back")
      }
      #expect(try await Self.stopped(relay).isEmpty)
      #expect(try await journal.deadLetters().count == 1)
    }
    // What is left of it is not counted against it again.
    try await ready.relaying { relay, _ async throws in #expect(try await Self.stopped(relay).isEmpty) }
  }

  @Test func theLogSaysWhichKindOfLoopItIs() async throws {
    let lines = Locked<[String]>([])
    let rig = try RelayRig(["here": MemoryProvider(), "there": MemoryProvider()])
    let journal = try Journal(path: rig.journalPath)
    defer { journal.close() }
    var settings = try rig.settings(journal)
    settings.hopLimit = 1
    settings.logger = Logger(component: "test", level: .warning, write: { line in lines.withLock { $0.append(line) } })
    let relay = try Relay(settings)
    let health = try #require(relay.table.withLock { $0.healths["here"] })
    let inbox = AccountInbox(account: "here", relay: relay, health: health, settings)
    let events = (0..<21).map { number in
      let message = Message(
        id: MessageID("m\(number)"), author: Author(id: "ann", name: "Ann"), text: "hello",
        time: Timestamp(milliseconds: 1))
      return Event(
        key: EventKey("e\(number)"), channel: RelayRig.room, time: message.time, kind: .posted(message))
    }
    try await inbox.accept(events)
    let said = lines.withLock { $0 }
    #expect(said.contains { $0.contains("over and over") })
    #expect(!said.contains { $0.contains("carries messages round") })
  }

  private static let lane = LaneID(bridge: "pair", destination: there)

  private static func stopped(_ relay: Relay) async throws -> [String: String] {
    let lanes = try await relay.status().lanes
    return Dictionary(lanes.compactMap { lane in lane.stopped.map { (lane.destination.description, $0) } }) { $1 }
  }

  /// One who says the same again and again must not be able to stop a bridge.
  @Test mutating func onlyWhatOthersBringBackStopsALane() {
    _ = round("hello", "ann")
    for _ in 0..<200 { _ = round("hello", "ann", after: .milliseconds(10)) }
    var pass = loops.round(of: "hello", by: "ann", at: here, in: "pair", event: "last", now: now)
    #expect(pass.round > 10 && !pass.isForeign)
    #expect(!LoopGuard.reason(pass, limit: 10).hasPrefix(LoopGuard.stops))
    _ = round("hi", "ann")
    for _ in 0..<10 { _ = round("hi") }
    pass = loops.round(of: "hi", by: "bot", at: here, in: "pair", event: "other", now: now)
    #expect(pass == LoopGuard.Pass(round: 11, isForeign: true))
    #expect(LoopGuard.reason(pass, limit: 10).hasPrefix(LoopGuard.stops))
  }
}
