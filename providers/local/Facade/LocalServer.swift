package import FerryChat
package import FerryCore
package import FerryRuntime
package import FerryTransport

/// The local server's own API: HTTP and WebSocket on one side, a `ChatService` on the other, and no state between.
///
/// `openapi.yaml` beside this folder describes it.
package final class LocalServer: Sendable {
  /// Who may use the server, and as whom.
  package struct Token: Sendable {
    let digest: [UInt8]
    let caller: Caller

    /// Without a user the token acts as anybody.
    package init(token: String, user: UserID? = nil, moderator: Bool = true) {
      digest = Crypto.digest(.sha256, of: token.utf8)
      caller = Caller(user: user, moderates: moderator)
    }
  }

  let chat: ChatService
  let logger: Logger
  private let tokens: [Token]

  package init(chat: ChatService, tokens: [Token], logger: Logger) {
    self.chat = chat
    self.tokens = tokens
    self.logger = logger.component("local")
  }

  /// Answers one request. Every failure is an answer.
  package func handle(_ request: HTTPRequest) async -> HTTPResponse {
    do throws(FerryError) {
      guard let route = Route(request.segments) else { throw FerryError(.notFound, "There is nothing here.") }
      guard route.methods.contains(request.method) || (request.method == "HEAD" && route.methods.contains("GET")) else {
        return Self.answer(
          status: 405, code: "method_not_allowed", "Use \(route.methods.joined(separator: " or ")) here.",
          headers: ["Allow": route.methods.joined(separator: ", ")])
      }
      if route == .health { return .json(["status": "ok"]) }
      return try await respond(to: request, route, try caller(of: request, route))
    } catch {
      return answer(to: error)
    }
  }

  /// Whether a path is one of the API's own, so that the API can share a port with another service.
  package static func owns(_ request: HTTPRequest) -> Bool {
    guard let route = Route(request.segments) else { return false }
    return route != .health
  }

  private func respond(
    to request: HTTPRequest, _ route: Route, _ caller: Caller
  ) async throws(FerryError) -> HTTPResponse {
    switch route {
    case .health: .json(["status": "ok"])
    case .rooms: try await rooms(request, caller)
    case .room(let room): try await self.room(request, ChannelID(room), caller)
    case .messages(let room):
      request.method == "POST"
        ? try await post(request, to: ChannelID(room), caller)
        : try await messages(request, of: ChannelID(room), caller)
    case .imports(let room): try await bring(request, into: ChannelID(room), caller)
    case .message(let room, let id): try await message(request, MessageID(id), in: ChannelID(room), caller)
    case .reaction(let room, let id, let emoji):
      try await react(request, emoji, to: MessageID(id), in: ChannelID(room), caller)
    case .members(let room): try await members(of: ChannelID(room))
    case .member(let room, let user): try await member(request, UserID(user), of: ChannelID(room), caller)
    case .typing(let room): try await typing(request, in: ChannelID(room), caller)
    case .reads(let room): try await reads(in: ChannelID(room))
    case .read(let room, let user): try await read(request, by: UserID(user), in: ChannelID(room), caller)
    case .files: try await upload(request)
    case .file(let sha256): try await download(request, sha256)
    case .events: try await events(request)
    case .live: live(caller)
    }
  }

  // MARK: Who asks

  private func caller(of request: HTTPRequest, _ route: Route) throws(FerryError) -> Caller {
    let given: String?
    if let header = request.headers["Authorization"] {
      let parts = header.split(separator: " ", maxSplits: 1)
      given = parts.count == 2 && parts[0].lowercased() == "bearer" ? String(parts[1]) : nil
    } else {
      given = route.takesTokenInQuery ? request.query("token") : nil
    }
    guard let given else {
      throw FerryError(.badCredentials, "Send a token: \"Authorization: Bearer TOKEN\".")
    }
    // All are compared, as digests of one length, so that the time tells nothing about any of them.
    let digest = Crypto.digest(.sha256, of: given.utf8)
    var found: Caller?
    for token in tokens where Crypto.areEqual(digest, token.digest) { found = token.caller }
    guard let found else { throw FerryError(.badCredentials, "This token is not known here.") }
    return found
  }

  // MARK: Refusals

  private func answer(to error: FerryError) -> HTTPResponse {
    let status = Self.status(of: error.code)
    if status >= 500 { logger.warning("a request failed: \(error)") }
    var headers = HTTPHeaders()
    if status == 401 { headers.set("WWW-Authenticate", "Bearer") }
    // With this header a caller knows that the request was not carried out.
    if status == 503, error.didNotAct { headers.set("Retry-After", "1") }
    return Self.answer(status: status, code: error.code.label, error.message, headers: headers)
  }

  private static func answer(
    status: Int, code: String, _ message: String, headers: HTTPHeaders
  ) -> HTTPResponse {
    var response = HTTPResponse.json(["error": ["code": code, "message": message]], status: status)
    for (name, value) in headers.fields { response.headers.set(name, value) }
    return response
  }

  private static func status(of code: FerryError.Code) -> Int {
    switch code {
    case .badRequest, .badData: 400
    case .badCredentials: 401
    case .forbidden: 403
    case .notFound: 404
    case .timedOut: 408
    case .conflict: 409
    case .tooLarge: 413
    case .unsupported: 415
    case .rateLimited: 429
    case .storage, .unavailable, .cancelled: 503
    default: 500
    }
  }
}
