import FerryCore
import FerryHistory
import FerryRuntime
import FerryTestKit

/// Records of a list, as the source of an import; can end too early, as a process that is killed.
final class ListSource: ImportSource {
  private let records: [Record]
  private let files: [String: [UInt8]]
  private let position = Locked(0)
  let settledCount = Locked(0)

  init(_ records: [Record], files: [String: [UInt8]] = [:]) {
    self.records = records
    self.files = files
  }

  func next(limit: Int) -> [Record] {
    position.withLock { position in
      let page = Array(records.dropFirst(position).prefix(limit))
      position += page.count
      return page
    }
  }

  func bytes(of attachment: Attachment, _ state: FileState) -> ByteStream? {
    guard let bytes = attachment.sha256.flatMap({ files[$0] }) else { return nil }
    let rest = Locked<[UInt8]?>(bytes)
    return ByteStream(size: Int64(bytes.count)) { () async throws(FerryError) in
      rest.withLock { rest in
        defer { rest = nil }
        return rest
      }
    }
  }

  func settled() { settledCount.withLock { $0 += 1 } }
}

/// A clock on which waiting takes no time to speak of.
struct QuickClock: FerryClock {
  private let system = SystemClock()

  func now() -> Timestamp { system.now() }

  func sleep(for duration: Duration) async throws(CancellationError) {
    try await system.sleep(for: .microseconds(100))
  }
}

/// Imports into an account in memory, with a book that outlives a run.
struct ImportRig: Sendable {
  static let source = Address(account: "old", channel: "lobby")
  static let room: ChannelID = "room"

  let folder: TemporaryFolder
  let provider: MemoryProvider
  let report: TransferReport
  let progress = TransferProgress()

  init(_ provider: MemoryProvider = MemoryProvider()) throws {
    folder = try TemporaryFolder()
    self.provider = provider
    report = try TransferReport(path: folder.file("report.jsonl"))
  }

  /// A run with progress of its own.
  @discardableResult
  func run(
    _ source: any ImportSource, book name: String = "book.db", adjust: (inout Importer.Settings) -> Void = { _ in },
    linking: (@Sendable ([Importer.Written]) async throws(FerryError) -> Void)? = nil
  ) async throws -> TransferProgress.Counts {
    let book = try WorkBook(path: folder.file(name))
    defer { book.close() }
    var settings = Importer.Settings(source: Self.source)
    adjust(&settings)
    let progress = TransferProgress()
    var importer = try Importer(
      settings, from: source, to: provider, Address(account: "new", channel: Self.room), book: book, report: report,
      progress: progress, patience: Patience(clock: QuickClock(), limit: .seconds(60)), linking: linking)
    try await importer.run()
    return progress.now
  }

  var messages: [Message] { provider.messages(in: Self.room) }

  // MARK: Records

  static let start: Int64 = 1_470_366_650_000

  static func message(
    _ number: Int, _ text: String? = nil, by name: String = "ada", revision: Int = 0,
    change: (inout MessageRecord) -> Void = { _ in }
  ) -> Record {
    .message(record(number, text, by: name, revision: revision, change: change))
  }

  static func edit(_ number: Int, _ text: String, revision: Int = 1) -> Record {
    .edit(
      record(number, text, revision: revision) { record in
        record.message.edited = Timestamp(milliseconds: start + Int64(number) * 1000 + Int64(revision))
      })
  }

  static func delete(_ number: Int) -> Record {
    .delete(
      DeleteRecord(
        channel: "lobby", id: MessageID("s\(number)"), time: Timestamp(milliseconds: start + Int64(number) * 1000 + 5)))
  }

  static func record(
    _ number: Int, _ text: String? = nil, by name: String = "ada", revision: Int = 0,
    change: (inout MessageRecord) -> Void = { _ in }
  ) -> MessageRecord {
    let message = Message(
      id: MessageID("s\(number)"), author: Author(id: UserID(name), name: name), text: text ?? "message \(number)",
      time: Timestamp(milliseconds: start + Int64(number) * 1000), revision: revision)
    var record = MessageRecord(channel: "lobby", message: message)
    change(&record)
    return record
  }

  func lines() throws -> Int {
    let counts = report.counts
    return counts.reduce(0) { $0 + $1.count }
  }
}
