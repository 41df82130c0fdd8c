import FerryCore

/// The fields of a JSON object that are taken out one by one; what is left at the end was not known.
///
/// A field of the wrong type is an error that names it: fields never change their type between versions.
struct FieldReader {
  private(set) var rest: [String: JSONValue]

  init(_ members: [String: JSONValue]) { rest = members }

  /// Of a field that is an object. Nil when it is absent or null.
  mutating func object(_ name: String) throws(FerryError) -> FieldReader? {
    guard let value = take(name) else { return nil }
    guard let members = value.object else { throw Self.wrong(name, "an object") }
    return FieldReader(members)
  }

  /// Nil when it is absent or null.
  mutating func take(_ name: String) -> JSONValue? {
    guard let value = rest.removeValue(forKey: name), value != .null else { return nil }
    return value
  }

  mutating func string(_ name: String) throws(FerryError) -> String? {
    guard let value = take(name) else { return nil }
    guard case .string(let text) = value else { throw Self.wrong(name, "a string") }
    return text
  }

  mutating func needString(_ name: String) throws(FerryError) -> String {
    guard let text = try string(name) else { throw Self.missing(name) }
    return text
  }

  mutating func integer(_ name: String) throws(FerryError) -> Int64? {
    guard let value = take(name) else { return nil }
    guard case .integer(let number) = value, number.magnitude < 1 << 53 else { throw Self.wrong(name, "an integer") }
    return number
  }

  mutating func count(_ name: String) throws(FerryError) -> Int? {
    guard let number = try integer(name) else { return nil }
    guard number >= 0, let count = Int(exactly: number) else { throw Self.wrong(name, "a count") }
    return count
  }

  mutating func bool(_ name: String) throws(FerryError) -> Bool? {
    guard let value = take(name) else { return nil }
    guard case .bool(let flag) = value else { throw Self.wrong(name, "true or false") }
    return flag
  }

  mutating func array(_ name: String) throws(FerryError) -> [JSONValue]? {
    guard let value = take(name) else { return nil }
    guard case .array(let values) = value else { throw Self.wrong(name, "an array") }
    return values
  }

  mutating func objects(_ name: String) throws(FerryError) -> [FieldReader] {
    var readers: [FieldReader] = []
    for value in try array(name) ?? [] {
      guard let members = value.object else { throw Self.wrong(name, "an array of objects") }
      readers.append(FieldReader(members))
    }
    return readers
  }

  mutating func users(_ name: String) throws(FerryError) -> [UserID]? {
    guard let values = try array(name) else { return nil }
    var users: [UserID] = []
    users.reserveCapacity(values.count)
    for value in values {
      guard let id = value.string else { throw Self.wrong(name, "an array of strings") }
      users.append(UserID(id))
    }
    return users
  }

  mutating func time(_ name: String) throws(FerryError) -> Timestamp? {
    guard let text = try string(name) else { return nil }
    guard let time = Timestamp(rfc3339: text) else { throw Self.wrong(name, "a time such as 2024-02-02T08:00:00.000Z") }
    return time
  }

  mutating func needTime(_ name: String) throws(FerryError) -> Timestamp {
    guard let time = try time(name) else { throw Self.missing(name) }
    return time
  }

  /// An identifier may not be empty: nothing could refer to it.
  mutating func needID(_ name: String) throws(FerryError) -> String {
    let text = try needString(name)
    guard !text.isEmpty else { throw Self.wrong(name, "an identifier") }
    return text
  }

  static func wrong(_ name: String, _ what: String) -> FerryError {
    FerryError(.badData, "The field \"\(name)\" should be \(what).")
  }

  static func missing(_ name: String) -> FerryError {
    FerryError(.badData, "The field \"\(name)\" is missing.")
  }
}
