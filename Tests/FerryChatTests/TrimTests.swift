import FerryChat
import FerryCore
import Testing

@Suite struct TrimTests {
  private static let ada = Author(id: "ada", name: "Ada")

  @Test func `the last messages stay, with their reactions, and other rooms are not touched`() async throws {
    try await withChat { chat, _ in
      for room in ["one", "two"] as [ChannelID] {
        for number in 0..<20 {
          let message = try await chat.post(Draft(author: Self.ada, text: "\(number)"), to: room, by: .owner).message
          try await chat.react(
            Reaction(message: message.message.id, by: Self.ada, emoji: "👍", added: true), in: room, by: .owner)
        }
      }
      try await chat.trim("one", to: 5)
      let left = try await chat.history(of: "one", order: .oldestFirst, limit: 100).messages
      #expect(left.map(\.message.text) == (15..<20).map(String.init))
      #expect(left.allSatisfy { $0.reactions.count == 1 })
      #expect(try await chat.events(of: "one", after: 0, limit: 100).count == 20)
      #expect(try await chat.history(of: "two", order: .oldestFirst, limit: 100).messages.count == 20)
      try await chat.trim("one", to: 50)
      #expect(try await chat.history(of: "one", order: .oldestFirst, limit: 100).messages.count == 5)
      try await chat.trim("none", to: 5)
      try await chat.trim("one", to: 0)
      #expect(try await chat.history(of: "one", order: .oldestFirst, limit: 100).messages.isEmpty)
    }
  }
}
