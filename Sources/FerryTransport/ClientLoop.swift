import FerryCore
import FerryRuntime

actor ClientLoop {
  init(loop: LoopExecutor, addressGuard: AddressGuard, logger: Logger) {}
  func send(_ request: ClientRequest) async throws(FerryError) -> ClientResponse {
    throw FerryError(.unsupported, "Not yet.")
  }
  func webSocket(
    _ url: String, headers: HTTPHeaders, subprotocols: [String], settings: WebSocketSettings, deadline: Duration
  ) async throws(FerryError) -> WebSocket {
    throw FerryError(.unsupported, "Not yet.")
  }
}
