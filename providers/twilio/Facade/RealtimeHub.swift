import FerryCore
import FerryRuntime
import FerryTransport

/// Who is connected to the realtime socket: the facade's only state in memory, a value behind its lock.
struct RealtimeHub: Sendable {
  struct Connection: Sendable {
    let socket: WebSocket
    /// Nil until the client has presented a token.
    var identity: String?
    var service = ""
    /// When the token ends, or the client's patience to present one.
    var expires: Timestamp
    var isWarned = false
    var takesTyping = false
  }

  /// What the end of a token brings about.
  enum Due: Sendable {
    case warn(WebSocket)
    case end(WebSocket, hadToken: Bool)
  }

  /// How long before its end a client is told to renew its token.
  static let warning: Duration = .seconds(120)
  /// How long a client may take to present one.
  static let patience: Duration = .seconds(30)

  private(set) var connections: [UInt64: Connection] = [:]

  mutating func open(_ socket: WebSocket, at now: Timestamp) {
    connections[socket.id] = Connection(socket: socket, expires: now.advanced(by: Self.patience))
  }

  mutating func close(_ id: UInt64) { connections[id] = nil }

  mutating func admit(_ id: UInt64, _ token: AccessToken, takesTyping: Bool) {
    connections[id]?.identity = token.identity
    connections[id]?.service = token.serviceSID
    connections[id]?.takesTyping = takesTyping
    renew(id, until: token.expires)
  }

  mutating func renew(_ id: UInt64, until expires: Timestamp) {
    connections[id]?.expires = expires
    connections[id]?.isWarned = false
  }

  mutating func setTakesTyping(_ takes: Bool, _ id: UInt64) { connections[id]?.takesTyping = takes }

  func isOnline(_ identity: String, in service: String) -> Bool {
    connections.values.contains { $0.identity == identity && $0.service == service }
  }

  /// Those who want to know of typing, without the one who types.
  func listeners(except typist: String, in service: String) -> [String: [WebSocket]] {
    var listeners: [String: [WebSocket]] = [:]
    for connection in connections.values where connection.takesTyping && connection.service == service {
      guard let identity = connection.identity, identity != typist else { continue }
      listeners[identity, default: []].append(connection.socket)
    }
    return listeners
  }

  /// What is due by `now`, and when the next thing is.
  mutating func takeDue(at now: Timestamp) -> (due: [Due], next: Timestamp?) {
    var due: [Due] = []
    var next: [Timestamp] = []
    for (id, connection) in connections {
      let warnAt = connection.expires.advanced(by: .zero - Self.warning)
      if connection.expires <= now {
        due.append(.end(connection.socket, hadToken: connection.identity != nil))
        connections[id] = nil
      } else if connection.identity != nil, !connection.isWarned {
        if warnAt <= now {
          due.append(.warn(connection.socket))
          connections[id]?.isWarned = true
          next.append(connection.expires)
        } else {
          next.append(warnAt)
        }
      } else {
        next.append(connection.expires)
      }
    }
    return (due, next.min())
  }
}
