import FerryChat
import FerryCore
import FerryRuntime
import Testing

@Suite(.timeLimit(.minutes(5))) struct DocumentTests {
  @Test func `a document is put, replaced in its place, found and removed`() async throws {
    try await withChat { chat, folder in
      let first = try await chat.put(["n": 1] as JSONValue, as: "a/\u{e9}", in: "things")
      let second = try await chat.put(["n": 2] as JSONValue, as: "b", in: "things")
      #expect(second > first)
      #expect(try await chat.put(["n": 3] as JSONValue, as: "a/\u{e9}", in: "things") == first)
      chat.close()
      let again = try folder.open()
      defer { again.close() }
      let all = try await again.documents(in: "things")
      #expect(all.map(\.id) == ["a/\u{e9}", "b"])
      #expect(try all[0].value(JSONValue.self) == ["n": 3])
      #expect(try await again.document("e\u{301}", in: "things") == nil)
      #expect(try await again.document("b", in: "others") == nil)
      #expect(try await again.remove("b", from: "things"))
      #expect(try await !again.remove("b", from: "things"))
      #expect(try await again.count(in: "things") == 1)
    }
  }

  @Test func `documents are paged either way from any sequence`() async throws {
    try await withChat { chat, _ in
      var sequences: [Int64] = []
      for n in 0..<10 {
        sequences.append(try await chat.put(["n": .integer(Int64(n))] as JSONValue, as: "d\(n)", in: "c"))
      }
      try await chat.put([:] as JSONValue, as: "x", in: "d")
      let forward = try await chat.documents(in: "c", DocumentQuery(after: sequences[2], limit: 3))
      #expect(forward.map(\.id) == ["d3", "d4", "d5"])
      let back = try await chat.documents(
        in: "c", DocumentQuery(order: .newestFirst, before: sequences[3], limit: 2))
      #expect(back.map(\.id) == ["d2", "d1"])
      #expect(try await chat.documents(in: "c", DocumentQuery(after: sequences[9])).isEmpty)
      #expect(try await chat.documents(in: "c", DocumentQuery(limit: -1)).isEmpty)
    }
  }

  @Test func `documents are found by a value inside them`() async throws {
    try await withChat { chat, _ in
      let values: [JSONValue] = [
        ["who": ["name": "ada"], "n": 1, "on": true], ["who": ["name": "bob"], "n": 2, "on": false],
        ["who": ["name": "it's \"ada\""], "n": 1], ["other": .null],
      ]
      for (index, value) in values.enumerated() { try await chat.put(value, as: "\(index)", in: "c") }
      func ids(_ path: String, _ value: JSONValue) async throws -> [String] {
        try await chat.documents(in: "c", DocumentQuery(where: (path, value))).map(\.id)
      }
      #expect(try await ids("$.who.name", "ada") == ["0"])
      #expect(try await ids("$.who.name", "it's \"ada\"") == ["2"])
      #expect(try await ids("$.n", 1) == ["0", "2"])
      #expect(try await ids("$.on", true) == ["0"])
      #expect(try await ids("$.on", .null) == ["2", "3"])
      #expect(try await chat.count(in: "c", where: ("$.n", 1)) == 2)
      await expect(.badRequest) { _ = try await ids("$.who", ["name": "ada"]) }
      // A broken path is an error and no crash.
      await #expect(throws: FerryError.self) { _ = try await ids("who", "ada") }
    }
  }

  @Test func `an insert yields to what is there`() async throws {
    try await withChat { chat, _ in
      let first = try await chat.write { try $0.insert(1 as JSONValue, as: "a", in: "c") }
      let second = try await chat.write { try $0.insert(2 as JSONValue, as: "a", in: "c") }
      #expect(first)
      #expect(!second)
      #expect(try await chat.document("a", in: "c")?.json == "1")
    }
  }

  @Test func `what is done together is done altogether or not at all`() async throws {
    try await withChat { chat, _ in
      await expect(.conflict) {
        try await chat.write { transaction in
          try transaction.put(1 as JSONValue, as: "a", in: "c")
          _ = try transaction.post(draft("gone"), to: lobby, by: .owner)
          throw FerryError(.conflict, "no")
        }
      }
      #expect(try await chat.count(in: "c") == 0)
      await expect(.notFound) { _ = try await chat.room(lobby) }
      #expect(try await chat.events(of: nil, after: 0, limit: 10).isEmpty)

      try await chat.write { transaction in
        let posted = try transaction.post(draft("here"), to: lobby, by: .owner)
        try transaction.put(["of": .string(posted.message.message.id.rawValue)] as JSONValue, as: "a", in: "c")
      }
      let id = try await chat.history(of: lobby, order: .oldestFirst, limit: 1).messages[0].message.id
      #expect(try await chat.documents(in: "c", DocumentQuery(where: ("$.of", .string(id.rawValue)))).count == 1)
    }
  }

  @Test func `collections are found by how they begin`() async throws {
    try await withChat { chat, _ in
      for name in ["lane/b", "lane/a", "lanes", "other", "lane/\u{e9}%_"] {
        try await chat.put(1 as JSONValue, as: "x", in: name)
      }
      let all = try await chat.read { try $0.collections(beginningWith: "lane/") }
      #expect(all == ["lane/a", "lane/b", "lane/\u{e9}%_"])
      let removed = try await chat.write { try $0.removeAll(from: "lane/a") }
      #expect(removed == 1)
      let rest = try await chat.read { try $0.collections(beginningWith: "lane/") }
      #expect(rest.count == 2)
    }
  }

  @Test func `reading writes nothing`() async throws {
    try await withChat { chat, _ in
      await #expect(throws: FerryError.self) {
        try await chat.read { _ = try $0.put(1 as JSONValue, as: "x", in: "c") }
      }
    }
  }
}

