import CCurl
import FerryCore
import FerryRuntime
import FoundationEssentials
import Glibc

extension ClientLoop {
  /// libcurl makes the connection (name, proxy, TLS); the handshake and the frames are ours.
  func webSocket(
    _ text: String, headers: HTTPHeaders, subprotocols: [String], settings: WebSocketSettings, deadline: Duration
  ) async throws(FerryError) -> WebSocket {
    let start = ContinuousClock.now
    guard let address = Self.handshakeURL(of: text) else {
      throw FerryError(.badRequest, "A WebSocket's address starts with ws:// or wss://.")
    }
    let transfer = try makeTransfer(ClientRequest(url: address, deadline: deadline))
    configure(transfer)
    transfer.isConnectOnly = true
    ccurl_set_long(transfer.easy, CURLOPT_CONNECT_ONLY, 1)
    ccurl_set_long(transfer.easy, CURLOPT_HTTPPROXYTUNNEL, 1)
    ccurl_set_long(transfer.easy, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
    ccurl_set_long(transfer.easy, CURLOPT_SSL_ENABLE_ALPN, 0)
    // The connection leaves libcurl's care, so it is never shared.
    ccurl_set_long(transfer.easy, CURLOPT_FRESH_CONNECT, 1)
    let id = transfer.id
    _ = try await perform(id).get()
    let key = Data(Crypto.randomBytes(16)).base64EncodedString()
    let request = Self.handshake(transfer.url, key, headers, subprotocols)
    let wire = try makeWire(transfer)
    do throws(FerryError) {
      let rest = max(deadline - start.duration(to: .now), .milliseconds(1))
      let answer = try await shakeHands(id, wire, request, transfer.url.place, rest).get()
      try Self.check(answer, key: key, subprotocols: subprotocols, place: transfer.url.place)
      var peer: UnsafeMutablePointer<CChar>?
      ccurl_get_string(transfer.easy, CURLINFO_PRIMARY_IP, &peer)
      return open(wire, transfer, peer.map { String(cString: $0) } ?? "", answer, settings)
    } catch {
      wire.close()
      throw error
    }
  }

  private func open(
    _ wire: CurlWire, _ transfer: Transfer, _ peer: String, _ answer: ClientHandshake.Answer,
    _ settings: WebSocketSettings
  ) -> WebSocket {
    let final: any Wire
    if transfer.url.scheme == "http" {
      // Without TLS libcurl is no longer needed: the socket is ours alone, and any thread may write to it.
      final = SocketWire(wire.takeDescriptor())
      wire.close()
    } else {
      final = wire
    }
    let socket = WebSocket(
      wire: final, isServer: false, peer: peer,
      subprotocol: answer.headers["Sec-WebSocket-Protocol"], settings: settings, loop: loop)
    SocketDriver(socket, pool: pool) { [self] in _ = self }.start(early: answer.rest)
    return socket
  }

  private func makeWire(_ transfer: Transfer) throws(FerryError) -> CurlWire {
    var descriptor: curl_socket_t = CURL_SOCKET_BAD
    ccurl_get_socket(transfer.easy, CURLINFO_ACTIVESOCKET, &descriptor)
    let copy = descriptor == CURL_SOCKET_BAD ? -1 : fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    let handle = OnLoop(transfer)
    guard copy >= 0 else {
      finish(transfer, nil)
      throw FerryError(.unavailable, "The connection to \(transfer.url.place) was lost at once.", retry: .now)
    }
    return CurlWire(easy: transfer.easy, descriptor: copy) { [self] in
      assumeIsolated { $0.finish(handle.value, nil) }
    }
  }

  private func shakeHands(
    _ id: UInt64, _ wire: CurlWire, _ request: String, _ place: String, _ deadline: Duration
  ) async -> Result<ClientHandshake.Answer, FerryError> {
    let handshake = ClientHandshake(wire: wire, request: request, place: place, loop: loop)
    handshakes[id] = handshake
    defer { handshakes[id] = nil }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        if Task.isCancelled { return continuation.resume(returning: .failure(.cancelled())) }
        handshakes[id]?.start(deadline: deadline, continuation)
      }
    } onCancel: {
      loop.submit { [self] in assumeIsolated { $0.handshakes[id]?.fail(.cancelled()) } }
    }
  }

  private static func handshakeURL(of text: String) -> String? {
    let lower = text.prefix(6).lowercased()
    if lower.hasPrefix("ws://") { return "http" + text.dropFirst(2) }
    if lower.hasPrefix("wss://") { return "https" + text.dropFirst(3) }
    return nil
  }

  private static func handshake(
    _ url: RequestURL, _ key: String, _ headers: HTTPHeaders, _ subprotocols: [String]
  ) -> String {
    let target = url.path + (url.query.map { "?\($0)" } ?? "")
    var lines = [
      "GET \(target) HTTP/1.1", "Host: \(url.place)", "Upgrade: websocket", "Connection: Upgrade",
      "Sec-WebSocket-Key: \(key)", "Sec-WebSocket-Version: 13",
    ]
    if !subprotocols.isEmpty {
      lines.append("Sec-WebSocket-Protocol: \(subprotocols.joined(separator: ", ").inOneLine)")
    }
    if headers["User-Agent"] == nil { lines.append("User-Agent: ferry") }
    for (name, value) in headers.fields {
      lines.append("\(name.inOneLine): \(value.inOneLine)")
    }
    return lines.joined(separator: "\r\n") + "\r\n\r\n"
  }

  private static func check(
    _ answer: ClientHandshake.Answer, key: String, subprotocols: [String], place: String
  ) throws(FerryError) {
    guard answer.status == 101 else {
      if answer.status == 0 {
        throw FerryError(.badData, "\(place) does not speak HTTP.", retry: .never, didNotAct: false)
      }
      throw .from(
        status: answer.status, retryAfter: answer.headers["Retry-After"], doing: "open a WebSocket to \(place)")
    }
    let chosen = answer.headers["Sec-WebSocket-Protocol"]
    guard answer.headers["Sec-WebSocket-Accept"] == Upgrade.accept(for: key),
      answer.headers.list("Upgrade", contains: "websocket"), answer.headers.list("Connection", contains: "upgrade"),
      answer.headers["Sec-WebSocket-Extensions"] == nil, chosen.map(subprotocols.contains) ?? true
    else {
      throw FerryError(
        .badData, "\(place) did not answer as a WebSocket server does. Check the address and any proxy between.",
        didNotAct: false)
    }
  }
}

