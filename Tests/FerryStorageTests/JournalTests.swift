import FerryCore
import FerryRuntime
import FerryStorage
import Testing

private let here = Address(account: "here", channel: "lobby")
private let site = Address(account: "site", channel: "chatroom")
private let toSite = LaneID(bridge: "lobby", destination: site)
private let toHere = LaneID(bridge: "lobby", destination: here)

private func posted(_ id: String, key: String? = nil, stamp: Stamp? = nil, cursor: String? = nil) -> Event {
  let message = Message(
    id: MessageID(id), author: Author(id: "ann", name: "Ann"), text: "text of \(id)",
    time: Timestamp(milliseconds: 1), stamp: stamp)
  return Event(
    key: EventKey(key ?? id), channel: "lobby", time: message.time, kind: .posted(message),
    cursor: cursor.map { Cursor($0) })
}

private func link(_ origin: String, copy: String, part: Int = 0) -> Link {
  Link(bridge: "lobby", source: here, origin: MessageID(origin), destination: site, copy: MessageID(copy), part: part)
}

@Suite struct JournalTests {
  @Test func anEventIsAcceptedOnceHoweverOftenItIsReported() async throws {
    try await withJournal { journal in
      let first = try await journal.accept([posted("1"), posted("2"), posted("1")], from: "here") { _ in [toSite] }
      let again = try await journal.accept([posted("2"), posted("3")], from: "here") { _ in [toSite] }
      let open = try await journal.open(toSite, limit: 10)
      #expect((first.accepted, first.duplicates) == (2, 1))
      #expect((again.accepted, again.duplicates) == (1, 1))
      #expect(open.map(\.event.key) == ["1", "2", "3"])
      #expect(first.lanes == [toSite])
    }
  }

  @Test func whatWasAcceptedLatelyIsKnownAsItWasLeft() async throws {
    try await withJournal { journal in
      var edited = posted("1")
      edited.key = "1-edit"
      if case .posted(var message) = edited.kind {
        message.text = "changed"
        message.revision = 7
        edited.kind = .edited(message)
      }
      let deleted = Event(
        key: "2-gone", channel: "lobby", time: Timestamp(milliseconds: 2), kind: .deleted(Deletion(id: "2")))
      var elsewhere = posted("9")
      elsewhere.channel = "other"
      _ = try await journal.accept([posted("1"), posted("2"), posted("3")], from: "here") { _ in [toSite] }
      _ = try await journal.accept([elsewhere, edited, deleted], from: "here") { _ in [toSite] }
      let known = try await journal.recent("here", "lobby", limit: 10)
      #expect(known.map(\.id) == ["2", "1", "3"])
      #expect(known.map { $0.message?.text } == [nil, "changed", "text of 3"])
      #expect(known[1].message?.revision == 7)
      #expect(try await journal.recent("here", "lobby", limit: 1).map(\.id) == ["2"])
      #expect(try await journal.recent("site", "lobby", limit: 10).isEmpty)
    }
  }

  @Test func whatCarriesAStampIsAnEchoAndGoesNowhere() async throws {
    try await withJournal { journal in
      let stamp = Stamp(bridge: "other", origin: site, id: "9")
      let acceptance = try await journal.accept([posted("1", stamp: stamp)], from: "here") { _ in [toSite] }
      #expect(acceptance.echoes == 1)
      #expect(try await journal.open(toSite, limit: 10).isEmpty)
    }
  }

  @Test func aCopyWithoutItsStampIsKnownByItsLink() async throws {
    try await withJournal { journal in
      _ = try await journal.accept([posted("1")], from: "here") { _ in [toSite] }
      let open = try await journal.open(toSite, limit: 10)
      try await journal.advance(settled: [Settlement(delivery: open[0].id, links: [link("1", copy: "c1")])])
      var echo = posted("c1")
      echo.channel = "chatroom"
      let acceptance = try await journal.accept([echo], from: "site") { _ in [toHere] }
      #expect(acceptance.echoes == 1)
      #expect(acceptance.accepted == 0)
    }
  }

