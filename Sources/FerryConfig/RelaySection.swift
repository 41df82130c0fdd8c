import FerryCore

/// How the relay runs. Every key has a default, and so has the section.
package struct RelaySection: Sendable {
  package let listen: ListenAddress
  /// What the outside world calls `listen`; nil where it is what was bound.
  package let publicURL: String?
  /// The journal's file.
  package let journal: String
  /// For the console; without one there is no console.
  package let token: Secret?
  /// For those who may look at the console and change nothing.
  package let readToken: Secret?
  /// Hosts that attachments named in messages may be fetched from although their addresses are private.
  package let allowHosts: [String]
  /// The largest image that is carried, in bytes.
  package let imageBytes: Int64
  /// How long the journal keeps what is settled, 30 days unless set; nil for ever.
  package let retention: Duration?
  /// How many bytes of files the spool holds that no link serves; the oldest unused go first.
  package let spoolBytes: Int64
  /// Whether images lose what says where they were taken.
  package let stripLocation: Bool
  /// After so many rounds of a foreign loop a message becomes a dead letter; zero for never.
  package let hopLimit: Int
  /// The most requests a second from one client; zero for as many as it likes.
  package let requestsPerClient: Int
  let listenNode: ConfigNode

  static let requestsPerClient = 1000

  init(_ node: ConfigNode?, in top: ConfigNode) throws(FerryError) {
    let mapping = try node?.mapping()
    let listenNode = mapping?.optional("listen")
    listen = try listenNode?.listenAddress() ?? ListenAddress(host: "127.0.0.1", port: 8090)
    self.listenNode = listenNode ?? node ?? top
    publicURL = try mapping?.optional("public_url")?.webAddress()
    journal = try mapping?.optional("journal")?.path() ?? top.source.resolve("ferry.db")
    token = try mapping?.optionalSecret("token")
    readToken = try Self.readToken(mapping?.optional("read_token"), beside: token)
    allowHosts = try Self.hosts(mapping?.optional("allow_hosts"))
    imageBytes = try mapping?.optional("image_bytes")?.byteCount() ?? 100 << 20
    retention = try Self.retention(mapping?.optional("retention"))
    spoolBytes = try mapping?.optional("spool_bytes")?.byteCount() ?? 1 << 30
    stripLocation = try mapping?.optional("strip_location")?.bool() ?? false
    hopLimit = Int(try mapping?.optional("hop_limit")?.integer(in: 0...1000) ?? 10)
    requestsPerClient = try Self.requests(mapping?.optional("requests_per_client"))
    try mapping?.finish()
  }

  static func requests(_ node: ConfigNode?) throws(FerryError) -> Int {
    Int(try node?.integer(in: 0...1_000_000) ?? Int64(requestsPerClient))
  }

  private static func readToken(_ node: ConfigNode?, beside token: Secret?) throws(FerryError) -> Secret? {
    guard let node else { return nil }
    let readToken = try node.secret()
    guard readToken != token else { throw node.error("\"read_token\" must differ from \"token\"") }
    return readToken
  }

  private static func retention(_ node: ConfigNode?) throws(FerryError) -> Duration? {
    guard let node else { return .seconds(30 * 86_400) }
    if case .scalar("forever", _) = node.content { return nil }
    let retention = try node.duration()
    // Less would forget messages that are still being edited, and repetitions that services still send.
    guard retention >= .seconds(3600) else { throw node.error("\"retention\" is at least 1h, or forever") }
    return retention
  }

  private static func hosts(_ node: ConfigNode?) throws(FerryError) -> [String] {
    var hosts: [String] = []
    for item in try node?.list() ?? [] {
      let host = try item.nonEmptyString()
      guard !host.contains(where: { $0 == "/" || $0.isWhitespace }) else {
        throw item.error("a host is written without scheme and path, such as files.example.org")
      }
      hosts.append(host)
    }
    return hosts
  }
}
