import FerryCore
import FerryStorage

/// Finds for every record of FROM its counterpart in TO: by what Ferry wrote on copies, then by author and text and
/// time, then ever more loosely, always among those only that are still alone.
///
/// Every step reads both sides in one order and needs no more memory than the rows at hand.
struct Matcher {
  let connection: Connection
  let from: SideTable
  let to: SideTable
  let projection: Projection
  var pairs: PairBook
  /// Milliseconds: the coarser of the two sides' units.
  let unit: Int64
  /// Milliseconds that TO's clock is ahead of FROM's, where one side names no zone.
  var zoneOffset: Int64 = 0

  /// Importers that need distinct times move equal ones apart by a few milliseconds. Source: mmetl adds one.
  static let bump: Int64 = 5

  init(_ from: SideTable, _ to: SideTable, _ projection: Projection, in connection: Connection) throws {
    self.connection = connection
    self.from = from
    self.to = to
    self.projection = projection
    pairs = PairBook(from: from.count, to: to.count)
    func coarsest(_ table: SideTable) throws -> Int64 {
      try connection.first("SELECT max(unit) FROM \(table.letter)", map: { $0.integer(0) }) ?? 1
    }
    unit = max(try coarsest(from), try coarsest(to), from.tallies.timeUnit, to.tallies.timeUnit, 1)
    try connection.script(
      """
      CREATE TABLE part(n INTEGER, place INTEGER, m INTEGER, PRIMARY KEY(n, place)) WITHOUT ROWID;
      CREATE TABLE joined(m INTEGER, place INTEGER, n INTEGER, PRIMARY KEY(m, place)) WITHOUT ROWID;
      CREATE TABLE loose_a(n INTEGER PRIMARY KEY, kind, author, time, channel, key, prefixed, body);
      CREATE TABLE loose_b(n INTEGER PRIMARY KEY, kind, author, time, channel, key, prefixed, body);
      """)
  }

  /// How far apart the times of a message and its copy may be, in milliseconds.
  var tolerance: Int64 { projection.keepsTime ? 2 * unit + Self.bump : .max / 4 }

  /// Whether channels have to agree: where one side has only one, everything is in it.
  var separatesChannels: Bool { from.hasChannels && to.hasChannels }

  mutating func run() throws {
    try estimateZone()
    try joinByOrigin()
    try joinByText()
    try gatherLoose()
    try joinLoosely { body, author, kind in TextForm.normalHash(body, kind, author) }
    try joinLoosely { body, author, kind in
      let skeleton = TextForm.skeleton(body)
      return skeleton.isEmpty ? nil : TextForm.hash(skeleton, kind, author)
    }
    try joinEarlierTexts()
    try joinParts()
    try joinAlike()
    try markDuplicates()
  }

  // MARK: By author, text and time

  private mutating func joinByText() throws {
    try mergeByKey(from: "a", to: "b", at: nil)
    try mergeByKey(from: "a", to: "b", at: tolerance)
  }

  private struct Entry {
    var key: Int64
    var channel: Int64
    var time: Int64
    var ordinal: Int
  }

  private func entries(_ table: String) throws -> RowCursor {
    let index = table.hasPrefix("loose") ? "" : "INDEXED BY \(table)_key "
    guard separatesChannels else {
      return try connection.cursor("SELECT key, 0, time, n FROM \(table) \(index)ORDER BY key, time, n")
    }
    return try connection.cursor("SELECT key, channel, time, n FROM \(table) ORDER BY key, channel, time, n")
  }

  /// The next that is alone still.
  private func next(_ cursor: RowCursor, isFrom: Bool) throws -> Entry? {
    while let row = try cursor.next() {
      let ordinal = Int(row.integer(3))
      guard isFrom ? pairs.isFree(from: ordinal) : pairs.isFree(to: ordinal) else { continue }
      return Entry(
        key: row.integer(0), channel: row.integer(1),
        time: isFrom ? row.integer(2) : row.integer(2) &- zoneOffset, ordinal: ordinal)
    }
    return nil
  }

  /// Two readers go through both tables in order of key and time and pair the earliest that are near enough: within
  /// one tick of the coarser clock when `tolerance` is nil.
  private mutating func mergeByKey(from left: String, to right: String, at tolerance: Int64?) throws {
    let lefts = try entries(left)
    let rights = try entries(right)
    var first = try next(lefts, isFrom: true)
    var second = try next(rights, isFrom: false)
    while let l = first, let r = second {
      if (l.key, l.channel) != (r.key, r.channel) {
        if (l.key, l.channel) < (r.key, r.channel) {
          first = try next(lefts, isFrom: true)
        } else {
          second = try next(rights, isFrom: false)
        }
        continue
      }
      let near: Bool
      let isEarlier: Bool
      if let tolerance {
        let apart = l.time.subtractingReportingOverflow(r.time)
        near = !apart.overflow && apart.partialValue.magnitude <= UInt64(tolerance)
        isEarlier = l.time < r.time
      } else {
        let (tick, other) = (floorDivide(l.time, unit), floorDivide(r.time, unit))
        near = tick == other
        isEarlier = tick < other
      }
      if near {
        pairs.pair(l.ordinal, r.ordinal)
        first = try next(lefts, isFrom: true)
        second = try next(rights, isFrom: false)
      } else if isEarlier {
        first = try next(lefts, isFrom: true)
      } else {
        second = try next(rights, isFrom: false)
      }
    }
  }

