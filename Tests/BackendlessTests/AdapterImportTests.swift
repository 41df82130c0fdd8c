import FerryChat
import FerryCore
import FerryRuntime
import FerryTestKit
import Testing

@testable import BackendlessProvider

@Suite(.timeLimit(.minutes(2))) struct AdapterImportTests {
  @Test func `what is imported keeps its author, its time and what it answers`() async throws {
    try await AdapterRig.serving { rig in
      let adapter = rig.adapter()
      let start: Int64 = 1_600_000_000_123
      let authors = [Author(id: "7", name: "ann"), Author(id: "bob", name: "bob")]
      let items = (0..<150).map { number in
        let answered = number == 0 ? nil : PastReference(key: SendKey("k\(number - 1)"))
        return PastItem(
          key: SendKey("k\(number)"), time: Timestamp(milliseconds: start + Int64(number)),
          kind: .message(PastMessage(author: authors[number % 2], text: "m\(number)", replyTo: answered)))
      }
      let joined = PastItem(key: "j", time: Timestamp(milliseconds: start), kind: .join(authors[0]))
      let left = PastItem(key: "l", time: Timestamp(milliseconds: start + 1), kind: .leave(authors[0]))
      try await adapter.prepareImport(into: "lobby", notify: false)
      var ids: [MessageID?] = []
      for part in [[joined, left], Array(items[..<100]), Array(items[100...])] {
        ids += try await adapter.write(part, into: "lobby")
      }
      var messages: [Message] = []
      var notices: [Event] = []
      var cursor: Cursor?
      repeat {
        let page = try await adapter.history(of: "lobby", order: .oldestFirst, after: cursor, limit: 40)
        messages += page.messages
        notices += page.notices
        cursor = page.next
      } while cursor != nil
      #expect(messages.map(\.text) == (0..<150).map { "m\($0)" })
      #expect(messages.map(\.author) == (0..<150).map { authors[$0 % 2] })
      #expect(messages.map(\.time.milliseconds) == (0..<150).map { start + Int64($0) })
      #expect(messages.map(\.id) == ids.compactMap { $0 })
      #expect(messages.dropFirst().map(\.replyTo) == messages.dropLast().map { $0.id })
      #expect(notices.count == 2)
      // In the chat of the facade they are no messages either.
      let page = try await rig.chat.history(of: "lobby", order: .oldestFirst, limit: 200)
      #expect(page.messages.count == 150)
      #expect(try await rig.chat.members(of: "lobby").isEmpty)
    }
  }
}
