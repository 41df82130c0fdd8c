import FerryConfig
import FerryCore
import FerryRuntime
import FoundationEssentials

/// `ferry serve`: the local server and the facades.
enum Serve {
  static let command = Command(
    name: "serve", positional: [],
    summary: "Run the local server and the facades of the configuration.",
    options: [
      .init("data", "DIR", "keep the data there (else serve.data of the configuration)"),
      Commands.configOption, Commands.readyOption, Commands.verboseOption,
    ],
    notes: """
      SIGTERM ends it once what is in flight is done. SIGHUP checks the configuration and says what a restart would
      change: listeners, tokens and facades are made at the start.
      """,
    runsUntilSignal: true,
    run: { invocation in
      let arguments = invocation.arguments
      let configuration = try Session.configuration(arguments)
      let session = try Session(arguments, allowedHosts: configuration.relay.allowHosts)
      guard let section = configuration.serve else {
        throw FerryError(
          .badConfiguration, "\(configuration.path) has no section \"serve\", so there is nothing to serve.")
      }
      let meaning = section.node.meaning
      let services = try LocalServices(section, data: arguments["data"] ?? section.data, session)
      let host = Host(session: session, signals: invocation.signals)
      return try await host.run(services: services, relay: nil, readyFile: arguments["ready-file"]) {
        reload(configuration, meaning, session)
      }
    })
}

extension Serve {
  /// At SIGHUP: what is served is made at the start, so this only says whether the file is right and what differs.
  private static func reload(_ running: Configuration, _ meaning: Secret, _ session: Session) {
    do throws(FerryError) {
      let new = try Configuration.load(path: running.path, environment: ProcessInfo.processInfo.environment)
      let isSame = new.serve?.node.meaning == meaning
      session.logger.notice(
        isSame
          ? "reload: the section serve has not changed"
          : "reload: the section serve has changed, and is right; that takes effect at the next start")
    } catch {
      session.logger.error("reload: nothing was changed: \(error.message)")
    }
  }
}

/// `ferry relay`: the bridges.
enum RelayCommand {
  static let command = Command(
    name: "relay", positional: [],
    summary: "Run the bridges of the configuration.",
    options: [Commands.configOption, Commands.readyOption, Commands.verboseOption],
    notes: """
      SIGTERM ends it once what is being sent is settled; what is left is delivered at the next start. SIGHUP reads the
      configuration again: bridges, identities, accounts and secrets that differ are taken over, all others keep their
      connections. relay.listen, relay.journal and relay.allow_hosts need a restart. A file that is wrong changes nothing.
      """,
    runsUntilSignal: true,
    run: { invocation in
      let arguments = invocation.arguments
      let configuration = try Session.configuration(arguments)
      let session = try Session(arguments, allowedHosts: configuration.relay.allowHosts)
      let relay = try RelayService(configuration, journal: configuration.relay.journal, services: [:], session)
      let host = Host(session: session, signals: invocation.signals)
      return try await host.run(services: nil, relay: relay, readyFile: arguments["ready-file"]) {
        await relay.reload()
      }
    })
}
