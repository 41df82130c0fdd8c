import FerryConfig
import FerryCore
import FerryRuntime
import FerryTransport

/// The service's REST API: one call at a time, with the user's token where there is a login.
///
/// A token that has run out is renewed once, by one task for all; then the call is made again, which the service had
/// refused. No path is ever logged: it holds the key.
final class BackendlessAPI: Sendable {
  private enum Login: Sendable {
    case none
    case token(String)
    /// Refused: it is not tried again before this time, lest the user be locked.
    case refused(FerryError, until: Timestamp)
  }

  let base: String
  private let settings: BackendlessAdapter.Settings
  let client: HTTPClient
  private let clock: any FerryClock
  private let login = Locked(Login.none)
  /// Full while a task logs in: there is one at a time.
  private let turn = BoundedChannel<Void>(capacity: 1)

  private static let answerBytes = 32 << 20
  private static let refusalBytes = 64 << 10
  private static let loginPause = Duration.seconds(30)

  init(settings: BackendlessAdapter.Settings, client: HTTPClient, clock: any FerryClock) {
    self.settings = settings
    self.client = client
    self.clock = clock
    base = settings.base
  }

  // MARK: Calls

  /// One segment of a path. Dots alone are encoded too, lest the segment name another path.
  static func segment(_ text: some StringProtocol) -> String {
    let encoded = PercentEncoding.encode(text)
    return encoded.utf8.allSatisfy { $0 == UInt8(ascii: ".") } ? encoded.replacing(".", with: "%2E") : encoded
  }

  /// Sends JSON and returns the answer's; null when it is empty. `doing` completes "Could not ...".
  ///
  /// `isReading`: whatever becomes of it, nothing was changed.
  @discardableResult
  func call(
    _ method: String, _ path: String, _ body: JSONValue? = nil, isReading: Bool = false, doing: String
  ) async throws(FerryError) -> JSONValue {
    do throws(FerryError) {
      var request = ClientRequest(method: method, url: base + path)
      if let body {
        request.headers.set("Content-Type", "application/json")
        request.body = .bytes(JSONText.bytes(of: body))
      }
      let response = try await send(request, doing: doing)
      let bytes = try await Self.content(of: response)
      if bytes.isEmpty { return .null }
      guard let value = JSONText.value(bytes) else {
        throw FerryError(
          .badData, "Could not \(doing): the answer is not JSON. Check server_url or domain.", retry: .now,
          didNotAct: false)
      }
      return value
    } catch {
      var error = error
      if isReading || method == "GET" { error.didNotAct = true }
      throw error
    }
  }

  private static func content(of response: ClientResponse) async throws(FerryError) -> [UInt8] {
    do { return try await response.collect(upTo: answerBytes) } catch {
      // The head said that it was done.
      var error = error
      error.didNotAct = false
      throw error
    }
  }

  /// Sends a request as the user, and turns every answer but success into an error. A body that streams is sent once:
  /// the token is looked at before.
  func send(_ request: ClientRequest, doing: String) async throws(FerryError) -> ClientResponse {
    let token = try await token()
    let (response, fault) = try await attempt(request, token)
    guard let fault else { return response }
    if fault.isStaleToken, let token, case .stream = request.body {
      _ = try await renewed(token)
    } else if fault.isStaleToken, let token, let renewed = try await renewed(token) {
      let (response, fault) = try await attempt(request, renewed)
      guard let fault else { return response }
      throw fault.error(doing: doing, retryAfter: response.headers["Retry-After"])
    }
    var error = fault.error(doing: doing, retryAfter: response.headers["Retry-After"])
    // The new token is there for the next attempt.
    if fault.isStaleToken, token != nil { error.retry = .now }
    throw error
  }

  private func attempt(
    _ request: ClientRequest, _ token: String?
  ) async throws(FerryError) -> (ClientResponse, ServiceFault?) {
    var request = request
    if let token { request.headers.set("user-token", token) }
    let response = try await client.send(request)
    if response.isSuccess { return (response, nil) }
    let body = try? await response.collect(upTo: Self.refusalBytes)
    return (response, ServiceFault(body.flatMap { JSONText.value($0) }, status: response.status))
  }

  // MARK: The user

