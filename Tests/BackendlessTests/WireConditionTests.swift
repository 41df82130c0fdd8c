import FerryCore
import Testing

@testable import BackendlessProvider

@Suite struct WireConditionTests {
  private let row: [String: JSONValue] = [
    "city": "Dallas", "n": "20", "age": 30, "score": .number(2.5), "on": true, "name": "O'Neill", "nothing": .null,
    "a.b": "dotted",
  ]

  @Test(arguments: [
    "city = 'Dallas'", "city='Dallas' and n > 10", "n > 5", "n >= 20", "n = 20", "n < 100", "n <> 5", "n != 5",
    "age = 30", "age between 20 and 40", "age NOT BETWEEN 1 AND 2", "score > 2", "score = 2.5", "score < 1e3",
    "city LIKE 'Da%'", "city like '%all%'", "city LIKE 'D_llas'", "city NOT LIKE 'X%'", "city IN ('Paris', 'Dallas')",
    "age in (1, 30)", "city NOT IN ('x')", "nothing IS NULL", "missing is null", "city IS NOT NULL",
    "name = 'O''Neill'", "NOT (city = 'x')", "NOT city = 'x'", "(city = 'x' OR (n = 20)) AND on = TRUE", "on = true",
    "`city` = 'Dallas'", "a.b = 'dotted'", "city = 'x' or city = 'Dallas'", "city = 'Dallas' OR missing = 1",
    "city = 'x' AND city = 'y' OR n = 20", "age > -1", "city > 'Austin'",
    "nothing IS NULL AND NOT (missing = 1 AND n = 1)",
  ])
  func `what is true of the values`(text: String) throws {
    #expect(try SQLCondition(text).matches(row))
  }

  @Test(arguments: [
    "missing = 1", "missing <> 1", "NOT missing = 1", "missing LIKE '%'", "missing IN (1)", "NOT missing IN (1)",
    "missing NOT IN (1)", "missing BETWEEN 1 AND 2", "n > 30", "n > '3'", "city > 5", "nothing = 1", "nothing <> 1",
    "city = 'dallas'", "city LIKE 'D'", "city LIKE 'Dallas_'", "city = 'Dallas' AND missing = 1", "age = '30'",
    "NOT (missing = 1 OR n = 1)", "city IS NULL",
  ])
  func `what is not`(text: String) throws {
    #expect(try !SQLCondition(text).matches(row))
  }

  @Test func `a string of digits is compared as a number with a number only`() throws {
    #expect(try SQLCondition("foo > 10").matches(["foo": "20"]))
    #expect(try !SQLCondition("foo > 10").matches(["foo": "5"]))
    #expect(try SQLCondition("foo > '10'").matches(["foo": "5"]))
  }

  @Test(arguments: [
    ("", 1), ("city", 5), ("city =", 7), ("city = Dallas", 8), ("= 1", 1), ("city = 'x", 8), ("city == 'x'", 6),
    ("city = 'x' AND", 15), ("city = 'x' y", 12), ("(city = 'x'", 12), ("city IN ()", 10), ("city IN ('x'", 13),
    ("city BETWEEN 1", 15), ("city IS 5", 9), ("city NOT = 5", 10), ("city ! 5", 6), ("city = 1.2.3", 8),
    ("city ; drop", 6), ("city LIKE 5", 11), ("count(city) > 1", 6), ("1 = 1", 1), ("NULL = 1", 1),
    ("city = 'x' AND \"y\" = 1", 16),
  ])
  func `what is not understood is refused with its place`(text: String, place: Int) {
    let error = #expect(throws: FerryError.self) { try SQLCondition(text) }
    #expect(error?.code == .badRequest)
    #expect(error?.message.hasSuffix("at character \(place).") == true, "\(error?.message ?? "")")
  }

  @Test func `depth, length and lists are limited`() {
    for text in [
      String(repeating: "(", count: 5000), String(repeating: "NOT ", count: 2000) + "a = 1",
      "a = '" + String(repeating: "x", count: 20_000) + "'",
      "a IN (" + Array(repeating: "1", count: 2000).joined(separator: ",") + ")",
    ] {
      #expect(throws: FerryError.self) { try SQLCondition(text) }
    }
  }

  @Test func `a hostile pattern takes no exponential time`() throws {
    let pattern = String(repeating: "%a", count: 500)
    let text = String(repeating: "a", count: 3000) + "b"
    #expect(try !SQLCondition("x LIKE '\(pattern)'").matches(["x": .string(text)]))
  }

  @Test func `what must hold is known without looking at every row`() throws {
    let required = try SQLCondition("channel = 'x' AND created < 5 AND (a = 1 OR b = 2)").required
    #expect(required.map(\.name) == ["channel", "created"])
    #expect(required.map(\.comparison) == [.equal, .less])
    #expect(try SQLCondition("channel = 'x' OR created < 5").required.isEmpty)
    #expect(try SQLCondition("a = 1 AND NOT (b LIKE 'x' OR c IS NULL)").names == ["a", "b", "c"])
  }
}
