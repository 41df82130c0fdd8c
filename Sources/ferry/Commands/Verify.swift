import FerryConfig
import FerryCore
import FerryHistory
import FerryRuntime

/// `ferry verify`: is everything there?
enum Verify {
  static let command = Command(
    name: "verify", positional: ["FROM", "[TO]"],
    summary: "Re-read two histories and account for every record; of one archive, check that it is whole.",
    options: [
      .init("through", "A,B", "accounts or providers that lay between, whose limits count as TO's"),
      .init("report", "FILE", "write every record's account there, a line of JSON each"),
      .init("no-attachments", nil, "compare files by what the services say of them, do not read them"),
      .init("reads", nil, "compare read marks too"),
    ] + HistoryOperand.options + [Commands.jsonOption, Commands.configOption, Commands.verboseOption],
    notes: """
      FROM and TO are addresses, archives (a folder or a .tar), or files in a format of others (--format). Every record
      of FROM is one of these:
        identical   every field is equal, as exactly as FROM has it
        converted   it is what TO can hold of it; the losses are listed: time:s, split:3, order:time, reactions, ...
        missing     it is in FROM only
        reordered   it is in both, in another place
        altered     it is in both, and differs in what TO could have held
      and what is in TO only is extra, or extra:duplicate when TO has it once more. What counts as converted follows from
      what TO's provider can do ('ferry providers'); an archive can hold everything. When TO is an archive taken from a
      provider into which FROM was imported, name that provider with --through.

      Copies are found by the marks that Ferry leaves, else by author, text and time, so TO need not have been written by
      Ferry. Exit code 0 says that all of FROM is identical or converted and that TO holds nothing else; 65 that it is not so.

      With one operand, an archive, its chain, digests, blobs and counts are checked.

      Examples:
        ferry verify support:lobby app:lobby
        ferry verify lobby.ferry here:lobby --report account.jsonl
        ferry verify first.ferry second.ferry --through twilio
        ferry verify lobby.ferry

      \(Commands.addressNotes)
      """,
    run: run)

  private static func run(_ invocation: Invocation) async throws -> Int32 {
    let arguments = invocation.arguments
    guard arguments.positional.count == 2 else { return try await checkArchive(arguments) }
    let from = try await HistoryOperand(arguments.positional[0], arguments)
    let to = try await HistoryOperand(arguments.positional[1], arguments)
    let people = try People(arguments)
    var sides = (from: try await from.side(arguments, people), to: try await to.side(arguments, people))
    // Two URLs of one kind of provider are two accounts.
    if from.name != to.name, from.provider != nil, to.provider != nil, let address = sides.to.address,
      address == sides.from.address
    {
      sides.to.address = Address(account: AccountName("\(address.account)-2"), channel: address.channel)
    }
    let verification = Verification(from: sides.from, to: sides.to, through: try between(arguments))
    let file = try arguments["report"].map { path throws(FerryError) in try LineFile(path) }
    let report = try await verification.run(
      phase: { phase in if arguments.has("verbose") || Terminal.errorsAreSeen { Terminal.error("ferry: \(phase)") } },
      line: { line in try file?.write(line.json) })
    try file?.close()
    Terminal.output(arguments.has("json") ? try Terminal.json(VerifySummary(report)) : VerifySummary(report).readable)
    if !arguments.has("through"), sides.to.capabilities == nil { hint(report) }
    return report.isFull ? 0 : ExitCode.badData
  }

  /// An archive can hold everything, what it was taken from perhaps not.
  private static func hint(_ report: VerifyReport) {
    let names = Providers.all.filter { $0.capabilities.importing != nil && report.mayFit($0.capabilities) }.map(\.name)
    guard !names.isEmpty else { return }
    Terminal.error(
      "ferry: What differs may be no more than what \(names.joined(separator: " or ")) cannot hold. If \(report.to) was "
        + "taken from there, compare again with --through \(names.count == 1 ? names[0] : "NAME").")
  }

