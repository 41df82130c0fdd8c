import FerryCore
import FerryHistory
import FerryRuntime
import FerryTestKit
import Testing

@Suite(.timeLimit(.minutes(2))) struct ImportTests {
  @Test("messages keep author, time, order and stamp")
  func plain() async throws {
    let rig = try ImportRig()
    let counts = try await rig.run(ListSource((0..<1200).map { ImportRig.message($0) }))
    #expect(counts.messages == 1200)
    #expect(counts.lost == 0)
    let messages = rig.messages
    #expect(messages.map(\.text) == (0..<1200).map { "message \($0)" })
    #expect(messages.map(\.time.milliseconds) == (0..<1200).map { ImportRig.start + Int64($0) * 1000 })
    #expect(messages[7].stamp?.origin == ImportRig.source)
    #expect(messages[7].stamp?.id == "s7")
  }

  @Test("a second run writes nothing, with its book and without", arguments: [true, false])
  func again(keepsBook: Bool) async throws {
    let records =
      (0..<40).map { ImportRig.message($0) } + [ImportRig.edit(3, "changed"), ImportRig.delete(4)]
      + [join("bob", 50), leave("bob", 51), join("bob", 51)]
    let rig = try ImportRig()
    try await rig.run(ListSource(records))
    let before = rig.provider.events(in: ImportRig.room)
    let counts = try await rig.run(ListSource(records), book: keepsBook ? "book.db" : "other.db")
    #expect(rig.provider.events(in: ImportRig.room) == before)
    if keepsBook { #expect(counts.written == 0) }
    #expect(rig.messages.first { $0.id == "m4" }?.text == "changed")
    #expect(rig.messages.count == 39)
  }

  @Test("a second run at a destination that knows no keys writes nothing either, though its book is lost")
  func withoutKeys() async throws {
    let rig = try ImportRig(Self.forgetful())
    let records = (0..<30).map { ImportRig.message($0) }
    try await rig.run(ListSource(records))
    let counts = try await rig.run(ListSource(records + [ImportRig.message(30)]), book: "other.db")
    #expect(rig.messages.map(\.text) == (0...30).map { "message \($0)" })
    #expect(counts.messages == 1)
    #expect(counts.unchanged == 30)
  }

  @Test("an answer that was lost does not double a message", arguments: [true, false])
  func lostAnswer(knowsKeys: Bool) async throws {
    let provider = knowsKeys ? MemoryProvider() : Self.forgetful()
    let rig = try ImportRig(provider)
    provider.failNext(3, .past, with: FerryError(.timedOut, "No answer.", retry: .now), afterActing: true)
    try await rig.run(ListSource((0..<50).map { ImportRig.message($0) }))
    #expect(rig.messages.map(\.text) == (0..<50).map { "message \($0)" })
  }

  @Test("what nobody can tell of is not written again, nor changed, and is reported")
  func unknownOutcome() async throws {
    let provider = MemoryProvider { capabilities in
      capabilities.importing?.batch = 1
      capabilities.importing?.isRepeatable = false
      capabilities.certainty = .none
    }
    let rig = try ImportRig(provider)
    provider.failNext(1, .past, with: FerryError(.timedOut, "No answer.", retry: .now), afterActing: true)
    let reply = ImportRig.message(2) { $0.message.replyTo = "s1" }
    let records = [ImportRig.message(1), reply, ImportRig.edit(1, "changed"), ImportRig.delete(1)]
    try await rig.run(ListSource(records))
    #expect(rig.messages.map(\.text) == ["message 1", "message 2"])
    #expect(rig.messages.map(\.replyTo) == [nil, nil])
    #expect(rig.provider.events(in: ImportRig.room).count == 2)
    try await rig.run(ListSource(records))
    #expect(rig.provider.events(in: ImportRig.room).count == 2)
    #expect(rig.report.counts.contains { $0.reason == "message: not known whether it was written" })
  }

  @Test("a file that the destination has forgotten meanwhile is uploaded again, once")
  func forgottenFiles() async throws {
    let rig = try ImportRig()
    let bytes = Crypto.randomBytes(1000)
    let sha256 = Crypto.hex(Crypto.digest(.sha256, of: bytes))
    let file = FerryCore.Attachment(
      name: "a.png", mediaType: "image/png", size: 1000, sha256: sha256, reference: .provider(""))
    let records = [ImportRig.message(1) { $0.message.attachments = [file] }, ImportRig.message(2)]
    rig.provider.failNext(1, .past, with: FerryError(.notFound, "There is no such file."))
    let counts = try await rig.run(ListSource(records, files: [sha256: bytes]))
    #expect(counts.lost == 0)
    #expect(rig.provider.calls(.upload) == 2)
    #expect(rig.messages.map(\.attachments.count) == [1, 0])
    // For good it is a refusal: the batch, and once more with the file anew, then each by itself, and the one with it anew.
    rig.provider.failNext(4, .past, with: FerryError(.notFound, "There is no such file."))
    let refused = try await rig.run(
      ListSource(
        [ImportRig.message(3) { $0.message.attachments = [file] }, ImportRig.message(4)], files: [sha256: bytes]))
    #expect(refused.lost == 1)
    #expect(rig.messages.map(\.text) == ["message 1", "message 2", "message 4"])
  }

  @Test("429 and 5xx are waited for")
  func waiting() async throws {
    let rig = try ImportRig()
    rig.provider.failNext(2, .past, with: FerryError(.rateLimited, "Slow down.", retry: .after(.seconds(30))))
    rig.provider.failNext(2, .past, with: FerryError(.unavailable, "503", retry: .now))
    let counts = try await rig.run(ListSource((0..<50).map { ImportRig.message($0) }))
    #expect(counts.messages == 50)
    #expect(counts.lost == 0)
  }

  @Test("bad credentials end the run; what was written stays known")
  func credentials() async throws {
    let rig = try ImportRig()
    let records = (0..<100).map { ImportRig.message($0) }
    try await rig.run(ListSource(Array(records.prefix(60))))
    rig.provider.failNext(1, .past, with: FerryError(.badCredentials, "No."))
    await #expect(throws: FerryError.self) { try await rig.run(ListSource(records)) }
    let counts = try await rig.run(ListSource(records))
    #expect(counts.messages == 40)
    #expect(rig.messages.count == 100)
  }

  @Test("a message that is refused is reported, and its neighbours go on")
  func refused() async throws {
    let rig = try ImportRig()
    // The whole batch, then the first of it by itself.
    rig.provider.failNext(2, .past, with: FerryError(.tooLarge, "Too large."))
    let counts = try await rig.run(ListSource((0..<16).map { ImportRig.message($0) }))
    #expect(counts.messages == 15)
    #expect(counts.lost == 1)
    #expect(rig.report.counts.map(\.reason) == ["message: refused: too_large"])
    #expect(rig.messages.map(\.text) == (1..<16).map { "message \($0)" })
  }

  @Test("replies and reactions find their messages; those of messages that are not there are reported")
  func references() async throws {
    let rig = try ImportRig()
    let reply = ImportRig.message(2) { $0.message.replyTo = "s1" }
    let orphan = ImportRig.message(3) { $0.message.replyTo = "nowhere" }
    let tally = ImportRig.message(4) { record in
      record.reactions = [ReactionTally(key: "clap", tone: 3, users: ["bob"], count: 2)]
    }
    let reaction = Reaction(message: "s1", by: Author(id: "cid", name: "cid"), emoji: "👍", added: true)
    let reacted = Record.reaction(
      ReactionRecord(channel: "lobby", reaction: reaction, time: Timestamp(milliseconds: ImportRig.start + 9000)))
    try await rig.run(ListSource([ImportRig.message(1), reply, orphan, tally, reacted]))
    #expect(rig.messages.map(\.replyTo) == [nil, "m1", nil, nil])
    let reactions = rig.provider.events(in: ImportRig.room).compactMap { event in
      if case .reacted(let reaction) = event.kind {
        "\(reaction.message) \(reaction.emoji) \(reaction.by.id)"
      } else {
        nil
      }
    }
    #expect(reactions == ["m4 clap::skin-tone-3 bob", "m1 👍 cid"])
    #expect(
      rig.report.counts.map(\.reason) == [
        "reaction: the source does not say by whom", "reply: the message replied to is not there",
      ])
  }

  @Test("reactions that a message brings come with the next run, should the first have ended between the two")
  func interruptedTallies() async throws {
    let rig = try ImportRig(MemoryProvider { $0.importing?.batch = 1 })
    let records = [
      ImportRig.message(1) { $0.reactions = [ReactionTally(key: "clap", users: ["bob", "cid"], count: 2)] }
    ]
    rig.provider.failNext(1, .past, with: FerryError(.badCredentials, "No."), after: 1)
    await #expect(throws: FerryError.self) { try await rig.run(ListSource(records)) }
    #expect(rig.messages.count == 1)
    for _ in 0..<2 { try await rig.run(ListSource(records)) }
    let reactions = rig.provider.events(in: ImportRig.room).compactMap { event in
      if case .reacted(let reaction) = event.kind { reaction.by.id } else { nil }
    }
    #expect(reactions == ["bob", "cid"])
  }

  @Test("a message brings its first origin along, and two of one origin are still two")
  func origins() async throws {
    let origin = Stamp(bridge: "lobby", origin: Address(account: "first", channel: "x"), id: "o1", revision: 3)
    let rig = try ImportRig()
    let records = (0..<3).map { number in ImportRig.message(number) { $0.message.stamp = origin } }
    try await rig.run(ListSource(records))
    #expect(rig.messages.map { $0.stamp?.id } == ["o1", "s1", "s2"])
    #expect(rig.messages[0].stamp?.origin == origin.origin)
    try await rig.run(ListSource(records))
    #expect(rig.messages.count == 3)
  }

  @Test("a skeleton is no text; what was written of it before is deleted")
  func skeletons() async throws {
    let rig = try ImportRig()
    let gone = ImportRig.message(1, "") { $0.isDeleted = true }
    try await rig.run(ListSource([gone, ImportRig.message(2)]))
    #expect(rig.messages.map(\.text) == ["message 2"])
    try await rig.run(ListSource([ImportRig.message(2, "") { $0.isDeleted = true }]))
    #expect(rig.messages.isEmpty)
  }

  @Test("a long text is split, edited and deleted in its parts")
  func parts() async throws {
    let rig = try ImportRig(MemoryProvider { $0.bodyBytes = 100 })
    let long = String(repeating: "abcdefghi ", count: 25)
    try await rig.run(ListSource([ImportRig.message(1, long), ImportRig.message(2)]))
    #expect(rig.messages.count == 4)
    #expect(rig.messages.dropLast().map(\.text).joined() == long)
    #expect(rig.messages.dropLast().map { $0.stamp?.part } == [0, 1, 2])
    try await rig.run(ListSource([ImportRig.edit(1, String(long.prefix(120)).uppercased())]))
    #expect(rig.messages.map(\.text).prefix(2).joined() == String(long.prefix(120)).uppercased())
    #expect(rig.messages.count == 3)
    try await rig.run(ListSource([ImportRig.delete(1)]))
    #expect(rig.messages.map(\.text) == ["message 2"])
  }

  @Test("files are carried; one that is not to be had leaves the text and a line in the report")
  func files() async throws {
    let rig = try ImportRig()
    let bytes = Crypto.randomBytes(100_000)
    let sha256 = Crypto.hex(Crypto.digest(.sha256, of: bytes))
    func file(_ name: String, _ sha256: String?) -> FerryCore.Attachment {
      FerryCore.Attachment(name: name, mediaType: "image/png", size: 100_000, sha256: sha256, reference: .provider(""))
    }
    let records = [
      ImportRig.message(1) { $0.message.attachments = [file("a.png", sha256), file("gone.png", "00")] },
      ImportRig.message(2, "") { record in
        record.message.attachments = [file("hidden.png", nil)]
        record.files = [FileState(status: .hidden)]
      },
    ]
    let counts = try await rig.run(ListSource(records, files: [sha256: bytes]))
    #expect(counts.attachments == 1)
    #expect(counts.attachmentBytes == 100_000)
    #expect(rig.messages.map { $0.attachments.map(\.sha256) } == [[sha256], []])
    #expect(rig.messages.map(\.text) == ["message 1", "[hidden.png]"])
    #expect(
      rig.report.counts.map(\.reason) == [
        "attachment: not in the source", "attachment: not in the source: hidden",
      ])
  }

  @Test("odd records end in the destination or in the report: empty name, equal times, a long text, actions")
  func oddities() async throws {
    let rig = try ImportRig(MemoryProvider { $0.bodyBytes = 64 * 1024 })
    let huge = String(repeating: "0123456789abcdef", count: 65_536)
    let sameTime = Timestamp(milliseconds: ImportRig.start)
    let records = [
      ImportRig.message(1, "nameless", by: "") { $0.message.time = sameTime },
      ImportRig.message(2, "b\u{FFFD}d") { record in
        record.message.time = sameTime
        record.isLossy = true
      },
      ImportRig.message(3, huge), ImportRig.message(4, "waves") { $0.isAction = true },
      .unknown(kind: "poll", ["a": 1]), .skipped(SkippedRecord(reason: "broken", count: 2, place: "x:3")),
    ]
    let counts = try await rig.run(ListSource(records))
    #expect(counts.messages == 4)
    #expect(rig.messages.prefix(2).map(\.text) == ["nameless", "b\u{FFFD}d"])
    #expect(rig.messages.dropFirst(2).dropLast().map(\.text).joined() == huge)
    #expect(rig.messages.last?.attributes?["action"] == true)
    #expect(
      rig.report.counts.map { "\($0.count) \($0.reason)" } == [
        "1 author: nobody is named", "1 record: of an unknown kind", "2 record: skipped at the source",
      ])
    #expect(rig.messages.first?.author == .unknown)
    #expect(rig.report.hasUnreadable)
  }

  @Test("a record that stands for very many is one line with their number", .timeLimit(.minutes(1)))
  func manySkipped() async throws {
    let rig = try ImportRig()
    let many = Record.skipped(SkippedRecord(reason: "broken", count: 1 << 52, place: "x:3"))
    let counts = try await rig.run(ListSource(Array(repeating: many, count: 3)))
    #expect(counts.lost == 3 << 52)
    #expect(rig.report.counts.map(\.count) == [3 << 52])
    let lines = try DiskFile.contents(of: rig.folder.file("report.jsonl"), limit: 1 << 20).split(separator: 0x0a)
    #expect(lines.count == 3)
    #expect(lines.allSatisfy { String(decoding: $0, as: UTF8.self).contains("\"count\":4503599627370496") })
  }

  @Test("where coming and going is not kept, those who are there at the end are members")
  func members() async throws {
    let provider = MemoryProvider { $0.importing?.joins = false }
    let rig = try ImportRig(provider)
    try await rig.run(ListSource([join("ada", 1), join("bob", 2), leave("bob", 3), join("cid", 4)]))
    #expect(try await provider.members(of: ImportRig.room).map(\.id) == ["ada", "cid"])
    let counts = try await rig.run(ListSource([leave("ada", 9)]))
    #expect(counts.others == 1)
    #expect(try await provider.members(of: ImportRig.room).map(\.id) == ["cid"])
  }

  @Test("where nobody can be made a member, that is what is said of who came and went")
  func noMembers() async throws {
    let provider = MemoryProvider {
      $0.importing?.joins = false
      $0.members = false
      $0.absent["members"] = "It has none."
    }
    let rig = try ImportRig(provider)
    try await rig.run(ListSource([join("ada", 1), leave("ada", 2)]))
    #expect(rig.report.counts.map { "\($0.count) \($0.reason)" } == ["1 join: It has none.", "1 leave: It has none."])
  }

  @Test("messages that a destination puts elsewhere are counted, also by a plan; where writing is order, they are not")
  func order() async throws {
    let records = [1, 4, 2, 3, 5].map { ImportRig.message($0) }
    let sorting = try ImportRig(MemoryProvider { $0.importing?.sortsByTime = true })
    try await sorting.run(ListSource(records)) { $0.isPlan = true }
    #expect(sorting.report.counts.map(\.count) == [2])
    #expect(sorting.report.counts.first?.reason.hasPrefix("order: ") == true)
    try await sorting.run(ListSource(records))
    #expect(sorting.report.counts.map(\.count) == [4])
    // Nothing is written, so nothing is put elsewhere.
    try await sorting.run(ListSource(records))
    #expect(sorting.report.counts.map(\.count) == [4])
    let plain = try ImportRig()
    try await plain.run(ListSource(records))
    #expect(plain.report.counts.isEmpty)
  }

  @Test("authors are mapped, a plan writes nothing, and links are told before anything counts as done")
  func options() async throws {
    let rig = try ImportRig()
    let records = (0..<5).map { ImportRig.message($0) }
    let planned = try await rig.run(ListSource(records)) { $0.isPlan = true }
    #expect(planned.messages == 5)
    #expect(rig.messages.isEmpty)
    let links = Locked<[String]>([])
    try await rig.run(ListSource(records)) { settings in
      settings.authors = ["ada": "lovelace"]
    } linking: { written async throws(FerryError) in
      links.withLock { links in links += written.map { "\($0.id)>\($0.parts.map(\.id))" } }
    }
    #expect(rig.messages.map(\.author.id) == Array(repeating: "lovelace", count: 5))
    #expect(links.withLock { $0 } == (0..<5).map { "s\($0)>[m\($0 + 1)]" })
  }

  @Test("an account that keeps nothing is refused in words")
  func unsupported() async throws {
    let rig = try ImportRig(MemoryProvider { $0.importing = nil })
    await #expect(throws: FerryError.self) { try await rig.run(ListSource([])) }
  }

  // MARK: Pieces

  /// One request a message, and a repeated one is written twice.
  static func forgetful() -> MemoryProvider {
    MemoryProvider { capabilities in
      capabilities.importing?.batch = 1
      capabilities.importing?.isRepeatable = false
    }
  }

  private func join(_ name: String, _ second: Int64) -> Record { .join(membership(name, second)) }
  private func leave(_ name: String, _ second: Int64) -> Record { .leave(membership(name, second)) }

  private func membership(_ name: String, _ second: Int64) -> MembershipRecord {
    MembershipRecord(
      channel: "lobby", member: Author(id: UserID(name), name: name),
      time: Timestamp(milliseconds: ImportRig.start + second * 1000))
  }
}
