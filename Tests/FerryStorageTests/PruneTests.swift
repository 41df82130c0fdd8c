import FerryCore
import FerryRuntime
import FerryStorage
import FoundationEssentials
import Testing

private let here = Address(account: "here", channel: "lobby")
private let site = Address(account: "site", channel: "chatroom")
private let toSite = LaneID(bridge: "lobby", destination: site)

/// Time that a test moves.
private final class TestClock: FerryClock {
  private let time = Locked(Timestamp(milliseconds: 1_800_000_000_000))
  func now() -> Timestamp { time.withLock { $0 } }
  func sleep(for duration: Duration) async throws(CancellationError) {}
  func advance(by duration: Duration) { time.withLock { $0 = $0.advanced(by: duration) } }
}

private let ann = Author(id: "ann", name: "Ann")

private func posted(_ id: String) -> Event {
  let message = Message(
    id: MessageID(id), author: ann, text: String(repeating: "text of \(id) ", count: 20),
    time: Timestamp(milliseconds: 1))
  return Event(key: EventKey("p" + id), channel: "lobby", time: message.time, kind: .posted(message))
}

private func edited(_ id: String, _ revision: Int = 1) -> Event {
  let message = Message(
    id: MessageID(id), author: ann, text: "new", time: Timestamp(milliseconds: 1), revision: revision)
  return Event(
    key: EventKey("e\(id)-\(revision)"), channel: "lobby", time: Timestamp(milliseconds: 2), kind: .edited(message))
}

private func link(_ id: String) -> Link {
  Link(bridge: "lobby", source: here, origin: MessageID(id), destination: site, copy: MessageID("c" + id))
}

@Suite struct PruneTests {
  private func withJournal(_ body: (Journal, TestClock, String) async throws -> Void) async throws {
    let folder = "\(FileManager.default.temporaryDirectory.path)/ferry-prune-\(Crypto.randomHex(bytes: 8))"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let clock = TestClock()
    let journal = try Journal(path: folder + "/journal.db", clock: clock)
    defer { journal.close() }
    try await body(journal, clock, folder)
  }

  @discardableResult
  private func accept(_ events: [Event], _ journal: Journal) async throws -> Acceptance {
    try await journal.accept(events, from: "here") { _ in [toSite] }
  }

  private func settle(_ journal: Journal, linked: Bool = true) async throws {
    while true {
      let open = try await journal.open(toSite, limit: 512)
      guard !open.isEmpty else { return }
      try await journal.advance(
        settled: open.map { delivery in
          var links: [Link] = []
          if linked, case .posted(let message) = delivery.event.kind { links = [link(message.id.rawValue)] }
          return Settlement(delivery: delivery.id, links: links)
        })
    }
  }

  private func pruneAll(_ journal: Journal, _ clock: TestClock, _ age: Duration = .seconds(3600)) async throws -> Int {
    var start: Int64? = 0
    var pruned = 0
    while let from = start {
      let step = try await journal.prune(settledBefore: clock.now().advanced(by: .zero - age), from: from, limit: 100)
      pruned += step.pruned
      start = step.next
    }
    return pruned
  }

  @Test func whatWasSettledLongAgoGoesAndStaysKnown() async throws {
    try await withJournal { journal, clock, _ in
      try await accept((0..<250).map { posted("\($0)") }, journal)
      try await settle(journal)
      clock.advance(by: .seconds(3601))
      try await accept([posted("new")], journal)
      try await settle(journal)
      #expect(try await pruneAll(journal, clock) == 250)
      #expect(try await journal.trace("0", at: here).isEmpty)
      #expect(try await journal.trace("new", at: here).count == 1)
      #expect(try await journal.links("lobby", here, "0", to: site).isEmpty)
      #expect(try await journal.links("lobby", here, "new", to: site).count == 1)
      // A webhook that comes again after all that time sends nothing again.
      let again = try await accept([posted("0"), posted("249"), posted("new"), edited("3")], journal)
      #expect((again.accepted, again.forgotten, again.duplicates) == (0, 3, 1))
      // Nor is a copy, whose stamp its service has lost, taken for something new.
      var copy = posted("x")
      copy.channel = site.channel
      if case .posted(var message) = copy.kind {
        message.id = "c7"
        copy.kind = .posted(message)
      }
      let echo = try await journal.accept([copy], from: "site") { _ in [LaneID(bridge: "lobby", destination: here)] }
      #expect((echo.accepted, echo.forgotten) == (0, 1))
      #expect(try await accept([posted("250")], journal).accepted == 1)
    }
  }

  @Test func undeliveredAndDeadStayWithAllThatIsKnownOfThem() async throws {
    try await withJournal { journal, clock, _ in
      try await accept([posted("1"), posted("2"), posted("3")], journal)
      let open = try await journal.open(toSite, limit: 10)
      try await journal.advance(settled: [Settlement(delivery: open[0].id, links: [link("1")])])
      try await journal.bury(open[1].id, FerryError(.forbidden, "No."))
      // An edit that is not delivered keeps its message, although that is settled.
      try await accept([edited("1")], journal)
      clock.advance(by: .seconds(86_400))
      #expect(try await pruneAll(journal, clock) == 0)
      #expect(try await journal.deadLetters().count == 1)
      #expect(try await journal.open(toSite, limit: 10).map(\.event.key) == ["p3", "e1-1"])
      #expect(try await journal.links("lobby", here, "1", to: site).count == 1)
      // Once all is settled, and that long ago too, it goes.
      #expect(try await journal.dropDead(open[1].id))
      try await settle(journal)
      #expect(try await pruneAll(journal, clock) == 0)
      clock.advance(by: .seconds(3601))
      #expect(try await pruneAll(journal, clock) == 4)
    }
  }

