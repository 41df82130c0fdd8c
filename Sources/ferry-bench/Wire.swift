import FerryCore
import FerryRuntime
import Glibc

/// One TCP connection of a load generator: made and used on its loop's thread only.
final class Wire {
  private let loop: LoopExecutor
  private let descriptor: Int32
  private var watch: LoopExecutor.WatchID?
  private var unsent: [UInt8] = []
  private static let pieceBytes = 1 << 16

  /// Connects to 127.0.0.1. `received` is called with every piece that arrives, and with nil when the other side is
  /// gone.
  init(port: UInt16, loop: LoopExecutor, received: @escaping @Sendable ([UInt8]?) -> Void) throws(FerryError) {
    self.loop = loop
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let status = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard descriptor >= 0, status == 0 else {
      throw FerryError(.unavailable, "No connection to port \(port): \(String(cString: strerror(errno)))")
    }
    var one: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, 4)
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    watch = loop.watch(descriptor, for: .readable) { [unowned self] events in
      if events.contains(.writable) { self.flush() }
      self.read(received)
    }
  }

  func send(_ bytes: [UInt8]) {
    unsent += bytes
    flush()
  }

  func close() {
    guard let watch else { return }
    loop.unwatch(watch)
    self.watch = nil
    Glibc.close(descriptor)
  }

  private func read(_ received: ([UInt8]?) -> Void) {
    while watch != nil {
      var count = 0
      let piece = [UInt8](unsafeUninitializedCapacity: Self.pieceBytes) { buffer, initialized in
        count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
        initialized = max(count, 0)
      }
      if count > 0 {
        received(piece)
        if count < Self.pieceBytes { return }
      } else {
        if count < 0, errno == EAGAIN || errno == EINTR { return }
        received(nil)
        close()
      }
    }
  }

  private func flush() {
    guard let watch else { return }
    while !unsent.isEmpty {
      let count = unsent.withUnsafeBytes {
        Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { break }
      unsent.removeFirst(count)
    }
    loop.change(watch, to: unsent.isEmpty ? .readable : [.readable, .writable])
  }
}

/// Counts how often a word occurs in a stream, wherever it is cut.
struct WordCounter {
  private let word: [UInt8]
  private var matched = 0
  private(set) var count = 0

  init(_ word: String) { self.word = Array(word.utf8) }

  /// The word must not contain its own first byte again.
  mutating func feed(_ bytes: [UInt8]) {
    for byte in bytes {
      if byte == word[matched] {
        matched += 1
        if matched == word.count {
          count += 1
          matched = 0
        }
      } else {
        matched = byte == word[0] ? 1 : 0
      }
    }
  }
}

enum WebSocketText {
  /// A masked text frame, as clients send them. The mask is zero: this is a benchmark.
  static func frame(_ text: String) -> [UInt8] {
    let body = Array(text.utf8)
    var head: [UInt8] = [0x81]
    if body.count < 126 {
      head.append(0x80 | UInt8(body.count))
    } else {
      head += [0x80 | 126, UInt8(body.count >> 8), UInt8(body.count & 255)]
    }
    return head + [0, 0, 0, 0] + body
  }

  static func upgrade(_ path: String) -> [UInt8] {
    Array(
      ("GET \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n").utf8)
  }
}
