import FerryCore
import FerryRuntime
import FerryTransport
import Glibc
import Testing

/// A server and a client on one loop, for the length of a test.
struct Bench: Sendable {
  let server: HTTPServer
  let client: HTTPClient
  let loop: LoopExecutor

  var port: UInt16 { server.port }
  func url(_ path: String) -> String { server.url + path }
  func socketURL(_ path: String) -> String { "ws" + url(path).dropFirst(4) }
}

func withBench(
  _ settings: HTTPServer.Settings = HTTPServer.Settings(), guard addressGuard: AddressGuard = AddressGuard(),
  handler: @escaping @Sendable (HTTPRequest) async -> HTTPResponse, _ body: (Bench) async throws -> Void
) async throws {
  let loop = try LoopExecutor(name: "test")
  let server = try HTTPServer(settings, loop: loop, logger: .silent, handler: handler)
  let client = HTTPClient(loop: loop, guard: addressGuard, logger: .silent)
  let running = Task { await server.run() }
  let result: Result<Void, any Error>
  do { result = .success(try await body(Bench(server: server, client: client, loop: loop))) } catch {
    result = .failure(error)
  }
  running.cancel()
  await running.value
  loop.stop()
  try result.get()
}

/// Runs what blocks on a thread of its own.
func blocking<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
  try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Value, any Error>) in
    let job = ThreadJob { continuation.resume(with: Result { try body() }) }
    var thread = pthread_t()
    pthread_create(
      &thread, nil,
      { context in
        if let context { Unmanaged<ThreadJob>.fromOpaque(context).takeRetainedValue().body() }
        return nil
      }, Unmanaged.passRetained(job).toOpaque())
    pthread_detach(thread)
  }
}

private final class ThreadJob: Sendable {
  let body: @Sendable () -> Void
  init(_ body: @escaping @Sendable () -> Void) { self.body = body }
}

struct SocketFailure: Error { let what: String }

/// A blocking TCP socket to this machine, with a time limit on each call.
final class RawSocket: Sendable {
  let descriptor: Int32

  init(port: UInt16, seconds: Int = 10) throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var limit = timeval(tv_sec: seconds, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    var address = Self.loopback(port)
    let status = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, 16) }
    }
    guard status == 0 else { throw SocketFailure(what: "connect: \(errno)") }
  }

  deinit { close(descriptor) }

  static func loopback(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    return address
  }

  func write(_ text: String) throws { try write(Array(text.utf8)) }

  func write(_ bytes: [UInt8]) throws {
    var sent = 0
    while sent < bytes.count {
      let count = bytes.withUnsafeBytes { source in
        send(descriptor, source.baseAddress.map { $0 + sent }, bytes.count - sent, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { throw SocketFailure(what: "send: \(errno)") }
      sent += count
    }
  }

  /// What has arrived, at least one byte; empty at the end of the stream.
  func read(_ limit: Int = 65536) throws -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: limit)
    let count = recv(descriptor, &buffer, limit, 0)
    if count < 0, errno == ECONNRESET { return [] }
    guard count >= 0 else { throw SocketFailure(what: "recv: \(errno)") }
    return Array(buffer[..<count])
  }

  func readExactly(_ count: Int) throws -> [UInt8] {
    var all: [UInt8] = []
    while all.count < count {
      let piece = try read(count - all.count)
      guard !piece.isEmpty else { throw SocketFailure(what: "the stream ended after \(all.count) of \(count) bytes") }
      all += piece
    }
    return all
  }

  /// Until the text occurs, included.
  func read(until text: String) throws -> String {
    var all = ""
    while !all.hasSuffix(text) {
      let piece = try read(1)
      guard !piece.isEmpty else { throw SocketFailure(what: "the stream ended after: \(all)") }
      all += String(decoding: piece, as: UTF8.self)
    }
    return all
  }

  /// Everything to the end of the stream.
  func readAll() throws -> String {
    var all: [UInt8] = []
    while true {
      let piece = try read()
      if piece.isEmpty { return String(decoding: all, as: UTF8.self) }
      all += piece
    }
  }

  func finishWriting() { shutdown(descriptor, Int32(SHUT_WR)) }

  /// Opens a WebSocket and returns the answer's head.
  func openWebSocket(_ path: String = "/", headers: String = "") throws -> String {
    try write(
      "GET \(path) HTTP/1.1\r\nHost: here\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\(headers)\r\n")
    return try read(until: "\r\n\r\n")
  }

  /// A masked frame, as a client sends it. `first` is the frame's first byte.
  static func frame(_ first: UInt8, _ payload: [UInt8]) -> [UInt8] {
    var bytes = [first]
    switch payload.count {
    case ..<126: bytes.append(0x80 | UInt8(payload.count))
    case ..<65536: bytes += [0xfe, UInt8(payload.count >> 8), UInt8(payload.count & 255)]
    default: bytes += [0xff] + (0..<8).map { UInt8(truncatingIfNeeded: payload.count >> (56 - 8 * $0)) }
    }
    let mask: [UInt8] = [1, 2, 3, 4]
    return bytes + mask + payload.enumerated().map { $1 ^ mask[$0 % 4] }
  }

  /// A frame of a server: its first byte and its payload.
  func readFrame() throws -> (first: UInt8, payload: [UInt8]) {
    let head = try readExactly(2)
    var length = Int(head[1] & 127)
    if length > 125 { length = try readExactly(length == 126 ? 2 : 8).reduce(0) { $0 << 8 | Int($1) } }
    return (head[0], try readExactly(length))
  }
}

/// Waits until a condition holds that no event announces, looking every few milliseconds on a thread of its own.
func eventually(_ what: String, _ condition: @escaping @Sendable () async -> Bool) async throws {
  let limit = ContinuousClock.now.advanced(by: .seconds(10))
  while await !condition() {
    guard ContinuousClock.now < limit else { throw SocketFailure(what: "never: \(what)") }
    _ = try await blocking { usleep(5000) }
  }
}

enum Machine {
  static var openDescriptors: Int {
    var count = 0
    guard let directory = opendir("/proc/self/fd") else { return 0 }
    while readdir(directory) != nil { count += 1 }
    closedir(directory)
    return count
  }

  /// Bytes.
  static var residentMemory: Int {
    guard let file = fopen("/proc/self/statm", "r") else { return 0 }
    defer { fclose(file) }
    var buffer = [CChar](repeating: 0, count: 256)
    guard fgets(&buffer, 256, file) != nil else { return 0 }
    let text = String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    return (Int(text.split(separator: " ")[1]) ?? 0) * 4096
  }
}
