import FerryCore
import FerryRuntime
import FoundationEssentials
import Testing

@Suite struct JSONWriterTests {
  @Test(
    "any value is read back as it was",
    arguments: [
      .null, true, -5, .number(0.1), .number(1e300), .number(-2.5e-7), .integer(.max), .integer(.min), "",
      "quote \" back\\slash \n\r\t\u{1}\u{7f} \u{e9} \u{1F469}\u{200d}\u{1F680} \u{2028}", [], [:],
      [[], [:], [1, ["a": .null]]],
      ["a \"b\"": ["": 1], "\u{e9}": [true, false, .null], "e\u{301}": "x"],
    ] as [JSONValue])
  func roundTrip(value: JSONValue) throws {
    var json = JSONWriter()
    json.value(value)
    #expect(try JSONDecoder().decode(JSONValue.self, from: Data(json.utf8)) == value, "\(json.text)")
  }

  @Test func `a number that JSON lacks becomes null, and members are left out when they are nil`() {
    var json = JSONWriter()
    json.begin()
    json.member("a", .number(.infinity))
    json.member("b", JSONValue?.none)
    json.member("c", [1, 2])
    json.member("d", "x")
    json.end()
    #expect(json.text == #"{"a":null,"c":[1,2],"d":"x"}"#)
  }
}