  /// How many texts are asked.
  private static let votes = 500

  /// The one offset, a multiple of 15 minutes, that most of those texts have that each side says once: asked of some
  /// that lie evenly over all of FROM.
  mutating func estimateZone() throws {
    guard projection.keepsTime else { return }
    let quarter: Int64 = 900_000
    let cursor = try connection.cursor(
      "SELECT key, time FROM a WHERE n % ? = 0", SQLValue(max(from.count / Self.votes, 1)))
    var votes: [Int64: Int] = [:]
    var all = 0
    while let row = try cursor.next() {
      let key = row.integer(0)
      guard try times(of: key, "a").count == 1, let time = try times(of: key, "b").only else { continue }
      let apart = time &- row.integer(1)
      all += 1
      let nearest = floorDivide(apart &+ quarter / 2, quarter) &* quarter
      guard (apart &- nearest).magnitude <= UInt64(tolerance), nearest.magnitude <= 26 * 3_600_000 else { continue }
      votes[nearest, default: 0] += 1
    }
    if let (offset, count) = votes.max(by: { $0.value < $1.value }), count * 2 > all, count > 2 { zoneOffset = offset }
  }

  /// At most two.
  private func times(of key: Int64, _ letter: String) throws -> [Int64] {
    try connection.rows(
      "SELECT time FROM \(letter) INDEXED BY \(letter)_key WHERE key = ? LIMIT 2", .integer(key), map: { $0.integer(0) }
    )
  }

  // MARK: By looser forms of the text

  /// Copies what is alone into tables of its own, where it can be looked at more closely.
  private func gatherLoose() throws {
    for (isFrom, table) in [(true, from), (false, to)] {
      let cursor = try connection.cursor(
        "SELECT n, kind, author, time, channel, key, flags, body FROM \(table.letter) ORDER BY n")
      while let row = try cursor.next() {
        let ordinal = Int(row.integer(0))
        guard isFrom ? pairs.isFree(from: ordinal) : pairs.isFree(to: ordinal) else { continue }
        let prefixed = SideRow.Flags(rawValue: row.integer(6)).contains(.prefixed)
        try connection.execute(
          "INSERT INTO loose_\(table.letter) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", .integer(row.integer(0)),
          .integer(row.integer(1)), .integer(row.integer(2)), .integer(row.integer(3)),
          .integer(separatesChannels ? row.integer(4) : 0), .integer(row.integer(5)), SQLValue(prefixed),
          .text(row.text(7)))
      }
      try connection.script(
        "CREATE INDEX loose_\(table.letter)_author ON loose_\(table.letter)(author, channel, n);"
          + "CREATE INDEX loose_\(table.letter)_time ON loose_\(table.letter)(author, channel, time, n);"
          + "CREATE INDEX loose_\(table.letter)_exact ON loose_\(table.letter)(key, time)")
    }
  }

  /// Pairs by another hash of the text. `hash` takes text, author and kind, and returns nil for what has none.
  private mutating func joinLoosely(_ hash: (String, Int64, Int64) -> Int64?) throws {
    try connection.script(
      "DROP TABLE IF EXISTS loosely_a; DROP TABLE IF EXISTS loosely_b;"
        + "CREATE TABLE loosely_a(n INTEGER PRIMARY KEY, key, time, channel);"
        + "CREATE TABLE loosely_b(n INTEGER PRIMARY KEY, key, time, channel)")
    for letter in ["a", "b"] {
      let cursor = try connection.cursor("SELECT n, kind, author, time, channel, body FROM loose_\(letter)")
      while let row = try cursor.next() {
        let ordinal = Int(row.integer(0))
        guard letter == "a" ? pairs.isFree(from: ordinal) : pairs.isFree(to: ordinal) else { continue }
        guard let key = hash(row.text(5), row.integer(2), row.integer(1)) else { continue }
        try connection.execute(
          "INSERT INTO loosely_\(letter) VALUES (?, ?, ?, ?)", .integer(row.integer(0)), .integer(key),
          .integer(row.integer(3)), .integer(row.integer(4)))
      }
    }
    try mergeByKey(from: "loosely_a", to: "loosely_b", at: nil)
    try mergeByKey(from: "loosely_a", to: "loosely_b", at: tolerance)
  }
}

extension Array {
  /// The element of an array of one.
  var only: Element? { count == 1 ? self[0] : nil }
}

func floorDivide(_ value: Int64, _ unit: Int64) -> Int64 {
  let quotient = value / unit
  return value % unit < 0 ? quotient - 1 : quotient
}