  /// What everything between FROM and TO can hold; nil where nothing was named.
  private static func between(_ arguments: Arguments) throws -> Capabilities? {
    guard let text = arguments["through"] else { return nil }
    var all: [Capabilities] = []
    for name in text.split(separator: ",").map({ String($0) }) {
      if let entry = Providers.all.first(where: { $0.name == name }) {
        all.append(entry.capabilities)
      } else if let address = Address(name) {
        let configuration = try Session.configuration(arguments)
        all.append(try Session(arguments).account(address.account, in: configuration).capabilities)
      } else {
        let configuration = try Session.configuration(arguments)
        all.append(try Session(arguments).account(AccountName(name), in: configuration).capabilities)
      }
    }
    guard let first = all.first else { throw arguments.fail("--through names accounts or providers") }
    return all.dropFirst().reduce(first) { $0.meeting($1) }
  }

  private static func checkArchive(_ arguments: Arguments) async throws -> Int32 {
    let path = arguments.positional[0]
    guard DiskFile.exists(path) else {
      throw arguments.fail("TO is missing; one operand alone is an archive, and there is no \"\(path)\"")
    }
    let report = try await ArchiveCheck.run(path)
    Terminal.output(
      arguments.has("json") ? try Terminal.json(ArchiveSummary(report)) : ArchiveSummary(report).readable(path))
    return report.exitCode
  }
}

/// Persons by the configuration's identities, so that somebody with two names is one.
struct People: Sendable {
  private let names: [AccountName: [String: String]]

  init(_ arguments: Arguments) throws {
    guard let configuration = try Session.configurationIfAny(arguments) else {
      names = [:]
      return
    }
    var names: [AccountName: [String: String]] = [:]
    for (person, identities) in configuration.identities {
      for (account, id) in identities { names[account, default: [:]][id.rawValue] = person }
    }
    self.names = names
  }

  /// The person, or the display name.
  func name(of author: Author, at account: AccountName?) -> String {
    let known = account.flatMap { names[$0] } ?? [:]
    return known[author.id.rawValue] ?? known[author.name] ?? VerifySide.name(of: author)
  }
}

extension Capabilities {
  /// What both can hold.
  func meeting(_ other: Capabilities) -> Capabilities {
    func smaller<Number: Comparable>(_ left: Number?, _ right: Number?) -> Number? {
      guard let left, let right else { return left ?? right }
      return min(left, right)
    }
    var both = self
    both.edits = edits && other.edits
    both.deletes = deletes && other.deletes
    both.reactions = reactions && other.reactions
    both.history = history == .messages || other.history == .messages ? .messages : history
    both.attachments =
      [attachments, other.attachments].contains(.none) ? .none : attachments == .link ? .link : other.attachments
    both.bodyBytes = smaller(bodyBytes, other.bodyBytes)
    both.bodyIsJSON = bodyIsJSON || other.bodyIsJSON
    both.bodyCharacters = smaller(bodyCharacters, other.bodyCharacters)
    both.attachmentBytes = smaller(attachmentBytes, other.attachmentBytes)
    both.attachmentsPerMessage = smaller(attachmentsPerMessage, other.attachmentsPerMessage)
    both.captions = captions && other.captions
    both.keepsAuthor = keepsAuthor && other.keepsAuthor
    both.keepsTime = keepsTime && other.keepsTime
    var powers = importing ?? ImportPowers()
    powers.revisions = powers.revisions && other.importing?.revisions == true
    powers.joins = powers.joins && other.importing?.joins == true
    powers.reads = powers.reads && other.importing?.reads == true
    powers.reactions = powers.reactions && other.importing?.reactions == true
    powers.timeUnit = max(powers.timeUnit, other.importing?.timeUnit ?? 1)
    if let other = other.importing, other.sortsByTime {
      powers.orderSlack = powers.sortsByTime ? min(powers.orderSlack, other.orderSlack) : other.orderSlack
      powers.sortsByTime = true
    }
    both.importing = powers
    return both
  }
}
