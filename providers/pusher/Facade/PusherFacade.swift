import FerryCore
package import FerryRuntime
package import FerryTransport

/// A service that speaks the Channels protocol well enough for the official client libraries: the socket at
/// `/app/KEY` and the signed HTTP API under `/apps/ID`.
///
/// Mounted on a server of its own by whoever makes it. It holds no chat: channels live as long as somebody listens,
/// and of an event only a cache channel's last is kept.
package final class PusherFacade: Sendable {
  let settings: Settings
  let appKey: AppKey
  let store: any PusherCacheStore
  let clock: any FerryClock
  let logger: Logger
  let metrics: Metrics?
  let hub = Locked(Hub())

  package init(
    settings: Settings, store: any PusherCacheStore, clock: any FerryClock, logger: Logger, metrics: Metrics?
  ) {
    self.settings = settings
    self.store = store
    self.clock = clock
    self.logger = logger
    self.metrics = metrics
    appKey = AppKey(key: settings.key, secret: settings.secret)
  }

  /// Answers one request. Never throws: what is wrong with a request is said in the answer.
  package func handle(_ request: HTTPRequest) async -> HTTPResponse {
    let segments = request.segments
    switch segments.first {
    case "app" where segments.count == 2: return openSocket(request, key: segments[1])
    case "apps" where segments.count >= 3:
      do {
        return try await answer(request, path: Array(segments.dropFirst(2)), appID: segments[1])
      } catch let refusal as Refusal {
        logger.debug("refused \(request.method) \(request.path): \(refusal.status)")
        return .text(refusal.text, status: refusal.status)
      } catch {
        let error = FerryError.wrap(error)
        logger.error("\(request.method) \(request.path) failed: \(error)")
        return .text("The request was not carried out: \(error.message)", status: 503)
      }
    default: return .text("Not found: this is a Channels service; see /app/KEY and /apps/ID", status: 404)
    }
  }

  /// Tells every client to come back soon, and lets it go. Before the server is stopped.
  package func closeAll() {
    let sockets = hub.withLock { $0.connections.values.map(\.socket) }
    for socket in sockets { Self.end(socket, .reconnect, "The server is shutting down; please reconnect") }
  }

  /// The error as an event and as a close code: some clients act on one, some on the other.
  static func end(_ socket: WebSocket, _ code: ErrorCode, _ message: String) {
    socket.send(FrameText.error(code, message))
    socket.close(code: code.rawValue, reason: message)
  }
}
