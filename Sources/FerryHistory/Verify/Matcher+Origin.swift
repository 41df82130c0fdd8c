import FerryCore
import FerryStorage

/// By what Ferry wrote on copies, and by identifiers that mean the same on both sides.
extension Matcher {
  private struct Entry {
    var name: Int64
    var part: Int64
    var ordinal: Int
    var account: Int64
    var key: Int64
    var time: Int64
  }

  mutating func joinByOrigin() throws {
    let source = account(of: from)
    let destination = account(of: to)
    // A copy names its original.
    if try hasOrigins(to) {
      try join("a", "own", "b", "origin") { _, copy in copy.account == source }
      if try hasOrigins(from) {
        try join("a", "origin", "b", "origin") { left, right in left.account == right.account }
      }
    }
    if try hasOrigins(from) {
      try join("a", "origin", "b", "own") { copy, _ in copy.account == destination }
    }
    let areLasting = from.side.hasLastingIDs && to.side.hasLastingIDs
    let isSame =
      areLasting && source != nil && source == destination && from.side.address?.channel == to.side.address?.channel
    try join("a", "own", "b", "own") { _, _ in isSame }
    try joinPartsByOrigin()
  }

  private func account(of table: SideTable) -> Int64? {
    table.side.address.map { TextForm.hash($0.account.rawValue) }
  }

  private func hasOrigins(_ table: SideTable) throws -> Bool {
    try connection.first("SELECT 1 FROM \(table.letter) WHERE origin IS NOT NULL LIMIT 1", map: { _ in true }) ?? false
  }

  private func entries(_ letter: String, _ column: String) throws -> RowCursor {
    let isMessage = "kind = \(SideRow.Kind.message.rawValue)"
    if column == "own" {
      // Everything is in the index.
      return try connection.cursor(
        "SELECT own, 0, n, 0, key, time FROM \(letter) INDEXED BY \(letter)_own WHERE \(isMessage) ORDER BY own")
    }
    return try connection.cursor(
      "SELECT origin, part, n, origin_account, key, time FROM \(letter) WHERE origin IS NOT NULL AND \(isMessage) "
        + "ORDER BY origin, part, n")
  }

  private func next(_ cursor: RowCursor, _ isFree: (Int) -> Bool) throws -> Entry? {
    while let row = try cursor.next() {
      let ordinal = Int(row.integer(2))
      guard isFree(ordinal) else { continue }
      return Entry(
        name: row.integer(0), part: row.integer(1), ordinal: ordinal, account: row.integer(3), key: row.integer(4),
        time: row.integer(5))
    }
    return nil
  }

  /// Pairs rows of equal name and part. `isSure` says whether the names mean the same; otherwise text or time must
  /// agree as well.
  private mutating func join(
    _ left: String, _ leftColumn: String, _ right: String, _ rightColumn: String,
    isSure: (Entry, Entry) -> Bool
  ) throws {
    let lefts = try entries(left, leftColumn)
    let rights = try entries(right, rightColumn)
    var first = try next(lefts) { pairs.isFree(from: $0) }
    var second = try next(rights) { pairs.isFree(to: $0) }
    while let l = first, let r = second {
      if (l.name, l.part) < (r.name, r.part) {
        first = try next(lefts) { pairs.isFree(from: $0) }
      } else if (r.name, r.part) < (l.name, l.part) {
        second = try next(rights) { pairs.isFree(to: $0) }
      } else {
        if isSure(l, r) || l.key == r.key || isNear(l.time, r.time) {
          pairs.pair(l.ordinal, r.ordinal)
          first = try next(lefts) { pairs.isFree(from: $0) }
        }
        second = try next(rights) { pairs.isFree(to: $0) }
      }
    }
  }

  func isNear(_ time: Int64, _ other: Int64) -> Bool {
    let apart = time.subtractingReportingOverflow(other &- zoneOffset)
    return !apart.overflow && apart.partialValue.magnitude <= UInt64(tolerance)
  }

  /// What bears the stamp of a message that is paired already is another part of it, or a second copy.
  private mutating func joinPartsByOrigin() throws {
    guard try hasOrigins(to) else { return }
    let cursor = try connection.cursor(
      "SELECT origin, part, n FROM b WHERE origin IS NOT NULL AND kind = \(SideRow.Kind.message.rawValue) "
        + "ORDER BY origin, part, n")
    var group: (origin: Int64, ordinal: Int, part: Int64, place: Int64)?
    while let row = try cursor.next() {
      let (origin, part, ordinal) = (row.integer(0), row.integer(1), Int(row.integer(2)))
      if group?.origin != origin { group = nil }
      if let partner = Optional(pairs.partner(ofTo: ordinal)), partner > 0 {
        group = (origin, partner, part, 0)
      } else if var found = group, pairs.isFree(to: ordinal) {
        if found.part == part {
          pairs.toMarks[ordinal].insert(.duplicate)
        } else {
          found.part = part
          found.place += 1
          try connection.execute(
            "INSERT INTO part(n, place, m) VALUES (?, ?, ?)", SQLValue(found.ordinal), .integer(found.place),
            SQLValue(ordinal))
          pairs.addPart(ordinal, of: found.ordinal)
          group = found
        }
      }
    }
  }
}
