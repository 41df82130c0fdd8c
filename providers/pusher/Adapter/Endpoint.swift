package import FerryConfig
import FerryCore
import FerryRuntime
import FerryTransport

/// One of the app's own web addresses, with the headers it wants.
package struct Endpoint: Sendable {
  let url: String
  /// Values are secrets as a rule.
  let headers: [(name: String, value: Secret)]

  package init(url: String, headers: [(name: String, value: Secret)] = []) {
    self.url = url
    self.headers = headers
  }

  /// Nil when the configuration does not have the key.
  init?(_ mapping: ConfigMapping, _ key: String, headers: String) throws(FerryError) {
    let headerNode = mapping.optional(headers)
    guard let node = mapping.optional(key) else { return nil }
    let url = try node.nonEmptyString()
    guard url.hasPrefix("https://") || url.hasPrefix("http://"),
      url.unicodeScalars.allSatisfy({ $0.value > 0x20 && $0.value != 0x7f })
    else { throw node.error("\(key) is a web address: https://...") }
    var pairs: [(name: String, value: Secret)] = []
    for (name, key, value) in try headerNode?.mapping().names() ?? [] {
      guard !name.isEmpty, name.utf8.allSatisfy(Self.isToken) else { throw key.error("this is no name of a header") }
      let secret = try value.secret()
      guard secret.reveal().unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7f }) else {
        throw value.error("a header's value has no line breaks and other control characters")
      }
      pairs.append((name, secret))
    }
    self.init(url: url, headers: pairs)
  }

  /// Source: RFC 9110, 5.6.2.
  private static func isToken(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
  }

  // MARK: Asking

  static let answerBytes = 64 << 10

  private func request(_ type: String, _ body: [UInt8], deadline: Duration) -> ClientRequest {
    var request = ClientRequest(method: "POST", url: url, body: .bytes(body), deadline: deadline)
    request.headers.set("Content-Type", type)
    request.headers.set("Accept", "application/json")
    for (name, value) in headers { request.headers.set(name, value.reveal()) }
    return request
  }

  /// Has a subscription or a sign-in signed: a form is sent, and JSON comes with status 200. Any other status is a
  /// refusal, as it is for the official clients.
  func sign(_ form: [(name: String, value: String)], with client: HTTPClient) async throws(FerryError) -> JSONValue {
    let body = form.map { "\($0.name)=\(PercentEncoding.encode($0.value))" }.joined(separator: "&")
    let response = try await client.send(
      request("application/x-www-form-urlencoded", Array(body.utf8), deadline: .seconds(15)))
    guard response.status == 200 else {
      throw FerryError(
        response.status == 401 || response.status == 403 ? .forbidden : .unavailable,
        "The auth endpoint answered with status \(response.status) instead of 200. Check auth_endpoint and auth_headers.",
        retry: .now)
    }
    guard let answer = JSONText.decode(JSONValue.self, from: try await response.collect(upTo: Self.answerBytes)),
      answer["auth"]?.string?.isEmpty == false
    else {
      throw FerryError(.badData, "The auth endpoint's answer has no \"auth\". Check auth_endpoint.", retry: .now)
    }
    return answer
  }

  /// Stores a text and returns the link to it: `url` of a JSON answer, or the header `Location`.
  ///
  /// Storing twice is harmless, so every failure may be tried again.
  func store(_ text: String, with client: HTTPClient) async throws(FerryError) -> String {
    let response = try await Self.certain { () async throws(FerryError) in
      try await client.send(request("text/plain; charset=utf-8", Array(text.utf8), deadline: .seconds(30)))
    }
    guard response.isSuccess else {
      var error = FerryError.from(
        status: response.status, retryAfter: response.headers["Retry-After"],
        doing: "store the long message at upload_url"
      )
      error.didNotAct = true
      throw error
    }
    let location = response.headers["Location"]
    let body = try? await response.collect(upTo: Self.answerBytes)
    let link = body.flatMap { JSONText.decode(JSONValue.self, from: $0) }?["url"]?.string ?? location
    guard let link, link.hasPrefix("https://") || link.hasPrefix("http://"), link.utf8.count <= 2000 else {
      throw FerryError(
        .badData, "upload_url answered without a link: neither \"url\" in JSON nor Location.", retry: .now)
    }
    return link
  }

  /// Nothing was published, whatever became of this.
  private static func certain<Value>(
    _ body: () async throws(FerryError) -> Value
  ) async throws(FerryError) -> Value {
    do throws(FerryError) { return try await body() } catch {
      var error = error
      error.didNotAct = true
      throw error
    }
  }
}
