import FerryCore
import FerryRuntime
import FerryTransport

/// The service's HTTP API: signs each request over the path as the service knows it and the bytes that are sent.
struct PusherAPI: Sendable {
  let base: String
  let appID: String
  let appKey: AppKey
  let client: HTTPClient
  let clock: any FerryClock

  private static let answerBytes = 4 << 20

  private struct TriggerBody: Encodable {
    let name: String
    let channels: [String]
    let data: String
    let socketID: String?

    enum CodingKeys: String, CodingKey {
      case name, channels, data
      case socketID = "socket_id"
    }
  }

  struct BatchItem: Encodable {
    let name: String
    let channel: String
    let data: String
    var socketID: String?

    enum CodingKeys: String, CodingKey {
      case name, channel, data
      case socketID = "socket_id"
    }
  }

  private struct BatchBody: Encodable { let batch: [BatchItem] }

  /// `except` is the connection that does not get the event.
  func trigger(
    _ name: String, on channels: [String], data: String, except: String? = nil, doing: String
  ) async throws(FerryError) {
    let body = JSONText.bytes(of: TriggerBody(name: name, channels: channels, data: data, socketID: except))
    _ = try await call("POST", "events", body: body, doing: doing)
  }

  /// All or none, in order.
  func trigger(batch: [BatchItem], doing: String) async throws(FerryError) {
    _ = try await call("POST", "batch_events", body: JSONText.bytes(of: BatchBody(batch: batch)), doing: doing)
  }

  func get(
    _ path: String, _ parameters: [(name: String, value: String)] = [], doing: String
  ) async throws(FerryError) -> JSONValue {
    let answer = try await call("GET", path, parameters, body: [], doing: doing)
    guard let value = JSONText.decode(JSONValue.self, from: answer) else {
      throw FerryError(.badData, "Could not \(doing): the answer is not JSON. Check host and port.", retry: .now)
    }
    return value
  }

  private func call(
    _ method: String, _ path: String, _ parameters: [(name: String, value: String)] = [], body: [UInt8], doing: String
  ) async throws(FerryError) -> [UInt8] {
    let path = "/apps/\(appID)/\(path)"
    let signed = appKey.signed(
      method: method, path: path, parameters: parameters, body: body, seconds: clock.now().milliseconds / 1000)
    // Escaped for the way only: what is signed is what the service unescapes.
    let query = signed.map { "\($0.name)=\(PercentEncoding.encode($0.value))" }.joined(separator: "&")
    let request = ClientRequest(
      method: method, url: "\(base)\(path)?\(query)",
      headers: body.isEmpty ? [:] : ["Content-Type": "application/json"], body: body.isEmpty ? .none : .bytes(body))
    let response = try await client.send(request)
    guard (200...299).contains(response.status) else { throw await Self.error(response, path, doing) }
    do { return try await response.collect(upTo: Self.answerBytes) } catch {
      // The status said that it was done; of a post nothing else is needed.
      if method == "POST" { return [] }
      throw error
    }
  }

  private static func error(_ response: ClientResponse, _ path: String, _ doing: String) async -> FerryError {
    var error = FerryError.from(
      status: response.status, retryAfter: response.headers["Retry-After"], doing: doing)
    let reason = (try? await response.collect(upTo: 16_384)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    if response.status == 401, reason.contains("imestamp") {
      error.message += " This machine's clock may be wrong."
    }
    // "App disabled or over message quota", and no such app: not the message's fault, and it passes by itself or by a
    // person. Services that lack other calls than this one say 404, too, and always will.
    let isUnknownApp = response.status == 404 && path.hasSuffix("/events")
    if response.status == 403 || isUnknownApp { error.retry = .after(.seconds(30)) }
    if isUnknownApp { error.message += " Check app_id, and cluster or host." }
    // The service's reasons are for developers and hold no secret; of a page of a proxy the start will do.
    if !reason.isEmpty { error.cause = "status \(response.status): \(reason.prefix(400))" }
    return error
  }
}
