import FerryConfig
import FerryCore
import FerryRuntime
import FerryTransport
import FoundationEssentials

/// What a command works with: the configuration where there is one, and the network.
struct Session: Sendable {
  let client: HTTPClient
  let logger: Logger
  let metrics = Metrics()
  let clock = SystemClock()

  /// `allowedHosts` are the private hosts that attachments may be fetched from.
  init(_ arguments: Arguments, allowedHosts: [String] = []) throws(FerryError) {
    logger = Logger(component: "ferry", level: arguments.has("verbose") ? .debug : .notice)
    client = HTTPClient(
      loop: try LoopExecutor(name: "ferry-client"), guard: AddressGuard(allowedHosts: allowedHosts), logger: logger)
  }

  /// `--config`, else `FERRY_CONFIG`, else `ferry.yaml` here.
  static func configuration(_ arguments: Arguments) throws(FerryError) -> Configuration {
    let environment = ProcessInfo.processInfo.environment
    let path = arguments["config"] ?? fromEnvironment ?? "ferry.yaml"
    do throws(FerryError) {
      return try Configuration.load(path: path, environment: environment)
    } catch {
      guard arguments["config"] == nil, fromEnvironment != nil, !DiskFile.exists(path) else { throw error }
      throw FerryError(error.code, "\(error.message) (FERRY_CONFIG names it)")
    }
  }

  /// Nil where neither `--config` nor `FERRY_CONFIG` names one and there is none here; one that is named has to be there,
  /// and right.
  static func configurationIfAny(_ arguments: Arguments) throws(FerryError) -> Configuration? {
    let isNamed = arguments.has("config") || fromEnvironment != nil
    guard isNamed || DiskFile.exists("ferry.yaml") else { return nil }
    return try configuration(arguments)
  }

  private static var fromEnvironment: String? {
    let path = ProcessInfo.processInfo.environment["FERRY_CONFIG"] ?? ""
    return path.isEmpty ? nil : path
  }

  /// The provider and channel that ADDRESS names.
  static func open(
    _ text: String, _ arguments: Arguments
  ) throws -> (provider: any ChatProvider, address: Address, session: Session) {
    if text.contains("://") {
      let session = try Session(arguments, allowedHosts: [])
      for entry in Providers.all where entry.accepts(url: text) {
        let (provider, channel) = try entry.open(text, session)
        return (provider, Address(account: AccountName(entry.name), channel: channel), session)
      }
      throw arguments.fail("no provider understands this kind of URL; see 'ferry providers'")
    }
    guard let address = Address(text) else {
      throw arguments.fail("\"\(text)\" is not an address; write account:channel or a URL")
    }
    let configuration = try configuration(arguments)
    let session = try Session(arguments, allowedHosts: configuration.relay.allowHosts)
    return (try session.account(address.account, in: configuration), address, session)
  }

  static func unknownAccount(_ name: AccountName, in configuration: Configuration) -> FerryError {
    let names = configuration.accounts.keys.map(\.rawValue)
    return FerryError(
      .badConfiguration,
      "\(configuration.path) has no account \"\(name)\"\(suggestion(name.rawValue, among: names))")
  }

  func account(
    _ name: AccountName, in configuration: Configuration, services: [String: UInt16] = [:], relay: UInt16? = nil
  ) throws(FerryError) -> any ChatProvider {
    guard let section = configuration.accounts[name] else { throw Self.unknownAccount(name, in: configuration) }
    guard let entry = Providers.all.first(where: { $0.name == section.provider }) else {
      throw section.unknownProvider(valid: Providers.all.map { $0.name })
    }
    return try entry.account(section.mapping, Ports(service: services[entry.name], relay: relay), self)
  }
}
