package import FerryCore
import FerryRuntime

/// One packet of Socket.IO, which travels as an Engine.IO message's text. The same for both versions but for what is
/// said when connecting.
///
/// Source: https://github.com/socketio/socket.io-protocol
package struct SocketPacket: Hashable, Sendable {
  package enum Content: Hashable, Sendable {
    /// With an object in version 4.
    case connect(JSONValue?)
    case disconnect
    /// The first argument after the name; the others are nobody's.
    case event(String, JSONValue?)
    case ack(JSONValue?)
    /// Why a namespace was refused: a string in version 3, an object in version 4.
    case refused(JSONValue?)
  }

  package static let root = "/"

  /// Begins with a slash; the root is a slash alone.
  package var namespace: String
  /// What version 3 repeats behind the namespace when connecting.
  package var query: String?
  package var content: Content
  /// By which an answer is asked for, or given.
  package var acknowledgement: Int?

  package init(_ content: Content, in namespace: String, query: String? = nil, acknowledgement: Int? = nil) {
    self.content = content
    self.namespace = namespace
    self.query = query
    self.acknowledgement = acknowledgement
  }

  /// The reason of a refusal in either version's shape.
  package var refusal: String? {
    guard case .refused(let reason) = content else { return nil }
    return reason?["message"]?.string ?? reason?.string ?? "no reason given"
  }

  // MARK: Text

  private static let longestNamespace = 8192

  /// The text of an Engine.IO message. Whatever it is not is `badData`; what Backendless never sends, events with
  /// bytes, is `unsupported`.
  package init(_ text: String) throws(FerryError) {
    var bytes = text[...].utf8
    guard let type = bytes.popFirst(), (UInt8(ascii: "0")...UInt8(ascii: "6")).contains(type) else {
      throw FerryError(.badData, "A Socket.IO packet has no known type.")
    }
    let digit = type - UInt8(ascii: "0")
    var rest = Substring(bytes)
    guard digit != 5, digit != 6 else {
      throw FerryError(.unsupported, "Socket.IO packets with binary data are not supported.")
    }
    (namespace, query) = try Self.takeNamespace(&rest)
    acknowledgement = try Self.takeNumber(&rest)
    let value = rest.isEmpty ? nil : JSONText.value(rest)
    if !rest.isEmpty, value == nil { throw FerryError(.badData, "A Socket.IO packet's data is not JSON.") }
    content = try Self.content(digit, value)
  }

  private static func content(_ digit: UInt8, _ value: JSONValue?) throws(FerryError) -> Content {
    switch digit {
    case 0: return .connect(value)
    case 1: return .disconnect
    case 2:
      guard let list = value?.array, let name = list.first?.string else {
        throw FerryError(.badData, "A Socket.IO event has no name.")
      }
      return .event(name, list.dropFirst().first)
    case 3: return .ack(value?.array?.first)
    default: return .refused(value)
    }
  }

  /// Up to a comma, which some clients leave out at the end.
  private static func takeNamespace(_ rest: inout Substring) throws(FerryError) -> (String, query: String?) {
    guard rest.utf8.first == UInt8(ascii: "/") else { return (root, nil) }
    let comma = rest.utf8.firstIndex(of: UInt8(ascii: ","))
    let name = rest[..<(comma ?? rest.endIndex)]
    guard name.utf8.count <= longestNamespace else { throw FerryError(.badData, "A namespace is too long.") }
    rest = comma.map { rest[rest.utf8.index(after: $0)...] } ?? ""
    guard let mark = name.utf8.firstIndex(of: UInt8(ascii: "?")) else { return (String(name), nil) }
    return (String(name[..<mark]), String(name[name.utf8.index(after: mark)...]))
  }

  private static func takeNumber(_ rest: inout Substring) throws(FerryError) -> Int? {
    let digits = rest.utf8.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    guard !digits.isEmpty else { return nil }
    guard let number = Int(String(Substring(digits))) else {
      throw FerryError(.badData, "An acknowledgement is too long.")
    }
    rest = rest[digits.endIndex...]
    return number
  }

  package var text: String {
    switch content {
    case .connect(let value): head(0) + json(value)
    case .disconnect: head(1)
    case .event(let name, let argument): Self.event(name, argument.map(JSON.text), head: head(2))
    case .ack(let value): head(3) + "[\(json(value))]"
    case .refused(let value): head(4) + json(value)
    }
  }

  /// As an Engine.IO message.
  package var message: EnginePacket { EnginePacket(.message, text) }

  /// An event whose argument is JSON text already: what goes to many is written once.
  package static func event(_ name: String, json: String, in namespace: String) -> String {
    event(name, json, head: SocketPacket(.disconnect, in: namespace).head(2))
  }

  private static func event(_ name: String, _ argument: String?, head: String) -> String {
    "\(head)[\(JSONText.quoted(name))\(argument.map { ",\($0)" } ?? "")]"
  }

  private func head(_ digit: Int) -> String {
    let place = namespace == Self.root && query == nil ? "" : namespace + (query.map { "?\($0)" } ?? "") + ","
    return "\(digit)\(place)\(acknowledgement.map(String.init) ?? "")"
  }

  private func json(_ value: JSONValue?) -> String { value.map(JSON.text) ?? "" }
}

extension SocketPacket {
  /// A client's wish to join a namespace: version 3 repeats the query, version 4 may carry an object.
  package static func connect(
    to namespace: String, version: EngineVersion, query: String? = nil, auth: JSONValue? = nil
  ) -> SocketPacket {
    version == .three
      ? SocketPacket(.connect(nil), in: namespace, query: query) : SocketPacket(.connect(auth), in: namespace)
  }

  /// A server's consent: version 4 requires an object.
  package static func connected(
    to namespace: String, version: EngineVersion, sid: String
  ) -> SocketPacket {
    SocketPacket(.connect(version == .three ? nil : ["sid": .string(sid)]), in: namespace)
  }

  package static func refused(_ reason: String, in namespace: String, version: EngineVersion) -> SocketPacket {
    SocketPacket(.refused(version == .three ? .string(reason) : ["message": .string(reason)]), in: namespace)
  }
}
