@testable import FerryChat
import FerryCore
import FerryRuntime
import Testing

@Suite(.timeLimit(.minutes(1))) struct BringTests {
  private static func message(
    _ number: Int, replyTo: PastReference? = nil, attachments: [OutgoingAttachment] = []
  ) -> PastItem {
    let stamp = Stamp(bridge: "import", origin: Address(account: "old", channel: "lobby"), id: MessageID("m\(number)"))
    let past = PastMessage(
      author: Author(id: UserID("u\(number % 3)"), name: "person \"\(number % 3)\""), text: "text \(number)\nü",
      format: number % 2 == 0 ? .plain : .markdown, edited: number % 5 == 0 ? time(number + 1) : nil,
      revision: number % 5 == 0 ? 2 : 0, attachments: attachments, replyTo: replyTo,
      mentions: number % 7 == 0 ? ["u1"] : [], isAction: number % 11 == 0)
    return PastItem(key: SendKey("key \(number)"), time: time(number), kind: .message(past), stamp: stamp)
  }

  private static func time(_ number: Int) -> Timestamp { Timestamp(milliseconds: 1_470_366_650_000 + Int64(number)) }

  private static func everything(_ chat: ChatService) async throws -> [ChatMessage] {
    try await chat.history(of: lobby, order: .oldestFirst, limit: 500).messages
  }

  /// What does not depend on when and under which number it was written.
  private static func told(_ chat: ChatService) async throws -> [String] {
    var numbers: [String: Int] = [:]
    return try await chat.events(of: lobby, after: 0, limit: 500).map { event in
      var text = event.json
      for name in ["\"id\":\"", "\"reply_to\":\""] {
        guard let start = text.firstRange(of: name)?.upperBound, let end = text[start...].firstIndex(of: "\"") else {
          continue
        }
        let id = String(text[start..<end])
        let number = numbers[id, default: numbers.count]
        numbers[id] = number
        text.replaceSubrange(start..<end, with: "#\(number)")
      }
      return text
    }
  }

  /// Items of every kind, mixed: what the statements of many rows have to make way for.
  private static var mixed: [PastItem] {
    var items: [PastItem] = []
    for number in 0..<120 {
      let reply = number % 9 == 4 ? PastReference(key: SendKey("key \(number - (number % 2 == 0 ? 1 : 3))")) : nil
      items.append(message(number, replyTo: reply))
      let reference = PastReference(key: SendKey("key \(number)"))
      switch number % 31 {
      case 3:
        let past = PastMessage(author: ada, text: "better \(number)")
        items.append(PastItem(key: SendKey("edit \(number)"), time: time(number), kind: .edit(reference, past)))
      case 8:
        items.append(PastItem(key: SendKey("gone \(number)"), time: time(number), kind: .delete(reference, by: ada)))
      case 11: items.append(PastItem(key: SendKey("join \(number)"), time: time(number), kind: .join(bob)))
      case 17:
        items.append(
          PastItem(
            key: SendKey("react \(number)"), time: time(number),
            kind: .reaction(reference, by: ada, emoji: "👍", added: true)))
      default: break
      }
    }
    return items
  }

  @Test func manyAtOnceAreWhatTheyAreOneByOne() async throws {
    try await withChat { many, _ async throws in
      try await withChat { single, _ async throws in
        let ids = try await many.bring(Self.mixed, into: lobby, by: .owner)
        var others: [MessageID?] = []
        for item in Self.mixed { others += try await single.bring([item], into: lobby, by: .owner) }
        #expect(ids.map { $0 == nil } == others.map { $0 == nil })
        let messages = try await Self.everything(many)
        #expect(messages.map(\.message.id) == ids.compactMap { $0 })
        // A database's numbers begin with the time at which it was made.
        func plain(_ messages: [ChatMessage]) -> [ChatMessage] {
          messages.enumerated().map { index, message in
            var message = message
            message.message.id = MessageID("\(index)")
            message.message.replyTo = message.message.replyTo.flatMap { reply in
              messages.firstIndex { $0.message.id == reply }.map { MessageID("\($0)") }
            }
            return message
          }
        }
        #expect(try await plain(messages) == plain(Self.everything(single)))
        #expect(messages.contains { $0.message.replyTo != nil })
        #expect(try await Self.told(many) == Self.told(single))
      }
    }
  }

  @Test func whatIsThereAlreadyIsLeftAlone() async throws {
    try await withChat { chat, _ async throws in
      let some = try await chat.bring([Self.message(3), Self.message(40)], into: lobby, by: .owner)
      let all = try await chat.bring((0..<60).map { Self.message($0) }, into: lobby, by: .owner)
      #expect([all[3], all[40]] == some)
      #expect(Set(all.compactMap { $0 }).count == 60)
      #expect(try await chat.bring((0..<60).map { Self.message($0) }, into: lobby, by: .owner) == all)
      #expect(try await Self.everything(chat).map(\.position) == Array(0..<60))
      #expect(try await chat.events(of: lobby, after: 0, limit: 500).count == 60)
    }
  }

  @Test func aKeyThatComesTwiceInOneImportIsOneMessage() async throws {
    try await withChat { chat, _ async throws in
      let ids = try await chat.bring([1, 2, 1, 3, 2].map { Self.message($0) }, into: lobby, by: .owner)
      #expect(ids[0] == ids[2])
      #expect(ids[1] == ids[4])
      #expect(try await Self.everything(chat).map(\.message.text) == ["text 1\nü", "text 2\nü", "text 3\nü"])
    }
  }

  @Test func oneThatIsRefusedLeavesNothingOfItsImport() async throws {
    try await withChat { chat, _ async throws in
      let missing = OutgoingAttachment(
        name: "a", mediaType: "text/plain", size: 1, sha256: "", reference: .provider(String(repeating: "0", count: 64))
      )
      let items = (0..<50).map { Self.message($0, attachments: $0 == 40 ? [missing] : []) }
      await expect(.badRequest) { _ = try await chat.bring(items, into: lobby, by: .owner) }
      await expect(.notFound) { _ = try await Self.everything(chat) }
      let ids = try await chat.bring((0..<50).map { Self.message($0) }, into: lobby, by: .owner)
      #expect(ids.count == 50)
    }
  }

  @Test func readersAreToldInOrder() async throws {
    try await withChat { chat, _ async throws in
      let reader = try await chat.reader(of: nil, after: nil)
      _ = try await chat.bring(Self.mixed, into: lobby, by: .owner)
      let logged = try await chat.events(of: lobby, after: 0, limit: 500)
      let told = try await take(logged.count, from: reader)
      #expect(told.map(\.sequence) == logged.map(\.sequence))
      #expect(told.map(\.json) == logged.map(\.json))
      #expect(try told.map { try $0.event() } == logged.map { try $0.event() })
    }
  }

  @Test func anObserverIsToldOfEachBeforeTheNext() async throws {
    try await withChat { chat, _ async throws in
      let seen = Locked<[String]>([])
      try await chat.observe(as: "test") { transaction, observed in
        guard case .posted(let message) = observed.event.kind else { return }
        seen.withLock { $0.append(message.text) }
        _ = try transaction.post([draft("after \(message.text)")], to: lobby, by: .owner)
      }
      _ = try await chat.bring((0..<30).map { Self.message($0) }, into: lobby, by: .owner)
      let texts = (0..<30).map { "text \($0)\nü" }
      #expect(seen.withLock { $0 } == texts)
      let messages = try await Self.everything(chat)
      #expect(messages.map(\.message.text) == texts.flatMap { [$0, "after \($0)"] })
      #expect(messages.map(\.position) == Array(0..<60))
    }
  }

  @Test func anEventIsWrittenAsItsWireTypeWritesIt() throws {
    let items = Self.mixed
    for (number, item) in items.enumerated() {
      guard case .message(let past) = item.kind else { continue }
      var message = Message(
        id: "7", author: past.author, text: past.text, format: past.format, time: item.time, revision: past.revision,
        edited: past.edited, mentions: past.mentions, stamp: item.stamp, attributes: past.attributes)
      if number % 4 == 0 { message.replyTo = "5" }
      if number % 6 == 0 { message.author.avatar = "https://a.example/b" }
      let stored = ChatMessage(
        message: message, room: lobby, clientID: number % 3 == 0 ? nil : item.key,
        deleted: number % 10 == 0 ? item.time : nil)
      for kind in [Event.Kind.posted(message), .edited(message)] {
        let event = Event(key: "", channel: lobby, time: item.time, kind: kind)
        #expect(try Wire.Event.json(event, stored: stored) == Wire.Event(event, stored: stored).json())
      }
    }
  }
}
