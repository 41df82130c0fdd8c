package import FerryCore

/// The value, or an error with the message: where `#require` cannot stand, as in what tests share.
package func unwrap<Value>(_ value: Value?, _ message: String) throws(FerryError) -> Value {
  guard let value else { throw FerryError(.badData, message) }
  return value
}
