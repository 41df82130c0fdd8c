import FerryCore
import FerryHistory
import FerryRuntime
import Testing

@Suite struct JSONReaderTests {
  private func read(_ text: String, lenient: Bool = false) throws -> JSONValue {
    try JSONReader.read(text.utf8, lenient: lenient).value
  }

  private static let samples: [(text: String, value: JSONValue)] = [
    (" null ", .null), ("true", .bool(true)), ("false", .bool(false)), ("0", .integer(0)),
    ("-12", .integer(-12)), ("1.5e3", .number(1500)), ("9223372036854775807", .integer(.max)),
    ("9223372036854775808", .number(9_223_372_036_854_775_808)), ("\"\"", .string("")), ("[ ]", []), ("{ }", [:]),
    ("[1, [2]]", [1, [2]]), ("{\"a\" : {\"b\":\"c\"} , \"d\":[]}", ["a": ["b": "c"], "d": []]),
    (#""\"\\\/\b\f\n\r\t\u00fC\ud83D\ude42""#, "\"\\/\u{8}\u{c}\n\r\tü🙂"), ("\"ü🙂\"", "ü🙂"),
  ]

  @Test("values of every kind", arguments: samples)
  func values(text: String, value: JSONValue) throws { #expect(try read(text) == value) }

  @Test(
    "what is no JSON, with its place",
    arguments: [
      ("", 0), ("  ", 2), ("nul", 0), ("01", 0), ("-", 0), ("1.", 0), ("1e", 0), ("+1", 0), ("1e999", 0), ("[1 2]", 3),
      ("[1", 2), ("[", 1), ("{\"a\" 1}", 5), ("{a:1}", 1), ("{\"a\":1,}", 7), ("\"a", 2), ("\"\\q\"", 1),
      ("\"\\u12\"", 3),
      ("\"\\u12", 3), ("\"\u{1}\"", 1), ("1 1", 2), ("{\"a\":1,\"a\":2}", 7), ("\"\\x01\"", 1),
    ])
  func faults(text: String, offset: Int) throws {
    let fault = try #require(throws: JSONReader.Fault.self) { try read(text) }
    #expect(fault.offset == offset, "\(fault)")
  }

  @Test("levels are limited, and many of them do not exhaust the stack")
  func depth() throws {
    func nested(_ levels: Int) -> String {
      String(repeating: "[", count: levels) + String(repeating: "]", count: levels)
    }
    #expect(try read(nested(32)).depth == 32)
    #expect(throws: JSONReader.Fault.self) { try read(nested(33)) }
    #expect(throws: JSONReader.Fault.self) { try read(String(repeating: "{\"a\":", count: 1_000_000)) }
  }

  @Test("lenient reading takes control characters and their hexadecimal escapes")
  func lenient() throws { #expect(try read("\"a\u{1}\\x02b\"", lenient: true) == "a\u{1}\u{2}b") }

  @Test("halves of pairs are replaced and told of")
  func surrogates() throws {
    for text in [#""\ud83d""#, #""\ud83dx""#, #""\ude42""#, #""\ud83d\n""#] {
      #expect(try JSONReader.read(text.utf8).lossy)
    }
    #expect(try read(#""\ud83d\ud83d\ude42""#) == "\u{FFFD}🙂")
    #expect(try JSONReader.read(#""\ud83d\ude42 ü""#.utf8).lossy == false)
  }

  @Test("any bytes are read or refused")
  func noise() {
    var random = SystemRandomNumberGenerator()
    let alphabet = Array("{}[]\",:\\u0123456789eE+-.truefalsn \n\u{ff}".utf8) + [0xff, 0x00]
    for _ in 0..<20_000 {
      let bytes = (0..<Int.random(in: 0...40, using: &random)).compactMap { _ in alphabet.randomElement(using: &random)
      }
      _ = try? JSONReader.read(bytes)
      _ = try? JSONReader.read(bytes, lenient: true)
    }
  }

  /// Reads anything member by member, and gives what a tree of it would be.
  private func piecemeal(_ json: inout JSONReader) throws(JSONReader.Fault) -> JSONValue {
    if json.isAtList {
      var values: [JSONValue] = []
      try json.enterList()
      while try json.nextElement() { values.append(try piecemeal(&json)) }
      return .array(values)
    }
    if json.isAtObject {
      var members: [String: JSONValue] = [:]
      try json.enterObject()
      while let name = try json.nextName() {
        let value = try piecemeal(&json)
        guard members.updateValue(value, forKey: name) == nil else {
          throw JSONReader.Fault(offset: 0, reason: "a member's name comes twice")
        }
      }
      return .object(members)
    }
    return try json.value()
  }

  private func piecemeal(_ bytes: [UInt8]) -> JSONValue? {
    bytes.withUnsafeBufferPointer { bytes in
      do throws(JSONReader.Fault) {
        var json = JSONReader(bytes)
        let value = try piecemeal(&json)
        try json.end()
        return value
      } catch {
        return nil
      }
    }
  }

  @Test("what is read member by member is what a tree of it has")
  func memberByMember() {
    var random = SystemRandomNumberGenerator()
    let pieces = [
      "{", "}", "[", "]", ",", ":", "\"a\"", "\"b\\n\"", "\"c\":", "1", "-20", "1.5", "true", "null", " ", "\"", "{}",
      "[]",
      "{\"a\":", "[1,",
    ]
    var count = 0
    for _ in 0..<100_000 {
      let text = (0..<Int.random(in: 1...8, using: &random)).map { _ in pieces.randomElement(using: &random) ?? "" }
        .joined()
      guard text.first != " " else { continue }
      let tree = try? JSONReader.read(text.utf8).value
      #expect(piecemeal(Array(text.utf8)) == tree, "\(text)")
      if tree != nil { count += 1 }
    }
    #expect(count > 1000)
    func nested(_ levels: Int) -> [UInt8] {
      Array((String(repeating: "[", count: levels) + String(repeating: "]", count: levels)).utf8)
    }
    #expect(piecemeal(nested(32)) != nil)
    #expect(piecemeal(nested(33)) == nil)
  }

  @Test(
    "whole numbers of every length",
    arguments: ["0", "-0", "7", "-7", "99999999999999999", "-9223372036854775808", "1234567890123456789"])
  func wholeNumbers(text: String) throws {
    let value = try read(text)
    if text == "-0" { #expect(value == .number(-0.0)) } else { #expect(value == .integer(try #require(Int64(text)))) }
  }
}
