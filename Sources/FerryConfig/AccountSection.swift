package import FerryCore

/// One account: who reads it further, and where its keys stand.
package struct AccountSection: Sendable {
  package let name: AccountName
  package let provider: String
  /// The account as a whole, for errors.
  package let node: ConfigNode
  private let keys: ProviderKeys

  init(name: AccountName, _ node: ConfigNode) throws(FerryError) {
    self.name = name
    self.node = node
    keys = try ProviderKeys(node, reading: ["provider"])
    provider = try keys.provider.nonEmptyString()
  }

  /// The provider's keys, all unread; made afresh at every call.
  package var mapping: ConfigMapping { keys.mapping }

  /// For a provider that does not exist.
  package func unknownProvider(valid: some Collection<String>) -> FerryError {
    keys.unknownProvider(provider, valid: valid)
  }
}

/// What accounts and facades share: some keys are ours, all others the provider's.
struct ProviderKeys: Sendable {
  let node: ConfigNode
  let provider: ConfigNode
  private let entries: [ConfigNode.Entry]
  private let ours: [String]

  init(_ node: ConfigNode, reading ours: [String]) throws(FerryError) {
    guard case .mapping(let entries) = node.content else { throw node.mismatch("a mapping of keys to values") }
    self.node = node
    self.entries = entries
    self.ours = ours
    provider = try ConfigMapping(node, entries: entries).required("provider")
  }

  var mapping: ConfigMapping {
    let mapping = ConfigMapping(node, entries: entries)
    for key in ours { _ = mapping.optional(key) }
    return mapping
  }

  func unknownProvider(_ name: String, valid: some Collection<String>) -> FerryError {
    provider.error("unknown provider \"\(name)\"\(suggestion(name, among: valid))")
  }
}
