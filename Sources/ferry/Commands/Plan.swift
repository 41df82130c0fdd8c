import FerryConfig
import FerryCore
import FerryRelay

/// `ferry plan`: what each leg of a bridge keeps, converts and drops, before anything is sent.
enum Plan {
  static let command = Command(
    name: "plan", positional: ["[BRIDGE|FROM]", "[TO]"],
    summary: "Print what each leg of a bridge, or a migration, keeps, converts and drops.",
    options: MigrationPlanCommand.options + HistoryOperand.options + [Commands.jsonOption, Commands.configOption],
    notes: """
      Nothing is sent and no account is reached: the plan follows from what each provider can do and from the
      configuration. With --json one leg a line, then one line with the warnings.

      \(MigrationPlanCommand.notes)
      """,
    run: run)

  private struct Warnings: Encodable { let warnings: [String] }

  private static func run(_ invocation: Invocation) async throws -> Int32 {
    let arguments = invocation.arguments
    if arguments.has("migrate") { return try await MigrationPlanCommand.run(arguments) }
    guard arguments.positional.count < 2 else { throw arguments.fail("only --migrate takes two arguments") }
    let configuration = try Session.configuration(arguments)
    var bridges = configuration.bridges.map { Bridge($0) }
    let warnings = BridgeWarnings.of(bridges)
    if let name = arguments.positional.first {
      guard let bridge = bridges.first(where: { $0.name.rawValue == name }) else {
        let hint = suggestion(name, among: bridges.map(\.name.rawValue))
        throw arguments.fail("\(configuration.path) has no bridge \"\(name)\"\(hint)")
      }
      bridges = [bridge]
    }
    let session = try Session(arguments)
    var accounts: [AccountName: Capabilities] = [:]
    for name in Set(configuration.bridges.flatMap(\.addresses).map(\.account)) {
      accounts[name] = try session.account(name, in: configuration).capabilities
    }
    let isJSON = arguments.has("json")
    for bridge in bridges {
      if !isJSON { Terminal.output("\(bridge.name)") }
      for (from, destinations) in bridge.routes.sorted(by: { $0.key.description < $1.key.description }) {
        for to in destinations {
          guard let source = accounts[from.account], let destination = accounts[to.account] else { continue }
          let plan = LegPlan(bridge, from: from, source, to: to, destination)
          Terminal.output(isJSON ? try Terminal.json(plan) : readable(plan))
        }
      }
    }
    if isJSON { Terminal.output(try Terminal.json(Warnings(warnings: warnings))) }
    if !isJSON { for warning in warnings { Terminal.output("warning: \(warning)") } }
    return 0
  }

  private static func readable(_ plan: LegPlan) -> String {
    let rows = plan.items.map { ["    " + $0.what, $0.outcome.rawValue, $0.how] }
    return "  \(plan.from) -> \(plan.to)\n\(Terminal.table(rows))"
  }
}
