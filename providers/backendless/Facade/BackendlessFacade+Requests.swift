import FerryConfig
import FerryCore
import FerryRuntime
package import FerryTransport

/// Which request is whose.
extension BackendlessFacade {
  /// Answers one request. Never throws: what is wrong with a request is said in the answer.
  package func handle(_ request: HTTPRequest) async -> HTTPResponse {
    var response = request.method == "OPTIONS" ? Self.preflight(request) : await answer(request)
    // Pages of any origin may use the service, as they may the real one: what guards it is the key.
    response.headers.set("Access-Control-Allow-Origin", request.headers["Origin"] ?? "*")
    response.headers.add("Vary", "Origin")
    return response
  }

  private static func preflight(_ request: HTTPRequest) -> HTTPResponse {
    HTTPResponse(
      status: 200,
      headers: [
        "Access-Control-Allow-Methods": "GET, POST, PUT, DELETE, OPTIONS",
        "Access-Control-Allow-Headers":
          request.headers["Access-Control-Request-Headers"] ?? "content-type, user-token",
        "Access-Control-Max-Age": "86400",
      ], body: .bytes([]))
  }

  private func answer(_ request: HTTPRequest) async -> HTTPResponse {
    let segments = request.path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
      .map { PercentEncoding.decode($0) }
    let path = segments.filter { !$0.isEmpty }
    if path.count == 1, path[0] == settings.appID, request.query("EIO") != nil { return await engine(request) }
    do {
      guard path.count >= 3 else { throw Fault.nothingHere }
      guard path[0] == settings.appID, isKey(path[1]) else { throw Fault.wrongApp }
      var rest = Array(path.dropFirst(2))
      if segments.last == "" { rest.append("") }
      return try await respond(request, rest)
    } catch {
      let fault = Fault.wrap(error)
      if fault.status >= 500 {
        logger.warning("\(request.method) failed: \(fault.code) \(fault.message)")
      } else {
        logger.debug("refused \(request.method): \(fault.code)")
      }
      return fault.response
    }
  }

  func isKey(_ text: String) -> Bool { Crypto.areEqual(text, settings.apiKey.reveal()) }

  private func respond(_ request: HTTPRequest, _ path: [String]) async throws(Fault) -> HTTPResponse {
    let token = UserToken.given(request.headers["user-token"])
    let context = RequestContext(
      request: request, path: Array(path.dropFirst()), user: try await user(token: token), token: token,
      files: filesURL(for: request))
    switch path[0] {
    case "info": return .value(info(request))
    case "rt" where path.dropFirst().first == "lookup":
      return .value(.string(url(for: request)))
    case "users": return try await users(context)
    case "messaging": return try await messaging(context)
    case "data": return try await data(context)
    case "files": return try await files(context)
    default: throw .nothingHere
    }
  }

  private func info(_ request: HTTPRequest) -> JSONValue {
    [
      "appId": .string(settings.appID), "apiKey": .string(settings.apiKey.reveal()),
      "rtURL": .string(url(for: request)), "loggers": [["name": "Global logger", "level": "all"]],
    ]
  }

  // MARK: Addresses

  /// How the client calls this server: scheme, host and port only.
  func url(for request: HTTPRequest) -> String {
    if let url = settings.publicURL { return url }
    let host = request.headers["Host"] ?? ""
    let isPlain =
      (1...255).contains(host.utf8.count)
      && host.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"):
          true
        default: "-._:[]".utf8.contains(byte)
        }
      }
    return "\(request.isSecure ? "https" : "http")://\(isPlain ? host : "localhost")"
  }

  func filesURL(for request: HTTPRequest) -> String {
    "\(url(for: request))/\(settings.appID)/\(PercentEncoding.encode(settings.apiKey.reveal()))/files/"
  }
}
