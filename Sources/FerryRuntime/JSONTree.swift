import FerryCore

/// Decodes `Decodable` values from a JSON value that `JSONReader` has read, in a fraction of `JSONDecoder`'s time.
///
/// It takes what is plainly right. Whatever it does not take, it gives no reason for: `JSON.decode` asks `JSONDecoder`
/// then, whose word counts.
struct JSONTree: Decoder {
  /// Not decoded here.
  struct Refusal: Error {}

  let value: JSONValue
  var codingPath: [any CodingKey] { [] }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    guard case .object(let members) = value else { throw Refusal() }
    return KeyedDecodingContainer(Members(members: members))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    guard case .array(let values) = value else { throw Refusal() }
    return Elements(values: values)
  }

  func singleValueContainer() throws -> any SingleValueDecodingContainer { Single(value: value) }

  // MARK: Values

  static func decode<Value: Decodable>(_ type: Value.Type, from value: JSONValue) throws -> Value {
    // Kept as it is; decoded as others are, it would be asked what it is six times.
    if type == JSONValue.self, let value = value as? Value { return value }
    return try Value(from: JSONTree(value: value))
  }

  static func string(_ value: JSONValue) throws -> String {
    guard case .string(let text) = value else { throw Refusal() }
    return text
  }

  static func bool(_ value: JSONValue) throws -> Bool {
    guard case .bool(let flag) = value else { throw Refusal() }
    return flag
  }

  static func integer<Number: FixedWidthInteger>(_ value: JSONValue) throws -> Number {
    guard case .integer(let integer) = value, let number = Number(exactly: integer) else { throw Refusal() }
    return number
  }

  static func number<Number: BinaryFloatingPoint>(_ value: JSONValue) throws -> Number {
    switch value {
    case .number(let number): return Number(number)
    case .integer(let integer):
      guard let number = Number(exactly: integer) else { throw Refusal() }
      return number
    default: throw Refusal()
    }
  }
}

/// An object.
private struct Members<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let members: [String: JSONValue]
  var codingPath: [any CodingKey] { [] }
  var allKeys: [Key] { members.keys.compactMap { Key(stringValue: $0) } }

  func contains(_ key: Key) -> Bool { members[key.stringValue] != nil }

  private func value(_ key: Key) throws -> JSONValue {
    guard let value = members[key.stringValue] else { throw JSONTree.Refusal() }
    return value
  }

  /// Nil for what is missing or null.
  private func optional(_ key: Key) -> JSONValue? {
    guard let value = members[key.stringValue], value != .null else { return nil }
    return value
  }

  func decodeNil(forKey key: Key) throws -> Bool { try value(key) == .null }
  func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try JSONTree.bool(value(key)) }
  func decode(_ type: String.Type, forKey key: Key) throws -> String { try JSONTree.string(value(key)) }
  func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try JSONTree.number(value(key)) }
  func decode(_ type: Float.Type, forKey key: Key) throws -> Float { try JSONTree.number(value(key)) }
  func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try JSONTree.integer(value(key)) }
  func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try JSONTree.integer(value(key)) }
  func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 { try JSONTree.integer(value(key)) }
  func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 { try JSONTree.integer(value(key)) }
  func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try JSONTree.integer(value(key)) }
  func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try JSONTree.integer(value(key)) }
  func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 { try JSONTree.integer(value(key)) }
  func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 { try JSONTree.integer(value(key)) }
  func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 { try JSONTree.integer(value(key)) }
  func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 { try JSONTree.integer(value(key)) }
  func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
    try JSONTree.decode(type, from: value(key))
  }

  // The usual ones look each member up three times.
  func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? {
    try optional(key).map { try JSONTree.bool($0) }
  }
  func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? {
    try optional(key).map { try JSONTree.string($0) }
  }
  func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? {
    try optional(key).map { try JSONTree.integer($0) }
  }
  func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? {
    try optional(key).map { try JSONTree.integer($0) }
  }
  func decodeIfPresent<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value? {
    try optional(key).map { try JSONTree.decode(type, from: $0) }
  }

  func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type, forKey key: Key
  ) throws -> KeyedDecodingContainer<Nested> {
    try JSONTree(value: value(key)).container(keyedBy: type)
  }
  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
    try JSONTree(value: value(key)).unkeyedContainer()
  }
  func superDecoder() throws -> any Decoder { throw JSONTree.Refusal() }
  func superDecoder(forKey key: Key) throws -> any Decoder { JSONTree(value: try value(key)) }
}

/// An array.
private struct Elements: UnkeyedDecodingContainer {
  let values: [JSONValue]
  var currentIndex = 0
  var codingPath: [any CodingKey] { [] }
  var count: Int? { values.count }
  var isAtEnd: Bool { currentIndex >= values.count }

  init(values: [JSONValue]) { self.values = values }

  private mutating func next() throws -> JSONValue {
    guard !isAtEnd else { throw JSONTree.Refusal() }
    currentIndex += 1
    return values[currentIndex - 1]
  }

  mutating func decodeNil() throws -> Bool {
    guard !isAtEnd, values[currentIndex] == .null else { return false }
    currentIndex += 1
    return true
  }
  mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try JSONTree.decode(type, from: next()) }
  mutating func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type
  ) throws -> KeyedDecodingContainer<Nested> { try JSONTree(value: next()).container(keyedBy: type) }
  mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
    try JSONTree(value: next()).unkeyedContainer()
  }
  mutating func superDecoder() throws -> any Decoder { JSONTree(value: try next()) }
}

/// Any one value.
private struct Single: SingleValueDecodingContainer {
  let value: JSONValue
  var codingPath: [any CodingKey] { [] }

  func decodeNil() -> Bool { value == .null }
  func decode(_ type: Bool.Type) throws -> Bool { try JSONTree.bool(value) }
  func decode(_ type: String.Type) throws -> String { try JSONTree.string(value) }
  func decode(_ type: Double.Type) throws -> Double { try JSONTree.number(value) }
  func decode(_ type: Float.Type) throws -> Float { try JSONTree.number(value) }
  func decode(_ type: Int.Type) throws -> Int { try JSONTree.integer(value) }
  func decode(_ type: Int8.Type) throws -> Int8 { try JSONTree.integer(value) }
  func decode(_ type: Int16.Type) throws -> Int16 { try JSONTree.integer(value) }
  func decode(_ type: Int32.Type) throws -> Int32 { try JSONTree.integer(value) }
  func decode(_ type: Int64.Type) throws -> Int64 { try JSONTree.integer(value) }
  func decode(_ type: UInt.Type) throws -> UInt { try JSONTree.integer(value) }
  func decode(_ type: UInt8.Type) throws -> UInt8 { try JSONTree.integer(value) }
  func decode(_ type: UInt16.Type) throws -> UInt16 { try JSONTree.integer(value) }
  func decode(_ type: UInt32.Type) throws -> UInt32 { try JSONTree.integer(value) }
  func decode(_ type: UInt64.Type) throws -> UInt64 { try JSONTree.integer(value) }
  func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try JSONTree.decode(type, from: value) }
}
