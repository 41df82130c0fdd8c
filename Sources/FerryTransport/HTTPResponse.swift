package import FerryCore
import FoundationEssentials

/// A handler's answer to a request.
package struct HTTPResponse: Sendable {
  package enum Body: Sendable {
    case empty
    case bytes([UInt8])
    /// Sent as it is read, with a length when the stream declares its size, in chunks otherwise.
    case stream(ByteStream)
    /// Nothing is answered: the connection is closed.
    case hangUp
    /// Turns the connection into a WebSocket and calls `serve` with it, in the request's task. The socket is closed
    /// with 1000 when `serve` returns. Refused with 400 or 426 when the request asked for no such thing.
    case webSocket(
      subprotocol: String?, settings: WebSocketSettings, serve: @Sendable (WebSocket) async -> Void)
  }

  package var status: Int
  package var headers: HTTPHeaders
  package var body: Body

  package init(status: Int, headers: HTTPHeaders = [:], body: Body = .empty) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// With sorted keys and plain slashes.
  package static func json(_ value: some Encodable, status: Int = 200) -> HTTPResponse {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.withoutEscapingSlashes, .sortedKeys]
    do {
      let bytes = try [UInt8](encoder.encode(value))
      return HTTPResponse(status: status, headers: ["Content-Type": "application/json"], body: .bytes(bytes))
    } catch {
      return .text("The answer could not be written as JSON.\n", status: 500)
    }
  }

  package static func text(
    _ text: String, status: Int = 200, type: String = "text/plain; charset=utf-8"
  ) -> HTTPResponse {
    HTTPResponse(status: status, headers: ["Content-Type": type], body: .bytes(Array(text.utf8)))
  }

  /// `{"error":{"code":"...","message":"..."}}` with the status that fits the code.
  package static func error(_ error: FerryError) -> HTTPResponse {
    var response = json(["error": ["code": error.code.label, "message": error.message]], status: error.httpStatus)
    if case .after(let wait) = error.retry {
      // Whole seconds: rounded up, because earlier would be too early.
      let (seconds, rest) = wait.components
      response.headers.set("Retry-After", String(rest > 0 ? seconds + 1 : seconds))
    }
    return response
  }
}
