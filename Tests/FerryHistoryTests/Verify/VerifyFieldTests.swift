import FerryCore
import FerryHistory
import Testing

@Suite struct VerifyFieldTests {
  private static let start: Int64 = 1_706_832_000_123

  private func three() -> [MessageRecord] {
    (0..<3).map { record("m\($0)", "text \($0)", at: Self.start + Int64($0) * 10_000) }
  }

  private func renamed(_ records: [MessageRecord]) -> [MessageRecord] {
    records.map { original in
      var record = original
      record.message.id = MessageID("n-" + original.message.id.rawValue)
      record.message.replyTo = original.message.replyTo.map { MessageID("n-" + $0.rawValue) }
      return record
    }
  }

  @Test("replies point to the counterpart of what they pointed to")
  func replies() async throws {
    var from = three()
    from[2].message.replyTo = "m0"
    #expect(try await verify(from, renamed(from), narrow()).report.counts == ["identical": 3])
    var wrong = renamed(from)
    wrong[2].message.replyTo = "n-m1"
    #expect(try await verify(from, wrong, narrow()).report.faults == ["reply": 1])
    wrong[2].message.replyTo = nil
    #expect(try await verify(from, wrong, narrow()).report.faults == ["reply": 1])
    from[2].message.replyTo = "nobody has it"
    #expect(try await verify(from, wrong, narrow()).report.losses == ["reply:orphan": 1])
  }

  @Test("attachments are compared by their bytes")
  func attachments() async throws {
    var from = three()
    from[0].message.attachments = [file("a.png", "aa")]
    #expect(try await verify(from, renamed(from), narrow()).report.counts == ["identical": 3])
    var to = renamed(from)
    to[0].message.attachments = [file("a.png", "bb")]
    #expect(try await verify(from, to, narrow()).report.faults == ["attachment": 1, "attachment added": 1])
    to[0].message.attachments = []
    #expect(try await verify(from, to, narrow()).report.faults == ["attachment": 1])
    // FROM has lost them itself.
    from[0].message.attachments[0].sha256 = nil
    from[0].files = [FileState(status: .expired)]
    #expect(try await verify(from, to, narrow()).report.losses == ["attachment:expired": 1])
  }

  @Test("attachments may travel apart where the service takes them only so")
  func apart() async throws {
    var from = three()
    from[1].message.attachments = [file("a.png", "aa"), file("b.png", "bb")]
    var to = renamed(three())
    for (index, attachment) in from[1].message.attachments.enumerated() {
      var apart = record("x\(index)", "", at: Self.start + 10_000)
      apart.message.attachments = [attachment]
      to.insert(apart, at: 2 + index)
    }
    let service = narrow {
      $0.captions = false
      $0.attachmentsPerMessage = 1
    }
    let (report, lines) = try await verify(from, to, service)
    #expect(report.counts == ["identical": 2, "converted": 1])
    #expect(lines[1].losses == ["attachments:apart"])
    #expect(lines[1].to.map(\.id) == ["n-m1", "x0", "x1"])
    // And back again.
    let back = try await verify(to, from, narrow())
    #expect(back.report.counts == ["identical": 2, "converted": 3])
    #expect(back.report.isFull)
  }

  @Test("attachments may be links where the service has no files")
  func links() async throws {
    var from = three()
    from[1].message.attachments = [file("a.png", "aa")]
    var to = renamed(three())
    to[1].message.text += "\na.png: https://ferry.example/files/x/a.png"
    let stored = try await verify(from, to, narrow())
    #expect(stored.report.faults == ["attachment": 1])
    let linked = try await verify(from, to, narrow { $0.attachments = .none })
    #expect(linked.report.losses == ["attachment:link": 1])
  }

  @Test("pieces that became one again lost nothing")
  func joined() async throws {
    var story = Story(seed: 9)
    let whole = record("m9", story.text(words: 700), at: Self.start)
    let pieces = TextSplitter(bytes: nil, characters: 1600).parts(of: whole.message.text)
      .enumerated().map { record("p\($0)", $1, at: Self.start) }
    let (report, _) = try await verify(pieces, [whole], narrow { $0.bodyCharacters = nil })
    #expect(report.counts == ["converted": pieces.count])
  }

  @Test("what was deleted must not live on, and need leave no trace at a service")
  func deletes() async throws {
    let from: [Record] = three().map { .message($0) } + [.delete(DeleteRecord(channel: "lobby", id: "m1"))]
    let all = renamed(three())
    #expect(try await verify(from, all.map { .message($0) }, narrow()).report.faults == ["delete lost": 1])
    let rest: [Record] = [.message(all[0]), .message(all[2])]
    let (report, _) = try await verify(from, rest, narrow())
    #expect(report.counts == ["identical": 2, "converted": 1])
    #expect(report.losses == ["deleted": 1])
    #expect(try await verify(from, rest).report[.missing] == 1)
    #expect(try await verify(three().map { .message($0) }, rest + [], narrow()).report[.missing] == 1)
  }

