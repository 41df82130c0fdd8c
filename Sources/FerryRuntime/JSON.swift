package import FerryCore
import FoundationEssentials

/// JSON from outside, decoded; and values as text.
///
/// A relayed message is decoded four times, so what is plainly right goes the quick way, and `JSONDecoder` has the word
/// on the rest: it alone says what is wrong with what is refused.
package enum JSON {
  /// Throws `DecodingError`.
  package static func decode<Value: Decodable>(
    _ type: Value.Type, from bytes: some Sequence<UInt8>
  ) throws -> Value {
    let bytes = Array(bytes)
    if let (tree, isLossy) = try? JSONReader.read(
      bytes, countsWholeNumbers: true, deepest: JSONValue.deepest * 2), !isLossy,
      let value = try? JSONTree.decode(type, from: tree)
    {
      return value
    }
    return try JSONDecoder().decode(type, from: Data(bytes))
  }

  /// Names in order, so that equal values give equal text; slashes, and what is beyond ASCII, plain.
  package static func text(of value: JSONValue) -> String {
    var json = JSONWriter()
    json.sorted(value)
    return json.text
  }
}
