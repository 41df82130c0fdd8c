import FerryConfig
import FerryCore
import FerryHistory
import FerryRuntime

/// `ferry migrate`: a channel's whole past, from one account to another.
enum Migrate {
  static let command = Command(
    name: "migrate", positional: ["FROM", "TO"],
    summary: "Copy a channel's whole history to another service, and go on mirroring it if asked.",
    options: [
      .init("follow", nil, "then mirror what happens at FROM, until interrupted"),
      .init("archive", "DIR", "keep what was read there, as an archive"),
      .init("since", "TIME", "only what happened from then on (ISO 8601)"),
      .init("until", "TIME", "only what happened before"),
      .init("no-attachments", nil, "leave files out"),
      .init("reads", nil, "carry read marks too"),
      .init("rate", "N", "write at most so many a second"),
      .init("notify", nil, "write even where phones would ring"),
      .init("plan", nil, "write nothing; say what would be written"),
    ] + TransferRun.options + [WorkFolder.option, Commands.jsonOption, Commands.configOption, Commands.verboseOption],
    notes: """
      Messages keep their authors and times, edits, deletions, replies and files, as far as TO can hold them; 'ferry plan
      --migrate FROM TO' says beforehand what it cannot. Nobody is notified. The channel at TO is made where it is missing.
      Nothing comes twice, however often this is run: run it days before the switch, and again on the day.

      With --follow nothing is lost in between either: Ferry listens to FROM first, copies the past, and then mirrors what
      came meanwhile and what comes from then on. Where the configuration has a bridge from FROM to TO, its journal
      remembers every copy, so that 'ferry relay' takes over without a gap.

      \(TransferRun.notes)

      Examples:
        ferry migrate support:lobby app:lobby --plan
        ferry migrate support:lobby app:lobby --follow
        ferry migrate twilio://SID:TOKEN@conversations.twilio.com/CH... local+http://TOKEN@127.0.0.1:8080/lobby

      \(Commands.addressNotes)
      """,
    runsUntilSignal: true, run: run)

  private static func run(_ invocation: Invocation) async throws -> Int32 {
    let arguments = invocation.arguments
    let ends = try Ends(arguments)
    let scope = try HistoryScope(arguments)
    let history = try AccountHistory(ends.from, ends.fromAddress, scope)
    let folder = WorkFolder(arguments)
    let run = try TransferRun(
      invocation, doing: "Migrating", resume: "run the same command again; its state is in \(folder.path)")
    let patience = try run.patience()
    let settings = try Importer.Settings(
      source: ends.fromAddress, arguments, asOf: ends.fromAddress.account, to: ends.toAddress.account)
    let keeping = try Keeping(arguments, ends, history, settings)
    let follow = arguments.has("follow") && !settings.isPlan ? try Follow(ends, folder, arguments) : nil
    return try await run.run { () async throws(FerryError) in
      let book = try folder.book("migrate", ends.fromText, ends.toText)
      defer { book.close() }
      let migrate = { @Sendable () async throws(FerryError) in
        try await copy(
          history, ends, settings, book, keeping: keeping, run, patience, linking: follow.map { $0.linking })
      }
      guard let follow else { return try await migrate() }
      try await follow.run(rereads: !history.goesOn, migrate)
    }
  }

  private static func copy(
    _ history: AccountHistory, _ ends: Ends, _ settings: Importer.Settings, _ book: WorkBook, keeping: Keeping?,
    _ run: TransferRun, _ patience: Patience,
    linking: (@Sendable ([Importer.Written]) async throws(FerryError) -> Void)?
  ) async throws(FerryError) {
    var source: any ImportSource = LiveSource(history, book: book, patience: patience)
    var settings = settings
    if let keeping {
      // The import shows how far all of it has come.
      try await keeping.export.run(run.report, TransferProgress(), patience)
      source = RecordedSource(try ArchiveReader(keeping.path))
      // There may be other channels in it.
      settings.channel = ends.fromAddress.channel
    }
    var importer = try Importer(
      settings, from: source, to: ends.to, ends.toAddress, book: book, report: run.report, progress: run.progress,
      patience: patience, linking: linking)
    try await importer.run()
  }

