package import FerryCore
import FerryRuntime

/// One binary message of the realtime socket: a line that names the protocol and the header's length, a JSON header,
/// and a payload.
///
///     TWILSOCK V3.0 57\r\n{"id":"TM...","method":"init",...}\r\nPAYLOAD
package struct TwilsockPacket: Hashable, Sendable {
  /// An object. `payload_size` is set when the packet is encoded.
  package var header: JSONValue
  package var payload: [UInt8]

  private static let word = "TWILSOCK"
  private static let version = "V3.0"

  package init(header: JSONValue, payload: [UInt8] = []) {
    self.header = header
    self.payload = payload
  }

  /// A packet with a JSON payload.
  package init(header: JSONValue, json payload: JSONValue) {
    var members = header.object ?? [:]
    members["payload_type"] = "application/json"
    self.init(header: .object(members), payload: Array(JSON.text(of: payload).utf8))
  }

  /// Throws `badData` for anything but a packet. A payload longer than `payload_size` says is taken whole.
  package init(_ bytes: [UInt8]) throws(FerryError) {
    guard let lineEnd = bytes.firstRange(of: [0x0d, 0x0a]) else {
      throw FerryError(.badData, "The packet has no first line.")
    }
    let line = String(decoding: bytes[..<lineEnd.lowerBound], as: UTF8.self).split(separator: " ")
    guard line.count == 3, line[0] == Self.word, line[1] == Self.version, let length = Int(line[2]) else {
      throw FerryError(.badData, "The packet is not one of \(Self.word) \(Self.version).")
    }
    let rest = bytes[lineEnd.upperBound...]
    guard length >= 0, rest.count >= length, rest.count - length >= 2,
      rest.dropFirst(length).prefix(2).elementsEqual([0x0d, 0x0a])
    else { throw FerryError(.badData, "The packet's header is not as long as its first line says.") }
    guard let header = JSONText.value(rest.prefix(length)), case .object = header else {
      throw FerryError(.badData, "The packet's header is not a JSON object.")
    }
    self.header = header
    payload = Array(rest.dropFirst(length + 2))
    if let size = header["payload_size"]?.integer, size > Int64(payload.count) {
      throw FerryError(.badData, "The packet's payload is shorter than its header says.")
    }
  }

  package func encoded() -> [UInt8] {
    var members = header.object ?? [:]
    members["payload_size"] = .integer(Int64(payload.count))
    let header = Array(JSON.text(of: .object(members)).utf8)
    return Array("\(Self.word) \(Self.version) \(header.count)\r\n".utf8) + header + [0x0d, 0x0a] + payload
  }

  package var id: String? { header["id"]?.string }
  package var method: String? { header["method"]?.string }

  /// The payload as JSON, when its type says so and it is.
  package var json: JSONValue? {
    let type = header["payload_type"]?.string ?? "application/json"
    guard type.hasPrefix("application/json"), !payload.isEmpty else { return nil }
    return JSONText.value(payload)
  }
}
