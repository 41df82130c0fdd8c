import FerryTransport

/// The fields of a form-encoded request or webhook, in order. Names are Twilio's: PascalCase, dots for what is nested,
/// repeated for lists.
package struct Form: Sendable, ExpressibleByArrayLiteral {
  package var fields: [(name: String, value: String)]

  package init(_ fields: [(name: String, value: String)] = []) { self.fields = fields }

  package init(arrayLiteral elements: (String, String)...) {
    fields = elements.map { (name: $0.0, value: $0.1) }
  }

  /// Of a body or a query.
  package init(decoding bytes: [UInt8]) { fields = PercentEncoding.pairs(String(decoding: bytes, as: UTF8.self)) }

  /// The first value under a name. Missing and empty differ: a missing field leaves things as they are.
  package subscript(name: String) -> String? { fields.first { $0.name == name }?.value }

  /// Every value under a name.
  package func all(_ name: String) -> [String] { fields.filter { $0.name == name }.map(\.value) }

  package mutating func add(_ name: String, _ value: String) { fields.append((name: name, value: value)) }

  /// Nothing for nil: Twilio leaves out what it does not know.
  package mutating func add(_ name: String, optional value: String?) {
    if let value { add(name, value) }
  }

  /// As a body or a query: every byte but letters, digits and `-._~` is escaped.
  package var encoded: String {
    fields.map { "\(PercentEncoding.encode($0.name))=\(PercentEncoding.encode($0.value))" }.joined(separator: "&")
  }

  package static let mediaType = "application/x-www-form-urlencoded; charset=utf-8"
}
