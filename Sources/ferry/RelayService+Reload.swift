import FerryConfig
import FerryCore
import FerryRelay
import FerryRuntime
import FerryTransport
import FoundationEssentials

extension RelayService {
  /// At SIGHUP: reads the configuration again and goes over to what differs. Says in the log what was done; a file that is
  /// wrong changes nothing.
  func reload() async {
    let logger = session.logger
    let path = current.withLock { $0.configuration.path }
    do throws(FerryError) {
      let (changes, later) = try await goOver(
        to: try Configuration.load(path: path, environment: ProcessInfo.processInfo.environment))
      for line in Self.lines(changes) { logger.notice("reload: \(line)") }
      for key in later { logger.warning("reload: \(key) has changed; that takes effect at the next start") }
      session.metrics.add(to: "ferry_reloads_total", ["outcome": "done"])
    } catch {
      logger.error("reload: nothing was changed: \(error.message)")
      session.metrics.add(to: "ferry_reloads_total", ["outcome": "refused"])
    }
  }

  /// Makes everything that may fail before anything is changed.
  private func goOver(to new: Configuration) async throws(FerryError) -> (RelayChanges, [String]) {
    let old = current.withLock { $0 }
    let meanings = Meanings(new)
    try Self.check(new)
    let section = new.relay
    var settings = relay.settings
    settings.bridges = new.bridges.map { Bridge($0) }
    settings.follow(new, url: server.url)
    settings.spool = settings.spool.with(
      limit: section.imageBytes, budget: section.spoolBytes, stripsLocation: section.stripLocation)
    var replaced = relay.accountsListeningElsewhere(with: settings.bridges)
    var accounts: [AccountName: any ChatProvider] = [:]
    for name in Self.accounts(of: new) {
      let isSame = old.meanings.accounts[name] == meanings.accounts[name]
      if isSame, !replaced.contains(name), let account = settings.accounts[name] {
        accounts[name] = account
      } else {
        accounts[name] = try session.account(name, in: new, services: services, relay: server.port)
        replaced.insert(name)
      }
    }
    settings.accounts = accounts
    try RelayListener.checkWebhooks(of: accounts)
    let changes = try await relay.change(to: settings, replacing: replaced.intersection(accounts.keys))
    let listener = try Self.listener(of: relay, new, journal: journalPath)
    old.listener.retire()
    current.withLock { $0 = Current(configuration: new, listener: listener, meanings: meanings) }
    var later = Self.later(old.configuration, new)
    if old.meanings.serve != meanings.serve { later.append("serve") }
    return (changes, later)
  }

  /// What a running process cannot change.
  private static func later(_ old: Configuration, _ new: Configuration) -> [String] {
    var keys: [String] = []
    if old.relay.listen != new.relay.listen { keys.append("relay.listen") }
    if old.relay.journal != new.relay.journal { keys.append("relay.journal") }
    if old.relay.allowHosts != new.relay.allowHosts { keys.append("relay.allow_hosts") }
    if old.relay.requestsPerClient != new.relay.requestsPerClient { keys.append("relay.requests_per_client") }
    return keys
  }

  private static func lines(_ changes: RelayChanges) -> [String] {
    var lines: [String] = []
    func add(_ what: String, _ names: [some CustomStringConvertible]) {
      if !names.isEmpty { lines.append("\(what): \(names.map(\.description).joined(separator: ", "))") }
    }
    add("bridges added", changes.bridgesAdded)
    add("bridges removed", changes.bridgesRemoved)
    add("bridges changed", changes.bridgesChanged)
    add("accounts connected anew", changes.connected)
    add("accounts disconnected", changes.disconnected)
    for parked in changes.parked where parked.deliveries > 0 {
      lines.append("\(parked.deliveries) deliveries of \(parked.lane) stay in the journal until that is bridged again")
    }
    add(lines.isEmpty ? "no account or bridge differs; kept" : "accounts kept", changes.kept)
    return lines
  }
}
