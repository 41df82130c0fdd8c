@testable import FerryChat
import FerryCore
import FerryRuntime
import Testing

@Suite(.timeLimit(.minutes(1))) struct FeedTests {
  /// Everything a conversation can do, several times.
  private func talk(_ chat: ChatService, in room: ChannelID, rounds: Int, by name: String) async throws {
    let user = Author(id: UserID(name), name: name)
    for round in 0..<rounds {
      let id = try await chat.post(draft("round \(round)"), to: room, by: .owner).message.message.id
      _ = try await chat.edit(id, in: room, to: Change(text: "round \(round), edited"), by: .owner)
      try await chat.react(Reaction(message: id, by: user, emoji: "👍", added: true), in: room, by: .owner)
      try await chat.mark(ReadMark(upTo: id, by: user, state: .read), in: room, by: .owner)
      try await chat.join(user, room, by: .owner)
      if round % 2 == 0 { try await chat.delete(id, in: room, by: .owner) }
      try await chat.leave(user.id, room, by: .owner)
    }
  }

  @Test func aReaderResumesFromEverySequenceWhileWritersRace() async throws {
    try await withChat { chat, _ async throws in
      try await talk(chat, in: lobby, rounds: 4, by: "bob")
      let scripted = try await chat.events(of: lobby, after: 0, limit: 500).map(\.sequence)
      let starts = [0] + scripted
      let readers = Locked<[FeedReader]>([])
      let total = scripted.count + 2 * 65
      try await withThrowingTaskGroup(of: [Int64].self) { group in
        for room in [lobby, "noise"] {
          for talker in 0..<2 {
            group.addTask {
              try await talk(chat, in: room, rounds: 10, by: "talker \(talker)")
              return []
            }
          }
        }
        for (index, start) in starts.enumerated() {
          group.addTask {
            let reader = try await chat.reader(of: lobby, after: start)
            readers.withLock { $0.append(reader) }
            return try await take(total - index, from: reader).map(\.sequence)
          }
        }
        var logs: [[Int64]] = []
        for try await log in group where !log.isEmpty { logs.append(log) }
        let whole = try await chat.events(of: lobby, after: 0, limit: 500).map(\.sequence)
        #expect(whole.count == total)
        #expect(Set(logs.map(\.count)) == Set((0..<starts.count).map { total - $0 }))
        for log in logs { #expect(log == Array(whole.suffix(log.count))) }
      }
      for reader in readers.withLock({ $0 }) { reader.close() }
    }
  }

  @Test func aReaderThatLagsReadsTheLogAndLosesNothing() async throws {
    try await withChat { chat, _ async throws in
      let slow = try await chat.reader(of: lobby, after: nil)
      defer { slow.close() }
      _ = try await chat.post(draft("first"), to: lobby, by: .owner)
      #expect(try await take(1, from: slow).count == 1)
      // Four times what is queued for a reader, and then some while it catches up.
      for batch in 0..<4 {
        _ = try await chat.post((0..<256).map { draft("\(batch) \($0)") }, to: lobby, by: .owner)
      }
      var read = try await take(300, from: slow)
      _ = try await chat.post((0..<256).map { draft("4 \($0)") }, to: lobby, by: .owner)
      read += try await take(5 * 256 - read.count, from: slow)
      let texts = try read.map { event in
        guard case .posted(let message) = try event.event().kind else { return "?" }
        return message.text
      }
      #expect(texts == (0..<5).flatMap { batch in (0..<256).map { "\(batch) \($0)" } })
    }
  }

  @Test func aReaderThatIsClosedWhileItReadsTheLogHandsOutNothing() async throws {
    let feed = Feed()
    let closer = Locked<FeedReader?>(nil)
    let reader = try FeedReader(feed: feed, room: lobby, after: nil) { _, _ async throws(FerryError) in
      closer.withLock { $0 }?.close()
      return [LoggedEvent(sequence: 1, room: lobby, json: "{}")]
    }
    closer.withLock { $0 = reader }
    #expect(try await reader.next().isEmpty)
    #expect(reader.position == 0)
    // The reader holds on to what reads for it, and that to this.
    closer.withLock { $0 = nil }
  }

  @Test func aReaderOfAllRoomsSeesThemInOneOrder() async throws {
    try await withChat { chat, _ async throws in
      let all = try await chat.reader(of: nil, after: 0)
      defer { all.close() }
      for number in 0..<20 {
        _ = try await chat.post(draft("\(number)"), to: ChannelID("room\(number % 3)"), by: .owner)
      }
      let events = try await take(20, from: all)
      #expect(events.map(\.room) == (0..<20).map { ChannelID("room\($0 % 3)") })
      #expect(events.map(\.sequence) == events.map(\.sequence).sorted())
    }
  }

  @Test func aCursorOfAWipedNamespaceIsBeforeEverythingInTheNewOne() async throws {
    let old = try ChatFolder()
    defer { old.remove() }
    let first = try old.open()
    _ = try await first.post((0..<100).map { draft("\($0)") }, to: lobby, by: .owner)
    let cursor = try await first.head()
    first.close()
    // The seed is the time of creation, so the new one must be made later.
    while SystemClock().now().milliseconds <= cursor / 1000 + 1 { await Task.yield() }
    try await withChat { chat, _ async throws in
      let new = try await chat.post(draft("new"), to: lobby, by: .owner)
      let reader = try await chat.reader(of: lobby, after: cursor)
      defer { reader.close() }
      let event = try #require(try await take(1, from: reader).first)
      #expect(try event.event().kind == .posted(new.message.message))
    }
  }

  @Test func aCursorFromTheFutureIsRefused() async throws {
    try await withChat { chat, _ async throws in
      let head = try await chat.head()
      let reader = try await chat.reader(of: lobby, after: head)
      reader.close()
      await expect(.conflict) { _ = try await chat.reader(of: lobby, after: head + 1) }
    }
  }

  @Test func aWaitingReaderEndsWithItsTaskAndWithTheService() async throws {
    try await withChat { chat, _ async throws in
      let reader = try await chat.reader(of: lobby, after: nil)
      let waiting = Task { try await reader.next().count }
      waiting.cancel()
      #expect(try await waiting.value == 0)
      let second = Task { try await reader.next().count }
      reader.close()
      #expect(try await second.value == 0)
      let other = try await chat.reader(of: nil, after: nil)
      let third = Task { try await other.next().count }
      chat.close()
      #expect(try await third.value == 0)
    }
  }

  @Test func anEventIsEncodedOnceForManyReaders() async throws {
    try await withChat { chat, _ async throws in
      var readers: [FeedReader] = []
      for _ in 0..<10 { readers.append(try await chat.reader(of: lobby, after: nil)) }
      // The first read of each makes it live.
      let made = Locked(0)
      let seen = try await withThrowingTaskGroup(of: String.self) { group in
        for reader in readers {
          group.addTask {
            let event = try await take(1, from: reader)[0]
            return event.encoding {
              made.withLock { $0 += 1 }
              return "frame \(event.sequence)"
            }
          }
        }
        _ = try await chat.post(draft("x"), to: lobby, by: .owner)
        return try await group.reduce(into: Set<String>()) { $0.insert($1) }
      }
      #expect(seen.count == 1)
      #expect(made.withLock { $0 } >= 1)
      for reader in readers { reader.close() }
    }
  }
}
