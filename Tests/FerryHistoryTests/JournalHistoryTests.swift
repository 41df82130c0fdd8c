import FerryCore
import FerryHistory
import FerryRuntime
import FerryStorage
import FerryTestKit
import Testing

@Suite(.timeLimit(.minutes(1))) struct JournalHistoryTests {
  private static let address = Address(account: "site", channel: "room")
  private static let ada = Author(id: "ada", name: "Ada")

  private func message(_ id: MessageID, _ text: String) -> Message {
    Message(
      id: id, author: Self.ada, text: text, time: Timestamp(milliseconds: 1_000_000),
      attachments: [
        FerryCore.Attachment(name: "\(text).png", mediaType: "image/png", reference: .url("https://a.example/\(text)"))
      ])
  }

  private func event(_ key: String, _ kind: Event.Kind) -> Event {
    Event(
      key: EventKey(key), channel: Self.address.channel, time: Timestamp(milliseconds: 1_000_000), kind: kind)
  }

  @Test("a journal's past is taken page by page; of deleted messages the place stays, and nothing that they said")
  func export() async throws {
    let folder = try TemporaryFolder()
    let journal = try Journal(path: folder.file("journal.db"))
    defer { journal.close() }
    var edited = message("m2", "secret again")
    edited.revision = 1
    let events = [
      event("1", .posted(message("m1", "hello"))), event("2", .posted(message("m2", "secret"))),
      event("3", .edited(edited)), event("4", .deleted(Deletion(id: "m2"))),
      event("5", .posted(message("m3", "bye"))),
    ]
    let lanes = [LaneID(bridge: "b", destination: Address(account: "there", channel: "x"))]
    _ = try await journal.accept(events, from: Self.address.account) { _ in lanes }
    let history = JournalHistory(journal, Self.address) { _ async throws(FerryError) in
      throw FerryError(.notFound, "Gone.")
    }
    var records: [Record] = []
    var cursor: Cursor?
    while true {
      let page = try await history.page(after: cursor, limit: 2)
      records += page.records
      cursor = page.next
      if page.isLast { break }
    }
    #expect(records.map(\.kind) == ["message", "message", "delete", "message"])
    let messages = records.compactMap { if case .message(let record) = $0 { record } else { nil } }
    #expect(messages.map(\.message.text) == ["hello", "", "bye"])
    #expect(messages.map(\.isDeleted) == [false, true, false])
    #expect(!records.contains { String(decoding: $0.line(), as: UTF8.self).contains("secret") })
    // What comes later goes on from there.
    _ = try await journal.accept([event("6", .posted(message("m4", "later")))], from: Self.address.account) { _ in lanes
    }
    #expect(try await history.page(after: cursor, limit: 10).records.count == 1)
  }
}
