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

  @Test func `who came and went is imported in the app's own words, and not at all where it has none`() async throws {
    try await AdapterRig.serving { rig in
      let start = Timestamp(milliseconds: 1_600_000_000_123)
      let ann = AdapterRig.ann
      let joined = PastItem(key: "j", time: start, kind: .join(ann))
      let left = PastItem(key: "l", time: start, kind: .leave(ann))
      let silent = rig.adapter { $0.joinNotice = nil }
      #expect(silent.capabilities.importing?.joins == false)
      await #expect(throws: FerryError.self) { _ = try await silent.write([joined], into: "lobby") }
      let adapter = rig.adapter {
        $0.joinNotice = "ist da"
        $0.leaveNotice = nil
      }
      #expect(adapter.capabilities.importing?.joins == true)
      #expect(try await adapter.write([joined], into: "lobby") == [nil])
      let error = await #expect(throws: FerryError.self) { _ = try await adapter.write([left], into: "lobby") }
      #expect(error?.code == .unsupported && error?.retry == .never && error?.didNotAct == true)
      #expect(error?.message.contains("leave_notice") == true)
      let rows = try await rig.send("POST", "/data/ChatMessage/find", ["where": "channel = 'lobby'"])
      #expect((rows.array ?? []).map { $0["messageText"]?.string } == ["ist da"])
    }
  }

  @Test func `an edit of the past that was written before does not undo one made since`() async throws {
    try await AdapterRig.serving { rig in
      let adapter = rig.adapter()
      let start = Timestamp(milliseconds: 1_600_000_000_123)
      let past = PastMessage(author: AdapterRig.ann, text: "first")
      var changed = past
      changed.text = "second"
      let items = [
        PastItem(key: "m", time: start, kind: .message(past)),
        PastItem(key: "e", time: start.advanced(by: .seconds(1)), kind: .edit(PastReference(key: "m"), changed)),
      ]
      let ids = try await adapter.write(items, into: "lobby")
      let id = try #require(ids[0])
      func text() async throws -> String? {
        try await rig.send("GET", "/data/ChatMessage/\(id)")["messageText"]?.string
      }
      #expect(try await text() == "second")
      try await rig.send("PUT", "/data/ChatMessage/\(id)", ["messageText": "since"])
      #expect(try await adapter.write(items, into: "lobby") == ids)
      #expect(try await text() == "since")
      // Another edit is written.
      changed.text = "third"
      let later = PastItem(
        key: "f", time: start.advanced(by: .seconds(2)), kind: .edit(PastReference(key: "m"), changed))
      _ = try await adapter.write([later], into: "lobby")
      #expect(try await text() == "third")
    }
  }

  @Test func `a copy of somebody's message that reads like the notice is a message on both sides`() async throws {
    try await AdapterRig.serving { rig in
      let adapter = rig.adapter()
      let story = Locked<[String]>([])
      try await rig.running(adapter) { inbox in
        _ = try await adapter.post(AdapterRig.message("joined"), to: "lobby")
        _ = try await adapter.post(AdapterRig.message("hello"), to: "lobby")
        let told = await inbox.story(2)
        story.withLock { $0 = told }
      }
      #expect(story.withLock { $0 } == ["+joined", "+hello"])
      let page = try await adapter.history(of: "lobby", order: .oldestFirst, after: nil, limit: 10)
      #expect(page.messages.map(\.text) == ["joined", "hello"] && page.notices.isEmpty)
      let chat = try await rig.chat.history(of: "lobby", order: .oldestFirst, limit: 10).messages
      #expect(chat.map(\.message.text) == ["joined", "hello"])
      #expect(try await rig.chat.members(of: "lobby").isEmpty)
    }
  }

  @Test func `an account without a table publishes such a copy as a message, too`() async throws {
    try await AdapterRig.serving { rig in
      let adapter = rig.adapter { $0.table = nil }
      _ = try await adapter.post(AdapterRig.message("joined"), to: "lobby")
      let chat = try await rig.chat.history(of: "lobby", order: .oldestFirst, limit: 10).messages
      #expect(chat.map(\.message.text) == ["joined"])
      #expect(try await rig.chat.members(of: "lobby").isEmpty)
    }
  }
}
