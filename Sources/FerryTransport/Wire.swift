import Glibc

/// A connected byte stream below a WebSocket. Closed once, by the loop thread; nothing is called after that.
protocol Wire: Sendable {
  /// To be watched for readiness.
  var descriptor: Int32 { get }
  /// Whether `write` may be called from any thread (one at a time), rather than from the loop thread only.
  var writesAnywhere: Bool { get }
  /// Whether `read` must be repeated until it would block, because bytes may wait where epoll does not see them.
  var buffersInput: Bool { get }

  func read(into buffer: UnsafeMutableRawBufferPointer) -> WireResult
  func write(_ bytes: UnsafeRawBufferPointer) -> WireResult
  /// Tells the other side that nothing more comes. False where only `close` can do that.
  func finishWriting() -> Bool
  func close()
}

enum WireResult: Equatable { case bytes(Int), wouldBlock, ended }

/// A non-blocking socket of our own.
struct SocketWire: Wire {
  let descriptor: Int32
  let onClose: (@Sendable () -> Void)?

  var writesAnywhere: Bool { true }
  var buffersInput: Bool { false }

  init(_ descriptor: Int32, onClose: (@Sendable () -> Void)? = nil) {
    self.descriptor = descriptor
    self.onClose = onClose
    var one: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) -> WireResult {
    result(of: recv(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT)), zeroIsEnd: true)
  }

  func write(_ bytes: UnsafeRawBufferPointer) -> WireResult {
    let flags = Int32(MSG_DONTWAIT | MSG_NOSIGNAL)
    return result(of: send(descriptor, bytes.baseAddress, bytes.count, flags), zeroIsEnd: false)
  }

  private func result(of count: Int, zeroIsEnd: Bool) -> WireResult {
    if count > 0 || (count == 0 && !zeroIsEnd) { return .bytes(count) }
    if count < 0, errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR { return .wouldBlock }
    return .ended
  }

  func finishWriting() -> Bool { onClose == nil && shutdown(descriptor, Int32(SHUT_WR)) == 0 }

  func close() {
    // A socket that MHD still owns (TLS) is closed by it.
    if let onClose { onClose() } else { Glibc.close(descriptor) }
  }
}
