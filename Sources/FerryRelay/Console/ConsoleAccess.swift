import FerryCore
import FerryRuntime
import FerryTransport

/// Who may see the relay's state, and who may change it.
struct ConsoleAccess: Sendable {
  enum Level: Sendable { case reading, acting }

  /// Nil refuses everything that needs a token.
  let token: String?
  let readToken: String?
  /// What the world calls the listener; a proxy may name another host to us.
  let publicURL: String
  /// What it listens at, where that is a name.
  let listenHost: String?

  /// Both tokens are compared, in constant time, whichever it is.
  func authorise(_ request: HTTPRequest) throws(FerryError) -> Level {
    try refuseOtherHosts(request)
    let given = request.headers["Authorization"].flatMap { header in
      header.lowercased().hasPrefix("bearer ") ? String(header.dropFirst(7)) : nil
    }
    guard token != nil else {
      throw FerryError(.badCredentials, "Set relay.token in the configuration: without one nobody is let in.")
    }
    let mayAct = Self.matches(given, token)
    let mayRead = Self.matches(given, readToken)
    guard mayAct || mayRead else {
      throw FerryError(
        .badCredentials, "This needs the relay's token (relay.token in the configuration) as a bearer token.")
    }
    return mayAct ? .acting : .reading
  }

  /// For what changes something: the token that may, no GET, and no page of another site behind it.
  func authoriseAction(_ request: HTTPRequest) throws(FerryError) {
    guard try authorise(request) == .acting else {
      throw FerryError(.forbidden, "This token may look and change nothing (relay.read_token).")
    }
    guard request.method == "POST" else { throw FerryError(.badRequest, "Actions are sent by POST.") }
    try refuseOtherSites(request)
  }

  /// A browser says on whose behalf it asks; other programs say nothing.
  /// Source: https://www.w3.org/TR/fetch-metadata/
  func refuseOtherSites(_ request: HTTPRequest) throws(FerryError) {
    if let site = request.headers["Sec-Fetch-Site"], site != "same-origin", site != "none" { throw Self.otherSite }
    guard let origin = request.headers["Origin"] else { return }
    guard let scheme = origin.firstRange(of: "://") else { throw Self.otherSite }
    let host = origin[scheme.upperBound...].lowercased()
    let isOurs = host == request.headers["Host"]?.lowercased() || origin.lowercased() == Self.origin(of: publicURL)
    guard isOurs else { throw Self.otherSite }
  }

  /// A page may make its own name lead to this machine and ask under it, as if it were ours (DNS rebinding).
  private func refuseOtherHosts(_ request: HTTPRequest) throws(FerryError) {
    guard let host = request.host, !RequestHost.isOwn(host) else { return }
    guard host != RequestHost.name(ofURL: publicURL), host != listenHost.map({ RequestHost.name(in: $0) }) else {
      return
    }
    throw FerryError(
      .forbidden, "The relay is not known as \(host). If it is reached under that name, say so in relay.public_url.")
  }

  private static let otherSite = FerryError(.forbidden, "A page of another site may not ask this.")

  private static func origin(of url: String) -> String {
    url.lowercased().split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false).prefix(3)
      .joined(separator: "/")
  }

  private static func matches(_ given: String?, _ token: String?) -> Bool {
    guard let given, let token else { return false }
    return Crypto.areEqual(given, token)
  }
}
