import FerryChat
import FerryCore
import FerryRuntime
import Testing

@Suite(.timeLimit(.minutes(1))) struct PostTests {
  @Test func aPostMadeAgainUnderItsClientIDReturnsTheFirstMessage() async throws {
    try await withChat { chat, _ async throws in
      let first = try await chat.post(draft("hello", "k1"), to: lobby, by: .owner)
      let again = try await chat.post(draft("other words", "k1"), to: lobby, by: .owner)
      #expect(!first.isRepeat && again.isRepeat)
      #expect(again.message == first.message)
      let elsewhere = try await chat.post(draft("hello", "k1"), to: "other", by: .owner)
      #expect(!elsewhere.isRepeat, "a client id counts in its room only")
      #expect(try await chat.events(of: nil, after: 0, limit: 100).count == 2)
    }
  }

  @Test func ofManyPostsAtOnceUnderOneClientIDOneIsWritten() async throws {
    try await withChat { chat, _ async throws in
      let ids = try await withThrowingTaskGroup(of: Posted.self) { group in
        for number in 0..<64 {
          group.addTask { try await chat.post(draft("try \(number)", "k\(number % 4)"), to: lobby, by: .owner) }
        }
        return try await group.reduce(into: [Posted]()) { $0.append($1) }
      }
      #expect(ids.count { !$0.isRepeat } == 4)
      #expect(Set(ids.map(\.message.message.id)).count == 4)
      #expect(try await chat.history(of: lobby, order: .oldestFirst, limit: 100).messages.count == 4)
    }
  }

  @Test func aBatchIsWrittenInOrderAndAllOrNone() async throws {
    try await withChat { chat, _ async throws in
      let drafts = (0..<256).map { draft("message \($0)", "b\($0)") }
      let posted = try await chat.post(drafts, to: lobby, by: .owner)
      #expect(posted.map(\.message.message.text) == drafts.map(\.text))
      let ids = posted.compactMap { Int64($0.message.message.id.rawValue) }
      #expect(ids == ids.sorted() && Set(ids).count == 256)

      var bad = (0..<10).map { draft("late \($0)") }
      bad[9].replyTo = "1"
      let batch = bad
      await expect(.badRequest) { _ = try await chat.post(batch, to: lobby, by: .owner) }
      let batchTooLong = (0..<257).map { draft("\($0)") }
      await expect(.badRequest) { _ = try await chat.post(batchTooLong, to: lobby, by: .owner) }
      await expect(.badRequest) { _ = try await chat.post([], to: lobby, by: .owner) }
      #expect(try await chat.room(lobby).last?.message.text == "message 255")

      let half = try await chat.post([draft("message 255", "b255"), draft("new", "b256")], to: lobby, by: .owner)
      #expect(half.map(\.isRepeat) == [true, false])
    }
  }

  @Test func everythingAMessageHadComesBack() async throws {
    try await withChat { chat, _ async throws in
      let first = try await chat.post(draft("first"), to: lobby, by: .owner)
      let stamp = Stamp(bridge: "b", origin: Address(account: "site", channel: "chat:room"), id: "77", part: 2)
      let full = Draft(
        clientID: "k", author: Author(id: "ü", name: "Ümit 👩‍👩‍👧", avatar: "https://example.org/a.png"),
        text: "line\nnul \u{0} tab\t \u{202e}rtl 👍🏽 e\u{301}", format: .markdown,
        time: Timestamp(milliseconds: 1_470_366_650_123),
        attachments: [Attachment(name: "a b.png", mediaType: "image/png", reference: .url("https://example.org/x"))],
        replyTo: first.message.message.id, mentions: ["ada", "bob"], stamp: stamp,
        attributes: ["deep": ["a", 1, true, ["x": .null]]])
      let posted = try await chat.post(full, to: lobby, by: .owner).message
      let read = try await chat.message(posted.message.id, in: lobby)
      #expect(read == posted)
      #expect(read.message.text.utf8.elementsEqual(full.text.utf8))
      #expect(read.message.author == full.author && read.message.format == .markdown)
      #expect(read.message.time == full.time && read.message.replyTo == full.replyTo)
      #expect(read.message.mentions == full.mentions && read.message.stamp == stamp)
      #expect(read.message.attributes == full.attributes && read.message.attachments == full.attachments)
      #expect(read.clientID == "k")
      let events = try await chat.events(of: lobby, after: 0, limit: 10)
      #expect(try events.last?.event().kind == .posted(read.message), "\(events.last?.json ?? "")")
      #expect(try await chat.message(byClientID: "k", in: lobby) == read)
      #expect(try await chat.message(byClientID: "no", in: lobby) == nil)
      #expect(try await chat.message(byClientID: "k", in: "nowhere") == nil)
      await expect(.badRequest) { _ = try await chat.post(full, to: "other", by: .owner) }
    }
  }

  @Test func namesThatOnlyLookEqualAreDifferent() async throws {
    try await withChat { chat, _ async throws in
      let composed: ChannelID = "caf\u{e9}"
      let decomposed: ChannelID = "cafe\u{301}"
      let reader = try await chat.reader(of: composed, after: nil)
      defer { reader.close() }
      _ = try await chat.post(draft("decomposed"), to: decomposed, by: .owner)
      _ = try await chat.post(draft("composed"), to: composed, by: .owner)
      #expect(try await take(1, from: reader).first?.json.contains("decomposed") == false)
      #expect(try await chat.rooms().count == 2)
    }
  }

  @Test(arguments: [
    draft("x", ""), draft("x", String(repeating: "k", count: 257)),
    draft("x", from: Author(id: "", name: "")), draft("x", from: nil),
    draft("x", from: Author(id: "a", name: String(repeating: "é", count: 129))),
    draft("x", from: Author(id: "a\nb", name: "")),
    draft("x", from: Author(id: "a", name: "", avatar: "javascript:alert(1)")),
    Draft(author: ada, text: "x", attachments: [.init(name: "", mediaType: "", reference: .url("file:///etc/passwd"))]),
    Draft(author: ada, text: "x", attachments: [.init(name: "", mediaType: "", reference: .provider("../chat.db"))]),
    Draft(
      author: ada, text: "x",
      attachments: [.init(name: "", mediaType: "", reference: .provider(String(repeating: "a", count: 64)))]),
    Draft(author: ada, text: "x", replyTo: "17"), Draft(author: ada, text: "x", replyTo: "' OR 1=1"),
    Draft(author: ada, text: "x", mentions: Array(repeating: "a", count: 65)),
  ])
  func badDraftsAreRefusedAndLeaveNothing(_ bad: Draft) async throws {
    try await withChat { chat, _ async throws in
      await expect(.badRequest) { _ = try await chat.post(bad, to: lobby, by: .owner) }
      #expect(try await chat.events(of: nil, after: 0, limit: 10).isEmpty)
      #expect(try await chat.rooms().isEmpty, "a refused post makes no room")
    }
  }

  @Test func tooMuchIsTooLarge() async throws {
    try await withChat { chat, _ async throws in
      let fits = String(repeating: "é", count: 32 * 1024)
      #expect(try await chat.post(draft(fits), to: lobby, by: .owner).message.message.text == fits)
      await expect(.tooLarge) { _ = try await chat.post(draft(fits + "x"), to: lobby, by: .owner) }
      let attributes = Draft(author: ada, text: "x", attributes: .string(String(repeating: "x", count: 17_000)))
      await expect(.tooLarge) { _ = try await chat.post(attributes, to: lobby, by: .owner) }
      await expect(.badRequest) { _ = try await chat.post(draft("x"), to: "", by: .owner) }
      await expect(.badRequest) { _ = try await chat.post(draft("x"), to: "a\u{0}b", by: .owner) }
    }
  }

  @Test func historyIsReadInPagesInBothDirections() async throws {
    try await withChat { chat, _ async throws in
      let ids = try await chat.post((0..<25).map { draft("\($0)") }, to: lobby, by: .owner).map(\.message.message.id)
      _ = try await chat.post((0..<25).map { draft("noise \($0)") }, to: "other", by: .owner)
      for order in [HistoryOrder.oldestFirst, .newestFirst] {
        var read: [MessageID] = []
        var next: MessageID?
        var pages = 0
        repeat {
          let page = try await chat.history(
            of: lobby, order: order, after: order == .oldestFirst ? next : nil,
            before: order == .newestFirst ? next : nil, limit: 10)
          read += page.messages.map(\.message.id)
          next = page.next
          pages += 1
        } while next != nil
        #expect(read == (order == .oldestFirst ? ids : ids.reversed()))
        #expect(pages == 3)
      }
      let between = try await chat.history(of: lobby, order: .newestFirst, after: ids[3], before: ids[6], limit: 10)
      #expect(between.messages.map(\.message.id) == [ids[5], ids[4]] && between.next == nil)
      let exact = try await chat.history(of: lobby, order: .oldestFirst, limit: 25)
      #expect(exact.messages.count == 25 && exact.next == nil)
      await expect(.badRequest) { _ = try await chat.history(of: lobby, order: .oldestFirst, after: "x", limit: 1) }
      await expect(.notFound) { _ = try await chat.history(of: "nowhere", order: .oldestFirst, limit: 1) }
    }
  }

  @Test func roomsAreListedWithTheirLastMessage() async throws {
    try await withChat { chat, _ async throws in
      _ = try await chat.post(draft("one"), to: "b", by: .owner)
      _ = try await chat.post(draft("two"), to: "b", by: .owner)
      #expect(try await chat.makeRoom("a", title: "The A").isNew)
      #expect(try await chat.makeRoom("a").isNew == false)
      try await chat.join(ada, "b", by: .owner)
      let rooms = try await chat.rooms()
      #expect(rooms.map(\.id) == ["a", "b"])
      #expect(rooms.map(\.title) == ["The A", "b"])
      #expect(rooms.map(\.members) == [0, 1])
      #expect(rooms.map { $0.last?.message.text } == [nil, "two"])
      #expect(try await chat.rooms(after: "a").map(\.id) == ["b"])
      await expect(.notFound) { _ = try await chat.room("c") }
    }
  }

  @Test func whatWasPostedSurvivesTheProcessAndIdsGoOn() async throws {
    let folder = try ChatFolder()
    defer { folder.remove() }
    let first = try folder.open()
    let before = try await first.post(draft("before", "k"), to: lobby, by: .owner).message.message
    let head = try await first.head()
    first.close()
    let second = try folder.open()
    defer { second.close() }
    #expect(try await second.head() == head)
    #expect(try await second.post(draft("again", "k"), to: lobby, by: .owner).message.message == before)
    let after = try await second.post(draft("after"), to: lobby, by: .owner).message.message
    #expect(try #require(Int64(after.id.rawValue)) > #require(Int64(before.id.rawValue)))
    #expect(try await second.head() > head)
  }

  @Test func valuesAreKeptWithTheirAge() async throws {
    try await withChat { chat, folder async throws in
      #expect(try await chat.kept("k") == nil)
      try await chat.keep("one", as: "k")
      try await chat.keep("two", as: "k")
      folder.clock.advance(by: .milliseconds(2500))
      let kept = try await chat.kept("k")
      #expect(kept?.value == "two" && kept?.age == 2.5)
    }
  }

  @Test func oldValuesAreForgottenByTheirPrefix() async throws {
    try await withChat { chat, folder async throws in
      #expect(try await chat.count("a/number") == 1)
      try await chat.keep("old", as: "a/1")
      try await chat.keep("old", as: "b/1")
      try await chat.keep("old", as: "a/\u{1F600}")
      folder.clock.advance(by: .seconds(10))
      try await chat.keep("new", as: "a/2")
      #expect(try await chat.count("a/number") == 2)
      #expect(try await chat.forget("a/", olderThan: .seconds(5)))
      #expect(try await chat.kept("a/1") == nil)
      #expect(try await chat.kept("a/\u{1F600}") == nil)
      #expect(try await chat.kept("a/2")?.value == "new")
      #expect(try await chat.kept("b/1")?.value == "old")
      #expect(try await chat.count("a/number") == 3)
      folder.clock.advance(by: .seconds(10))
      #expect(try await !chat.forget("a/", olderThan: .seconds(5)))
      #expect(try await chat.count("a/number") == 1)
    }
  }

  @Test func aCountHasNoGapsAndNoRepetitions() async throws {
    try await withChat { chat, _ async throws in
      let numbers = try await withThrowingTaskGroup(of: Int64.self) { group in
        for _ in 0..<50 { group.addTask { try await chat.count("n") } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(numbers.sorted() == Array(1...50))
    }
  }
}
