import FerryCore
import FerryRuntime
import FoundationEssentials

/// A TCP connection that libmicrohttpd holds. Loop thread only.
final class Connection {
  let descriptor: Int32
  let address: String
  /// Path and query of the request that is being read, as sent.
  var target = ""
  /// Since when the connection has been waiting for a whole request head.
  var waitingSince = ContinuousClock.now
  var exchange: Exchange?
  var hangUpWatch: LoopExecutor.WatchID?
  /// The socket has been handed to a WebSocket, which counts as a connection from now on.
  var isUpgraded = false
  /// The client has ended its stream.
  var isHalfClosed = false
  var isClosed = false

  init(descriptor: Int32, address: String) {
    self.descriptor = descriptor
    self.address = address
  }
}

/// One request and its response. Loop thread only, but for its pipes.
final class Exchange {
  enum Phase {
    /// The head has arrived; the body is asked for only when the handler wants it, or not at all when it answers first.
    case head
    case body
    case complete
    /// The response has been handed to libmicrohttpd.
    case answered
    case over
  }

  let id: UInt64
  /// Valid until `over`.
  let handle: OpaquePointer
  let connection: Connection
  let isHead: Bool
  /// Set while the request asks for a WebSocket.
  let upgrade: Upgrade?
  let body: BytePipe
  var phase: Phase
  var received = 0
  let begun = ContinuousClock.now
  var isTooLarge = false
  /// What it brings is read to its end before it is answered, although it is refused.
  var isHeardOut = false
  var response: HTTPResponse?
  /// The pieces of a streamed response.
  var outgoing: BytePipe?
  var isSuspended = false

  init(
    id: UInt64, handle: OpaquePointer, connection: Connection, isHead: Bool, upgrade: Upgrade?, body: BytePipe,
    phase: Phase
  ) {
    self.id = id
    self.handle = handle
    self.connection = connection
    self.isHead = isHead
    self.upgrade = upgrade
    self.body = body
    self.phase = phase
  }
}

/// A request's wish for a WebSocket (RFC 6455, 4.2.1), checked.
enum Upgrade: Equatable {
  case valid(accept: String)
  /// Another version than 13.
  case badVersion
  case malformed(String)

  /// Nil when the request asks for none.
  init?(method: String, headers: HTTPHeaders) {
    guard headers.list("Upgrade", contains: "websocket") else { return nil }
    guard method == "GET" else {
      self = .malformed("A WebSocket is asked for with GET.")
      return
    }
    guard headers.list("Connection", contains: "upgrade") else {
      self = .malformed("The Connection header must contain \"Upgrade\".")
      return
    }
    guard headers["Sec-WebSocket-Version"]?.trimmingSpaces == "13" else {
      self = .badVersion
      return
    }
    let keys = headers.all("Sec-WebSocket-Key")
    guard keys.count == 1, Self.isKey(String(keys[0].trimmingSpaces)) else {
      self = .malformed("Sec-WebSocket-Key must be 16 bytes in base 64.")
      return
    }
    self = .valid(accept: Self.accept(for: String(keys[0].trimmingSpaces)))
  }

  /// The proof that the other side understood the key (RFC 6455, 1.3).
  static func accept(for key: String) -> String {
    Data(Crypto.digest(.sha1, of: Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8))).base64EncodedString()
  }

  private static func isKey(_ text: String) -> Bool { text.utf8.count == 24 && Data(base64Encoded: text)?.count == 16 }
}