  /// Nil where there is no login.
  func token() async throws(FerryError) -> String? {
    guard settings.login != nil else { return nil }
    if case .token(let token) = login.withLock({ $0 }) { return token }
    return try await renewed(nil)
  }

  /// The token at hand, without asking for one.
  var currentToken: String? { if case .token(let token) = login.withLock({ $0 }) { token } else { nil } }

  /// Another token than `stale`: one that somebody else got meanwhile, or a new one.
  func renewed(_ stale: String?) async throws(FerryError) -> String? {
    guard let account = settings.login else { return nil }
    guard await turn.send(()) else { throw .cancelled(didNotAct: true) }
    defer { _ = turn.drain(upTo: 1) }
    switch login.withLock({ $0 }) {
    case .token(let token) where token != stale: return token
    case .refused(let error, let until) where clock.now() < until: throw error
    case .none, .token, .refused: break
    }
    do throws(FerryError) {
      let token = try await logIn(account)
      login.withLock { $0 = .token(token) }
      return token
    } catch {
      // Nothing of what the token was wanted for has been done.
      var error = error
      error.didNotAct = true
      let refusal = error
      let until = clock.now().advanced(by: Self.loginPause)
      login.withLock { $0 = refusal.code == .badCredentials ? .refused(refusal, until: until) : .none }
      throw error
    }
  }

  private func logIn(_ account: BackendlessAdapter.Settings.Login) async throws(FerryError) -> String {
    let body: JSONValue = ["login": .string(account.name), "password": .string(account.password.reveal())]
    var request = ClientRequest(method: "POST", url: base + "/users/login", body: .bytes(JSONText.bytes(of: body)))
    request.headers.set("Content-Type", "application/json")
    let (response, fault) = try await attempt(request, nil)
    if let fault { throw fault.error(doing: "log in", retryAfter: response.headers["Retry-After"]) }
    let bytes = try await response.collect(upTo: Self.refusalBytes)
    guard let token = JSONText.value(bytes)?["user-token"]?.string, !token.isEmpty, isHeader(token) else {
      throw FerryError(
        .badData, "Could not log in: the answer names no token. Check server_url or domain.", retry: .now)
    }
    return token
  }

  /// What may stand in a header.
  private func isHeader(_ text: String) -> Bool { text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f } }

  // MARK: Where the real-time service is

  struct RealtimePlace: Hashable, Sendable {
    /// `https://rt.example.com`, without a path.
    var url: String
    var appID: String
    var key: String
  }

  /// Newer services tell it with the app, older ones by itself.
  func realtimePlace() async throws(FerryError) -> RealtimePlace {
    let doing = "ask where the real-time service is"
    var info = JSONValue.null
    do throws(FerryError) {
      info = try await call("GET", "/info", doing: doing)
    } catch  where error.code == .notFound || error.code == .badRequest || error.code == .badData {
      info = .null
    }
    let url =
      if let told = info["rtURL"]?.string { told } else {
        try await call("GET", "/rt/lookup", doing: doing).string
      }
    guard let url, let origin = Self.origin(url) else {
      throw FerryError(
        .badData, "Could not \(doing): the answer names no address. Check server_url or domain.", retry: .now)
    }
    // The key and the user's token go there: not in clear where the service itself is reached by TLS.
    guard origin.hasPrefix("https:") || base.hasPrefix("http:") else {
      throw FerryError(
        .badData, "The service names a real-time address without TLS. Set receive: legacy_polling, or mend the service."
      )
    }
    switch settings.place {
    case .app(_, let id, let key): return RealtimePlace(url: origin, appID: id, key: key.reveal())
    case .domain:
      guard let id = info["appId"]?.string, let key = info["apiKey"]?.string, !id.isEmpty else {
        throw FerryError(.badData, "Could not \(doing): the answer names no app. Check domain.", retry: .now)
      }
      return RealtimePlace(url: origin, appID: id, key: key)
    }
  }

  /// Scheme, host and port of an address.
  static func origin(_ url: String) -> String? {
    guard let scheme = ["https://", "http://"].first(where: { url.hasPrefix($0) }) else { return nil }
    let host = url.dropFirst(scheme.count).prefix { !"/?#".contains($0) }
    guard !host.isEmpty, !host.contains("@") else { return nil }
    return scheme + host.lowercased()
  }
}
