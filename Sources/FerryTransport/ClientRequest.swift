package import FerryCore

/// A request to be sent by `HTTPClient`.
package struct ClientRequest: Sendable {
  package enum Body: Sendable {
    case none
    case bytes([UInt8])
    /// With a length when the stream declares its size, in chunks otherwise.
    case stream(ByteStream)
  }

  package var method: String
  /// Absolute, `http` or `https`.
  package var url: String
  package var headers: HTTPHeaders
  package var body: Body
  /// For everything, from resolving the name to the response's last byte.
  package var deadline: Duration
  /// How many redirects are followed. With zero, a redirect is a response like any other.
  package var redirects: Int
  /// False for a URL that a message named: the address guard applies.
  package var isTrusted: Bool

  package init(
    method: String = "GET", url: String, headers: HTTPHeaders = [:], body: Body = .none,
    deadline: Duration = .seconds(30), redirects: Int = 0, isTrusted: Bool = true
  ) {
    self.method = method
    self.url = url
    self.headers = headers
    self.body = body
    self.deadline = deadline
    self.redirects = redirects
    self.isTrusted = isTrusted
  }
}

/// A response whose head has arrived. A body that is dropped unread ends the request.
package struct ClientResponse: Sendable {
  package var status: Int
  package var headers: HTTPHeaders
  package var body: ByteStream

  package init(status: Int, headers: HTTPHeaders = [:], body: ByteStream = .none) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  package var isSuccess: Bool { 200..<300 ~= status }

  /// The whole body, or `tooLarge`.
  package func collect(upTo limit: Int) async throws(FerryError) -> [UInt8] { try await body.collect(upTo: limit) }
}
