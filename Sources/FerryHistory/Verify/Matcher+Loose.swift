import FerryCore
import FerryStorage

/// The last attempts: texts that one side has in another revision or another wording, and second copies.
extension Matcher {
  /// Two texts with fewer words in common are two messages.
  private static let alike = 0.5

  /// What one side holds as it was before an edit.
  mutating func joinEarlierTexts() throws {
    for (holder, other) in [("a", "b"), ("b", "a")] {
      let cursor = try connection.cursor(
        "SELECT e.n, e.key, l.time FROM loose_\(holder) AS l JOIN earlier_\(holder) AS e ON e.n = l.n ORDER BY e.n")
      while let row = try cursor.next() {
        let ordinal = Int(row.integer(0))
        guard isFree(holder, ordinal) else { continue }
        let time = row.integer(2) &+ (holder == "a" ? zoneOffset : -zoneOffset)
        let found = try connection.rows(
          "SELECT n FROM loose_\(other) INDEXED BY loose_\(other)_exact WHERE key = ? AND time BETWEEN ? AND ? LIMIT 64",
          .integer(row.integer(1)), .integer(time &- tolerance), .integer(time &+ tolerance),
          map: { Int($0.integer(0)) })
        guard let match = found.first(where: { isFree(other, $0) }) else { continue }
        if holder == "a" { pairs.pair(ordinal, match) } else { pairs.pair(match, ordinal) }
      }
    }
  }

  /// What the same author said at the same time in much the same words.
  mutating func joinAlike() throws {
    guard projection.keepsTime else { return }
    try eachLoose(of: "a") { matcher, message, author, channel in
      let others = try matcher.candidates(
        "b", author, channel, message.time &+ matcher.zoneOffset, message.ordinal, spread: 0)
      let ranked = others.map { ($0.ordinal, TextForm.likeness(message.body, $0.body)) }
      guard let best = ranked.max(by: { $0.1 < $1.1 }), best.1 >= Self.alike else { return }
      matcher.pairs.pair(message.ordinal, best.0)
    }
  }

  /// What is alone in TO and says what a neighbour says that has its counterpart.
  mutating func markDuplicates() throws {
    let cursor = try connection.cursor("SELECT n, key, time FROM loose_b ORDER BY n")
    while let row = try cursor.next() {
      let ordinal = Int(row.integer(0))
      guard pairs.isFree(to: ordinal) else { continue }
      let (key, time) = (row.integer(1), row.integer(2))
      let isCopy = try isPaired(key, time, "b") || isPaired(key, time &- zoneOffset, "a")
      if isCopy { pairs.toMarks[ordinal].insert(.duplicate) }
    }
  }

  private func isPaired(_ key: Int64, _ time: Int64, _ letter: String) throws -> Bool {
    let cursor = try connection.cursor(
      "SELECT n FROM \(letter) INDEXED BY \(letter)_key WHERE key = ? AND time BETWEEN ? AND ?", .integer(key),
      .integer(time &- tolerance), .integer(time &+ tolerance))
    while let row = try cursor.next() {
      let ordinal = Int(row.integer(0))
      if letter == "a" ? pairs.partner(ofFrom: ordinal) > 0 : pairs.partner(ofTo: ordinal) > 0 { return true }
    }
    return false
  }
}
