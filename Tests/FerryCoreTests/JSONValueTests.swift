import FerryCore
import FoundationEssentials
import Testing

@Suite struct JSONValueTests {
  private func decode(_ text: String) throws -> JSONValue {
    try JSONDecoder().decode(JSONValue.self, from: Data(text.utf8))
  }

  @Test(
    "a value read from JSON is written as the same JSON",
    arguments: [
      "null", "true", "false", "0", "-17", "9223372036854775807", "-9223372036854775808", "2.5", "\"\"", "\"é😀\\n\"",
      "[]", "{}", "[1,[2,[3,null]],{\"a\":[true]}]", "{\"a\":{\"b\":{\"c\":\"d\"}},\"n\":1.25}", "\"1\"", "\"true\"",
    ])
  func roundTrip(text: String) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    let value = try decode(text)
    #expect(String(decoding: try encoder.encode(value), as: UTF8.self) == text)
    #expect(try JSONDecoder().decode(JSONValue.self, from: encoder.encode(value)) == value)
  }

  @Test("kinds are told apart: numbers from booleans, whole from broken, text from all")
  func kinds() throws {
    #expect(try decode("1") == .integer(1))
    #expect(try decode("true") == .bool(true))
    #expect(try decode("1.5") == .number(1.5))
    #expect(try decode("\"1\"") == .string("1"))
    #expect(try decode("[]") == .array([]))
    #expect(try decode("{}") == .object([:]))
    #expect(try decode("1e300") == .number(1e300))
    #expect(try decode("18446744073709551615").text == String(18446744073709551615.0))
  }

  @Test("members and kinds that are not there are nil")
  func access() {
    let value: JSONValue = ["id": 7, "name": "ada", "tags": ["a", "b"], "ok": true]
    #expect(value["id"]?.integer == 7)
    #expect(value["id"]?.text == "7")
    #expect(value["name"]?.text == "ada")
    #expect(value["tags"]?.array?.count == 2)
    #expect(value["ok"]?.bool == true)
    #expect(value["ok"]?.text == nil)
    #expect(value["none"] == nil)
    #expect(value["name"]?["id"] == nil)
    #expect(value["name"]?.integer == nil)
  }

  @Test("nesting without end is refused and does not exhaust the stack")
  func depth() {
    let text = String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000)
    #expect(throws: (any Error).self) { try decode(text) }
  }
}
