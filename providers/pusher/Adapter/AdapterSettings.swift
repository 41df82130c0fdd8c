package import FerryConfig
package import FerryCore
import FerryTransport

extension PusherAdapter {
  package struct Settings: Sendable {
    /// What becomes of a message that is longer than an event may be.
    package enum Long: String, Hashable, Sendable, CaseIterable {
      /// Several messages, cut by the relay.
      case split
      /// One message in several events, by the `chunked-` convention.
      case chunk
      /// The beginning, and a link to the whole, which is stored at `upload`.
      case link
    }

    package var appID: String
    package var key: String
    /// Nil for an account that only listens, and has an endpoint sign for it.
    package var secret: Secret?
    /// Scheme, host and port of the HTTP API and of the socket.
    package var api: String
    package var socket: String
    /// What holds for every channel that no pattern of `channels` matches; the first that does decides.
    package var profile = Profile()
    package var channels: [ChannelSettings] = []
    /// Whether sends leave a marker from which a lost answer is settled. It doubles the billed messages.
    package var marker = true
    /// Whether what Ferry publishes comes back to its own socket.
    package var echo = true
    package var long = Long.split
    /// Where the whole of a long message is stored.
    package var upload: Endpoint?
    /// The app's own endpoints that sign subscriptions and sign-ins, in place of the secret.
    package var auth: Endpoint?
    package var userAuth: Endpoint?
    /// As whom Ferry signs in and joins presence channels.
    package var user: AccountUser?
    /// The key from which those of encrypted channels are made.
    package var encryption: SecretBox?

    package init(appID: String, key: String, secret: Secret?, host: String, port: UInt16? = nil, tls: Bool = true) {
      self.appID = appID
      self.key = key
      self.secret = secret
      let end = port.map { "\(host):\($0)" } ?? host
      api = (tls ? "https://" : "http://") + end
      socket = (tls ? "wss://" : "ws://") + end
    }

    package init(appID: String, key: String, secret: Secret?, cluster: String) {
      self.init(appID: appID, key: key, secret: secret, host: "api-\(cluster).pusher.com")
      socket = "wss://ws-\(cluster).pusher.com"
    }

    /// Reads every key of an account's configuration and refuses the others.
    package init(_ mapping: ConfigMapping) throws(FerryError) {
      let appID = try mapping.required("app_id").nonEmptyString()
      let key = try mapping.required("key").nonEmptyString()
      let auth = try Endpoint(mapping, "auth_endpoint", headers: "auth_headers")
      let secret = auth == nil ? try mapping.secret("secret") : try mapping.optionalSecret("secret")
      let cluster = mapping.optional("cluster")
      let host = mapping.optional("host")
      let port = mapping.optional("port")
      let tls = mapping.optional("tls")
      if let host {
        if let cluster {
          throw cluster.error("cluster and host exclude each other: cluster chooses Pusher's own hosts")
        }
        let name = try host.nonEmptyString()
        guard Self.isHost(name) else { throw host.error("host is a name or an address, without scheme and path") }
        self.init(
          appID: appID, key: key, secret: secret, host: name,
          port: try port.map { node throws(FerryError) in UInt16(try node.integer(in: 0...65535)) },
          tls: try tls?.bool() ?? true)
      } else {
        if let other = port ?? tls { throw other.error("port and tls go with host, which is missing") }
        let name = try cluster?.nonEmptyString() ?? "mt1"
        guard Self.isHost(name) else { throw (cluster ?? mapping.node).error("cluster is a name such as eu or mt1") }
        self.init(appID: appID, key: key, secret: secret, cluster: name)
      }
      self.auth = auth
      profile = try Profile(mapping, over: Profile())
      for node in try mapping.optional("channels")?.list() ?? [] {
        channels.append(try ChannelSettings(try node.mapping(), over: profile))
      }
      if let marker = mapping.optional("marker") { self.marker = try marker.bool() }
      if let echo = mapping.optional("echo") { self.echo = try echo.bool() }
      try readUser(mapping)
      try readLong(mapping)
      if let node = mapping.optional("encryption_master_key") {
        guard let box = SecretBox(base64: try node.secret().reveal()) else {
          throw node.error(
            "encryption_master_key is \(SecretBox.keyBytes) bytes in base64, such as `openssl rand -base64 32` makes")
        }
        encryption = box
      }
      try mapping.finish()
    }

    private mutating func readUser(_ mapping: ConfigMapping) throws(FerryError) {
      userAuth = try Endpoint(mapping, "user_auth_endpoint", headers: "auth_headers")
      if let headers = mapping.optional("auth_headers"), auth == nil, userAuth == nil {
        throw headers.error("auth_headers goes with auth_endpoint, which is missing")
      }
      guard let node = mapping.optional("user") else {
        if userAuth != nil { throw mapping.node.error("user_auth_endpoint goes with user, which is missing") }
        return
      }
      user = try AccountUser(try node.mapping())
      if secret == nil, userAuth == nil {
        throw node.error("without secret, user needs user_auth_endpoint, which signs for it")
      }
    }

    private mutating func readLong(_ mapping: ConfigMapping) throws(FerryError) {
      let node = mapping.optional("long")
      long = try node?.choice(Long.self) ?? .split
      upload = try Endpoint(mapping, "upload_url", headers: "upload_headers")
      if long == .link, upload == nil, let node {
        throw node.error("\"link\" needs upload_url, where long messages are stored")
      }
      if long != .link, let other = mapping.optional("upload_url") ?? mapping.optional("upload_headers") {
        throw other.error("upload_url and upload_headers go with long: link")
      }
    }

    /// How the app speaks on a channel.
    package func profile(for channel: String) -> Profile {
      channels.first { $0.pattern.matches(channel) }?.profile ?? profile
    }

    /// Replaces a port of 0 in both addresses: that of a facade in the same process, known once it listens.
    package mutating func fill(port: UInt16) {
      if api.hasSuffix(":0") { api = api.dropLast() + String(port) }
      if socket.hasSuffix(":0") { socket = socket.dropLast() + String(port) }
    }

    private static func isHost(_ text: String) -> Bool {
      !text.isEmpty && text.unicodeScalars.allSatisfy { !"/?#@% \\".unicodeScalars.contains($0) && $0.value > 0x20 }
    }
  }

