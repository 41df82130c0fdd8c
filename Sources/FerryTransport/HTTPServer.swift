package import FerryCore
package import FerryRuntime
import Glibc

/// An HTTP/1.1 server with WebSockets, on a loop that it may share with others.
///
/// Handlers run in a task of their own each, on the loop's thread, and must not block it. Their task is cancelled when
/// the client goes away.
package final class HTTPServer: Sendable {
  package struct Settings: Sendable {
    /// An IP address or a name of this machine.
    package var host: String
    /// Zero takes a free one.
    package var port: UInt16
    /// Both in PEM, for TLS.
    package var certificateFile: String?
    package var keyFile: String?
    /// The largest request line and headers, in all.
    package var headerBytes: Int
    package var bodyBytes: Int
    /// Open connections and WebSockets, in all and from one address.
    package var connections: Int
    package var connectionsPerAddress: Int
    /// The most requests a second from one client; zero for as many as it likes.
    package var requestsPerClient: Int
    /// How long a connection may be idle, and how long headers may take to arrive.
    package var idleTimeout: Duration
    /// How long requests in flight may take to end when the server stops.
    package var stopTimeout: Duration

    package init(
      host: String = "127.0.0.1", port: UInt16 = 0, certificateFile: String? = nil, keyFile: String? = nil,
      headerBytes: Int = 16 << 10, bodyBytes: Int = 64 << 20, connections: Int = 20_000,
      connectionsPerAddress: Int = 20_000, requestsPerClient: Int = 0, idleTimeout: Duration = .seconds(60),
      stopTimeout: Duration = .seconds(5)
    ) {
      self.host = host
      self.port = port
      self.certificateFile = certificateFile
      self.keyFile = keyFile
      self.headerBytes = headerBytes
      self.bodyBytes = bodyBytes
      self.connections = connections
      self.connectionsPerAddress = connectionsPerAddress
      self.requestsPerClient = requestsPerClient
      self.idleTimeout = idleTimeout
      self.stopTimeout = stopTimeout
    }
  }

  package let port: UInt16
  /// `http://127.0.0.1:8080`, without a path.
  package let url: String
  private let core: ServerLoop

  /// Bound and listening when it returns; answers once `run` is called.
  package init(
    _ settings: Settings, loop: LoopExecutor, logger: Logger,
    handler: @escaping @Sendable (HTTPRequest) async -> HTTPResponse
  ) throws(FerryError) {
    let tls = try TLSFiles(certificateFile: settings.certificateFile, keyFile: settings.keyFile)
    let listener = try Listener(host: settings.host, port: settings.port)
    port = listener.port
    let host = settings.host.contains(":") ? "[\(settings.host)]" : settings.host
    url = "\(tls == nil ? "http" : "https")://\(host):\(listener.port)"
    core = try ServerLoop(settings, listener: listener, tls: tls, loop: loop, logger: logger, handler: handler)
  }

  /// Serves until the task is cancelled. Then refuses new work, closes the WebSockets with their `stopCode`, lets
  /// requests in flight end within `stopTimeout`, cancels the rest, and returns when nothing is left. Called once.
  @concurrent
  package func run() async { await core.run() }

  /// Connections and WebSockets that are open.
  package var connections: Int { get async { await core.openConnections } }
}

/// A certificate and its key, read.
struct TLSFiles {
  let certificate: String
  let key: String

  init?(certificateFile: String?, keyFile: String?) throws(FerryError) {
    guard certificateFile != nil || keyFile != nil else { return nil }
    guard let certificateFile, let keyFile else {
      throw FerryError(.badConfiguration, "TLS needs both a certificate file and a key file.")
    }
    certificate = try Self.read(certificateFile)
    key = try Self.read(keyFile)
  }

  private static func read(_ path: String) throws(FerryError) -> String {
    guard let file = fopen(path, "re") else {
      throw FerryError(
        .badConfiguration, "The file \(path) cannot be read. Check its path and permissions.",
        cause: String(cString: strerror(errno)))
    }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 1 << 20)
    let count = fread(&bytes, 1, bytes.count, file)
    return String(decoding: bytes[..<count], as: UTF8.self)
  }
}

/// A bound, listening, non-blocking TCP socket. Whoever takes the descriptor closes it.
struct Listener {
  let descriptor: Int32
  let port: UInt16

  init(host: String, port: UInt16) throws(FerryError) {
    var hints = addrinfo()
    hints.ai_flags = AI_PASSIVE
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    let status = getaddrinfo(host, String(port), &hints, &list)
    defer { if let list { freeaddrinfo(list) } }
    guard status == 0, let address = list?.pointee else {
      throw FerryError(
        .badConfiguration, "\"\(host)\" is no address of this machine to listen on.",
        cause: String(cString: gai_strerror(status)))
    }
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let descriptor = socket(address.ai_family, kind, 0)
    guard descriptor >= 0 else { throw Self.failure(host, port, errno) }
    var one: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, 4)
    guard bind(descriptor, address.ai_addr, address.ai_addrlen) == 0, listen(descriptor, 1024) == 0,
      let port = Self.port(of: descriptor)
    else {
      let number = errno
      close(descriptor)
      throw Self.failure(host, port, number)
    }
    self.descriptor = descriptor
    self.port = port
  }

  private static func port(of descriptor: Int32) -> UInt16? {
    var address = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
        getsockname(descriptor, generic, &length) == 0
      }
    } ? IPAddress(address).map { $0.port } : nil
  }

  private static func failure(_ host: String, _ port: UInt16, _ number: Int32) -> FerryError {
    let cause = String(cString: strerror(number))
    return switch number {
    case EADDRINUSE:
      FerryError(
        .badConfiguration,
        "Port \(port) is in use on \(host). Stop the program that listens there, or choose another port.",
        retry: .now, cause: cause)
    case EACCES:
      FerryError(
        .badConfiguration, "Port \(port) needs privileges that this process lacks. Choose one from 1024 up.",
        cause: cause)
    case EADDRNOTAVAIL:
      FerryError(.badConfiguration, "\(host) is no address of this machine to listen on.", cause: cause)
    default:
      FerryError(.unavailable, "Cannot listen on port \(port) of \(host).", retry: .now, cause: cause)
    }
  }
}
