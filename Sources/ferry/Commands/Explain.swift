import FerryConfig
import FerryCore
import FerryRelay
import FerryRuntime
import FerryStorage
import FerryTransport
import FoundationEssentials

/// `ferry explain`: one message's way through the relay.
enum Explain {
  static let command = Command(
    name: "explain", positional: ["ADDRESS", "ID"],
    summary: "Print one message's way: received, rules, deliveries, attempts, copies, errors.",
    options: [Commands.jsonOption, Commands.configOption, Commands.verboseOption],
    notes: """
      ADDRESS is account:channel of the configuration, or - for wherever ID is known. ID is the message's id at its
      source, the id of any copy of it, the key of an event, or the key of a send.

      Reads the journal (relay.journal of the configuration), also while the relay runs; where that file is not there,
      asks the relay at relay.listen, with relay.token. Messages' texts are not printed.
      """, run: run)

  private static func run(_ invocation: Invocation) async throws -> Int32 {
    let arguments = invocation.arguments
    let place = arguments.positional[0]
    let address = Address(place)
    guard address != nil || place == "-" else {
      throw arguments.fail("\"\(place)\" is not an address; write account:channel, or - for any")
    }
    let configuration = try Session.configuration(arguments)
    let trace: RelayTrace
    do { trace = try await self.trace(arguments.positional[1], at: address, configuration, arguments) } catch {
      // The journal may know messages of accounts that are configured no more.
      if (error as? FerryError)?.code == .notFound, let address, configuration.accounts[address.account] == nil {
        throw Session.unknownAccount(address.account, in: configuration)
      }
      throw error
    }
    if arguments.has("json") {
      Terminal.output(try Terminal.json(trace))
    } else {
      for message in trace.messages { Terminal.output(readable(message)) }
    }
    return 0
  }

  private static func trace(
    _ id: String, at address: Address?, _ configuration: Configuration, _ arguments: Arguments
  ) async throws -> RelayTrace {
    let journal: Journal
    do throws(FerryError) { journal = try Journal(reading: configuration.relay.journal) } catch {
      guard error.code == .notFound, configuration.relay.token != nil else { throw error }
      var query = "trace?id=\(PercentEncoding.encode(id))"
      if let address { query += "&address=\(PercentEncoding.encode(address.description))" }
      let body = try await RelayAPI(configuration, try Session(arguments)).call("GET", "api/" + query)
      do { return try JSONDecoder().decode(RelayTrace.self, from: Data(body)) } catch { throw FerryError.wrap(error) }
    }
    defer { journal.close() }
    return try await RelayTrace(of: id, at: address, in: journal, configuration.bridges.map { Bridge($0) })
  }

  static func readable(_ message: RelayTrace.Message) -> String {
    var lines = ["\(message.address)  \(message.message.map { "message \($0)" } ?? "")"]
    for bridge in message.bridges {
      lines.append(
        "  bridge \(bridge.name) mirrors \(bridge.mirror.joined(separator: ", ")); author \"\(bridge.author)\"; "
          + "where it cannot edit: \(bridge.edits), delete: \(bridge.deletes)")
    }
    for event in message.events {
      lines.append(
        "  \(event.kind) received \(event.accepted), said \(event.time) at \(event.address), key \(event.key)")
      for delivery in event.deliveries { lines += readable(delivery) }
      for skipped in event.skipped { lines.append("    not by \(skipped.bridge): \(skipped.why)") }
    }
    if !message.copies.isEmpty { lines.append("  copies") }
    for copy in message.copies {
      var notes: [String] = []
      if copy.part > 0 { notes.append(copy.part < 1 << 20 ? "part \(copy.part + 1)" : "attachment") }
      if copy.revision > 0 { notes.append("revision \(copy.revision)") }
      if copy.deleted { notes.append("deleted") }
      lines.append(
        "    \(copy.address)  \(copy.id)  by \(copy.bridge)\(notes.isEmpty ? "" : " (\(notes.joined(separator: ", ")))")"
      )
    }
    return lines.map(Terminal.visible).joined(separator: "\n")
  }

  private static func readable(_ sent: RelayTrace.Sent) -> [String] {
    let tries = sent.attempts == 1 ? "1 attempt" : "\(sent.attempts) attempts"
    let state =
      switch sent.state {
      case "settled": "done \(sent.updated), \(tries)"
      case "dead": "dead letter \(sent.id) since \(sent.updated), \(tries); see ferry dead"
      case "waiting": "waits since \(sent.updated) for a copy of the message that it is about"
      case "sending": "under way since \(sent.updated), \(tries); its outcome is not known yet"
      default: sent.attempts == 0 ? "to be sent" : "to be sent again, \(tries), the last \(sent.updated)"
      }
    return ["    -> \(sent.to) by \(sent.bridge): \(state)"]
      + sent.failures.map { "         \($0.time) \($0.error)" }
  }
}
