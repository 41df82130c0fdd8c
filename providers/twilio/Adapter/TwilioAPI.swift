import FerryCore
import FerryRuntime
import FerryTransport
import FoundationEssentials

/// Twilio's REST API: addresses, credentials, answers and refusals. Stateless but for how long to wait when told to slow
/// down.
struct TwilioAPI: Sendable {
  /// Scheme, host and port.
  let base: String
  /// `/v1`, or `/v1/Services/IS...`.
  let prefix: String
  let authorization: String
  let client: HTTPClient
  let clock: any FerryClock
  private let slowdown = Locked(Backoff(base: .seconds(1), limit: .seconds(30)))

  /// A page of a hundred long messages.
  static let answerBytes = 64 << 20
  static let deadline = Duration.seconds(20)
  private static let attempts = 4

  init(base: String, prefix: String, authorization: String, client: HTTPClient, clock: any FerryClock) {
    self.base = base
    self.prefix = prefix
    self.authorization = authorization
    self.client = client
    self.clock = clock
  }

  static func basic(_ user: String, _ password: String) -> String {
    "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
  }

  /// The URL of a resource, each part escaped.
  func url(_ parts: String..., query: Form = []) -> String {
    let path = parts.map { "/" + PercentEncoding.encode($0) }.joined()
    return base + prefix + path + (query.fields.isEmpty ? "" : "?" + query.encoded)
  }

  // MARK: Requests

  func get(_ url: String, doing: String, deadline: Duration = deadline) async throws(FerryError) -> JSONValue {
    let answer = try await send(ClientRequest(url: url, deadline: deadline), isWrite: false, doing: doing)
    guard let value = JSONText.value(answer) else {
      throw FerryError(.badData, "Could not \(doing): the answer is not JSON. Check api_url.", retry: .now)
    }
    return value
  }

  /// Returns the SID of what was made or changed; nil when the answer names none, although the status said that it was
  /// done. What certainly was not done because of another request at the same moment is tried again.
  @discardableResult
  func post(_ url: String, _ form: Form, doing: String) async throws(FerryError) -> String? {
    struct Answer: Decodable { let sid: String? }
    var request = ClientRequest(method: "POST", url: url, deadline: Self.deadline)
    request.headers.set("Content-Type", Form.mediaType)
    request.body = .bytes(Array(form.encoded.utf8))
    let answer = try await write(request, doing: doing)
    let sid = JSONText.decode(Answer.self, from: answer)?.sid
    return sid.flatMap { $0.isEmpty ? nil : $0 }
  }

  func delete(_ url: String, doing: String) async throws(FerryError) {
    _ = try await write(ClientRequest(method: "DELETE", url: url, deadline: Self.deadline), doing: doing)
  }

  private func write(_ request: ClientRequest, doing: String) async throws(FerryError) -> [UInt8] {
    var backoff = Backoff(base: .milliseconds(200), limit: .seconds(2))
    var attempt = 1
    while true {
      do throws(FerryError) { return try await send(request, isWrite: true, doing: doing) } catch {
        guard error.code == .conflict, error.retry == .now, attempt < Self.attempts else { throw error }
      }
      attempt += 1
      do { try await clock.sleep(for: backoff.next()) } catch { throw .cancelled(didNotAct: true) }
    }
  }

  /// The body of a 2xx answer.
  func send(_ request: ClientRequest, isWrite: Bool, doing: String) async throws(FerryError) -> [UInt8] {
    var request = request
    request.headers.set("Authorization", authorization)
    let response: ClientResponse
    do throws(FerryError) { response = try await client.send(request) } catch {
      var error = error
      // What only reads never acts, whatever became of the answer.
      if !isWrite { error.didNotAct = true }
      throw error
    }
    guard response.isSuccess else { throw await refusal(response, isWrite: isWrite, doing: doing) }
    slowdown.withLock { $0.reset() }
    do { return try await response.collect(upTo: Self.answerBytes) } catch {
      var error = error
      error.didNotAct = !isWrite
      throw error
    }
  }

  func refusal(_ response: ClientResponse, isWrite: Bool, doing: String) async -> FerryError {
    let body = (try? await response.collect(upTo: 64 << 10)).flatMap { JSONText.value($0) }
    let code = body?["code"]?.text.flatMap { Int($0) }
    let slowdown = slowdown
    return Refusal.error(
      status: response.status, code: code, retryAfter: response.headers["Retry-After"], isWrite: isWrite, doing: doing,
      delay: { slowdown.withLock { $0.next() } })
  }

  // MARK: Pages

  /// Some of a list, and the URL of what follows.
  struct Page: Sendable {
    let records: [JSONValue]
    let next: String?
  }

  func page(_ url: String, doing: String) async throws(FerryError) -> Page {
    let answer = try await get(url, doing: doing)
    let key = answer["meta"]?["key"]?.string
    let records = key.flatMap { answer[$0]?.array } ?? Self.onlyList(answer)
    guard let records else {
      throw FerryError(.badData, "Could not \(doing): the answer holds no list. Check api_url.", retry: .now)
    }
    guard let next = answer["meta"]?["next_page_url"]?.string, !next.isEmpty else {
      return Page(records: records, next: nil)
    }
    // The credentials go along, so the list must not lead away.
    guard let next = Self.resolve(next, at: base), next != url else {
      throw FerryError(
        .badData, "Could not \(doing): the list goes on at another server. Check api_url, region and edge.")
    }
    return Page(records: records, next: next)
  }

  /// All of a list, page after page.
  func all(_ url: String, doing: String) async throws(FerryError) -> [JSONValue] {
    var records: [JSONValue] = []
    var next: String? = url
    var count = 0
    while let url = next, count < Self.mostPages {
      let page = try await page(url, doing: doing)
      records += page.records
      next = page.next
      count += 1
    }
    return records
  }

  static let mostPages = 1000

  private static func onlyList(_ answer: JSONValue) -> [JSONValue]? {
    let lists = (answer.object ?? [:]).values.compactMap(\.array)
    return lists.count == 1 ? lists[0] : nil
  }

  /// An absolute URL of the same origin as `base`, or nil. A path alone is at `base`.
  static func resolve(_ url: String, at base: String) -> String? {
    // Signs that one reader of URLs takes for the end of a host, and another for a part of it.
    guard url.unicodeScalars.allSatisfy({ $0.value > 0x20 && $0.value != 0x7f && $0 != "\\" }) else { return nil }
    if url.hasPrefix("/"), !url.hasPrefix("//") { return (origin(of: base) ?? base) + url }
    guard let origin = origin(of: url), origin == self.origin(of: base) else { return nil }
    return url
  }

  /// Scheme, host and port, in lower case and without a default port.
  static func origin(of url: String) -> String? {
    guard let slashes = url.firstRange(of: "://") else { return nil }
    let scheme = url[..<slashes.lowerBound].lowercased()
    var authority = url[slashes.upperBound...].prefix { !"/?#\\".contains($0) }.lowercased()
    guard !authority.isEmpty, !authority.contains("@") else { return nil }
    let standard = scheme == "https" || scheme == "wss" ? ":443" : ":80"
    if authority.hasSuffix(standard) { authority = String(authority.dropLast(standard.count)) }
    return "\(scheme)://\(authority)"
  }
}
