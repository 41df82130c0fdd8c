import FerryConfig
import FerryCore
import FerryRuntime

/// `ferry serve`: the local server and the facades.
enum Serve {
  static let command = Command(
    name: "serve", positional: [],
    summary: "Run the local server and the facades of the configuration.",
    options: [
      .init("data", "DIR", "keep the data there (else serve.data of the configuration)"),
      Commands.configOption, Commands.readyOption, Commands.verboseOption,
    ],
    notes: "SIGTERM ends it once what is in flight is done.",
    runsUntilSignal: true,
    run: { invocation in
      let arguments = invocation.arguments
      let configuration = try Session.configuration(arguments)
      let session = try Session(arguments, allowedHosts: configuration.relay.allowHosts)
      guard let section = configuration.serve else {
        throw FerryError(
          .badConfiguration, "\(configuration.path) has no section \"serve\", so there is nothing to serve.")
      }
      let services = try LocalServices(section, data: arguments["data"] ?? section.data, session)
      let host = Host(session: session, signals: invocation.signals)
      return try await host.run(services: services, relay: nil, readyFile: arguments["ready-file"])
    })
}

/// `ferry relay`: the bridges.
enum RelayCommand {
  static let command = Command(
    name: "relay", positional: [],
    summary: "Run the bridges of the configuration.",
    options: [Commands.configOption, Commands.readyOption, Commands.verboseOption],
    notes: "SIGTERM ends it once what is being sent is settled; what is left is delivered at the next start.",
    runsUntilSignal: true,
    run: { invocation in
      let arguments = invocation.arguments
      let configuration = try Session.configuration(arguments)
      let session = try Session(arguments, allowedHosts: configuration.relay.allowHosts)
      let relay = try RelayService(configuration, journal: configuration.relay.journal, services: [:], session)
      let host = Host(session: session, signals: invocation.signals)
      return try await host.run(services: nil, relay: relay, readyFile: arguments["ready-file"])
    })
}
