import FerryChat
import FerryCore
import FerryRuntime
import Testing

@Suite(.timeLimit(.minutes(1))) struct TypingTests {
  /// Runs `body` with a reader that is live, and the service's clockwork.
  private func withTyping(
    _ body: (ChatService, FeedReader, TestClock) async throws -> Void
  ) async throws {
    try await withChat { chat, folder async throws in
      let running = Task { await chat.run() }
      let reader = try await chat.reader(of: lobby, after: nil)
      // The first item makes the reader live.
      _ = try await chat.post(draft("first", from: bob), to: lobby, by: .owner)
      _ = try await reader.next()
      try await body(chat, reader, folder.clock)
      reader.close()
      running.cancel()
      await running.value
    }
  }

  private func typing(_ items: [FeedItem]) -> [Typing] {
    items.compactMap { if case .typing(let typing) = $0 { typing } else { nil } }
  }

  private let begin = Typing(channel: lobby, by: ada, on: true)
  private let end = Typing(channel: lobby, by: ada, on: false)

  @Test func typingEndsAfterFiveSecondsWithoutRenewal() async throws {
    try await withTyping { chat, reader, clock async throws in
      try chat.setTyping(begin, by: asAda)
      #expect(typing(try await reader.next()) == [begin])
      await clock.waitForSleeper()
      clock.advance(by: .seconds(3))
      try chat.setTyping(begin, by: asAda)
      #expect(typing(try await reader.next()) == [begin])
      clock.advance(by: .seconds(2))
      await clock.waitForSleeper()
      clock.advance(by: .milliseconds(2999))
      try chat.setTyping(Typing(channel: lobby, by: bob, on: true), by: asBob)
      #expect(typing(try await reader.next()).map(\.by) == [bob], "ada still types")
      clock.advance(by: .milliseconds(1))
      #expect(typing(try await reader.next()) == [end])
    }
  }

  @Test func typingEndsWithTheSendersMessageBeforeIt() async throws {
    try await withTyping { chat, reader, _ async throws in
      try chat.setTyping(begin, by: asAda)
      _ = try await reader.next()
      _ = try await chat.post(draft("from bob", from: bob), to: lobby, by: asBob)
      #expect(typing(try await reader.next()).isEmpty)
      _ = try await chat.post(draft("done"), to: lobby, by: asAda)
      let items = try await reader.next()
      #expect(items.count == 2 && typing([items[0]]) == [end])
    }
  }

  @Test func renewalsWithinASecondAndEndsOfNothingAreNotTold() async throws {
    try await withTyping { chat, reader, clock async throws in
      try chat.setTyping(end, by: asAda)
      for _ in 0..<10 { try chat.setTyping(begin, by: asAda) }
      clock.advance(by: .milliseconds(999))
      try chat.setTyping(begin, by: asAda)
      try chat.setTyping(end, by: asAda)
      try chat.setTyping(end, by: asAda)
      #expect(typing(try await reader.next()) == [begin, end])
    }
  }

  @Test func typingLeavesNothingInTheLog() async throws {
    try await withTyping { chat, _, _ async throws in
      let head = try await chat.head()
      try chat.setTyping(begin, by: asAda)
      try chat.setTyping(Typing(channel: "never made", by: ada, on: true), by: asAda)
      #expect(try await chat.head() == head)
      #expect(try await chat.rooms().map(\.id) == [lobby])
    }
  }
}
