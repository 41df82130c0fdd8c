package import FerryCore
package import FerryRuntime

/// HTTP/1.1, HTTP/2 (over TLS, where offered) and WebSockets to other services, over libcurl on a loop.
///
/// Connections are kept and reused. Proxy and certificate settings come from the environment as libcurl reads it;
/// this machine is never reached through a proxy. No URL's query or credentials get into an error or a log.
package final class HTTPClient: Sendable {
  private let core: ClientLoop

  package init(loop: LoopExecutor, guard addressGuard: AddressGuard = AddressGuard(), logger: Logger) {
    core = ClientLoop(loop: loop, addressGuard: addressGuard, environment: ClientEnvironment())
  }

  init(loop: LoopExecutor, guard addressGuard: AddressGuard = AddressGuard(), environment: ClientEnvironment) {
    core = ClientLoop(loop: loop, addressGuard: addressGuard, environment: environment)
  }

  /// Sends a request and returns when the response's head has arrived; any status is a response.
  ///
  /// Throws only when there is none. `didNotAct` is then true only where the request cannot have reached the other
  /// side: its name, the connection or TLS failed before anything was sent. Cancellation ends the request at once.
  package func send(_ request: ClientRequest) async throws(FerryError) -> ClientResponse {
    try await core.send(request)
  }

  /// Opens a WebSocket to a `ws` or `wss` URL, within the deadline.
  package func webSocket(
    _ url: String, headers: HTTPHeaders = [:], subprotocols: [String] = [],
    settings: WebSocketSettings = WebSocketSettings(), deadline: Duration = .seconds(30)
  ) async throws(FerryError) -> WebSocket {
    try await core.webSocket(
      url, headers: headers, subprotocols: subprotocols, settings: settings, deadline: deadline)
  }
}
