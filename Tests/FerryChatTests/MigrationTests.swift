import FerryCore
import FerryStorage
import Testing

@testable import FerryChat

@Suite(.timeLimit(.minutes(5))) struct MigrationTests {
  @Test func `messages of the first schema are numbered when the file is opened by a newer Ferry`() async throws {
    let folder = try ChatFolder()
    defer { folder.remove() }
    let old = try Database(path: folder.path + "/chat.db", migrations: [Schema.steps[0]])
    try await old.write { connection in
      for room in 1...2 {
        try connection.execute(
          "INSERT INTO rooms(id, name, created) VALUES (?, ?, 0)", SQLValue(room), .text(room == 1 ? "lobby" : "other"))
      }
      for (index, room) in [1, 2, 1, 1, 2].enumerated() {
        try connection.execute(
          """
          INSERT INTO messages(room, author, author_name, text, format, time) VALUES (?, 'ada', 'Ada', ?, 'plain', 0)
          """, SQLValue(room), .text("\(index)"))
      }
    }
    old.close()
    let chat = try folder.open()
    defer { chat.close() }
    func positions(_ room: ChannelID) async throws -> [Int64] {
      try await chat.history(of: room, order: .oldestFirst, limit: 10).messages.map(\.position)
    }
    #expect(try await positions(lobby) == [0, 1, 2])
    #expect(try await positions("other") == [0, 1])
    #expect(try await chat.post(draft("next"), to: lobby, by: .owner).message.position == 3)
    #expect(try await chat.rooms().count == 2)
  }
}
