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
    let body = try await RelayAPI(configuration, try Session(arguments)).call("GET", "status")
    if arguments.has("json") {
      Terminal.output(String(decoding: body, as: UTF8.self))
      return 0
    }
    let status: RelayStatus
    do { status = try JSONDecoder().decode(RelayStatus.self, from: Data(body)) } catch { throw FerryError.wrap(error) }
    for account in status.accounts { Terminal.output(readable(account)) }
    var rows = [["bridge", "to", "pending", "waiting", "dead", "oldest"]]
    for lane in status.lanes {
      rows.append(
        [
          lane.bridge.rawValue, lane.destination.description, "\(lane.pending)", "\(lane.waiting)", "\(lane.dead)",
          lane.stopped != nil ? "stopped" : lane.parked ? "no longer bridged" : lane.oldest ?? "",
        ])
    }
    Terminal.output("\n" + Terminal.table(rows))
    for lane in status.lanes {
      guard let why = lane.stopped else { continue }
      Terminal.output(Terminal.visible("\n\(lane.bridge) to \(lane.destination) is stopped: \(why)"))
    }
    for gap in status.gaps { Terminal.output("gap at \(gap.address) from \(gap.start) to \(gap.end)") }
    return 0
  }
}

extension StatusCommand {
  fileprivate static func readable(_ account: RelayStatus.Account) -> String {
    var lines = ["\(account.name): \(account.state) since \(account.since)\(account.reason.map { ", \($0)" } ?? "")"]
    lines.append("  last in \(account.lastIn ?? "never"), last out \(account.lastOut ?? "never")")
    if let error = account.lastError { lines.append("  last error \(error.time): \(error.message)") }
    if account.lanesWaiting > 0 {
      let next = account.nextAttempt.map { "; one tries at \($0)" } ?? ""
      lines.append("  \(account.lanesWaiting) lanes wait\(next)")
    }
    return lines.map(Terminal.visible).joined(separator: "\n")
  }
}

/// `ferry dead`: deliveries that failed, and what a person decides about them.
enum DeadCommand {
  static let command = Command(
    name: "dead", positional: ["[list|retry|drop]", "[ID]"],
    summary: "List the running relay's failed deliveries; retry or drop one, or all.",
    options: [Commands.jsonOption, Commands.configOption, Commands.verboseOption],
    notes: """
      ferry dead                  list them, with their reasons
      ferry dead retry 17         send number 17 again
      ferry dead drop all         forget them all

      Asks the relay at relay.listen of the configuration, with relay.token.
      """,
    run: run)

  private static func run(_ invocation: Invocation) async throws -> Int32 {
    let arguments = invocation.arguments
    let action = arguments.positional.first ?? "list"
    guard ["list", "retry", "drop"].contains(action) else {
      throw arguments.fail("\"\(action)\" is neither list, retry nor drop")
    }
    let configuration = try Session.configuration(arguments)
    let relay = try RelayAPI(configuration, try Session(arguments))
    let body = try await relay.call("GET", "dead")
    let letters: [DeadLetterLine]
    do { letters = try JSONDecoder().decode([DeadLetterLine].self, from: Data(body)) } catch {
      throw FerryError.wrap(error)
    }
    if action == "list" {
      for letter in letters {
        Terminal.output(
          arguments.has("json")
            ? try Terminal.json(letter)
            : "\(letter.id)  \(letter.source) -> \(letter.destination)  \(letter.key)  \(letter.reason)")
      }
      return 0
    }
    guard arguments.positional.count == 2 else { throw arguments.fail("which one? Give its ID, or all") }
    let chosen = arguments.positional[1]
    guard chosen == "all" || Int64(chosen) != nil else {
      throw arguments.fail("\"\(chosen)\" is no ID; write a number, or all")
    }
    for id in chosen == "all" ? letters.map({ String($0.id) }) : [chosen] {
      _ = try await relay.call("POST", "dead/\(id)/\(action)")
    }
    return 0
  }
}

/// The running relay's listener, as its configuration describes it.
struct RelayAPI {
  private let base: String
  private let token: String
  private let client: HTTPClient

  /// How the relay says why not.
  private struct Refusal: Decodable {
    struct Reason: Decodable { let message: String }
    let error: Reason
  }

  init(_ configuration: Configuration, _ session: Session) throws(FerryError) {
    guard let token = configuration.relay.token else {
      throw FerryError(
        .badConfiguration, "\(configuration.path) sets no relay.token, so a relay tells its state to nobody.")
    }
    base = "http://\(configuration.relay.listen)/"
    self.token = token.reveal()
    client = session.client
  }

  func call(_ method: String, _ path: String) async throws(FerryError) -> [UInt8] {
    let response = try await client.send(
      ClientRequest(method: method, url: base + path, headers: ["Authorization": "Bearer \(token)"]))
    guard response.status == 200 else {
      var error = FerryError.from(status: response.status, retryAfter: nil, doing: "ask the relay")
      let body = (try? await response.body.collect(upTo: 1 << 16)) ?? []
      if let said = try? JSONDecoder().decode(Refusal.self, from: Data(body)) { error.message = said.error.message }
      throw error
    }
    return try await response.body.collect(upTo: 1 << 24)
  }
}