@Suite(.timeLimit(.minutes(5))) struct PositionTests {
  @Test func `positions count posts, edits and deletions of their room`() async throws {
    try await withChat { chat, folder in
      let first = try await chat.post(draft("0"), to: lobby, by: .owner).message
      try await chat.write { _ = try $0.post(draft("elsewhere"), to: "other", by: .owner) }
      let second = try await chat.post(draft("1"), to: lobby, by: .owner).message
      _ = try await chat.edit(first.message.id, in: lobby, to: Change(text: "0!"), by: .owner)
      // A change of nothing is none.
      _ = try await chat.edit(first.message.id, in: lobby, to: Change(text: "0!"), by: .owner)
      try await chat.delete(second.message.id, in: lobby, by: .owner)
      chat.close()
      let again = try folder.open()
      defer { again.close() }
      let third = try await again.post(draft("4"), to: lobby, by: .owner).message
      #expect([first, second, third].map(\.position) == [0, 1, 4])
      let read = try await again.read { transaction in
        (
          try transaction.message(atOrBefore: 3, in: lobby)?.position,
          try transaction.countMessages(after: 0, in: lobby),
          try transaction.countMessages(after: -1, in: lobby), try transaction.message(atOrBefore: -1, in: lobby)
        )
      }
      #expect(read.0 == 1)
      #expect(read.1 == 1)
      #expect(read.2 == 2)
      #expect(read.3 == nil)
      #expect(
        try await again.read { try $0.liveMessages(in: lobby, order: .newestFirst, limit: 9) }.map(\.position) == [
          4, 0,
        ])
    }
  }

  @Test func `an edit may change author, time and attributes, and is one`() async throws {
    try await withChat { chat, _ in
      let posted = try await chat.post(draft("x"), to: lobby, by: .owner).message.message
      let time = Timestamp(milliseconds: 1000)
      let change = Change(author: bob, time: time, attributes: ["a": 1])
      let edited = try await chat.edit(posted.id, in: lobby, to: change, by: .owner).message
      #expect(edited.revision == 1)
      let read = try await chat.message(posted.id, in: lobby).message
      #expect(read.author == bob)
      #expect(read.time == time)
      #expect(read.attributes == ["a": 1])
      #expect(read.text == "x")
      await expect(.forbidden) {
        _ = try await chat.edit(posted.id, in: lobby, to: Change(time: posted.time), by: asBob)
      }
    }
  }
}

