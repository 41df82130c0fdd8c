import FerryCore
import FerryRuntime
import Testing

@testable import FerryChat
@testable import FerryStorage

@Suite(.timeLimit(.minutes(1))) struct FileBytesTests {
  private func store(_ count: Int, _ byte: UInt8, in chat: ChatService) async throws {
    _ = try await chat.store(stream([[UInt8](repeating: byte, count: count)]), name: "f", mediaType: "")
  }

  @Test func theBytesOfAllFilesAreCountedOnceAndThenAsTheyCome() async throws {
    let folder = try ChatFolder()
    defer { folder.remove() }
    let chat = try folder.open()
    #expect(try await chat.fileBytes() == 0)
    try await store(1000, 1, in: chat)
    try await store(1000, 1, in: chat)
    try await store(500, 2, in: chat)
    await #expect(throws: FerryError.self) {
      _ = try await chat.store(stream([[3]], size: 2), name: "f", mediaType: "")
    }
    #expect(try await chat.fileBytes() == 1500)
    // What is in the database is not looked at again.
    try await chat.database.write { try $0.execute("UPDATE files SET size = 2 * size") }
    #expect(try await chat.fileBytes() == 1500)
    chat.close()
    let again = try folder.open()
    defer { again.close() }
    #expect(try await again.fileBytes() == 3000)
    try await store(10, 4, in: again)
    #expect(try await again.fileBytes() == 3010)
  }
}
