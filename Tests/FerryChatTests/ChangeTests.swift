import FerryChat
import FerryCore
import FerryRuntime
import Testing

@Suite(.timeLimit(.minutes(1))) struct ChangeTests {
  @Test func anEditCountsUpAndTellsWhatTheMessageReadsNow() async throws {
    try await withChat { chat, folder async throws in
      let id = try await chat.post(draft("helo"), to: lobby, by: asAda).message.message.id
      folder.clock.advance(by: .seconds(3))
      let edited = try await chat.edit(id, in: lobby, to: Change(text: "hello"), by: asAda)
      #expect(edited.message.revision == 1 && edited.message.edited == folder.clock.now())
      #expect(try await chat.message(id, in: lobby) == edited)
      let again = try await chat.edit(id, in: lobby, to: Change(text: "hello"), by: asAda)
      #expect(again == edited, "an edit that changes nothing is no revision")
      let events = try await chat.events(of: lobby, after: 0, limit: 10)
      #expect(try events.map { try $0.event().kind }.last == .edited(edited.message))
      #expect(events.count == 2)
      await expect(.conflict) {
        _ = try await chat.edit(id, in: lobby, to: Change(text: "late", revision: 0), by: asAda)
      }
      _ = try await chat.edit(id, in: lobby, to: Change(text: "in time", revision: 1), by: asAda)
      let emptied = try await chat.edit(id, in: lobby, to: Change(text: ""), by: asAda)
      #expect(emptied.message.text == "", "what one service allows, its bridge must be able to copy")
    }
  }

  @Test func aPersonsEditOfACopyIsNotTakenForFerrys() async throws {
    try await withChat { chat, _ async throws in
      let stamp = Stamp(bridge: "b", origin: Address(account: "a", channel: "c"), id: "1")
      var copy = draft("copy")
      copy.stamp = stamp
      let id = try await chat.post(copy, to: lobby, by: .owner).message.message.id
      _ = try await chat.edit(id, in: lobby, to: Change(text: "by hand"), by: .owner)
      var later = stamp
      later.revision = 1
      _ = try await chat.edit(id, in: lobby, to: Change(text: "by ferry", stamp: later), by: .owner)
      let stamps = try await chat.events(of: lobby, after: 0, limit: 10).map { try $0.event().stamp }
      #expect(stamps == [stamp, nil, later])
      #expect(try await chat.message(id, in: lobby).message.stamp == stamp)
    }
  }

  @Test func aDeletedMessageLeavesATombstone() async throws {
    try await withChat { chat, folder async throws in
      let id = try await chat.post(draft("secret", "k"), to: lobby, by: asAda).message.message.id
      try await chat.react(Reaction(message: id, by: bob, emoji: "👍", added: true), in: lobby, by: asBob)
      try await chat.delete(id, in: lobby, by: asAda)
      try await chat.delete(id, in: lobby, by: asAda)
      let left = try await chat.message(id, in: lobby)
      #expect(left.message.text == "" && left.deleted == folder.clock.now() && left.reactions.isEmpty)
      #expect(left.message.author == ada)
      #expect(try await chat.history(of: lobby, order: .oldestFirst, limit: 10).messages == [left])
      #expect(try await chat.post(draft("secret", "k"), to: lobby, by: asAda).message == left)
      await expect(.notFound) { _ = try await chat.edit(id, in: lobby, to: Change(text: "x"), by: asAda) }
      await expect(.notFound) {
        try await chat.react(Reaction(message: id, by: bob, emoji: "x", added: true), in: lobby, by: asBob)
      }
      let kinds = try await chat.events(of: lobby, after: 0, limit: 10).map { try $0.event().kind }
      #expect(kinds.last == .deleted(Deletion(id: id, by: Author(id: "ada", name: "ada"))))
      #expect(kinds.count == 3)
    }
  }

  /// Who may do what to a message of ada's.
  @Test(arguments: [
    (asAda, true), (asBob, false), (asModerator, true), (Caller.owner, true),
    (Caller(user: nil, moderates: false), false),
  ])
  func onlyTheAuthorOrAModeratorMayChangeAMessage(_ caller: Caller, _ may: Bool) async throws {
    try await withChat { chat, _ async throws in
      let id = try await chat.post(draft("mine"), to: lobby, by: .owner).message.message.id
      if may {
        _ = try await chat.edit(id, in: lobby, to: Change(text: "changed"), by: caller)
        try await chat.delete(id, in: lobby, by: caller)
      } else {
        await expect(.forbidden) { _ = try await chat.edit(id, in: lobby, to: Change(text: "no"), by: caller) }
        await expect(.forbidden) { try await chat.delete(id, in: lobby, by: caller) }
        #expect(try await chat.message(id, in: lobby).message.text == "mine")
      }
    }
  }

  @Test func aBoundCallerActsAsNobodyElse() async throws {
    try await withChat { chat, folder async throws in
      let id = try await chat.post(draft("x", from: nil), to: lobby, by: asAda).message.message.id
      #expect(try await chat.message(id, in: lobby).message.author.id == "ada")
      await expect(.forbidden) { _ = try await chat.post(draft("x", from: bob), to: lobby, by: asAda) }
      await expect(.forbidden) { _ = try await chat.post(draft("x", from: bob), to: lobby, by: asModerator) }
      await expect(.forbidden) {
        try await chat.react(Reaction(message: id, by: bob, emoji: "x", added: true), in: lobby, by: asAda)
      }
      await expect(.forbidden) {
        try await chat.mark(ReadMark(upTo: id, by: bob, state: .read), in: lobby, by: asAda)
      }
      await expect(.forbidden) { try await chat.join(bob, lobby, by: asAda) }
      await expect(.forbidden) { try await chat.leave("bob", lobby, by: asAda) }
      await expect(.forbidden) { try chat.setTyping(Typing(channel: lobby, by: bob, on: true), by: asAda) }
      await expect(.forbidden) {
        let dated = Draft(author: ada, text: "x", time: folder.clock.now())
        _ = try await chat.post(dated, to: lobby, by: asAda)
      }
      await expect(.forbidden) {
        let stamp = Stamp(bridge: "b", origin: Address(account: "a", channel: "c"), id: "1")
        _ = try await chat.post(Draft(author: ada, text: "x", stamp: stamp), to: lobby, by: asAda)
      }
    }
  }

  @Test func messagesAreFoundInTheirOwnRoomOnly() async throws {
    try await withChat { chat, _ async throws in
      let id = try await chat.post(draft("x"), to: lobby, by: .owner).message.message.id
      _ = try await chat.makeRoom("other")
      await expect(.notFound) { _ = try await chat.message(id, in: "other") }
      await expect(.notFound) { try await chat.delete(id, in: "other", by: .owner) }
      await expect(.notFound) { try await chat.delete(id, in: "nowhere", by: .owner) }
      for bad in ["", "0", "-1", "+\(id)", "0\(id)", "99999999999999999999999", "1; DROP TABLE messages"] {
        await expect(.notFound) { _ = try await chat.message(MessageID(bad), in: lobby) }
      }
    }
  }

  @Test func joiningAndLeavingIsToldOnce() async throws {
    try await withChat { chat, folder async throws in
      #expect(try await chat.join(bob, lobby, by: asBob))
      folder.clock.advance(by: .seconds(1))
      #expect(try await chat.join(ada, lobby, by: .owner))
      #expect(try await chat.join(Author(id: "bob", name: "Robert"), lobby, by: asBob) == false)
      #expect(try await chat.members(of: lobby).map(\.name) == ["Robert", "Ada"])
      #expect(try await chat.leave("bob", lobby, by: asModerator))
      #expect(try await chat.leave("bob", lobby, by: asBob) == false)
      #expect(try await chat.members(of: lobby) == [ada])
      let kinds = try await chat.events(of: lobby, after: 0, limit: 10).map { try $0.event().kind }
      #expect(
        kinds == [
          .joined(Membership(member: bob)), .joined(Membership(member: ada)),
          .left(Membership(member: Author(id: "bob", name: "Robert"))),
        ])
      await expect(.notFound) { _ = try await chat.members(of: "nowhere") }
    }
  }

  @Test func reactionsAreCountedOnce() async throws {
    try await withChat { chat, folder async throws in
      let id = try await chat.post(draft("x"), to: lobby, by: .owner).message.message.id
      let thumb = Reaction(message: id, by: bob, emoji: "👍🏽", added: true)
      try await chat.react(thumb, in: lobby, by: asBob)
      try await chat.react(thumb, in: lobby, by: asBob)
      folder.clock.advance(by: .seconds(1))
      try await chat.react(Reaction(message: id, by: ada, emoji: "👍🏽", added: true), in: lobby, by: asAda)
      try await chat.react(Reaction(message: id, by: ada, emoji: "🎉", added: true), in: lobby, by: asAda)
      #expect(try await chat.message(id, in: lobby).reactions.map(\.emoji) == ["👍🏽", "🎉"])
      #expect(try await chat.message(id, in: lobby).reactions.map { $0.users.count } == [2, 1])
      var off = thumb
      off.added = false
      try await chat.react(off, in: lobby, by: asBob)
      try await chat.react(off, in: lobby, by: asBob)
      #expect(try await chat.message(id, in: lobby).reactions.first?.users == [ada])
      #expect(try await chat.events(of: lobby, after: 0, limit: 10).count == 5)
      await expect(.badRequest) {
        try await chat.react(Reaction(message: id, by: bob, emoji: "", added: true), in: lobby, by: asBob)
      }
    }
  }

  @Test func readMarksOnlyMoveForward() async throws {
    try await withChat { chat, _ async throws in
      let ids = try await chat.post((0..<3).map { draft("\($0)") }, to: lobby, by: .owner).map(\.message.message.id)
      try await chat.mark(ReadMark(upTo: ids[1], by: bob, state: .read), in: lobby, by: asBob)
      try await chat.mark(ReadMark(upTo: ids[0], by: bob, state: .read), in: lobby, by: asBob)
      try await chat.mark(ReadMark(upTo: ids[1], by: bob, state: .read), in: lobby, by: asBob)
      try await chat.mark(ReadMark(upTo: ids[2], by: bob, state: .delivered), in: lobby, by: asBob)
      #expect(
        try await chat.marks(in: lobby) == [
          ReadMark(upTo: ids[2], by: bob, state: .delivered), ReadMark(upTo: ids[1], by: bob, state: .read),
        ])
      #expect(try await chat.events(of: lobby, after: 0, limit: 10).count == 5)
      await expect(.notFound) {
        try await chat.mark(ReadMark(upTo: "1", by: bob, state: .read), in: lobby, by: asBob)
      }
    }
  }
}