@Suite(.timeLimit(.minutes(5))) struct RemovedRoomTests {
  @Test func `a removed room is gone, its name free, and its events stay`() async throws {
    try await withChat { chat, _ in
      _ = try await chat.post(draft("x", "k"), to: lobby, by: .owner)
      try await chat.join(ada, lobby, by: .owner)
      let removed = try await chat.write { try $0.removeRoom(lobby) }
      let again = try await chat.write { try $0.removeRoom(lobby) }
      #expect(removed)
      #expect(!again)
      await expect(.notFound) { _ = try await chat.room(lobby) }
      #expect(try await chat.rooms().isEmpty)
      #expect(try await chat.events(of: nil, after: 0, limit: 10).count == 2)
      let posted = try await chat.post(draft("y", "k"), to: lobby, by: .owner)
      #expect(!posted.isRepeat)
      #expect(posted.message.position == 0)
      #expect(try await chat.members(of: lobby).isEmpty)
      #expect(try await chat.rooms().map(\.id) == [lobby])
    }
  }
}

@Suite(.timeLimit(.minutes(5))) struct ObserverTests {
  private static func noting(_ transaction: ChatTransaction, _ told: ObservedEvent) throws {
    let text: String
    switch told.event.kind {
    case .posted(let message): text = "posted \(message.text) at \(told.stored?.position ?? -1)"
    case .edited(let message): text = "edited \(message.text) at \(told.stored?.position ?? -1)"
    case .deleted: text = "deleted \(told.before?.message.text ?? "?")"
    case .joined(let membership): text = "joined \(membership.member.id)"
    default: text = "other"
    }
    guard try transaction.insert(text, as: told.event.key.rawValue, in: "seen") else {
      throw FerryError(.internal, "seen twice")
    }
  }

  private func seen(_ chat: ChatService) async throws -> [String] {
    var seen: [String] = []
    for document in try await chat.documents(in: "seen") { seen.append(try document.value()) }
    return seen
  }

  @Test func `an observer sees every event once, through restarts`() async throws {
    try await withChat { chat, folder in
      let first = try await chat.post(draft("early"), to: lobby, by: .owner).message.message.id
      _ = try await chat.edit(first, in: lobby, to: Change(text: "early!"), by: .owner)
      try await chat.observe(as: "o", Self.noting)
      try await chat.join(ada, lobby, by: .owner)
      try await chat.delete(first, in: lobby, by: .owner)
      chat.close()
      let again = try folder.open()
      let second = try await again.post(draft("away"), to: lobby, by: .owner).message.message.id
      try await again.delete(second, in: lobby, by: .owner)
      try await again.observe(as: "o", Self.noting)
      _ = try await again.post([draft("a"), draft("b")], to: lobby, by: .owner)
      again.close()
      let last = try folder.open()
      defer { last.close() }
      try await last.observe(as: "o", Self.noting)
      #expect(
        try await seen(last) == [
          "posted early at 0", "edited early! at 0", "joined ada", "deleted early!", "posted away at 3", "deleted ?",
          "posted a at 5", "posted b at 6",
        ])
    }
  }

  @Test func `what the observer refuses does not happen, and it is not told of its own doing`() async throws {
    try await withChat { chat, _ in
      try await chat.observe(as: "o") { transaction, told in
        guard case .posted(let message) = told.event.kind else { return }
        if message.text == "no" { throw FerryError(.forbidden, "not here") }
        _ = try transaction.post(draft("\(message.text)?", from: bob), to: "echo", by: .owner)
      }
      await expect(.forbidden) { _ = try await chat.post(draft("no"), to: lobby, by: .owner) }
      _ = try await chat.post(draft("yes"), to: lobby, by: .owner)
      try await chat.write(isOfObserver: true) { _ = try $0.post(draft("own"), to: lobby, by: .owner) }
      let events = try await chat.events(of: nil, after: 0, limit: 9)
      #expect(events.map(\.room) == [lobby, "echo", lobby])
    }
  }
}
