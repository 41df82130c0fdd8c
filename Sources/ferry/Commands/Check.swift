import FerryConfig
import FerryCore

/// `ferry check`: is the configuration right, and is everybody there?
enum Check {
  static let command = Command(
    name: "check", positional: [],
    summary: "Validate the configuration, reach every account, print what each can do.",
    options: [
      .init("create", nil, "create what the bridges' channels need and is not there: tables, conversations, rooms"),
      Commands.jsonOption, Commands.configOption, Commands.verboseOption,
    ],
    notes: "Exit code 0 when everything is well, 78 for the configuration, 69 when an account cannot be reached.",
    run: run)

  private struct Line: Encodable {
    let account: String
    let provider: String
    let ok: Bool
    let error: String?
    /// With `--create`.
    let created: [String]?
    let capabilities: Capabilities
  }

  private static func run(_ invocation: Invocation) async throws -> Int32 {
    let arguments = invocation.arguments
    let configuration = try Session.configuration(arguments)
    let session = try Session(arguments, allowedHosts: configuration.relay.allowHosts)
    var accounts: [(AccountSection, any ChatProvider)] = []
    for section in configuration.accounts.values.sorted(by: { $0.name < $1.name }) {
      accounts.append((section, try session.account(section.name, in: configuration)))
    }
    if !arguments.has("json") {
      Terminal.output(
        "\(configuration.path): \(accounts.count) accounts, \(configuration.bridges.count) bridges: valid")
    }
    var code: Int32 = 0
    for (section, provider) in accounts {
      var failure: FerryError?
      var created: [String]?
      do throws(FerryError) {
        _ = try await provider.channels()
        if arguments.has("create") { created = try await create(section, provider, configuration) }
      } catch { failure = error }
      if let failure { code = max(code, ExitCode.of(failure)) }
      let line = Line(
        account: section.name.rawValue, provider: section.provider, ok: failure == nil, error: failure?.message,
        created: created, capabilities: provider.capabilities)
      if arguments.has("json") {
        Terminal.output(try Terminal.json(line))
      } else {
        let state = failure.map { "FAILED: \($0.message)" } ?? "reached"
        Terminal.output("\(section.name) (\(section.provider)): \(state)")
        for thing in created ?? [] { Terminal.output("  created: \(thing)") }
        if created == [] { Terminal.output("  created: nothing, all is there") }
        Terminal.output("  can: \(ProvidersCommand.powers(of: provider.capabilities).joined(separator: ", "))")
      }
    }
    return code
  }

  /// What the channels need that the bridges name.
  private static func create(
    _ section: AccountSection, _ provider: any ChatProvider, _ configuration: Configuration
  ) async throws(FerryError) -> [String] {
    guard let provider = provider as? any SetupProvider else { return [] }
    let channels = Set(configuration.bridges.flatMap(\.addresses).filter { $0.account == section.name }.map(\.channel))
    return try await provider.setUp(channels.sorted())
  }
}

/// `ferry providers`: the capability table.
enum ProvidersCommand {
  static let command = Command(
    name: "providers", positional: [],
    summary: "Print what each provider can do.",
    options: [Commands.jsonOption], notes: "",
    run: { invocation in
      if invocation.arguments.has("json") {
        for entry in Providers.all {
          Terminal.output(try Terminal.json(Line(provider: entry.name, capabilities: entry.capabilities)))
        }
        return 0
      }
      let names = [
        "messages", "edits", "deletes", "typing", "images", "members", "reads", "reactions", "history", "batch",
        "text",
      ]
      var rows = [[""] + Providers.all.map(\.name)]
      for (index, name) in names.enumerated() {
        rows.append([name] + Providers.all.map { cells(of: $0.capabilities)[index] })
      }
      Terminal.output(Terminal.table(rows))
      for entry in Providers.all {
        for (power, reason) in entry.capabilities.absent.sorted(by: { $0.key < $1.key }) {
          Terminal.output("\n\(entry.name), \(power): \(reason)")
        }
      }
      return 0
    })

  private struct Line: Encodable {
    let provider: String
    let capabilities: Capabilities
  }

  private static func cells(of capabilities: Capabilities) -> [String] {
    func cell(_ can: Bool) -> String { can ? "yes" : "no" }
    return [
      "yes", cell(capabilities.edits), cell(capabilities.deletes), cell(capabilities.typing),
      capabilities.attachments.rawValue, cell(capabilities.members), cell(capabilities.reads),
      cell(capabilities.reactions), capabilities.history.rawValue, String(capabilities.batch),
      capabilities.bodyBytes.map { "\($0) bytes" } ?? "any length",
    ]
  }

  static func powers(of capabilities: Capabilities) -> [String] {
    var powers = ["messages"]
    if capabilities.edits { powers.append("edits") }
    if capabilities.deletes { powers.append("deletes") }
    if capabilities.typing { powers.append("typing") }
    if capabilities.attachments != .none { powers.append("images (\(capabilities.attachments.rawValue))") }
    if capabilities.members { powers.append("members") }
    if capabilities.reads { powers.append("reads") }
    if capabilities.reactions { powers.append("reactions") }
    if capabilities.history != .none { powers.append("history") }
    return powers
  }
}
