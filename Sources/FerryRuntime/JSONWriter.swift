package import FerryCore
import FoundationEssentials

/// Writes JSON straight into bytes, for what is written once for every message: `JSONEncoder` builds a tree of boxes
/// first, which cost a third of a post (measured). Everything rarer goes through `JSONEncoder`.
///
/// The caller keeps objects and arrays balanced.
package struct JSONWriter: Sendable {
  private var bytes: [UInt8] = []
  private var needsComma = false

  package init(capacity: Int = 512) { bytes.reserveCapacity(capacity) }

  package var text: String { String(decoding: bytes, as: UTF8.self) }

  /// The text as UTF-8.
  package var utf8: [UInt8] { bytes }

  package mutating func begin(_ bracket: Character = "{") {
    separate()
    bytes.append(bracket == "{" ? UInt8(ascii: "{") : UInt8(ascii: "["))
    needsComma = false
  }

  package mutating func end(_ bracket: Character = "}") {
    bytes.append(bracket == "}" ? UInt8(ascii: "}") : UInt8(ascii: "]"))
    needsComma = true
  }

  /// A member's name, which needs no escaping; its value is written next.
  package mutating func name(_ name: StaticString) {
    separate()
    bytes.append(UInt8(ascii: "\""))
    name.withUTF8Buffer { bytes.append(contentsOf: $0) }
    bytes.append(UInt8(ascii: "\""))
    bytes.append(UInt8(ascii: ":"))
    needsComma = false
  }

  /// A member's name that comes from outside; its value is written next.
  package mutating func name(escaping name: String) {
    value(name)
    bytes.append(UInt8(ascii: ":"))
    needsComma = false
  }

  package mutating func value(_ text: String) {
    separate()
    bytes.append(UInt8(ascii: "\""))
    var text = text
    text.withUTF8 { appendEscaped($0) }
    bytes.append(UInt8(ascii: "\""))
    needsComma = true
  }

  package mutating func value(_ number: Int64) { raw(String(number)) }

  package mutating func value(_ flag: Bool) { raw(flag ? "true" : "false") }

  /// Any value; the members of objects in no order. A number that JSON lacks becomes null.
  package mutating func value(_ value: JSONValue) {
    switch value {
    case .null: raw("null")
    case .bool(let flag): self.value(flag)
    case .integer(let number): self.value(number)
    case .number(let number): raw(number.isFinite ? "\(number)" : "null")
    case .string(let text): self.value(text)
    case .array(let values):
      begin("[")
      for value in values { self.value(value) }
      end("]")
    case .object(let members):
      begin()
      for (name, value) in members {
        self.name(escaping: name)
        self.value(value)
      }
      end()
    }
  }

  /// Any value; the members of objects in the order of their names, so that the same value is the same text.
  package mutating func sorted(_ value: JSONValue) {
    switch value {
    case .array(let values):
      begin("[")
      for value in values { sorted(value) }
      end("]")
    case .object(let members):
      begin()
      sorted(members: members)
      end()
    default: self.value(value)
    }
  }

  /// Members of an object that is begun already, in the order of their names.
  package mutating func sorted(members: [String: JSONValue]) {
    guard !members.isEmpty else { return }
    for (name, value) in members.sorted(by: { $0.key < $1.key }) {
      self.name(escaping: name)
      sorted(value)
    }
  }

  /// JSON that is written already.
  package mutating func raw(_ json: String) {
    separate()
    bytes.append(contentsOf: json.utf8)
    needsComma = true
  }

  /// A member that is left out when it is nil.
  package mutating func member(_ name: StaticString, _ text: String?) {
    guard let text else { return }
    self.name(name)
    value(text)
  }

  package mutating func member(_ name: StaticString, _ value: JSONValue?) {
    guard let value else { return }
    self.name(name)
    self.value(value)
  }

  /// As `Author`'s `Codable` writes it.
  package mutating func value(_ author: Author) {
    begin()
    member("id", author.id.rawValue)
    member("name", author.name)
    member("avatar", author.avatar)
    end()
  }

  /// As `Stamp`'s `Codable` writes it.
  package mutating func value(_ stamp: Stamp) {
    begin()
    member("bridge", stamp.bridge.rawValue)
    member("origin", stamp.origin.description)
    member("id", stamp.id.rawValue)
    name("revision")
    value(Int64(stamp.revision))
    name("part")
    value(Int64(stamp.part))
    end()
  }

  package mutating func member(_ name: StaticString, _ stamp: Stamp?) {
    guard let stamp else { return }
    self.name(name)
    value(stamp)
  }

  /// A rare member, through `JSONEncoder`; left out when it is nil.
  package mutating func member(_ name: StaticString, encoding value: (some Encodable)?) throws(FerryError) {
    guard let value else { return }
    self.name(name)
    do { raw(String(decoding: try JSONEncoder().encode(value), as: UTF8.self)) } catch { throw .wrap(error) }
  }

  private mutating func separate() {
    if needsComma { bytes.append(UInt8(ascii: ",")) }
  }

  /// Source: RFC 8259, 7.
  private mutating func appendEscaped(_ text: UnsafeBufferPointer<UInt8>) {
    var start = 0
    for (index, byte) in text.enumerated()
    where byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
      bytes.append(contentsOf: text[start..<index])
      bytes.append(UInt8(ascii: "\\"))
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes.append(byte)
      case 0x0a: bytes.append(UInt8(ascii: "n"))
      case 0x0d: bytes.append(UInt8(ascii: "r"))
      case 0x09: bytes.append(UInt8(ascii: "t"))
      default:
        let digits: StaticString = "0123456789abcdef"
        bytes.append(contentsOf: [UInt8(ascii: "u"), UInt8(ascii: "0"), UInt8(ascii: "0")])
        digits.withUTF8Buffer { bytes.append(contentsOf: [$0[Int(byte >> 4)], $0[Int(byte & 15)]]) }
      }
      start = index + 1
    }
    bytes.append(contentsOf: text[start...])
  }
}