  @Test func settledDeliveriesAreGoneAndTheirMarksSurviveReopening() async throws {
    try await withFolder { folder in
      let journal = try Journal(path: folder + "/j.db")
      _ = try await journal.accept([posted("1"), posted("2"), posted("3")], from: "here") { _ in [toSite] }
      let open = try await journal.open(toSite, limit: 10)
      try await journal.advance(
        settled: [Settlement(delivery: open[0].id, links: [link("1", copy: "c1")])], sending: [open[1].id])
      journal.close()
      let reopened = try Journal(path: folder + "/j.db")
      let left = try await reopened.open(toSite, limit: 10)
      #expect(left.map(\.event.key) == ["2", "3"])
      #expect(left.map(\.state) == [.sending, .pending])
      #expect(try await reopened.links("lobby", here, "1", to: site).map(\.copy) == ["c1"])
      reopened.close()
    }
  }

  @Test func anEditThatCameFirstWaitsForItsMessageAndIsWokenByItsLink() async throws {
    try await withJournal { journal in
      var edit = posted("7", key: "e7")
      if case .posted(let message) = edit.kind { edit.kind = .edited(message) }
      _ = try await journal.accept([edit], from: "here") { _ in [toSite] }
      try await journal.park(try await journal.open(toSite, limit: 1)[0])
      #expect(try await journal.open(toSite, limit: 10).isEmpty)
      #expect(try await journal.counts()[toSite]?.waiting == 1)

      _ = try await journal.accept([posted("7")], from: "here") { _ in [toSite] }
      let open = try await journal.open(toSite, limit: 10)
      #expect(open.map(\.event.key) == ["7"])
      try await journal.advance(settled: [Settlement(delivery: open[0].id, links: [link("7", copy: "c7")])])
      #expect(try await journal.open(toSite, limit: 10).map(\.event.key) == ["e7"])
    }
  }

  @Test func deadLettersSayWhyAndCanBeRetriedOrDroppedOnce() async throws {
    try await withJournal { journal in
      _ = try await journal.accept([posted("1"), posted("2")], from: "here") { _ in [toSite] }
      let open = try await journal.open(toSite, limit: 10)
      for delivery in open { try await journal.bury(delivery.id, FerryError(.tooLarge, "It is too large.")) }
      let dead = try await journal.deadLetters()
      #expect(dead.map(\.reason) == ["too_large: It is too large.", "too_large: It is too large."])
      #expect(try await journal.counts()[toSite]?.dead == 2)
      #expect(try await journal.retryDead(dead[0].delivery))
      #expect(try await journal.retryDead(dead[0].delivery) == false)
      #expect(try await journal.dropDead(dead[1].delivery))
      #expect(try await journal.open(toSite, limit: 10).map(\.id) == [dead[0].delivery])
      #expect(try await journal.deadLetters().isEmpty)
    }
  }

  @Test func cursorsMoveWithTheEventsAndAreNotLostByAnEventWithoutOne() async throws {
    try await withJournal { journal in
      _ = try await journal.accept([posted("1", cursor: "5"), posted("2", cursor: "6")], from: "here") { _ in [] }
      #expect(try await journal.cursors(of: "here")["lobby"]?.0 == "6")
      _ = try await journal.accept([posted("3")], from: "here") { _ in [] }
      #expect(try await journal.cursors(of: "here")["lobby"]?.0 == "6")
      try await journal.move(to: "9", "here", "hall")
      #expect(try await journal.cursors(of: "here")["hall"]?.0 == "9")
    }
  }

  @Test func aMessageIsTranslatedToItsCopyItsOriginalOrItsSibling() async throws {
    try await withJournal { journal in
      let third = Address(account: "app", channel: "x")
      try await journal.store([
        link("1", copy: "c1"),
        Link(bridge: "lobby", source: here, origin: "1", destination: third, copy: "t1"),
      ])
      #expect(try await journal.translate("1", at: here, to: site) == "c1")
      #expect(try await journal.translate("c1", at: site, to: here) == "1")
      #expect(try await journal.translate("c1", at: site, to: third) == "t1")
      #expect(try await journal.translate("unknown", at: site, to: third) == nil)
    }
  }