  @Test("reactions are counted where the service has them")
  func reactions() async throws {
    let by = Author(id: "u7", name: "Bo")
    let reaction = Reaction(message: "m0", by: by, emoji: "👏", added: true)
    let from: [Record] =
      three().map { .message($0) } + [.reaction(ReactionRecord(channel: "lobby", reaction: reaction))]
    let bare: [Record] = renamed(three()).map { .message($0) }
    #expect(try await verify(from, bare, narrow()).report.losses == ["reactions": 1])
    #expect(try await verify(from, bare, narrow { $0.reactions = true }).report.faults == ["reactions": 1])
    var tallied = renamed(three())
    tallied[0].reactions = [ReactionTally(key: "👏", users: ["u7"])]
    #expect(
      try await verify(from, tallied.map { .message($0) }, narrow { $0.reactions = true }).report.counts
        == ["identical": 3])
    let taken = Reaction(message: "m0", by: by, emoji: "👏", added: false)
    let both = from + [.reaction(ReactionRecord(channel: "lobby", reaction: taken))]
    #expect(try await verify(both, bare, narrow { $0.reactions = true }).report.counts == ["identical": 3])
  }

  @Test("joins and leaves are accounted for")
  func joins() async throws {
    let bo = Author(id: "u7", name: "Bo")
    let join = Record.join(
      MembershipRecord(channel: "lobby", member: bo, time: Timestamp(milliseconds: Self.start + 5_000)))
    let from: [Record] = [.message(three()[0]), join, .message(three()[1]), .message(three()[2])]
    let without: [Record] = renamed(three()).map { .message($0) }
    #expect(try await verify(from, from).report.counts == ["identical": 4])
    #expect(try await verify(from, without).report.counts == ["identical": 3, "missing": 1])
    #expect(try await verify(from, without, narrow()).report.losses == ["joins": 1])
  }

  @Test("the same message again in one archive replaces the first, in its place")
  func replaced() async throws {
    var second = three()[1]
    second.message.text = "as it reads now"
    let folded: [Record] = [three()[0], three()[1], three()[2], second].map { .message($0) }
    let (report, _) = try await verify(folded, [three()[0], second, three()[2]].map { .message($0) })
    #expect(report.counts == ["identical": 3])
    #expect(report.fromTallies.messages == 3)
  }

  @Test("channels keep apart what is said in them")
  func channels() async throws {
    let from = (0..<10).map { record("m\($0)", "ok", at: Self.start + Int64($0), in: $0 % 2 == 0 ? "one" : "two") }
    #expect(try await verify(from, from).report.counts == ["identical": 10])
    var to = from
    to[3].channel = "one"
    let (report, _) = try await verify(from, to)
    #expect(report[.missing] == 1)
    #expect(report[.extra] + report[.duplicate] == 1)
  }

  @Test("equal archives are identical, and every field counts between archives")
  func exactness() async throws {
    var full = three()
    full[0].message.format = .markdown
    full[0].message.mentions = ["u1"]
    full[0].message.attributes = ["sid": "IM1"]
    full[0].isAction = true
    full[0].thread = "m0"
    #expect(try await verify(full, full).report.counts == ["identical": 3])
    let changes: [(String, (inout MessageRecord) -> Void)] = [
      ("format", { $0.message.format = .plain }), ("mentions", { $0.message.mentions = [] }),
      ("attributes", { $0.message.attributes = nil }), ("action", { $0.isAction = false }),
      ("thread", { $0.thread = nil }), ("author id", { $0.message.author.id = "else" }),
      ("revisions", { $0.message.revision = 2 }),
      ("time", { $0.message.time = Timestamp(milliseconds: Self.start + 900) }),
      ("edited", { $0.message.edited = $0.message.time }),
    ]
    for (name, change) in changes {
      var other = full
      change(&other[0])
      let (report, _) = try await verify(full, other)
      #expect(report[.altered] == 1, "\(name)")
      #expect(report.faults[name] == 1, "\(name): \(report.faults)")
    }
  }

  @Test("nothing at all is equal to nothing at all")
  func empty() async throws {
    #expect(try await verify([MessageRecord](), []).report.isFull)
    #expect(try await verify(three(), []).report.counts == ["missing": 3])
    #expect(try await verify([], three()).report.counts == ["extra": 3])
  }

  @Test("lines are JSON with places, and words for people")
  func lines() async throws {
    let (_, lines) = try await verify([three()[0]], [MessageRecord]())
    #expect(
      lines.first?.json
        == #"{"outcome":"missing","kind":"message","from":{"channel":"lobby","id":"m0","time":"2024-02-02T00:00:00.123Z","record":1}}"#
    )
    #expect(lines.first?.readable == "m0 of 2024-02-02T00:00:00.123Z in lobby (record 1)")
  }
}
