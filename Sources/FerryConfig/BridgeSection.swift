package import FerryCore

/// A set of addresses that mirror one another.
package struct BridgeSection: Sendable {
  /// What can be carried over.
  package enum Mirror: String, Sendable, Hashable, CaseIterable {
    case messages, edits, deletes, typing, images, members, reads, reactions
  }

  /// What is done at a destination that cannot do the thing itself.
  package enum Fallback: String, Sendable, Hashable, CaseIterable {
    /// A correction is posted.
    case note
    case skip
  }

  package struct Direction: Sendable, Hashable {
    package let from: Address
    package let to: Address
  }

  package let name: BridgeName
  /// All addresses, in the order of the file.
  package let addresses: [Address]
  /// From each source to each destination.
  package let directions: [Direction]
  package let mirror: Set<Mirror>
  /// How a copy's author reads; `{name}` stands for the original's.
  package let author: String
  package let editFallback: Fallback
  package let deleteFallback: Fallback
  /// Whether authors whose names look alike are told apart.
  package let distinguish: Bool
  /// For errors about the bridge.
  package let node: ConfigNode

  package static let defaultMirror: Set<Mirror> = [.messages, .edits, .deletes, .typing, .images]

  init(name: BridgeName, _ node: ConfigNode, accounts: Set<AccountName>) throws(FerryError) {
    self.name = name
    self.node = node
    let mapping = try node.mapping()
    let between = mapping.optional("between")
    let from = mapping.optional("from")
    let to = mapping.optional("to")
    let mirrorNode = mapping.optional("mirror")
    let authorNode = mapping.optional("author")
    let fallbackNode = mapping.optional("fallback")
    let distinguishNode = mapping.optional("distinguish")
    try mapping.finish()

    var reader = AddressReader(accounts: accounts)
    if let between {
      if let extra = from ?? to {
        throw extra.error("a bridge has either \"between\", or \"from\" and \"to\"")
      }
      let addresses = try reader.addresses(try between.list())
      guard addresses.count >= 2 else { throw between.error("a bridge joins at least two addresses") }
      directions = addresses.flatMap { from in
        addresses.filter { $0 != from }.map { Direction(from: from, to: $0) }
      }
    } else if let from, let to {
      let sources = try reader.addresses(from.oneOrMany())
      let destinations = try reader.addresses(to.oneOrMany())
      guard !sources.isEmpty else { throw from.error("\"from\" must not be empty") }
      guard !destinations.isEmpty else { throw to.error("\"to\" must not be empty") }
      directions = sources.flatMap { from in destinations.map { Direction(from: from, to: $0) } }
    } else {
      throw node.error("the bridge \"\(name)\" needs \"between\", or \"from\" and \"to\"")
    }
    addresses = reader.seen

    mirror = try Self.mirror(mirrorNode)
    author = try Self.template(authorNode)
    distinguish = try distinguishNode?.bool() ?? true
    let fallback = try fallbackNode?.mapping()
    editFallback = try fallback?.optional("edits")?.choice(Fallback.self) ?? .note
    deleteFallback = try fallback?.optional("deletes")?.choice(Fallback.self) ?? .note
    try fallback?.finish()
  }

  private static func mirror(_ node: ConfigNode?) throws(FerryError) -> Set<Mirror> {
    guard let node else { return defaultMirror }
    var mirror: Set<Mirror> = []
    for item in try node.list() { mirror.insert(try item.choice(Mirror.self)) }
    guard !mirror.isEmpty else { throw node.error("\"mirror\" must not be empty") }
    return mirror
  }

  private static func template(_ node: ConfigNode?) throws(FerryError) -> String {
    guard let node else { return "{name}" }
    let template = try node.nonEmptyString()
    guard ["{name}", "{person}", "{id}"].contains(where: { template.contains($0) }) else {
      throw node.error("\"author\" must contain {name}, {person} or {id}, or nobody could tell who speaks")
    }
    return template
  }
}

/// Reads the addresses of one bridge, none of them twice.
private struct AddressReader {
  let accounts: Set<AccountName>
  private(set) var seen: [Address] = []

  init(accounts: Set<AccountName>) { self.accounts = accounts }

  mutating func addresses(_ nodes: [ConfigNode]) throws(FerryError) -> [Address] {
    var addresses: [Address] = []
    for node in nodes {
      let address = try node.address()
      try checkAccount(address.account, accounts, node)
      guard !seen.contains(address) else {
        throw node.error("the address \(address) appears twice in this bridge")
      }
      seen.append(address)
      addresses.append(address)
    }
    return addresses
  }
}
