package import FerryCore

/// The whole configuration, checked: what is here can be acted on without further looking up.
///
/// A provider's own keys stay unread in `AccountSection` and `FacadeSection`: only the provider knows them.
package struct Configuration: Sendable {
  /// As the user named it.
  package let path: String
  package let accounts: [AccountName: AccountSection]
  /// In the order of the file.
  package let bridges: [BridgeSection]
  package let relay: RelaySection
  /// A person's name, and the id it has at each account.
  package let identities: [String: [AccountName: UserID]]
  package let serve: ServeSection?
  /// As it was read, for showing it.
  let node: ConfigNode

  /// Throws `.badConfiguration` naming file, line and column of the first thing that is wrong.
  package static func load(path: String, environment: [String: String]) throws(FerryError) -> Configuration {
    try Configuration(ConfigNode.load(path, environment: environment), path: path)
  }

  /// The same from text, for tests and for what is not in a file.
  package static func parse(
    _ text: String, name: String = "ferry.yaml", environment: [String: String] = [:]
  ) throws(FerryError) -> Configuration {
    try Configuration(ConfigNode.parse(text, name: name, environment: environment), path: name)
  }

  private init(_ node: ConfigNode, path: String) throws(FerryError) {
    guard node.isMapping else { throw node.error("a configuration starts with one of its keys, such as accounts:") }
    let top = try node.mapping()
    let accountsNode = top.optional("accounts")
    let bridgesNode = top.optional("bridges")
    let relayNode = top.optional("relay")
    let identitiesNode = top.optional("identities")
    let serveNode = top.optional("serve")
    try top.finish()

    self.path = path
    self.node = node
    accounts = try Self.accounts(accountsNode)
    let known = Set(accounts.keys)
    bridges = try Self.bridges(bridgesNode, accounts: known)
    relay = try RelaySection(relayNode, in: node)
    identities = try Self.identities(identitiesNode, accounts: known)
    serve = if let serveNode { try ServeSection(serveNode) } else { nil }
    try refuseSharedPorts()
  }

  private static func accounts(_ node: ConfigNode?) throws(FerryError) -> [AccountName: AccountSection] {
    var accounts: [AccountName: AccountSection] = [:]
    for (name, key, value) in try node?.mapping().names() ?? [] {
      try checkName(name, of: "an account", key)
      accounts[AccountName(name)] = try AccountSection(name: AccountName(name), value)
    }
    return accounts
  }

  private static func bridges(
    _ node: ConfigNode?, accounts: Set<AccountName>
  ) throws(FerryError) -> [BridgeSection] {
    var bridges: [BridgeSection] = []
    for (name, key, value) in try node?.mapping().names() ?? [] {
      try checkName(name, of: "a bridge", key)
      bridges.append(try BridgeSection(name: BridgeName(name), value, accounts: accounts))
    }
    return bridges
  }

  private static func identities(
    _ node: ConfigNode?, accounts: Set<AccountName>
  ) throws(FerryError) -> [String: [AccountName: UserID]] {
    var identities: [String: [AccountName: UserID]] = [:]
    var owners: [AccountName: [String: String]] = [:]
    for (person, _, value) in try node?.mapping().names() ?? [] {
      var ids: [AccountName: UserID] = [:]
      for (name, key, id) in try value.mapping().names() {
        try checkAccount(AccountName(name), accounts, key)
        let written = try id.nonEmptyString()
        // In any case, as mentions are understood.
        if let other = owners[AccountName(name), default: [:]].updateValue(person, forKey: written.lowercased()) {
          throw id.error("\(person) and \(other) have the same id at \(name)")
        }
        ids[AccountName(name)] = UserID(written)
      }
      identities[person] = ids
    }
    return identities
  }

  /// Two listeners on one port would fail at start-up, long after the file was accepted.
  private func refuseSharedPorts() throws(FerryError) {
    var listeners = [("relay", relay.listen, relay.listenNode)]
    if let local = serve?.local { listeners.append(("serve.local", local.listen, local.listenNode)) }
    for facade in serve?.facades ?? [] {
      listeners.append(("the \(facade.provider) facade", facade.listen, facade.listenNode))
    }
    var taken: [ListenAddress: String] = [:]
    for (owner, address, node) in listeners where address.port != 0 {
      if let other = taken[address] { throw node.error("\(address) is used already, by \(other)") }
      taken[address] = owner
    }
  }
}

/// Names are written in addresses, URLs and metrics, so they are plain.
func checkName(_ name: String, of thing: String, _ key: ConfigNode) throws(FerryError) {
  let isPlain = name.utf8.allSatisfy { byte in
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
    case UInt8(ascii: "_"), UInt8(ascii: "-"): true
    default: false
    }
  }
  guard isPlain, !name.isEmpty, name.utf8.count <= 64 else {
    throw key.error("the name of \(thing) holds up to 64 of a-z, 0-9, _ and -, unlike \"\(name)\"")
  }
}

func checkAccount(_ name: AccountName, _ accounts: Set<AccountName>, _ node: ConfigNode) throws(FerryError) {
  guard !accounts.contains(name) else { return }
  let hint = suggestion(name.rawValue, among: accounts.map(\.rawValue))
  throw node.error("unknown account \"\(name)\"\(accounts.isEmpty ? "; no account is configured" : hint)")
}
