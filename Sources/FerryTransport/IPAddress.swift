import Glibc

/// An IP address, with the port it came with.
struct IPAddress: Hashable, Sendable {
  /// Four bytes or sixteen. An IPv4 address inside an IPv6 one counts as IPv4.
  let bytes: [UInt8]
  let port: UInt16

  init?(_ storage: sockaddr_storage) {
    let address = withUnsafePointer(to: storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { Self(UnsafePointer($0)) }
    }
    guard let address else { return nil }
    self = address
  }

  init?(_ pointer: UnsafePointer<sockaddr>?) {
    guard let pointer else { return nil }
    switch Int32(pointer.pointee.sa_family) {
    case AF_INET:
      let address = UnsafeRawPointer(pointer).loadUnaligned(as: sockaddr_in.self)
      self.init(bytes: withUnsafeBytes(of: address.sin_addr) { Array($0) }, port: UInt16(bigEndian: address.sin_port))
    case AF_INET6:
      let address = UnsafeRawPointer(pointer).loadUnaligned(as: sockaddr_in6.self)
      self.init(
        bytes: withUnsafeBytes(of: address.sin6_addr) { Array($0) }, port: UInt16(bigEndian: address.sin6_port))
    default: return nil
    }
  }

  /// From its text, without brackets; nil when it is none.
  init?(_ text: String) {
    var four = in_addr()
    var six = in6_addr()
    if inet_pton(AF_INET, text, &four) == 1 {
      self.init(bytes: withUnsafeBytes(of: four) { Array($0) }, port: 0)
    } else if inet_pton(AF_INET6, String(text.prefix { $0 != "%" }), &six) == 1 {
      self.init(bytes: withUnsafeBytes(of: six) { Array($0) }, port: 0)
    } else {
      return nil
    }
  }

  init(bytes: [UInt8], port: UInt16) {
    let isMapped = bytes.count == 16 && bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 255 && bytes[11] == 255
    self.bytes = isMapped ? Array(bytes[12...]) : bytes
    self.port = port
  }

  var text: String {
    var buffer = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    inet_ntop(bytes.count == 4 ? AF_INET : AF_INET6, bytes, &buffer, socklen_t(buffer.count))
    return String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }
}