  @Test func aServedFileKeepsItsTokenAndTokensCannotBeGuessed() async throws {
    try await withJournal { journal in
      let first = try await journal.serve(sha256: "aa", name: "a.png", mediaType: "image/png", size: 3)
      let again = try await journal.serve(sha256: "aa", name: "a.png", mediaType: "image/png", size: 3)
      let other = try await journal.serve(sha256: "bb", name: "a.png", mediaType: "image/png", size: 3)
      #expect(first.token == again.token)
      #expect(first.token != other.token)
      #expect(first.token.count == 32)
      #expect(try await journal.file(token: first.token)?.sha256 == "aa")
      #expect(try await journal.file(token: "no") == nil)
    }
  }

  @Test func whatIsNestedTooDeepIsLeftOutAndHoldsUpNothing() async throws {
    try await withJournal { journal in
      var deep = JSONValue.integer(1)
      for _ in 0..<600 { deep = .array([deep]) }
      var poison = posted("1")
      if case .posted(var message) = poison.kind {
        message.attributes = ["deep": deep]
        poison.kind = .posted(message)
      }
      let acceptance = try await journal.accept([poison, posted("2")], from: "here") { _ in [toSite] }
      let open = try await journal.open(toSite, limit: 10)
      #expect(acceptance.accepted == 2)
      #expect(open.map(\.event.key) == ["1", "2"])
    }
  }

  @Test func anEventIsReadBackFromDiskAsItWasAccepted() async throws {
    try await withFolder { folder in
      var message = Message(
        id: "1", author: Author(id: "ann", name: "Änn \u{1} \" \\", avatar: "https://x/a.png"),
        text: "a\nb\t\u{0} 👩‍👩‍👧 \\ \"", format: .markdown, time: Timestamp(milliseconds: 1_700_000_000_123), revision: 3,
        edited: Timestamp(milliseconds: 5),
        attachments: [
          Attachment(name: "p", mediaType: "image/png", size: 3, sha256: "aa", reference: .url("https://x/p")),
          Attachment(name: "q", mediaType: "image/png", reference: .provider("q")),
        ],
        replyTo: "0", mentions: ["bob"], attributes: ["x": [1, true, .null, .number(1.5), "y"]])
      message.stamp = nil
      let author = message.author
      let kinds: [Event.Kind] = [
        .posted(message), .edited(message), .deleted(Deletion(id: "1", by: author)),
        .joined(Membership(member: author)), .left(Membership(member: author)),
        .read(ReadMark(upTo: "1", by: nil, state: .delivered)),
        .reacted(Reaction(message: "1", by: author, emoji: "👍", added: true)),
        .posted(
          Message(id: "2", author: Author(id: "", name: ""), text: "", time: Timestamp(milliseconds: -1))),
      ]
      let events = kinds.enumerated().map { number, kind in
        Event(
          key: EventKey("k\(number)"), channel: "lobby", time: Timestamp(milliseconds: Int64(number)), kind: kind,
          cursor: number == 0 ? "7" : nil)
      }
      let journal = try Journal(path: folder + "/j.db")
      _ = try await journal.accept(events, from: "here") { _ in [toSite] }
      #expect(try await journal.open(toSite, limit: 20).map(\.event) == events)
      journal.close()
      let reopened = try Journal(path: folder + "/j.db")
      #expect(try await reopened.open(toSite, limit: 20).map(\.event) == events)
      reopened.close()
    }
  }

  @Test func attemptsOfALongOutageDoNotPileUp() async throws {
    try await withJournal { journal in
      _ = try await journal.accept([posted("1")], from: "here") { _ in [toSite] }
      let id = try await journal.open(toSite, limit: 1)[0].id
      for _ in 0..<50 {
        try await journal.failed([id], FerryError(.unavailable, "down", retry: .now), isSending: false)
      }
      let open = try await journal.open(toSite, limit: 1)
      #expect(open[0].attempts == 50)
    }
  }
}

private func withJournal(_ body: (Journal) async throws -> Void) async throws {
  try await withFolder { folder in
    let journal = try Journal(path: folder + "/journal.db")
    defer { journal.close() }
    try await body(journal)
  }
}
