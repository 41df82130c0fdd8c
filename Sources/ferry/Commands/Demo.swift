import FerryConfig
import FerryCore
import FerryRuntime
import FoundationEssentials

/// `ferry demo`: the services, a bridge between them, all in one process.
enum Demo {
  static let command = Command(
    name: "demo", positional: [],
    summary: "Run everything in one process: the services, and a bridge between them.",
    options: [
      .init("data", "DIR", "keep the data there, to go on later (else a temporary folder)"),
      Commands.configOption, Commands.readyOption, Commands.verboseOption,
    ],
    notes: "Without --config it runs config/demo.yaml, the demo of the documentation.",
    runsUntilSignal: true,
    run: run)

  private static func run(_ invocation: Invocation) async throws -> Int32 {
    let arguments = invocation.arguments
    let environment = ProcessInfo.processInfo.environment
    let path = arguments["config"] ?? environment["FERRY_CONFIG"] ?? "config/demo.yaml"
    let configuration = try Configuration.load(path: path, environment: environment)
    let session = try Session(arguments, allowedHosts: configuration.relay.allowHosts)
    guard let section = configuration.serve else {
      throw FerryError(.badConfiguration, "\(path) has no section \"serve\": a demo needs services to bridge.")
    }
    let folder = try DataFolder(arguments["data"])
    defer { folder.removeIfTemporary() }
    let services = try LocalServices(section, data: folder.path, session)
    // The demo's data is for everybody at this machine, and so is its token.
    let token = section.local?.tokens.first { $0.user == nil }?.token.reveal()
    services.show(
      (configuration.bridges.first?.addresses ?? []).compactMap { address in
        configuration.accounts[address.account].map { ($0.provider, address.channel) }
      }, token: token)
    let relay = try RelayService(
      configuration, journal: "\(folder.path)/relay.db", services: services.ports, session)
    let host = Host(session: session, signals: invocation.signals)
    return try await host.run(
      services: services, relay: relay, readyFile: arguments["ready-file"],
      greeting: greeting(services.urls, relay.url, configuration, folder)
    ) { await relay.reload() }
  }

  private static func greeting(
    _ urls: [String: String], _ relay: String, _ configuration: Configuration, _ folder: DataFolder
  ) -> String {
    var text = "Ferry's demo is running.\n\n"
    for (name, url) in urls.sorted(by: { $0.key < $1.key }) { text += "  \(name)  \(url)\n" }
    text += "  relay  \(relay)\n\n"
    for bridge in configuration.bridges { text += "  bridge \(bridge.name): \(ways(bridge))\n" }
    if let start = urls["local"] { text += "\n  Open \(start)/ in a browser to see the services side by side.\n" }
    if let bridge = configuration.bridges.first, let way = bridge.directions.first {
      text += """

          Try it in another terminal:

            export FERRY_CONFIG=\(configuration.path)
            ferry tail \(way.to)
            ferry post \(way.from) "hello" --as guest7
            ferry history \(way.from)
            ferry post \(way.from) --image picture.png "look" --as guest7

        """
    }
    text += """

      The data is in \(folder.path)\(folder.isTemporary ? ", removed at the end; --data DIR keeps it" : "").
      Ctrl-C ends the demo.
      """
    return text
  }

  /// `a:x <-> b:y <-> c:z`, or `a:x -> b:y, c:z`.
  private static func ways(_ bridge: BridgeSection) -> String {
    let isBothWays = bridge.directions.allSatisfy { way in
      bridge.directions.contains { $0.from == way.to && $0.to == way.from }
    }
    if isBothWays { return bridge.addresses.map(\.description).joined(separator: " <-> ") }
    let sources = Set(bridge.directions.map(\.from))
    return sources.sorted().map { source in
      let targets = bridge.directions.filter { $0.from == source }.map(\.to.description)
      return "\(source) -> \(targets.joined(separator: ", "))"
    }.joined(separator: "; ")
  }
}

/// Where a demo keeps its data.
struct DataFolder {
  let path: String
  let isTemporary: Bool

  init(_ given: String?) throws(FerryError) {
    isTemporary = given == nil
    path = given ?? "\(FileManager.default.temporaryDirectory.path)/ferry-demo-\(Crypto.randomHex(bytes: 6))"
    do {
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    } catch {
      throw FerryError(.storage, "The folder \(path) cannot be made.", cause: "\(error)")
    }
  }

  func removeIfTemporary() {
    if isTemporary { try? FileManager.default.removeItem(atPath: path) }
  }
}
