import FerryRuntime
import Glibc

/// A TCP server for one connection after the other, whose behaviour is a closure on a thread of its own.
final class RawServer: Sendable {
  let port: UInt16
  private let descriptor: Int32
  private let count = Locked(0)

  /// Connections taken so far.
  var connections: Int { count.withLock { $0 } }

  init(_ serve: @escaping @Sendable (RawConnection) throws -> Void) throws {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = RawSocket.loopback(0)
    var length = socklen_t(16)
    let port = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
        bind(descriptor, generic, 16) == 0 && listen(descriptor, 16) == 0
          && getsockname(descriptor, generic, &length) == 0
      } ? UInt16(bigEndian: pointer.pointee.sin_port) : 0
    }
    guard port != 0 else { throw SocketFailure(what: "bind: \(errno)") }
    self.port = port
    self.descriptor = descriptor
    let count = count
    Task {
      try? await blocking {
        while true {
          let connection = accept(descriptor, nil, nil)
          _ = fcntl(connection, F_SETFD, FD_CLOEXEC)
          guard connection >= 0 else { return }
          count.withLock { $0 += 1 }
          try? serve(RawConnection(connection))
        }
      }
    }
  }

  /// Takes no more connections.
  func stop() { shutdown(descriptor, Int32(SHUT_RDWR)) }

  deinit {
    stop()
    close(descriptor)
  }
}

final class RawConnection {
  let descriptor: Int32
  init(_ descriptor: Int32) {
    self.descriptor = descriptor
    var limit = timeval(tv_sec: 10, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
  }
  deinit { close(descriptor) }

  @discardableResult
  func readHead() -> String {
    var text = ""
    var byte: UInt8 = 0
    while !text.hasSuffix("\r\n\r\n"), recv(descriptor, &byte, 1, 0) == 1 {
      text.unicodeScalars.append(Unicode.Scalar(byte))
    }
    return text
  }

  func write(_ text: String) { _ = send(descriptor, text, text.utf8.count, Int32(MSG_NOSIGNAL)) }

  /// Ends the connection with a reset.
  func reset() {
    var option = linger(l_onoff: 1, l_linger: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
  }

  func waitForEnd() {
    var byte: UInt8 = 0
    while recv(descriptor, &byte, 1, 0) > 0 {}
  }
}
