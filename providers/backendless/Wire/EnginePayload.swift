package import FerryCore

/// Packets in the body of a polling request or answer.
package enum EnginePayload {
  /// What a body may hold. More is refused before it is taken apart.
  package struct Limits: Sendable {
    package var bytes: Int
    package var packets: Int

    package init(bytes: Int = 1_000_000, packets: Int = 1000) {
      self.bytes = bytes
      self.packets = packets
    }
  }

  /// What divides packets in version 4.
  package static let separator = UInt8(0x1e)

  /// Any body, of either version's forms; `badData` or `tooLarge` when it is none.
  package static func decode(
    _ bytes: [UInt8], version: EngineVersion, limits: Limits = Limits()
  ) throws(FerryError) -> [EnginePacket] {
    guard bytes.count <= limits.bytes else {
      throw FerryError(.tooLarge, "The payload is larger than the limit of \(limits.bytes) bytes.")
    }
    guard let first = bytes.first else { throw FerryError(.badData, "The payload is empty.") }
    switch version {
    case .four: return try separated(bytes, limits)
    case .three where first <= 1: return try binary(bytes, limits)
    case .three: return try counted(bytes, limits)
    }
  }

  /// The text of an answer. Bytes in it are Base64.
  package static func encode(_ packets: some Sequence<EnginePacket>, version: EngineVersion) -> String {
    let texts = packets.map { $0.encoded(version) }
    return version == .four
      ? texts.joined(separator: "\u{1e}") : texts.map { "\($0.utf16.count):\($0)" }.joined()
  }

  /// The binary form of version 3, which some clients send.
  package static func encodeBinary(_ packets: some Sequence<EnginePacket>) -> [UInt8] {
    var bytes: [UInt8] = []
    for packet in packets {
      let content: [UInt8]
      switch packet.body {
      case .text:
        bytes.append(0)
        content = Array(packet.encoded(.three).utf8)
      case .binary(let data):
        bytes.append(1)
        content = [packet.kind.rawValue] + data
      }
      bytes += String(content.count).utf8.map { $0 - UInt8(ascii: "0") } + [0xff] + content
    }
    return bytes
  }

  // MARK: Forms

  private static func separated(_ bytes: [UInt8], _ limits: Limits) throws(FerryError) -> [EnginePacket] {
    let parts = bytes.split(separator: separator, maxSplits: limits.packets, omittingEmptySubsequences: false)
    guard parts.count <= limits.packets else { throw tooMany(limits) }
    var packets: [EnginePacket] = []
    for part in parts {
      packets.append(try EnginePacket(text: String(decoding: part, as: UTF8.self), version: .four))
    }
    return packets
  }

  /// `<length>:<packet>`, again and again. The length counts UTF-16 units.
  private static func counted(_ bytes: [UInt8], _ limits: Limits) throws(FerryError) -> [EnginePacket] {
    var packets: [EnginePacket] = []
    var rest = bytes[...]
    while !rest.isEmpty {
      guard packets.count < limits.packets else { throw tooMany(limits) }
      guard let colon = rest.prefix(12).firstIndex(of: UInt8(ascii: ":")), colon > rest.startIndex,
        let length = number(digits: rest[..<colon].map { $0 &- UInt8(ascii: "0") }, limit: limits.bytes)
      else { throw FerryError(.badData, "A packet of the payload has no length.") }
      rest = rest[(colon + 1)...]
      guard let end = index(afterUnits: length, in: rest) else {
        throw FerryError(.badData, "A packet of the payload is shorter than its length says.")
      }
      packets.append(try EnginePacket(text: String(decoding: rest[..<end], as: UTF8.self), version: .three))
      rest = rest[end...]
    }
    return packets
  }

  /// Counted by the lead bytes of UTF-8: one unit each, two for a character beyond U+FFFF. Nil where the bytes end
  /// before, or the count ends within a character.
  private static func index(afterUnits length: Int, in bytes: ArraySlice<UInt8>) -> Int? {
    var units = 0
    var index = bytes.startIndex
    while index < bytes.endIndex {
      let byte = bytes[index]
      if byte & 0xc0 != 0x80 {
        if units == length { return index }
        units += byte >= 0xf0 ? 2 : 1
        if units > length { return nil }
      }
      index += 1
    }
    return units == length ? index : nil
  }

  /// A byte 0 (text) or 1 (bytes), the length in digits of a byte each, 0xFF, the packet; again and again. The length
  /// counts bytes.
  private static func binary(_ bytes: [UInt8], _ limits: Limits) throws(FerryError) -> [EnginePacket] {
    var packets: [EnginePacket] = []
    var rest = bytes[...]
    while let form = rest.first {
      guard packets.count < limits.packets else { throw tooMany(limits) }
      let head = rest.dropFirst()
      guard form <= 1, let end = head.prefix(12).firstIndex(of: 0xff), end > head.startIndex,
        let length = number(digits: Array(head[..<end]), limit: limits.bytes)
      else { throw FerryError(.badData, "A packet of the binary payload has no length.") }
      let content = head[(end + 1)...].prefix(length)
      guard content.count == length else {
        throw FerryError(.badData, "A packet of the binary payload is shorter than its length says.")
      }
      if form == 0 {
        packets.append(try EnginePacket(text: String(decoding: content, as: UTF8.self), version: .three))
      } else {
        packets.append(try EnginePacket(frame: Array(content), version: .three))
      }
      rest = rest[content.endIndex...]
    }
    return packets
  }

  private static func number(digits: [UInt8], limit: Int) -> Int? {
    guard !digits.isEmpty else { return nil }
    var number = 0
    for digit in digits {
      guard digit <= 9 else { return nil }
      number = number * 10 + Int(digit)
      guard number <= limit else { return nil }
    }
    return number
  }

  private static func tooMany(_ limits: Limits) -> FerryError {
    FerryError(.tooLarge, "The payload has more than \(limits.packets) packets.")
  }
}
