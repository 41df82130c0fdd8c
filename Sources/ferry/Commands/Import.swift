import FerryConfig
import FerryCore
import FerryHistory
import FerryRuntime

/// `ferry import`: an archive, or another service's export, into a channel.
enum Import {
  static let command = Command(
    name: "import", positional: ["FILE", "ADDRESS"],
    summary: "Write an archive's messages into a channel, as of their own time.",
    options: HistoryOperand.options + [
      .init("channel", "NAME", "which channel of FILE, when it holds several"),
      .init(
        "as-of", "ACCOUNT",
        "authors are those of that account: the configuration's identities say who is who"),
      .init("no-attachments", nil, "leave files out"),
      .init("rate", "N", "write at most so many a second"),
      .init("notify", nil, "write even where phones would ring"),
      .init("plan", nil, "write nothing; say what would be written"),
    ] + TransferRun.options + [
      WorkFolder.option, Commands.jsonOption, Commands.configOption, Commands.verboseOption,
    ],
    notes: """
      In the order of FILE, with authors, times, edits, deletions, replies, reactions, members and files, as far as the
      destination can hold them; times to the millisecond, beside the message where the service itself rounds them. Nobody
      is notified. The channel is made where it is missing. Where the destination sorts by time, and FILE is in another
      order, what comes to stand elsewhere is counted. Whatever could not be kept is counted at the end and, with --report, told one
      by one; only refused credentials end the run.

      Run again, it writes nothing that is there already.

      FILE is an archive of 'ferry export' (a folder or a .tar), or JSON Lines with one message a line. ACCOUNT:* instead of
      an address imports every channel of FILE, each into one of its name.

      \(TransferRun.notes)

      Examples:
        ferry import lobby.ferry app:lobby
        ferry import chatlog.jsonl here:old-lobby --format jsonl
        ferry import everything.tar here:* --report lost.jsonl

      \(Commands.addressNotes)
      """,
    runsUntilSignal: true, run: run)

  private static func run(_ invocation: Invocation) async throws -> Int32 {
    let arguments = invocation.arguments
    let (path, text) = (arguments.positional[0], arguments.positional[1])
    let (provider, address, _) = try Session.open(text, arguments)
    let file = try HistoryFile(path, arguments)
    let run = try TransferRun(invocation, doing: "Importing", resume: "run the same command again")
    let patience = try run.patience()
    let folder = WorkFolder(arguments, beside: path)
    let asOf = try arguments["as-of"].map { name in
      let accounts = try Session.configuration(arguments).accounts.keys.map(\.rawValue)
      guard accounts.contains(name) else {
        throw arguments.fail(
          "--as-of names an account of the configuration, not \"\(name)\"\(suggestion(name, among: accounts))")
      }
      return AccountName(name)
    }
    let base = try Importer.Settings(
      source: file.source, arguments, asOf: asOf, to: address.account)
    let wanted = arguments["channel"]
    return try await run.run { () async throws(FerryError) in
      let channels = try await file.channels()
      var chosen: [(from: ChannelID?, to: ChannelID)] = []
      if address.channel.rawValue == "*" {
        chosen = channels.map { ($0.id, ChannelID($0.name)) }
      } else if let wanted {
        guard let channel = channels.first(where: { $0.id.rawValue == wanted || $0.name == wanted })
        else {
          let names = channels.map(\.name)
          throw FerryError(
            .badRequest, "\(path) has no channel \"\(wanted)\"\(suggestion(wanted, among: names))")
        }
        chosen = [(channel.id, address.channel)]
      } else {
        guard channels.count <= 1 else {
          throw FerryError(
            .badRequest,
            "\(path) holds \(channels.count) channels, \(channels.prefix(5).map(\.name).joined(separator: ", ")) among them. "
              + "Choose one with --channel, or import each into one of its name: \(address.account):*"
          )
        }
        chosen = [(channels.first?.id, address.channel)]
      }
      let sizes = channels.filter { channel in chosen.contains { $0.from == channel.id } }.compactMap(\.records)
      if !sizes.isEmpty { run.progress.update { $0.expected = sizes.reduce(0, +) } }
      for (from, to) in chosen {
        var settings = base
        settings.channel = from
        if let from, from != settings.source.channel {
          settings.source = Address(account: settings.source.account, channel: from)
        }
        let target = Address(account: address.account, channel: to)
        let book = try folder.book(
          "import", file.identity, settings.source.description, Ends.plain(text), to.rawValue)
        defer { book.close() }
        var importer = try Importer(
          settings, from: RecordedSource(try file.open(only: from)), to: provider, target, book: book,
          report: run.report,
          progress: run.progress, patience: patience)
        try await importer.run()
      }
    }
  }
}
