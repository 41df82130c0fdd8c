/// A value that SQLite stores.
package enum SQLValue: Hashable, Sendable {
  case null
  case integer(Int64)
  case real(Double)
  case text(String)
  case blob([UInt8])

  package init(_ value: String?) { self = value.map(SQLValue.text) ?? .null }
  package init(_ value: Int64?) { self = value.map(SQLValue.integer) ?? .null }
  package init(_ value: Int) { self = .integer(Int64(value)) }
  package init(_ value: Bool) { self = .integer(value ? 1 : 0) }
}

extension SQLValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByNilLiteral {
  package init(stringLiteral value: String) { self = .text(value) }
  package init(integerLiteral value: Int64) { self = .integer(value) }
  package init(nilLiteral: ()) { self = .null }
}
