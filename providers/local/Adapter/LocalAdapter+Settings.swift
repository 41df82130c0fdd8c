package import FerryConfig
package import FerryCore
package import FerryTransport
import FoundationEssentials

extension LocalAdapter {
  /// Where the server is, and the token to use there.
  package struct Settings: Sendable {
    /// `http://127.0.0.1:8080`, without a slash at the end.
    package private(set) var url: String
    package let token: Secret
    package var reconnect = ReconnectPolicy(base: .milliseconds(250), limit: .seconds(30))

    package init(_ mapping: ConfigMapping) throws(FerryError) {
      let node = try mapping.required("url")
      let text = try node.string()
      let token = try mapping.secret("token")
      try mapping.finish()
      guard let url = Self.base(text) else {
        throw node.error("\"url\" must be like http://127.0.0.1:8080, without a path")
      }
      self.url = url
      self.token = token
    }

    /// `url` as in the configuration.
    package init(url: String, token: Secret) throws(FerryError) {
      guard let base = Self.base(url) else {
        throw FerryError(.badConfiguration, "A local server's URL is like http://127.0.0.1:8080.")
      }
      self.url = base
      self.token = token
    }

    /// Puts in the port of a server in this process, where the configuration says 0.
    package mutating func fill(port: UInt16) {
      guard var components = URLComponents(string: url), components.port == 0 else { return }
      components.port = Int(port)
      url = components.string ?? url
    }

    var liveURL: String { "ws" + url.dropFirst("http".count) + "/v1/live" }

    /// Scheme, host and port; nil for anything else.
    private static func base(_ text: String) -> String? {
      guard let components = URLComponents(string: text), let scheme = components.scheme?.lowercased(),
        ["http", "https"].contains(scheme), let host = components.host, !host.isEmpty, components.user == nil,
        ["", "/"].contains(components.path), components.query == nil, components.fragment == nil
      else { return nil }
      var base = URLComponents()
      base.scheme = scheme
      base.host = host
      base.port = components.port
      return base.string
    }
  }

  /// From `local+http://TOKEN@127.0.0.1:8080/ROOM`, or `local://` for https.
  package static func settings(fromURL text: String) throws(FerryError) -> (Settings, ChannelID) {
    let scheme: String
    let rest: Substring
    if text.hasPrefix("local+http://") {
      (scheme, rest) = ("http", text.dropFirst("local+http://".count))
    } else if text.hasPrefix("local://") {
      (scheme, rest) = ("https", text.dropFirst("local://".count))
    } else {
      throw malformed
    }
    guard let slash = rest.firstIndex(of: "/"), let at = rest[..<slash].lastIndex(of: "@") else { throw malformed }
    let token = PercentEncoding.decode(rest[..<at])
    let room = PercentEncoding.decode(rest[rest.index(after: slash)...])
    guard !token.isEmpty, !room.isEmpty else { throw malformed }
    let url = "\(scheme)://\(rest[rest.index(after: at)..<slash])"
    return (try Settings(url: url, token: Secret(token)), ChannelID(room))
  }

  private static let malformed = FerryError(
    .badConfiguration, "A local address is like local+http://TOKEN@127.0.0.1:8080/ROOM.")
}
