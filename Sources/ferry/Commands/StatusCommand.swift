import FerryConfig
import FerryCore
import FerryRelay
import FerryRuntime
import FerryTransport
import FoundationEssentials

/// `ferry status`: what the running relay is doing.
enum StatusCommand {
  static let command = Command(
    name: "status", positional: [],
    summary: "Print what the running relay is doing: accounts, lanes, gaps.",
    options: [Commands.jsonOption, Commands.configOption, Commands.verboseOption],
    notes: "Asks the relay at relay.listen of the configuration, with relay.token.", run: run)

  private static func run(_ invocation: Invocation) async throws -> Int32 {
    let arguments = invocation.arguments
    let configuration = try Session.configuration(arguments)
    let session = try Session(arguments)
    guard let token = configuration.relay.token else {
      throw FerryError(
        .badConfiguration, "\(configuration.path) sets no relay.token, so a relay tells its status to nobody.")
    }
    let response = try await session.client.send(
      ClientRequest(
        method: "GET", url: "http://\(configuration.relay.listen)/status",
        headers: ["Authorization": "Bearer \(token.reveal())"]))
    let body = try await response.body.collect(upTo: 1 << 24)
    guard response.status == 200 else {
      throw FerryError.from(status: response.status, retryAfter: nil, doing: "asking the relay for its status")
    }
    if arguments.has("json") {
      Terminal.output(String(decoding: body, as: UTF8.self))
      return 0
    }
    let status: RelayStatus
    do { status = try JSONDecoder().decode(RelayStatus.self, from: Data(body)) } catch { throw FerryError.wrap(error) }
    for account in status.accounts {
      Terminal.output(
        "\(account.name): \(account.state)\(account.reason.map { ", \($0)" } ?? ""), last event \(account.lastEvent ?? "never")"
      )
    }
    var rows = [["bridge", "to", "pending", "waiting", "dead"]]
    for lane in status.lanes {
      rows.append(
        [lane.bridge.rawValue, lane.destination.description, "\(lane.pending)", "\(lane.waiting)", "\(lane.dead)"])
    }
    Terminal.output("\n" + Terminal.table(rows))
    for gap in status.gaps { Terminal.output("gap at \(gap.address) from \(gap.start) to \(gap.end)") }
    return 0
  }
}