  @Test func aMessageThatIsStillTalkedAboutStays() async throws {
    try await withJournal { journal, clock, _ in
      try await accept([posted("1")], journal)
      try await settle(journal)
      clock.advance(by: .seconds(3000))
      try await accept([edited("1")], journal)
      try await settle(journal)
      clock.advance(by: .seconds(3000))
      #expect(try await pruneAll(journal, clock) == 0)
      #expect(try await journal.links("lobby", here, "1", to: site).count == 1)
      clock.advance(by: .seconds(3000))
      #expect(try await pruneAll(journal, clock) == 2)
    }
  }

  @Test func whatIsSaidOfACopyKeepsItsOriginal() async throws {
    try await withJournal { journal, clock, _ in
      let toHere = LaneID(bridge: "lobby", destination: here)
      try await accept([posted("1")], journal)
      try await settle(journal)
      let reaction = Reaction(message: "c1", by: ann, emoji: "+", added: true)
      let event = Event(
        key: "r1", channel: site.channel, time: Timestamp(milliseconds: 2), kind: .reacted(reaction))
      _ = try await journal.accept([event], from: "site") { _ in [toHere] }
      clock.advance(by: .seconds(86_400))
      #expect(try await pruneAll(journal, clock) == 0)
      // Delivered at last, it is translated by the link.
      #expect(try await journal.translate("c1", at: site, to: here) == "1")
      let open = try #require(try await journal.open(toHere, limit: 1).first)
      try await journal.advance(settled: [Settlement(delivery: open.id)])
      #expect(try await pruneAll(journal, clock) == 0)
      clock.advance(by: .seconds(3601))
      #expect(try await pruneAll(journal, clock) == 2)
      #expect(try await journal.trace("1", at: here).isEmpty)
    }
  }

  @Test func namesInUseOutlastTheShortestRetention() async throws {
    try await withJournal { journal, clock, _ in
      let first = NameOwner(account: nil, id: "ann")
      let second = NameOwner(account: "site", id: "ann")
      #expect(try await journal.owners(of: "ann", at: here, with: first) == [first])
      // Used all the time, and noted once a day.
      for _ in 0..<30 {
        clock.advance(by: .seconds(3600))
        try await journal.tidy(before: clock.now().advanced(by: .seconds(-3600)), slice: 0)
        #expect(try await journal.owners(of: "ann", at: here, with: first) == [first])
      }
      #expect(try await journal.owners(of: "ann", at: here, with: second) == [first, second])
      clock.advance(by: .seconds(2 * 86_400 + 1))
      try await journal.tidy(before: clock.now().advanced(by: .seconds(-3600)), slice: 0)
      #expect(try await journal.owners(of: "ann", at: here, with: second) == [second])
    }
  }

  @Test func aChangeWhoseMessageNeverCameBecomesADeadLetter() async throws {
    try await withJournal { journal, clock, _ in
      try await accept([edited("1")], journal)
      try await journal.park(try #require(try await journal.open(toSite, limit: 1).first))
      #expect(try await pruneAll(journal, clock) == 0)
      clock.advance(by: .seconds(3601))
      _ = try await pruneAll(journal, clock)
      let dead = try await journal.deadLetters()
      #expect(dead.map(\.key) == ["e1-1"])
      #expect(dead.first?.reason.contains("never came") == true)
    }
  }

  /// 200,000 messages with FERRY_MESSAGES=200000; a tenth without.
  @Test(.timeLimit(.minutes(10))) func theFileStaysBounded() async throws {
    let total = ProcessInfo.processInfo.environment["FERRY_MESSAGES"].flatMap { Int($0) } ?? 20_000
    try await withJournal { journal, clock, folder in
      let batch = total / 40
      var sizes: [Int64] = []
      for round in 0..<40 {
        try await accept((0..<batch).map { posted("\(round)-\($0)") }, journal)
        try await settle(journal)
        clock.advance(by: .seconds(1800))
        _ = try await pruneAll(journal, clock)
        for slice in 0..<4 {
          try await journal.tidy(before: clock.now().advanced(by: .seconds(-3600)), slice: slice)
        }
        try await journal.shrink(pages: 100_000)
        var size: Int64 = 0
        for name in ["journal.db", "journal.db-wal"] {
          let attributes = try FileManager.default.attributesOfItem(atPath: "\(folder)/\(name)")
          size += (attributes[.size] as? Int64) ?? Int64(attributes[.size] as? Int ?? 0)
        }
        sizes.append(size)
      }
      // What is kept is three rounds of forty, and a digest of 20 bytes for each that is gone and for its copy. The log
      // that goes before the file takes up to 32 MiB besides.
      let kept = Int64(batch) * 4 * 1500 + Int64(total) * 2 * 40 + 33_554_432
      #expect(sizes.max() ?? .max < kept, "\(sizes)")
      let early = sizes[4..<12].max() ?? 0
      let late = sizes[32..<40].max() ?? .max
      #expect(late < early + Int64(total) * 2 * 40 + (8 << 20), "\(sizes)")
      #expect(try await journal.counts().isEmpty)
    }
  }
}
