import FerryCore
import FerryHistory
import FerryRuntime
import FerryTestKit
import FoundationEssentials
import Testing

/// What an export has written, in memory: what was not committed is lost when it is opened again.
final class ListSink: ExportSink {
  private struct State: Sendable {
    var records: [Record] = []
    var committed = 0
    var places: [ChannelID: String] = [:]
    var blobs: [String: [UInt8]] = [:]
    /// Commits until the disk is full; nil for ever.
    var commitsLeft: Int?
  }

  private let state = Locked(State())

  var records: [Record] { state.withLock { $0.records } }
  var blobs: [String: [UInt8]] { state.withLock { $0.blobs } }

  /// After so many commits nothing can be written any more.
  func fail(afterCommits count: Int) { state.withLock { $0.commitsLeft = count } }

  /// As after a crash.
  func reopen() {
    state.withLock { state in
      state.records.removeLast(state.records.count - state.committed)
      state.commitsLeft = nil
    }
  }

  func append(_ records: [Record]) { state.withLock { $0.records += records } }

  func addBlob(_ bytes: ByteStream, limit: Int64) async throws(FerryError) -> (sha256: String, size: Int64) {
    let all = try await bytes.collect(upTo: Int(limit))
    let sha256 = Crypto.hex(Crypto.digest(.sha256, of: all))
    state.withLock { $0.blobs[sha256] = all }
    return (sha256, Int64(all.count))
  }

  func place(of channel: ChannelID) -> String? { state.withLock { $0.places[channel] } }

  func commit(_ place: String, of channel: ChannelID) async throws(FerryError) {
    let isFull = state.withLock { state in
      if state.commitsLeft == 0 { return true }
      state.commitsLeft = state.commitsLeft.map { $0 - 1 }
      state.places[channel] = place
      state.committed = state.records.count
      return false
    }
    if isFull { throw FerryError(.storage, "The disk is full.") }
  }

  func finish() -> String? { nil }

  /// The texts of messages as they read in the end, in the order of their first record.
  var folded: [String] {
    var order: [MessageID] = []
    var texts: [MessageID: String] = [:]
    for record in records {
      switch record {
      case .message(let message), .edit(let message):
        if texts.updateValue(message.message.text, forKey: message.message.id) == nil {
          order.append(message.message.id)
        }
      case .delete(let deletion): texts[deletion.id] = nil
      default: break
      }
    }
    return order.compactMap { texts[$0] }
  }
}

/// Notes what is asked of a history.
private struct CountedHistory: ChannelHistory {
  let history: AccountHistory
  let asked: Locked<[String]>

  var channel: ChannelID { history.channel }
  var scope: HistoryScope { history.scope }
  var goesOn: Bool { history.goesOn }

  func page(after cursor: Cursor?, limit: Int) async throws(FerryError) -> RecordPage {
    asked.withLock { $0.append("after \(cursor?.rawValue ?? "-")") }
    return try await history.page(after: cursor, limit: limit)
  }

  func pageBackwards(after cursor: Cursor?, limit: Int) async throws(FerryError) -> RecordPage {
    asked.withLock { $0.append("back \(cursor?.rawValue ?? "-")") }
    return try await history.pageBackwards(after: cursor, limit: limit)
  }

  func bytes(of attachment: FerryCore.Attachment) async throws(FerryError) -> ByteStream {
    try await history.bytes(of: attachment)
  }
}

