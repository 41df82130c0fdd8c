import FerryConfig
import FerryCore
import FerryPages
import FerryRelay
import FerryRuntime
import FerryStorage
import FerryTransport

/// The relay with its journal and listener, made from a configuration.
struct RelayService: Sendable {
  let relay: Relay
  let journal: Journal
  let server: HTTPServer

  var url: String { server.url }

  /// Listens when it returns, but relays only once the relay runs.
  init(
    _ configuration: Configuration, journal path: String, services: [String: UInt16], _ session: Session
  ) throws(FerryError) {
    guard !configuration.bridges.isEmpty else {
      throw FerryError(.badConfiguration, "\(configuration.path) has no bridges, so there is nothing to relay.")
    }
    let section = configuration.relay
    journal = try Journal(path: path)
    let spool = try Spool(folder: path + ".files", limit: section.imageBytes)
    let relayBox = Locked<RelayListener?>(nil)
    server = try HTTPServer(
      HTTPServer.Settings(host: section.listen.host, port: section.listen.port),
      loop: try LoopExecutor(name: "ferry-relay"), logger: session.logger
    ) { request in
      if let page = ConsolePage.answer(request) { return page }
      guard let listener = relayBox.withLock({ $0 }) else { return .text("starting\n", status: 503) }
      return await listener.handle(request)
    }
    // The listener comes first: accounts need to know where webhooks reach it.
    var accounts: [AccountName: any ChatProvider] = [:]
    for name in Set(configuration.bridges.flatMap(\.addresses).map(\.account)) {
      accounts[name] = try session.account(name, in: configuration, services: services, relay: server.port)
    }
    relay = try Relay(
      Relay.Settings(
        accounts: accounts, bridges: configuration.bridges.map { Bridge($0) }, journal: journal, spool: spool,
        publicURL: section.publicURL ?? server.url, logger: session.logger.component("relay"),
        metrics: session.metrics))
    let facts = ConsoleFacts(
      version: Version.current, providers: configuration.accounts.mapValues(\.provider),
      settings: configuration.shown.map { setting in
        // The demo keeps its journal elsewhere.
        let value = setting.key == "relay.journal" ? path : setting.value
        return ConsoleSetting(key: setting.key, value: value, kind: setting.kind.rawValue)
      })
    let listener = try RelayListener(
      relay: relay, token: section.token?.reveal(), readToken: section.readToken?.reveal(), facts: facts)
    relayBox.withLock { $0 = listener }
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
      deleteFallback: Fallback(rawValue: section.deleteFallback.rawValue) ?? .note)
  }
}