/// A connection that libcurl made and encrypts. Loop thread only.
final class CurlWire: Wire, @unchecked Sendable {
  // @unchecked because it says that it is written on the loop thread only, and everything else happens there anyway.

  private let easy: UnsafeMutableRawPointer
  private var copy: Int32
  private let onClose: @Sendable () -> Void
  private var isClosed = false

  var descriptor: Int32 { copy }
  var writesAnywhere: Bool { false }
  var buffersInput: Bool { true }

  /// `descriptor` is a copy for the loop to watch, because libcurl watches its own; it is closed here.
  init(easy: UnsafeMutableRawPointer, descriptor: Int32, onClose: @escaping @Sendable () -> Void) {
    self.easy = easy
    copy = descriptor
    self.onClose = onClose
  }

  /// The copy, which then belongs to the caller.
  func takeDescriptor() -> Int32 {
    defer { copy = -1 }
    return copy
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) -> WireResult {
    var count = 0
    return result(of: curl_easy_recv(easy, buffer.baseAddress, buffer.count, &count), count, zeroIsEnd: true)
  }

  func write(_ bytes: UnsafeRawBufferPointer) -> WireResult {
    var count = 0
    return result(of: curl_easy_send(easy, bytes.baseAddress, bytes.count, &count), count, zeroIsEnd: false)
  }

  private func result(of code: CURLcode, _ count: Int, zeroIsEnd: Bool) -> WireResult {
    switch code {
    case CURLE_OK: count == 0 && zeroIsEnd ? .ended : .bytes(count)
    case CURLE_AGAIN: .wouldBlock
    default: .ended
    }
  }

  /// There is no half-closed TLS.
  func finishWriting() -> Bool { false }

  func close() {
    guard !isClosed else { return }
    isClosed = true
    if copy >= 0 { Glibc.close(copy) }
    onClose()
  }
}
