import FerryConfig
import FerryCore
import FerryHistory
import FerryRuntime

/// `ferry plan --migrate FROM TO`: what moving a history will keep, convert and drop, and how long it takes.
enum MigrationPlanCommand {
  static let options: [Command.Option] = [
    .init("migrate", nil, "plan moving a history FROM TO instead of a bridge"),
    .init("sample", "N", "records of FROM to look at (5000; 0 for all)"),
  ]

  static let notes = """
    With --migrate FROM TO: what 'ferry migrate' will keep, convert and drop, counted in a sample of FROM, and how long
    writing takes at TO's rate limit. FROM is read, an address or an archive; TO is not reached, and may be an address,
    a provider's name, or a file for an archive. With --json one object.

    Examples:
      ferry plan --migrate support:lobby app:lobby
      ferry plan --migrate lobby.ferry twilio --sample 0 --json
    """

  static func run(_ arguments: Arguments) async throws -> Int32 {
    guard arguments.positional.count == 2 else { throw arguments.fail("--migrate takes FROM and TO") }
    let from = try await HistoryOperand(arguments.positional[0], arguments)
    let to = try destination(arguments.positional[1], arguments)
    let sample = try arguments.integer("sample", in: 0...1_000_000_000, default: 5000)
    var survey = MigrationSurvey(from: PlanEnd(from.name, from.capabilities), to: to)
    if from.capabilities.map({ $0.history != .none }) ?? true {
      try await survey.read(
        try await from.records(HistoryScope(), readsFiles: false), limit: sample == 0 ? .max : sample)
    }
    let plan = survey.plan
    Terminal.output(arguments.has("json") ? try Terminal.json(plan) : readable(plan))
    return 0
  }

  private static func destination(_ text: String, _ arguments: Arguments) throws -> PlanEnd {
    if let entry = Providers.all.first(where: { $0.name == text }) { return PlanEnd(text, entry.capabilities) }
    if text.contains("://") || (Address(text) != nil && !DiskFile.exists(text)) {
      let (provider, _, _) = try Session.open(text, arguments)
      return PlanEnd(Ends.plain(text), provider.capabilities)
    }
    guard text.contains(where: { ".:/".contains($0) }) || DiskFile.exists(text) else {
      let names = Providers.all.map { $0.name }
      throw arguments.fail(
        "\"\(text)\" is no provider\(suggestion(text, among: names)); TO is account:channel, one of "
          + "\(names.joined(separator: ", ")), or a file such as lobby.ferry")
    }
    return PlanEnd(text, nil)
  }

  private static func readable(_ plan: MigrationPlan) -> String {
    var lines = ["\(plan.from) -> \(plan.to)"]
    let size = plan.isWhole ? "all \(plan.sampled) records" : "the first \(plan.sampled) records; there are more"
    lines.append("  looked at \(size)")
    lines.append(
      Terminal.table(
        plan.items.map { item in
          ["    " + item.what, item.outcome.rawValue, item.count.map { String($0) } ?? "", item.how]
        }))
    if let seconds = plan.seconds, plan.messages > 0 {
      let rate = (Double(plan.messages) / max(seconds, 0.001)).rounded()
      lines.append(
        "  writing \(plan.messages) messages takes \(time(seconds)) or more at the destination's rate limit"
          + (plan.isWhole ? "" : ": \(Int(rate)) messages a second"))
    } else if plan.messages > 0 {
      lines.append("  the destination names no rate limit")
    }
    return lines.joined(separator: "\n")
  }

  private static func time(_ seconds: Double) -> String {
    switch seconds {
    case ..<90: "\(Int(seconds.rounded(.up))) s"
    case ..<5400: "\(Int((seconds / 60).rounded(.up))) min"
    default: "\(Int((seconds / 3600).rounded(.up))) h"
    }
  }
}
