package import FerryConfig
package import FerryCore
import FerryTransport

extension PusherAdapter {
  package struct Settings: Sendable {
    package var appID: String
    package var key: String
    package var secret: Secret
    /// Scheme, host and port of the HTTP API and of the socket.
    package var api: String
    package var socket: String
    package var events = EventNames()
    package var fields = FieldNames()
    /// Whether sends leave a marker from which a lost answer is settled. It doubles the billed messages.
    package var marker = true

    package init(appID: String, key: String, secret: Secret, host: String, port: UInt16? = nil, tls: Bool = true) {
      self.appID = appID
      self.key = key
      self.secret = secret
      let end = port.map { "\(host):\($0)" } ?? host
      api = (tls ? "https://" : "http://") + end
      socket = (tls ? "wss://" : "ws://") + end
    }

    package init(appID: String, key: String, secret: Secret, cluster: String) {
      self.init(appID: appID, key: key, secret: secret, host: "api-\(cluster).pusher.com")
      socket = "wss://ws-\(cluster).pusher.com"
    }

    /// Reads every key of an account's configuration and refuses the others.
    package init(_ mapping: ConfigMapping) throws(FerryError) {
      let appID = try mapping.required("app_id").nonEmptyString()
      let key = try mapping.required("key").nonEmptyString()
      let secret = try mapping.secret("secret")
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
      if let events = mapping.optional("events") { self.events = try EventNames(try events.mapping()) }
      if let fields = mapping.optional("fields") { self.fields = try FieldNames(try fields.mapping()) }
      if let marker = mapping.optional("marker") { self.marker = try marker.bool() }
      try mapping.finish()
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
