package import FerryCore

/// The local server and the facades it offers.
package struct ServeSection: Sendable {
  /// The folder that everything is kept in.
  package let data: String
  package let local: LocalSection?
  package let facades: [FacadeSection]
  /// The most requests a second to one of them from one client; zero for as many as it likes.
  package let requestsPerClient: Int
  package let node: ConfigNode

  init(_ node: ConfigNode) throws(FerryError) {
    self.node = node
    let mapping = try node.mapping()
    data = try mapping.optional("data")?.path() ?? node.source.resolve("ferry-data")
    let localNode = mapping.optional("local")
    let facadesNode = mapping.optional("facades")
    requestsPerClient = try RelaySection.requests(mapping.optional("requests_per_client"))
    try mapping.finish()
    local = if let localNode { try LocalSection(localNode) } else { nil }
    var facades: [FacadeSection] = []
    for item in try facadesNode?.list() ?? [] { facades.append(try FacadeSection(item)) }
    self.facades = facades
    guard local != nil || !facades.isEmpty else {
      throw node.error("\"serve\" needs \"local\", \"facades\" or both")
    }
  }
}

/// The local server's own interface.
package struct LocalSection: Sendable {
  /// Who may use the local server, and as whom.
  package struct Token: Sendable, Hashable {
    package let token: Secret
    /// The only user this token may speak as; nil for any.
    package let user: UserID?
    /// May change and delete what others wrote.
    package let moderator: Bool
  }

  package let listen: ListenAddress
  package let tokens: [Token]
  /// The largest file that may be uploaded.
  package let fileBytes: Int64
  let listenNode: ConfigNode

  init(_ node: ConfigNode) throws(FerryError) {
    let mapping = try node.mapping()
    listenNode = try mapping.required("listen")
    let tokensNode = try mapping.required("tokens")
    let fileBytesNode = mapping.optional("file_bytes")
    try mapping.finish()
    listen = try listenNode.listenAddress()
    fileBytes = try fileBytesNode?.byteCount() ?? 100 << 20
    var tokens: [Token] = []
    for item in try tokensNode.list() {
      let token = try Self.token(item)
      guard !tokens.contains(where: { $0.token == token.token }) else { throw item.error("this token appears twice") }
      tokens.append(token)
    }
    guard !tokens.isEmpty else { throw tokensNode.error("\"tokens\" must not be empty") }
    self.tokens = tokens
  }

  /// A token alone may do everything; one with keys only what they say.
  private static func token(_ node: ConfigNode) throws(FerryError) -> Token {
    guard node.isMapping else { return Token(token: try node.secret(), user: nil, moderator: true) }
    let mapping = try node.mapping()
    let token = try mapping.secret("token")
    let user = try mapping.optional("user")?.nonEmptyString()
    let moderator = try mapping.optional("moderator")?.bool() ?? false
    try mapping.finish()
    return Token(token: token, user: user.map { UserID($0) }, moderator: moderator)
  }
}

/// One provider's wire protocol, offered by the local server.
package struct FacadeSection: Sendable {
  package let provider: String
  package let listen: ListenAddress
  /// The facade as a whole, for errors.
  package let node: ConfigNode
  let listenNode: ConfigNode
  /// What it is to do wrong on purpose; nil when it is not to be told so.
  package let rehearsal: RehearsalSection?
  private let keys: ProviderKeys

  init(_ node: ConfigNode) throws(FerryError) {
    self.node = node
    keys = try ProviderKeys(node, reading: ["provider", "listen", "rehearsal"])
    rehearsal = try keys.mapping.optional("rehearsal").map { node throws(FerryError) in try RehearsalSection(node) }
    provider = try keys.provider.nonEmptyString()
    listenNode = try keys.mapping.required("listen")
    listen = try listenNode.listenAddress()
  }

  /// The provider's keys, all unread; made afresh at every call.
  package var mapping: ConfigMapping { keys.mapping }

  /// For a provider that has no facade.
  package func unknownProvider(valid: some Collection<String>) -> FerryError {
    keys.unknownProvider(provider, valid: valid)
  }
}
