import FerryCore
import FerryTestKit
import FoundationEssentials
import Testing

@testable import FerryRuntime

/// `JSON.decode` says what `JSONDecoder` says, whatever the text is.
@Suite struct JSONTests {
  /// Members of all the shapes that are decoded anywhere.
  private struct Sample: Codable, Hashable {
    enum Kind: String, Codable { case one, two }
    struct Inner: Codable, Hashable {
      var a: Int
      var b: String?
    }
    var text: String
    var maybe: String?
    var flag: Bool?
    var count: Int?
    var small: UInt8?
    var large: Int64?
    var real: Double?
    var kind: Kind?
    var inner: Inner?
    var list: [Inner]?
    var table: [String: Int]?
    var value: JSONValue?
  }

  private static func same<Value: Decodable & Equatable>(_ type: Value.Type, _ text: String) -> Bool {
    let quick = try? JSON.decode(type, from: text.utf8)
    let slow = try? JSONDecoder().decode(type, from: Data(text.utf8))
    return quick == slow
  }

  @Test(arguments: [
    "", "{", "nul", "{}", "[]", #"{"text":1}"#, #"{"text":null}"#, #"{"text":"a","count":1.5}"#,
    #"{"text":"a","count":9223372036854775808}"#, #"{"text":"a","small":256}"#, #"{"text":"a","kind":"three"}"#,
    #"{"text":"a","inner":{}}"#, #"{"text":"a","inner":{"a":1,"b":null},"list":[{"a":2}],"table":{"x":1}}"#,
    #"{"text":"a","list":[1]}"#, #"{"text":"a","list":null,"value":{"x":[1,"2",true,null,{"y":0.5}]}}"#,
    #"{"text":"a","real":1}"#, #"{"text":"a","real":1e400}"#, #"{"text":"a","flag":1}"#, #"{"text":"a\ud800"}"#,
    #"{"text":"a","text":"b"}"#, #"{"text":"\u00e9\ud83d\ude00"}"#, "{\"text\":\"a\u{1}\"}", #"{"text":"a"} x"#,
    #"[{"text":"a"}]"#, #"{"text":"a","large":-9223372036854775808}"#, #"{"text":"a","count":"1"}"#,
    #"{"text":"a","count":5.0,"real":5.0}"#, #"{"text":"a","large":1.7E12,"small":2e2}"#,
    #"{"text":"a","value":{"id":5.0,"time":1.7E12,"none":-0,"not":-0.0,"more":1e3,"far":1e300,"near":9007199254740993}}"#,
  ]) func oneTextOneAnswer(_ text: String) {
    #expect(Self.same(Sample.self, text), "\(text)")
    #expect(Self.same([Sample].self, text), "\(text)")
    #expect(Self.same([String: JSONValue].self, text), "\(text)")
  }

  /// Texts that `JSONEncoder` wrote, and the same with a byte changed.
  @Test(arguments: 0..<100) func randomTextsHaveOneAnswer(_ seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let encoder = JSONEncoder()
    let message = Message(
      id: MessageID(random.word()), author: Author(id: UserID(random.word()), name: random.word()), text: random.word(),
      time: Timestamp(milliseconds: Int64(random.below(1 << 40))), revision: Int(random.below(9)),
      stamp: random.below(2) == 0
        ? nil : Stamp(bridge: "b", origin: Address(account: "a", channel: "c"), id: MessageID(random.word())),
      attributes: random.below(2) == 0 ? nil : ["value": random.value(depth: 3)])
    let deletion = Deletion(id: message.id, by: message.author, stamp: nil)
    let event = Event(
      key: "k", channel: "c", time: message.time, kind: random.below(2) == 0 ? .posted(message) : .deleted(deletion),
      cursor: "1")
    let text = String(decoding: try encoder.encode(event), as: UTF8.self)
    #expect(try JSON.decode(Event.self, from: text.utf8) == event)
    var bytes = Array(text.utf8)
    for _ in 0..<8 {
      bytes[Int(random.below(UInt64(bytes.count)))] = UInt8(truncatingIfNeeded: random.next())
      let quick = try? JSON.decode(Event.self, from: bytes)
      let slow = try? JSONDecoder().decode(Event.self, from: Data(bytes))
      #expect(quick == slow, "\(String(decoding: bytes, as: UTF8.self))")
    }
  }

  @Test func whatIsRefusedIsRefusedWithItsPlace() {
    do {
      _ = try JSON.decode(Sample.self, from: #"{"text":"a","list":[{"a":"x"}]}"#.utf8)
      Issue.record("decoded")
    } catch DecodingError.typeMismatch(_, let context) {
      #expect(context.codingPath.map(\.stringValue).prefix(1) == ["list"])
    } catch {
      Issue.record("\(error)")
    }
  }

  @Test func equalValuesGiveEqualTextWithoutNeedlessEscapes() {
    #expect(JSON.text(of: ["b": [1, .null, true], "a/ü": "x/\"\n"]) == #"{"a/ü":"x/\"\n","b":[1,null,true]}"#)
    #expect(JSON.text(of: "plain") == #""plain""#)
  }
}

extension SeededGenerator {
  fileprivate mutating func below(_ limit: UInt64) -> UInt64 { UInt64.random(in: 0..<limit, using: &self) }

  fileprivate mutating func word() -> String {
    let letters = ["a", "Z", "é", "日", "😀", "\"", "\\", "\n", "\u{1}", " ", "/"]
    return (0...below(8)).map { _ in letters[Int(below(UInt64(letters.count)))] }.joined()
  }

  fileprivate mutating func value(depth: Int) -> JSONValue {
    switch below(depth > 0 ? 7 : 5) {
    case 0: .null
    case 1: .bool(below(2) == 0)
    case 2: .integer(Int64(bitPattern: next()))
    case 3: .number(0.5 + Double(below(1000)))
    case 4: .string(word())
    case 5: .array((0..<below(3)).map { _ in value(depth: depth - 1) })
    default: .object(["x": value(depth: depth - 1), "é": value(depth: depth - 1)])
    }
  }
}
