import FerryConfig
import FerryCore
import FerryHistory
import FerryRuntime
import FerryStorage

/// `ferry export`: a channel's whole past, into an archive.
enum Export {
  static let command = Command(
    name: "export", positional: ["ADDRESS", "FILE"],
    summary: "Save a channel's whole history as an archive.",
    options: [
      .init("since", "TIME", "only what happened from then on (ISO 8601)"),
      .init("until", "TIME", "only what happened before"),
      .init("no-attachments", nil, "leave files out"),
      .init("max-attachment", "SIZE", "leave out files larger than that (1 GiB)"),
      .init("format", "NAME", "what FILE becomes: archive (if not given) or slack"),
      .init("include", "WHAT", "also take what is left out otherwise: reads, avatars"),
    ] + TransferRun.options + [
      WorkFolder.option, Commands.jsonOption, Commands.configOption, Commands.verboseOption,
    ],
    notes: """
      FILE is a folder, such as lobby.ferry, or one file when it ends with .tar. It holds every message with its author and
      times, and as far as ADDRESS tells them: earlier texts, deletions, reactions, joins and leaves, and the files
      themselves. It is a BagIt bag of JSON Lines: it can be read and checked without Ferry, and 'ferry verify FILE' checks
      it with Ferry. What deleted messages said is left out.

      With '--format slack' FILE is an export as Slack's, a zip or a new folder, which Mattermost and Rocket.Chat import. Zulip
      takes the folder, or a zip written with --no-attachments, and asks Slack's service for the people.

      Run again, it adds only what is new, late edits and deletions included.

      Pusher keeps no history. What a relay has mirrored is in its journal: ferry export journal:site:chatroom FILE

      \(TransferRun.notes)

      Examples:
        ferry export support:lobby lobby.ferry
        ferry export here:lobby lobby.tar --since 2026-01-01 --no-attachments
        ferry export here:lobby lobby.zip --format slack

      \(Commands.addressNotes)
      """,
    runsUntilSignal: true, run: run)

  private static func run(_ invocation: Invocation) async throws -> Int32 {
    let arguments = invocation.arguments
    let (text, file) = (arguments.positional[0], arguments.positional[1])
    let scope = try HistoryScope(arguments)
    let source = try ExportSource(text, arguments, scope)
    let run = try TransferRun(invocation, doing: "Exporting", resume: "run the same command again")
    let patience = try run.patience()
    var settings = Exporter.Settings()
    settings.attachments = !arguments.has("no-attachments")
    settings.attachmentBytes = try Sizes.parse(arguments, "max-attachment", default: 1 << 30)
    let folder = WorkFolder(arguments, beside: file)
    let export = ArchiveExport(
      history: source.history, address: source.address, name: Ends.plain(text), settings: settings, folder: folder,
      place: try ArchivePlace(file, in: folder, arguments))
    return try await run.run { () async throws(FerryError) in
      defer { source.close() }
      let head = try await export.run(run.report, run.progress, patience) { await source.members() }
      if let head {
        Terminal.error(
          "Chain head \(head): kept elsewhere, it proves that nothing was cut off the end.")
      }
    }
  }
}

/// Where an export reads.
struct ExportSource: Sendable {
  let history: any ChannelHistory
  let address: Address
  private let provider: (any ChatProvider)?
  private let journal: Journal?

  init(_ text: String, _ arguments: Arguments, _ scope: HistoryScope) throws {
    guard text.hasPrefix("journal:") else {
      let (provider, address, _) = try Session.open(text, arguments)
      self.provider = provider
      self.address = address
      journal = nil
      history = try AccountHistory(provider, address, scope)
      return
    }
    guard let address = Address(String(text.dropFirst("journal:".count))) else {
      throw arguments.fail("\"\(text)\" is no address in a journal; write journal:account:channel")
    }
    let configuration = try Session.configuration(arguments)
    let session = try Session(arguments, allowedHosts: configuration.relay.allowHosts)
    guard DiskFile.exists(configuration.relay.journal) else {
      throw FerryError(
        .notFound,
        "There is no journal \(configuration.relay.journal) yet, which relay.journal in \(configuration.path) names. "
          + "'ferry relay' writes it: export where that runs, or name its configuration with --config.")
    }
    let journal = try Journal(reading: configuration.relay.journal)
    let account = try? session.account(address.account, in: configuration)
    provider = nil
    self.address = address
    self.journal = journal
    history = JournalHistory(journal, address, scope) { reference async throws(FerryError) in
      guard let account else {
        throw FerryError(.notFound, "The account \(address.account) is not in the configuration any more.")
      }
      return try await account.attachment(reference)
    }
  }

  /// Lets go of what it has open.
  func close() { journal?.close() }

  /// Who is in the channel, where its history does not tell who came and went.
  func members() async -> [Author]? {
    guard let provider, provider.capabilities.members, provider.capabilities.importing?.joins == false,
      let members = provider as? any MembershipProvider
    else { return nil }
    return try? await members.members(of: address.channel)
  }
}

/// Sizes as people write them: `500`, `20 MiB`, `1 GB`.
enum Sizes {
  static func parse(_ arguments: Arguments, _ name: String, default fallback: Int64) throws -> Int64 {
    guard let text = arguments[name] else { return fallback }
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    let unit = text.dropFirst(digits.count).drop { $0 == " " }.lowercased()
    let units: [String: Int64] = [
      "": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "kb": 1000, "mb": 1_000_000,
      "gb": 1_000_000_000,
      "k": 1 << 10, "m": 1 << 20, "g": 1 << 30,
    ]
    guard let number = Int64(digits), let factor = units[unit],
      case (let size, false) = number.multipliedReportingOverflow(by: factor)
    else {
      throw arguments.fail("--\(name) is a size such as 500000, 20 MiB or 1 GiB, not \"\(text)\"")
    }
    return size
  }
}
