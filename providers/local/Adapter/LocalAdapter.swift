import FerryChat
import FerryConfig
package import FerryCore
package import FerryRuntime
package import FerryTransport

/// An account at Ferry's local server.
///
/// It keeps nothing: where each room's stream stands is the relay's cursor, and a post is found again by its key.
package struct LocalAdapter: Sendable {
  package static let capabilities: Capabilities = {
    var capabilities = Capabilities()
    capabilities.edits = true
    capabilities.deletes = true
    capabilities.typing = true
    capabilities.members = true
    capabilities.reads = true
    capabilities.reactions = true
    capabilities.attachments = .stored
    capabilities.history = .events
    capabilities.certainty = .always
    capabilities.batch = 256
    capabilities.bodyBytes = 64 * 1024
    var importing = ImportPowers()
    importing.batch = 500
    importing.isRepeatable = true
    importing.revisions = true
    importing.joins = true
    importing.reads = true
    importing.reactions = true
    capabilities.importing = importing
    return capabilities
  }()

  package var capabilities: Capabilities { Self.capabilities }

  let settings: Settings
  let client: HTTPClient
  let clock: any FerryClock
  let logger: Logger

  package init(settings: Settings, client: HTTPClient, clock: any FerryClock = SystemClock(), logger: Logger) {
    self.settings = settings
    self.client = client
    self.clock = clock
    self.logger = logger
  }

  // MARK: HTTP

  /// `/v1/rooms/` and the room, and what follows, each part encoded.
  static func path(_ room: ChannelID, _ parts: String...) -> String {
    "/v1/rooms/" + ([room.rawValue] + parts).map(segment).joined(separator: "/")
  }

  /// One segment of a path. Dots alone are encoded too, lest the segment name another path.
  static func segment(_ text: String) -> String {
    let encoded = PercentEncoding.encode(text)
    return encoded.utf8.allSatisfy { $0 == UInt8(ascii: ".") } ? encoded.replacing(".", with: "%2E") : encoded
  }

  /// Sends JSON and decodes the answer. `doing` completes "Could not ...".
  func call<Answer: Decodable>(
    _ method: String, _ path: String, _ body: some Encodable, _ type: Answer.Type, doing: String
  ) async throws(FerryError) -> Answer {
    try await call(method, path, json: try Wire.json(body), type, doing: doing)
  }

  /// As above, with a body that is JSON already.
  func call<Answer: Decodable>(
    _ method: String, _ path: String, json: String?, _ type: Answer.Type, doing: String
  ) async throws(FerryError) -> Answer {
    try await call(method, path, json: json.map { Array($0.utf8) }, type, doing: doing)
  }

  func call<Answer: Decodable>(
    _ method: String, _ path: String, json: [UInt8]?, _ type: Answer.Type, doing: String
  ) async throws(FerryError) -> Answer {
    let bytes = try await call(method, path, json: json, doing: doing)
    do { return try Wire.value(type, from: bytes) } catch {
      throw FerryError(
        .badData, "Could not \(doing): the answer was not understood. Is this a Ferry server?", retry: .now,
        didNotAct: method == "GET", cause: error.message)
    }
  }

  func get<Answer: Decodable>(_ path: String, _ type: Answer.Type, doing: String) async throws(FerryError) -> Answer {
    try await call("GET", path, json: [UInt8]?.none, type, doing: doing)
  }

  /// The answer to GET, as it is.
  func bytes(of path: String, doing: String) async throws(FerryError) -> [UInt8] {
    try await call("GET", path, json: nil, doing: doing)
  }

  func call(_ method: String, _ path: String, _ body: some Encodable, doing: String) async throws(FerryError) {
    _ = try await call(method, path, json: Array(try Wire.json(body).utf8), doing: doing)
  }

  private func call(
    _ method: String, _ path: String, json: [UInt8]?, doing: String
  ) async throws(FerryError) -> [UInt8] {
    var request = ClientRequest(method: method, url: settings.url + path, headers: authorization)
    if let json {
      request.headers.set("Content-Type", "application/json")
      request.body = .bytes(json)
    }
    let response = try await send(request, doing: doing)
    do { return try await response.collect(upTo: 64 << 20) } catch {
      // The head said that it was done; whether all of it was is in the part that is missing.
      var error = error
      error.didNotAct = method == "GET"
      throw error
    }
  }

  /// Sends a request and turns every answer but success into an error with the server's own words.
  func send(_ request: ClientRequest, doing: String) async throws(FerryError) -> ClientResponse {
    let response = try await client.send(request)
    if response.isSuccess { return response }
    var error = FerryError.from(
      status: response.status, retryAfter: response.headers["Retry-After"], doing: doing)
    let body = try? await response.collect(upTo: 64 << 10)
    if let body, let refusal = try? Wire.value(Refusal.self, from: body) {
      error.message = "Could not \(doing): \(refusal.error.message)"
    }
    throw error
  }

  var authorization: HTTPHeaders { ["Authorization": "Bearer \(settings.token.reveal())"] }

  private struct Refusal: Decodable {
    struct Reason: Decodable { let message: String }
    let error: Reason
  }
}
