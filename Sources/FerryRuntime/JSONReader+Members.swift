package import FerryCore

/// Reading member by member, for what comes so often that a tree of it would be most of its cost.
///
/// The caller enters an object or a list, asks for one name or element after another until there is none, and reads
/// the value of each before it asks again. A name that comes twice is told twice.
extension JSONReader {
  /// `bytes` must outlive the reader.
  package init(_ bytes: UnsafeBufferPointer<UInt8>) {
    self.init(bytes, isLenient: false, countsWholeNumbers: false, limit: Self.deepest)
  }

  package mutating func enterObject() throws(Fault) { try enter(UInt8(ascii: "{")) }

  package mutating func enterList() throws(Fault) { try enter(UInt8(ascii: "[")) }

  private mutating func enter(_ bracket: UInt8) throws(Fault) {
    skipSpace()
    guard byte == bracket else { throw fault("this is another kind of value") }
    level += 1
    guard level <= limit else { throw fault("there are more than \(limit) levels") }
    position += 1
    isAtStart = true
  }

  /// The next member's name; nil at the object's end, which is left then.
  package mutating func nextName() throws(Fault) -> String? {
    guard try next(before: UInt8(ascii: "}")) else { return nil }
    guard byte == UInt8(ascii: "\"") else { throw fault("a member's name is missing") }
    let name = try string()
    skipSpace()
    guard byte == UInt8(ascii: ":") else { throw fault("a colon is missing") }
    position += 1
    skipSpace()
    return name
  }

  /// Whether the list has one more element. At its end it is left.
  package mutating func nextElement() throws(Fault) -> Bool { try next(before: UInt8(ascii: "]")) }

  private mutating func next(before end: UInt8) throws(Fault) -> Bool {
    skipSpace()
    if byte == end {
      position += 1
      level -= 1
      isAtStart = false
      return false
    }
    if !isAtStart {
      guard byte == UInt8(ascii: ",") else { throw fault("a comma is missing") }
      position += 1
      skipSpace()
    }
    isAtStart = false
    return true
  }

  /// What the next value begins with.
  package var isAtObject: Bool { byte == UInt8(ascii: "{") }
  package var isAtList: Bool { byte == UInt8(ascii: "[") }
  package var isAtText: Bool { byte == UInt8(ascii: "\"") }
  package var isAtNull: Bool { byte == UInt8(ascii: "n") }

  /// The next value, whatever it is.
  package mutating func value() throws(Fault) -> JSONValue { try value(depth: level) }

  /// The next value where it is text; nil, and passed over, where it is not.
  package mutating func text() throws(Fault) -> String? {
    if isAtText { return try string() }
    _ = try value()
    return nil
  }

  /// As `text`.
  package mutating func integer() throws(Fault) -> Int64? { try value().integer }

  /// Throws where anything but space follows.
  package mutating func end() throws(Fault) {
    skipSpace()
    guard position == bytes.count else { throw fault("there is more after the value") }
  }
}