  /// What is read is written to an archive first, and taken from there.
  private struct Keeping: Sendable {
    let path: String
    let export: ArchiveExport

    /// Nil where no archive is asked for, and for a plan, which writes nothing.
    init?(_ arguments: Arguments, _ ends: Ends, _ history: AccountHistory, _ settings: Importer.Settings) throws {
      guard let path = arguments["archive"], !settings.isPlan else { return nil }
      var wanted = Exporter.Settings()
      wanted.attachments = settings.attachments
      let folder = WorkFolder(arguments, beside: path)
      self.path = path
      export = ArchiveExport(
        history: history, address: ends.fromAddress, name: ends.fromText, settings: wanted, folder: folder,
        place: try ArchivePlace(path, in: folder, arguments))
    }
  }
}

/// The two ends of a migration.
struct Ends: Sendable {
  let from: any ChatProvider
  let to: any ChatProvider
  let fromAddress: Address
  let toAddress: Address
  /// As given, without credentials.
  let fromText: String
  let toText: String
  let session: Session
  /// Nil when both are URLs and there is no configuration.
  let configuration: Configuration?

  init(_ arguments: Arguments) throws {
    let (from, fromAddress, session) = try Session.open(arguments.positional[0], arguments)
    let (to, toAddress, _) = try Session.open(arguments.positional[1], arguments)
    self.from = from
    self.to = to
    self.fromAddress = fromAddress
    // Two URLs of one kind of provider are two accounts.
    let isOther = arguments.positional[0].contains("://") && toAddress.account == fromAddress.account
    self.toAddress =
      isOther && arguments.positional[1].contains("://")
      ? Address(account: AccountName("\(toAddress.account)-2"), channel: toAddress.channel) : toAddress
    fromText = Self.plain(arguments.positional[0])
    toText = Self.plain(arguments.positional[1])
    self.session = session
    let isNamed = arguments.positional.contains { !$0.contains("://") }
    configuration = isNamed ? try Session.configuration(arguments) : nil
    guard fromText != toText else { throw arguments.fail("FROM and TO are the same channel") }
  }

  /// Without what stands before the `@` of a URL.
  static func plain(_ text: String) -> String {
    guard let scheme = text.firstRange(of: "://"), let at = text[scheme.upperBound...].lastIndex(of: "@") else {
      return text
    }
    return String(text[..<scheme.upperBound] + text[text.index(after: at)...])
  }
}

extension HistoryScope {
  init(_ arguments: Arguments) throws {
    func time(_ name: String) throws -> Timestamp? {
      guard let text = arguments[name] else { return nil }
      guard let time = Timestamp(iso8601: text) ?? Timestamp(iso8601: text + "T00:00:00Z") else {
        throw arguments.fail("--\(name) is a time such as 2026-11-30T08:00:00Z or a day, not \"\(text)\"")
      }
      return time
    }
    var words: Set<String> = []
    for word in (arguments["include"] ?? "").split(separator: ",").map({ $0.filter { $0 != " " } }) {
      guard Self.words.contains(word) else {
        throw arguments.fail(
          "--include takes \(Self.words.joined(separator: " and ")), not \"\(word)\"\(suggestion(word, among: Self.words))"
        )
      }
      words.insert(word)
    }
    self.init(
      since: try time("since"), until: try time("until"), reads: arguments.has("reads") || words.contains("reads"),
      avatars: words.contains("avatars"))
  }

  /// What is left out unless it is asked for.
  private static let words = ["reads", "avatars"]
}

extension Importer.Settings {
  init(source: Address, _ arguments: Arguments, asOf: AccountName?, to account: AccountName) throws {
    self.init(source: source)
    attachments = !arguments.has("no-attachments")
    notify = arguments.has("notify")
    isPlan = arguments.has("plan")
    if let text = arguments["rate"] {
      guard let number = Double(text), number >= 0.01, number < 1_000_000 else {
        throw arguments.fail("--rate is a number of items a second")
      }
      rate = number
    }
    let configuration = try Session.configurationIfAny(arguments)
    guard let asOf, let configuration else { return }
    for (_, ids) in configuration.identities {
      guard let there = ids[asOf], let here = ids[account] else { continue }
      authors[there] = here
    }
  }
}