@Suite(.timeLimit(.minutes(2))) struct ExportTests {
  private static let ada = Author(id: "ada", name: "ada", avatar: "https://example.org/ada.png")
  private static let room: ChannelID = "room"
  private static let address = Address(account: "here", channel: room)

  private struct Rig {
    let provider: MemoryProvider
    let folder: TemporaryFolder
    let sink = ListSink()
    let report: TransferReport

    init(_ provider: MemoryProvider, folder: TemporaryFolder? = nil) throws {
      self.provider = provider
      self.folder = try folder ?? TemporaryFolder()
      report = try TransferReport()
    }

    @discardableResult
    func run(
      _ scope: HistoryScope = .init(), adjust: (inout Exporter.Settings) -> Void = { _ in }
    ) async throws -> TransferProgress.Counts {
      let book = try WorkBook(path: folder.file("export.db"))
      defer { book.close() }
      var settings = Exporter.Settings()
      adjust(&settings)
      let progress = TransferProgress()
      var exporter = Exporter(
        settings, of: try AccountHistory(provider, ExportTests.address, scope), into: sink, book: book,
        report: report, progress: progress, patience: Patience(clock: QuickClock(), limit: .seconds(60)))
      try await exporter.run()
      return progress.now
    }
  }

  private static func messagesOnly() -> MemoryProvider { MemoryProvider { $0.history = .messages } }

  @Test("every revision, deletion and reaction is taken; what the deleted said is not")
  func events() async throws {
    let rig = try Rig(MemoryProvider())
    let first = rig.provider.say("frist", by: Self.ada, in: Self.room)
    let second = rig.provider.say("secret", by: Self.ada, in: Self.room)
    rig.provider.change(first, to: "first", in: Self.room)
    rig.provider.react("👍", to: first, in: Self.room, by: Self.ada)
    rig.provider.remove(second, in: Self.room)
    try await rig.run()
    #expect(
      rig.sink.records.map(\.kind) == [
        "channel", "person", "message", "message", "edit", "reaction", "delete", "end",
      ])
    #expect(rig.sink.folded == ["first"])
    guard case .message(let message) = rig.sink.records[3] else { return }
    #expect(message.isDeleted)
    #expect(message.message.text.isEmpty)
    #expect(message.message.author.avatar == nil)
  }

  @Test(
    "no page is read twice, though the first is read before there is anything to write to", arguments: [true, false])
  func pagesOnce(goesOn: Bool) async throws {
    let rig = try Rig(goesOn ? MemoryProvider() : Self.messagesOnly())
    let book = try WorkBook(path: rig.folder.file("export.db"))
    defer { book.close() }
    for count in [1200, 3, 0] {
      for number in 0..<count { rig.provider.say("message \(number)", by: Self.ada, in: Self.room) }
      let history = CountedHistory(history: try AccountHistory(rig.provider, Self.address), asked: Locked([]))
      let patience = Patience(clock: QuickClock(), limit: .seconds(60))
      let beginning = try await Exporter.begin(history, at: rig.sink.place(of: Self.room), patience)
      #expect(history.asked.withLock { $0.count } == 1)
      var exporter = Exporter(
        .init(), of: history, into: rig.sink, book: book, report: rig.report, progress: TransferProgress(),
        patience: patience)
      try await exporter.run(from: beginning)
      let asked = history.asked.withLock { $0 }
      #expect(Set(asked).count == asked.count, "\(asked)")
    }
    #expect(rig.sink.folded.count == 1203)
  }

  @Test(
    "a run that was broken off goes on behind the last page, and nothing is written twice", arguments: [true, false])
  func resuming(goesOn: Bool) async throws {
    let rig = try Rig(goesOn ? MemoryProvider() : Self.messagesOnly())
    for number in 0..<1700 { rig.provider.say("message \(number)", by: Self.ada, in: Self.room) }
    var attempts = 0
    for commits in [0, 1, 3, 1] {
      rig.sink.fail(afterCommits: commits)
      await #expect(throws: FerryError.self) { try await rig.run() }
      rig.sink.reopen()
      attempts += 1
    }
    try await rig.run()
    #expect(rig.sink.folded == (0..<1700).map { "message \($0)" })
    let count = rig.sink.records.count { if case .message = $0 { true } else { false } }
    #expect(count == 1700)
    guard case .end(let end)? = rig.sink.records.last else { return }
    #expect(end.messages == 1700)
    #expect(attempts == 4)
  }

  @Test("a page that was written and not noted, before the process was killed, is counted once")
  func sinkAhead() async throws {
    let rig = try Rig(Self.messagesOnly())
    for number in 0..<700 { rig.provider.say("message \(number)", by: Self.ada, in: Self.room) }
    rig.sink.fail(afterCommits: 1)
    await #expect(throws: FerryError.self) { try await rig.run() }
    rig.sink.reopen()
    // The book is as it was before the first page was noted.
    try FileManager.default.removeItem(atPath: rig.folder.file("export.db"))
    try await rig.run()
    #expect(rig.sink.folded == (0..<700).map { "message \($0)" })
    #expect(rig.sink.records.last == .end(EndRecord(channel: Self.room, isComplete: true, messages: 700)))
  }

  @Test("a complete archive without its book is not added to; a new archive beside an old book is whole")
  func lostBook() async throws {
    let rig = try Rig(Self.messagesOnly())
    for number in 0..<20 { rig.provider.say("message \(number)", by: Self.ada, in: Self.room) }
    try await rig.run()
    let fresh = try Rig(rig.provider, folder: rig.folder)
    try await fresh.run()
    #expect(fresh.sink.folded == (0..<20).map { "message \($0)" })
    #expect(fresh.sink.records.last == .end(EndRecord(channel: Self.room, isComplete: true, messages: 20)))
    try FileManager.default.removeItem(atPath: rig.folder.file("export.db"))
    let error = await #expect(throws: FerryError.self) { try await rig.run() }
    #expect(error?.message.contains("--state") == true)
    #expect(rig.sink.records.count { if case .message = $0 { true } else { false } } == 20)
  }

  @Test("the next run takes what is new, late edits and deletions included", arguments: [true, false])
  func later(goesOn: Bool) async throws {
    let rig = try Rig(goesOn ? MemoryProvider() : Self.messagesOnly())
    let ids = (0..<900).map { rig.provider.say("message \($0)", by: Self.ada, in: Self.room) }
    try await rig.run()
    let before = rig.sink.records.count
    rig.provider.change(ids[880], to: "changed", in: Self.room)
    rig.provider.remove(ids[890], in: Self.room)
    for number in 900..<903 { rig.provider.say("message \(number)", by: Self.ada, in: Self.room) }
    try await rig.run()
    let expected = (0..<903).filter { $0 != 890 }.map { $0 == 880 ? "changed" : "message \($0)" }
    #expect(rig.sink.folded == expected)
    #expect(rig.sink.records.count < before + 12)
    try await rig.run()
    #expect(rig.sink.folded == expected)
  }

  @Test("files are kept; those that are gone, too large or refused become a status, and the run goes on")
  func files() async throws {
    let rig = try Rig(MemoryProvider())
    let small = rig.provider.store([1, 2, 3])
    let large = rig.provider.store([UInt8](repeating: 7, count: 5000))
    func file(_ reference: AttachmentReference) -> FerryCore.Attachment {
      FerryCore.Attachment(name: "x.png", mediaType: "image/png", reference: reference)
    }
    for reference in [small, large, .provider("nowhere")] {
      rig.provider.say("look", by: Self.ada, in: Self.room, attachments: [file(reference)])
    }
    let counts = try await rig.run { $0.attachmentBytes = 1000 }
    let states = rig.sink.records.compactMap { record -> FileState.Status? in
      if case .message(let message) = record { message.file(at: 0).status } else { nil }
    }
    #expect(states == [.present, .tooLarge, .expired])
    #expect(rig.sink.blobs.values.map(\.count) == [3])
    #expect(counts.attachments == 1)
    #expect(rig.report.counts.map(\.count) == [1, 1])
    let bare = try Rig(rig.provider)
    try await bare.run { $0.attachments = false }
    #expect(bare.sink.blobs.isEmpty)
  }

  @Test("only the time that was asked for is taken")
  func scope() async throws {
    let clock = ManualClock(now: Timestamp(milliseconds: 1_000_000))
    let rig = try Rig(MemoryProvider(clock: clock))
    for number in 0..<10 {
      rig.provider.say("message \(number)", by: Self.ada, in: Self.room)
      clock.advance(by: .seconds(1))
    }
    try await rig.run(
      HistoryScope(since: Timestamp(milliseconds: 1_003_000), until: Timestamp(milliseconds: 1_006_000)))
    #expect(rig.sink.folded == ["message 3", "message 4", "message 5"])
  }

  @Test("a source that fails for a while is waited for; one that keeps nothing says where to look")
  func failures() async throws {
    let rig = try Rig(MemoryProvider())
    rig.provider.say("hello", by: Self.ada, in: Self.room)
    rig.provider.failNext(3, .history, with: FerryError(.unavailable, "503", retry: .now))
    try await rig.run()
    #expect(rig.sink.folded == ["hello"])
    do {
      _ = try AccountHistory(MemoryProvider { $0.history = .none }, Self.address)
      Issue.record("a source without history was taken")
    } catch {
      #expect(error.message.contains("journal:here:room"))
    }
  }

  @Test("a live channel moves to another account as it is, and a second run takes what is new")
  func migrating() async throws {
    let rig = try ImportRig()
    let from = MemoryProvider()
    let ids = (0..<700).map { from.say("message \($0)", by: Self.ada, in: Self.room) }
    from.change(ids[5], to: "changed", in: Self.room)
    from.remove(ids[6], in: Self.room)
    func migrate() async throws {
      let book = try WorkBook(path: rig.folder.file("migrate.db"))
      defer { book.close() }
      let patience = Patience(clock: QuickClock(), limit: .seconds(60))
      let source = LiveSource(try AccountHistory(from, Self.address), book: book, patience: patience)
      var importer = try Importer(
        Importer.Settings(source: Self.address), from: source, to: rig.provider,
        Address(account: "new", channel: ImportRig.room), book: book, report: rig.report, progress: rig.progress,
        patience: patience)
      try await importer.run()
    }
    try await migrate()
    #expect(rig.messages.map(\.text) == from.messages(in: Self.room).map(\.text))
    from.say("later", by: Self.ada, in: Self.room)
    from.change(ids[7], to: "changed too", in: Self.room)
    let calls = rig.provider.calls(.past)
    try await migrate()
    #expect(rig.messages.map(\.text) == from.messages(in: Self.room).map(\.text))
    #expect(rig.messages.map(\.time) == from.messages(in: Self.room).map(\.time))
    #expect(rig.provider.calls(.past) <= calls + 3)
  }
}
