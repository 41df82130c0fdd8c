import FerryConfig
import FerryCore
import FerryPages
import FerryRelay
import FerryRuntime
import FerryStorage
import FerryTransport

/// The relay with its journal and listener, made from a configuration.
final class RelayService: Sendable {
  /// What is as the configuration read last says.
  struct Current: Sendable {
    var configuration: Configuration
    var listener: RelayListener
    var meanings: Meanings
  }

  /// What its parts came to when the configuration was read: files that it names may change by themselves.
  struct Meanings: Sendable {
    let accounts: [AccountName: Secret]
    let serve: Secret?

    init(_ configuration: Configuration) {
      accounts = configuration.accounts.mapValues { $0.node.meaning }
      serve = configuration.serve?.node.meaning
    }
  }

  let relay: Relay
  let journal: Journal
  let server: HTTPServer
  let services: [String: UInt16]
  let session: Session
  let current: Locked<Current>
  let journalPath: String

  var url: String { server.url }

  /// Listens when it returns, but relays only once the relay runs.
  init(
    _ configuration: Configuration, journal path: String, services: [String: UInt16], _ session: Session
  ) throws(FerryError) {
    try Self.check(configuration)
    let section = configuration.relay
    journal = try Journal(path: path)
    let spool = try Spool(beside: path, section)
    let box = Locked<RelayService?>(nil)
    server = try HTTPServer(
      HTTPServer.Settings(
        host: section.listen.host, port: section.listen.port, requestsPerClient: section.requestsPerClient),
      loop: try LoopExecutor(name: "ferry-relay"), logger: session.logger
    ) { request in
      let listener = box.withLock { $0 }?.current.withLock { $0.listener }
      if listener?.isWebhook(request) != true, let page = ConsolePage.answer(request) { return page }
      guard let listener else { return .text("starting\n", status: 503) }
      return await listener.handle(request)
    }
    // The listener comes first: accounts need to know where webhooks reach it.
    var accounts: [AccountName: any ChatProvider] = [:]
    for name in Self.accounts(of: configuration) {
      accounts[name] = try session.account(name, in: configuration, services: services, relay: server.port)
    }
    relay = try Relay(
      Relay.Settings(
        configuration, accounts: accounts, bridges: configuration.bridges.map { Bridge($0) }, journal: journal,
        spool: spool, url: server.url, session))
    current = Locked(
      Current(
        configuration: configuration, listener: try Self.listener(of: relay, configuration, journal: path),
        meanings: Meanings(configuration)))
    journalPath = path
    self.services = services
    self.session = session
    box.withLock { $0 = self }
  }

  static func listener(
    of relay: Relay, _ configuration: Configuration, journal path: String
  ) throws(FerryError) -> RelayListener {
    let facts = ConsoleFacts(
      version: Version.current, providers: configuration.accounts.mapValues(\.provider),
      settings: configuration.shown.map { setting in
        // The demo keeps its journal elsewhere.
        let value = setting.key == "relay.journal" ? path : setting.value
        return ConsoleSetting(key: setting.key, value: value, kind: setting.kind.rawValue)
      })
    return try RelayListener(
      relay: relay, token: configuration.relay.token?.reveal(), readToken: configuration.relay.readToken?.reveal(),
      facts: facts, listenHost: configuration.relay.listen.host)
  }

  static func accounts(of configuration: Configuration) -> Set<AccountName> {
    Set(configuration.bridges.flatMap(\.addresses).map(\.account))
  }

  static func check(_ configuration: Configuration) throws(FerryError) {
    guard !configuration.bridges.isEmpty else {
      throw FerryError(.badConfiguration, "\(configuration.path) has no bridges, so there is nothing to relay.")
    }
  }
}

extension Spool {
  /// The files of the journal at `path`. Without a section as one that says nothing.
  init(beside path: String, _ section: RelaySection?) throws(FerryError) {
    try self.init(
      folder: path + ".files", limit: section?.imageBytes ?? 100 << 20, budget: section?.spoolBytes ?? 1 << 30,
      stripsLocation: section?.stripLocation ?? false)
  }
}

extension Relay.Settings {
  /// What the configuration says of how to relay, or nothing where there is none. `url` is where files are served unless
  /// the configuration names another place.
  init(
    _ configuration: Configuration?, accounts: [AccountName: any ChatProvider], bridges: [Bridge], journal: Journal,
    spool: Spool, url: String, _ session: Session
  ) {
    self.init(
      accounts: accounts, bridges: bridges, journal: journal, spool: spool, publicURL: url,
      logger: session.logger.component("relay"), metrics: session.metrics)
    if let configuration { follow(configuration, url: url) }
  }

  /// Takes over what the configuration says, but for accounts, bridges and the spool's rules.
  mutating func follow(_ configuration: Configuration, url: String) {
    let section = configuration.relay
    identities = Identities(configuration.identities)
    publicURL = section.publicURL ?? url
    retention = section.retention
    hopLimit = section.hopLimit
  }
}

extension Bridge {
  init(_ section: BridgeSection) {
    var routes: [Address: [Address]] = [:]
    for direction in section.directions { routes[direction.from, default: []].append(direction.to) }
    self.init(
      name: section.name, routes: routes,
      mirror: Set(section.mirror.compactMap { Mirrored(rawValue: $0.rawValue) }),
      author: AuthorTemplate(section.author), editFallback: Fallback(rawValue: section.editFallback.rawValue) ?? .note,
      deleteFallback: Fallback(rawValue: section.deleteFallback.rawValue) ?? .note, distinguish: section.distinguish)
  }
}