  /// Reads `pusher://KEY:SECRET@HOST/apps/APPID/CHANNEL`; with `pusher+http` there is no TLS. The host
  /// `api-X.pusher.com` has its sockets at `ws-X.pusher.com`; any other serves both. Nil when the URL is another kind's.
  package static func settings(fromURL url: String) throws(FerryError) -> (settings: Settings, channel: ChannelID)? {
    let tls: Bool
    if url.hasPrefix("pusher://") {
      tls = true
    } else if url.hasPrefix("pusher+http://") {
      tls = false
    } else {
      return nil
    }
    let malformed = FerryError(
      .badConfiguration, "A Pusher address is written pusher://KEY:SECRET@HOST/apps/APPID/CHANNEL.")
    let rest = url[url.index(url.startIndex, offsetBy: tls ? 9 : 14)...]
    guard let slash = rest.firstIndex(of: "/"), let at = rest[..<slash].lastIndex(of: "@"),
      let colon = rest[..<at].firstIndex(of: ":")
    else { throw malformed }
    let path = rest[slash...].split(separator: "/", omittingEmptySubsequences: false).dropFirst()
      .map { PercentEncoding.decode($0) }
    guard path.count == 3, path[0] == "apps", !path[1].isEmpty, !path[2].isEmpty else { throw malformed }
    let key = PercentEncoding.decode(rest[..<colon])
    let secret = Secret(PercentEncoding.decode(rest[rest.index(after: colon)..<at]))
    let host = String(rest[rest.index(after: at)..<slash])
    guard !key.isEmpty, !host.isEmpty else { throw malformed }
    var settings = Settings(appID: path[1], key: key, secret: secret, host: host, tls: tls)
    if host.hasPrefix("api-"), host.hasSuffix(".pusher.com") {
      settings.socket = (tls ? "wss://ws-" : "ws://ws-") + host.dropFirst(4)
    }
    return (settings, ChannelID(path[2]))
  }
}
