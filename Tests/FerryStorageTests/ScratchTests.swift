import FerryCore
import FerryStorage
import Testing

@Suite struct ScratchTests {
  @Test("rows come one at a time, while other tables are written")
  func cursors() throws {
    let connection = try Connection.scratch(cache: 1 << 20)
    try connection.script("CREATE TABLE a(n INTEGER PRIMARY KEY, t TEXT); CREATE TABLE b(n INTEGER)")
    for number in 0..<5000 {
      try connection.execute("INSERT INTO a(n, t) VALUES (?, ?)", SQLValue(number), .text("text \(number)"))
    }
    let cursor = try connection.cursor("SELECT n, t FROM a WHERE n >= ? ORDER BY n", 10)
    var count = 0
    while let row = try cursor.next() {
      #expect(row.text(1) == "text \(row.integer(0))")
      try connection.execute("INSERT INTO b(n) VALUES (?)", .integer(row.integer(0)))
      count += 1
    }
    #expect(count == 4990)
    let end = try cursor.next()
    #expect(end == nil)
    #expect(
      try connection.first("SELECT count(*), min(n) FROM b", map: { [$0.integer(0), $0.integer(1)] }) == [4990, 10])
  }

  @Test("a cursor says what is wrong with its statement")
  func badStatement() throws {
    let connection = try Connection.scratch(cache: 1 << 20)
    #expect(throws: FerryError.self) { try connection.cursor("SELECT x FROM nowhere") }
  }
}
