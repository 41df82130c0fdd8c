import CMicroHTTPD
import FerryCore
import FerryRuntime

extension ServerLoop {
  func readHeaders(_ handle: OpaquePointer) -> HTTPHeaders {
    let box = HeaderBox()
    MHD_get_connection_values(handle, cmhd_headers, collectHeader, Unmanaged.passUnretained(box).toOpaque())
    return box.headers
  }

  /// Hands the response to libmicrohttpd. Returns no bytes taken, or nil when it cannot be sent.
  func answer(_ exchange: Exchange, _ response: HTTPResponse) -> Int? {
    guard let handle = makeResponse(response, exchange) else { return nil }
    defer { MHD_destroy_response(handle) }
    var isUpgrade = false
    for (name, value) in response.headers.fields
    where !HTTPHeaders.matches(name, "Content-Length") && !HTTPHeaders.matches(name, "Transfer-Encoding") {
      MHD_add_response_header(handle, name, value)
    }
    if response.headers["Server"] == nil { MHD_add_response_header(handle, "Server", "ferry") }
    if case .webSocket(let subprotocol, _, _) = response.body, case .valid(let accept)? = exchange.upgrade {
      isUpgrade = true
      MHD_add_response_header(handle, "Upgrade", "websocket")
      MHD_add_response_header(handle, "Sec-WebSocket-Accept", accept)
      if let subprotocol { MHD_add_response_header(handle, "Sec-WebSocket-Protocol", subprotocol) }
    } else if isStopping {
      MHD_add_response_header(handle, "Connection", "close")
    }
    guard MHD_queue_response(exchange.handle, isUpgrade ? 101 : UInt32(clamping: response.status), handle) == cmhd_yes
    else { return nil }
    exchange.phase = .answered
    return 0
  }

  private func makeResponse(_ response: HTTPResponse, _ exchange: Exchange) -> OpaquePointer? {
    switch response.body {
    case .empty: return MHD_create_response_from_buffer(0, nil, cmhd_copy)
    case .bytes(let bytes):
      return bytes.withUnsafeBytes { source in
        MHD_create_response_from_buffer(
          source.count, UnsafeMutableRawPointer(mutating: source.baseAddress), cmhd_copy)
      }
    case .stream(let stream):
      let size = stream.size.map { UInt64(clamping: $0) } ?? UInt64.max
      guard let pipe = exchange.outgoing else {
        // For HEAD nothing is read.
        return MHD_create_response_from_callback(size, 16 << 10, { _, _, _, _ in -1 }, nil, nil)
      }
      let source = StreamSource(server: self, exchange: exchange, pipe: pipe)
      return MHD_create_response_from_callback(
        size, 16 << 10, readStream, Unmanaged.passRetained(source).toOpaque(), releaseStream)
    case .webSocket: return MHD_create_response_for_upgrade(socketUpgraded, callbacks.pointer)
    case .hangUp: return nil
    }
  }

  func read(_ source: StreamSource, into buffer: UnsafeMutableRawBufferPointer) -> Int {
    switch source.pipe.take(into: buffer) {
    case .bytes(let count): return count
    case .empty:
      if isEnding { return -2 }
      suspend(source.exchange)
      return 0
    case .finished: return -1
    case .failed: return -2
    }
  }
}

/// What libmicrohttpd reads a streamed response from. Loop thread only.
final class StreamSource {
  let server: ServerLoop
  let exchange: Exchange
  let pipe: BytePipe

  init(server: ServerLoop, exchange: Exchange, pipe: BytePipe) {
    self.server = server
    self.exchange = exchange
    self.pipe = pipe
  }
}

final class HeaderBox {
  var headers: HTTPHeaders = [:]
}
