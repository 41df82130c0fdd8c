package import FerryCore
import Glibc

/// A port on 127.0.0.1 that is ours for as long as this lives: whatever listens there may end and begin again, and nobody
/// else is given its port in between.
package final class PortReservation: Sendable {
  package let port: UInt16
  /// Bound and never listening.
  private let descriptor: Int32

  package init() throws(FerryError) {
    descriptor = try Sockets.bind(port: 0)
    port = Sockets.port(of: descriptor)
  }

  deinit { close(descriptor) }
}

/// The few system calls that the fault proxy and reservations make.
enum Sockets {
  /// A TCP socket on 127.0.0.1 that shares its port with others of ours.
  static func bind(port: UInt16) throws(FerryError) -> Int32 {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    guard descriptor >= 0 else { throw failure("socket") }
    var on: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &on, socklen_t(MemoryLayout<Int32>.size))
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
    let bound = withLoopback(port) { Glibc.bind(descriptor, $0, $1) }
    guard bound == 0 else {
      let error = failure("bind")
      close(descriptor)
      throw error
    }
    prepare(descriptor)
    return descriptor
  }

  static func port(of descriptor: Int32) -> UInt16 {
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    _ = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
    }
    return UInt16(bigEndian: address.sin_port)
  }

  /// Under way when it returns; nil when refused at once, as on the loopback it is.
  static func connect(port: UInt16) -> Int32? {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    guard descriptor >= 0 else { return nil }
    prepare(descriptor)
    let status = withLoopback(port) { Glibc.connect(descriptor, $0, $1) }
    if status == 0 || errno == EINPROGRESS { return descriptor }
    close(descriptor)
    return nil
  }

  /// Not blocking, not delaying, not inherited.
  static func prepare(_ descriptor: Int32) {
    _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    var on: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
  }

  /// Closes so that the far side sees a reset rather than an end.
  static func reset(_ descriptor: Int32) {
    var linger = linger(l_onoff: 1, l_linger: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<Glibc.linger>.size))
    close(descriptor)
  }

  static func failure(_ call: String) -> FerryError {
    FerryError(.internal, "The fault proxy cannot work.", cause: "\(call): \(String(cString: strerror(errno)))")
  }

  private static func withLoopback(
    _ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
  ) -> Int32 {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
    }
  }
}
