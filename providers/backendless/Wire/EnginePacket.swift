package import FerryCore
import FoundationEssentials

/// The two versions of Engine.IO in use, as the query parameter `EIO` names them.
package enum EngineVersion: Int, Sendable {
  case three = 3
  case four = 4
}

/// One packet of Engine.IO, the layer that carries Socket.IO over polling or a WebSocket.
/// Source: https://github.com/socketio/engine.io-protocol
package struct EnginePacket: Hashable, Sendable {
  package enum Kind: UInt8, Sendable {
    case open = 0
    case close, ping, pong, message, upgrade, noop
  }

  package enum Body: Hashable, Sendable {
    case text(String)
    case binary([UInt8])
  }

  package var kind: Kind
  package var body: Body

  package init(_ kind: Kind, _ text: String = "") {
    self.kind = kind
    body = .text(text)
  }

  package init(binary bytes: [UInt8]) {
    kind = .message
    body = .binary(bytes)
  }

  /// The text; empty for bytes.
  package var text: String { if case .text(let text) = body { text } else { "" } }

  package static let probe = "probe"

  // MARK: Text

  /// A WebSocket's text frame, or one packet of a text payload: a digit, then the text; `b` begins bytes in Base64.
  package init(text: some StringProtocol, version: EngineVersion) throws(FerryError) {
    // By bytes: what follows the digit may combine with it into one character.
    var bytes = Substring(text).utf8
    guard let first = bytes.popFirst() else { throw FerryError(.badData, "An Engine.IO packet is empty.") }
    if first == UInt8(ascii: "b") {
      self = try Self.base64(bytes, version: version)
      return
    }
    guard let kind = Kind(digit: first) else { throw FerryError(.badData, "An Engine.IO packet has no known type.") }
    self.init(kind, String(Substring(bytes)))
  }

  /// Version 3 names the type of bytes, version 4 knows only messages.
  private static func base64(_ text: Substring.UTF8View, version: EngineVersion) throws(FerryError) -> EnginePacket {
    var rest = text
    if version == .three {
      guard let digit = rest.popFirst(), Kind(digit: digit) == .message else {
        throw FerryError(.badData, "An Engine.IO packet in Base64 is no message.")
      }
    }
    guard let data = Data(base64Encoded: Data(rest)) else {
      throw FerryError(.badData, "An Engine.IO packet is not valid Base64.")
    }
    return EnginePacket(binary: [UInt8](data))
  }

  /// As a WebSocket's text frame or a packet of a text payload carries it; bytes become Base64.
  package func encoded(_ version: EngineVersion) -> String {
    switch body {
    case .text(let text): "\(kind.rawValue)\(text)"
    case .binary(let bytes):
      (version == .three ? "b\(kind.rawValue)" : "b") + Data(bytes).base64EncodedString()
    }
  }

  // MARK: Bytes

  /// A WebSocket's binary frame: in version 3 a byte with the type comes first.
  package init(frame bytes: [UInt8], version: EngineVersion) throws(FerryError) {
    guard version == .three else {
      self.init(binary: bytes)
      return
    }
    guard let first = bytes.first, let kind = Kind(rawValue: first), kind == .message else {
      throw FerryError(.badData, "A binary Engine.IO packet is no message.")
    }
    self.init(binary: Array(bytes.dropFirst()))
  }
}

extension EnginePacket.Kind {
  init?(digit: UInt8) {
    guard digit >= UInt8(ascii: "0") else { return nil }
    self.init(rawValue: digit - UInt8(ascii: "0"))
  }
}
