import FerryCore
import FerryStorage

/// One side's records in a table of a scratch database, each message once, as it last read.
///
/// Used by one task. `letter` names the tables: `a` is FROM, `b` is TO.
final class SideTable {
  let connection: Connection
  let letter: String
  let side: VerifySide
  private let stripsPrefix: Bool
  private let insert: String
  private let insertChange: String
  private var seq: Int64 = 0
  private var lastTime: Int64 = 0

  /// Rows, ordinals running from 1 to this; some may be gone.
  private(set) var count = 0
  private(set) var changes = 0
  private(set) var tallies = SideTallies()
  private var channels: [Int64: String] = [:]
  private var lastChannel: Int64?

  private enum Change: Int64 { case edit, delete, react }

  static let columns = """
    n, seq, kind, key, time, channel, own, id, author, author_id, flags, unit, edited, revision, earlier, origin, \
    origin_account, part, reply, files, reactions, reactors, mentions, rest
    """
  private static let columnCount = 25

  init(_ side: VerifySide, _ letter: String, in connection: Connection) throws {
    self.side = side
    self.letter = letter
    self.connection = connection
    stripsPrefix = side.capabilities?.keepsAuthor == false
    let marks = Array(repeating: "?", count: Self.columnCount).joined(separator: ", ")
    insert = "INSERT INTO \(letter)(\(Self.columns), body) VALUES (\(marks))"
    insertChange = "INSERT INTO change_\(letter)(\(Self.columns), body, op) VALUES (\(marks), ?)"
    let types = Self.columns.split(separator: ", ").dropFirst()
      .map { "\($0) \(["id", "files"].contains($0) ? "TEXT" : "INTEGER")" }.joined(separator: ", ")
    try connection.script(
      """
      CREATE TABLE \(letter)(n INTEGER PRIMARY KEY, \(types), body TEXT);
      CREATE TABLE change_\(letter)(n INTEGER, \(types), body TEXT, op INTEGER);
      CREATE TABLE earlier_\(letter)(n INTEGER, key INTEGER, time INTEGER);
      """)
  }

  /// Whether records of several channels came.
  var hasChannels: Bool { channels.count > 1 }

  func name(ofChannel channel: Int64) -> String { channels[channel] ?? "" }

  /// Reads the side to its end.
  func fill() async throws {
    try connection.script("BEGIN")
    while true {
      let records = try await side.records.next(limit: 1000)
      guard !records.isEmpty else { break }
      for record in records { try add(record) }
    }
    try connection.script(
      "COMMIT; CREATE INDEX \(letter)_own ON \(letter)(own, kind, key, time);"
        + "CREATE INDEX \(letter)_key ON \(letter)(key, time)")
    try foldRepeats()
    try applyChanges()
  }

  private func add(_ record: Record) throws {
    seq += 1
    switch record {
    case .message(let message):
      try add(SideRow(message, on: side, stripsPrefix: stripsPrefix), message.channel)
    case .edit(let message):
      try change(.edit, SideRow(message, on: side, stripsPrefix: stripsPrefix))
    case .delete(let record):
      var row = SideRow()
      row.own = SideRow.name(record.channel, record.id)
      try change(.delete, row)
    case .reaction(let record):
      var row = SideRow()
      row.own = SideRow.name(record.channel, record.reaction.message)
      let count: Int64 = record.reaction.added ? 1 : -1
      row.add(reaction: record.reaction.emoji, tone: record.tone, count: count)
      row.add(reactor: record.reaction.by.id, record.reaction.emoji, record.tone, count)
      try change(.react, row)
    case .join(let record): try add(SideRow(record, .join, on: side), record.channel)
    case .leave(let record): try add(SideRow(record, .leave, on: side), record.channel)
    case .read(let record): try add(SideRow(record, on: side), record.channel)
    case .gap: tallies.gaps += 1
    case .skipped(let record): tallies.skipped &+= max(record.count, 1)
    case .end(let record): if !record.isComplete { tallies.isIncomplete = true }
    case .channel, .person, .unknown: break
    }
  }

  private func add(_ row: SideRow, _ channel: ChannelID) throws {
    var row = row
    guard count < Int(Int32.max) else {
      throw FerryError(.tooLarge, "\(side.name) has more than 2,147,483,647 records.")
    }
    count += 1
    row.ordinal = count
    row.seq = seq
    // Without a time it happened when its neighbours did.
    if row.kind != .message, row.time == 0 { row.time = lastTime }
    lastTime = row.time
    if lastChannel != row.channel {
      lastChannel = row.channel
      channels[row.channel] = channel.rawValue
    }
    tallies.count(row)
    try write(row, insert)
  }

  private func change(_ change: Change, _ row: SideRow) throws {
    changes += 1
    var row = row
    row.seq = seq
    try write(row, insertChange, .integer(change.rawValue))
  }

  private func write(_ row: SideRow, _ sql: String, _ more: SQLValue...) throws(FerryError) {
    let values: [SQLValue] = [
      .integer(Int64(row.ordinal)), .integer(row.seq), .integer(row.kind.rawValue), .integer(row.key),
      .integer(row.time), .integer(row.channel), .integer(row.own), .text(row.id), .integer(row.author),
      .integer(row.authorID), .integer(row.flags.rawValue), .integer(row.unit), SQLValue(row.edited),
      .integer(row.revision), .integer(row.earlier), SQLValue(row.origin), .integer(row.originAccount),
      .integer(row.part), SQLValue(row.reply), .text(row.files), .integer(row.reactions), .integer(row.reactors),
      .integer(row.mentions), .integer(row.rest), .text(row.body),
    ]
    try connection.execute(sql, values: values + more)
  }

  // MARK: Folding

  /// The same message again replaces the earlier record, and stays in its place.
  private func foldRepeats() throws {
    // The index alone is read: rows in the order of their names would be read from all over the disk.
    let cursor = try connection.cursor(
      "SELECT own, n FROM \(letter) INDEXED BY \(letter)_own WHERE own <> 0 ORDER BY own")
    var group: [Int64] = []
    var name: Int64?
    var repeats: [(first: Int64, last: Int64)] = []
    func settle() throws {
      guard group.count > 1, let first = group.min(), let last = group.max() else { return }
      let ids = try connection.rows(
        "SELECT DISTINCT id FROM \(letter) WHERE own = ?", .integer(name ?? 0), map: { $0.text(0) })
      if ids.count == 1 { repeats.append((first, last)) }
    }
    while let row = try cursor.next() {
      if name != row.integer(0) {
        try settle()
        name = row.integer(0)
        group.removeAll(keepingCapacity: true)
      }
      group.append(row.integer(1))
    }
    try settle()
    let set = Self.columns.split(separator: ", ").filter { $0 != "n" } + ["body"]
    for (first, last) in repeats {
      let own = try connection.first("SELECT own FROM \(letter) WHERE n = ?", .integer(first), map: { $0.integer(0) })
      try connection.execute(
        "UPDATE \(letter) SET (\(set.joined(separator: ", "))) = "
          + "(SELECT \(set.joined(separator: ", ")) FROM \(letter) WHERE n = ?) WHERE n = ?",
        .integer(last), .integer(first))
      try connection.execute(
        "DELETE FROM \(letter) WHERE own = ? AND n > ?", .integer(own ?? 0), .integer(first))
      tallies.messages -= connection.changes
    }
  }

  /// Edits, deletions and reactions, each to the message it is about, in the order in which they came.
  private func applyChanges() throws {
    guard changes > 0 else { return }
    let cursor = try connection.cursor(
      "SELECT rowid, op, own, seq, reactions, reactors FROM change_\(letter) ORDER BY rowid")
    while let change = try cursor.next() {
      let message = try connection.first(
        "SELECT n, seq, key, time, reactions, reactors FROM \(letter) WHERE own = ?", .integer(change.integer(2)),
        map: { row in (0..<6).map { row.integer(Int32($0)) } })
      switch Change(rawValue: change.integer(1)) {
      case .edit: try apply(edit: change.integer(0), change.integer(3), to: message)
      case .delete:
        guard let message, change.integer(3) > message[1] else { continue }
        let deleted = SideRow.Flags.deleted.rawValue
        try connection.execute(
          "UPDATE \(letter) SET flags = flags | ?, body = '', files = '' WHERE n = ?", .integer(deleted),
          .integer(message[0]))
        tallies.deleted += 1
      case .react:
        guard let message, change.integer(3) > message[1] else { continue }
        try connection.execute(
          "UPDATE \(letter) SET reactions = ?, reactors = ? WHERE n = ?", .integer(message[4] &+ change.integer(4)),
          .integer(message[5] &+ change.integer(5)), .integer(message[0]))
      case nil: break
      }
    }
  }

  private static let edited = [
    "seq", "key", "flags", "edited", "revision", "files", "mentions", "rest", "reply", "body", "author", "author_id",
  ].joined(separator: ", ")

  private func apply(edit rowid: Int64, _ seq: Int64, to message: [Int64]?) throws {
    guard let message else {
      // What was edited lies before what was read: the edit is the message.
      count += 1
      tallies.messages += 1
      try connection.execute(
        "INSERT INTO \(letter)(\(Self.columns), body) SELECT ?, \(Self.columns.dropFirst(3)), body "
          + "FROM change_\(letter) WHERE rowid = ?", .integer(Int64(count)), .integer(rowid))
      return
    }
    guard seq > message[1] else { return }
    tallies.edits += 1
    try connection.execute(
      "INSERT INTO earlier_\(letter)(n, key, time) VALUES (?, ?, ?)", .integer(message[0]), .integer(message[2]),
      .integer(message[3]))
    // Reactions are not part of an edit.
    try connection.execute(
      "UPDATE \(letter) SET (\(Self.edited)) = (SELECT \(Self.edited) FROM change_\(letter) WHERE rowid = ?), "
        + "earlier = earlier + 1 WHERE n = ?", .integer(rowid), .integer(message[0]))
  }
}

/// What a side holds, counted while it is read.
package struct SideTallies: Hashable, Sendable, Codable {
  package var messages = 0
  package var edits = 0
  package var deleted = 0
  package var joins = 0
  package var leaves = 0
  package var reads = 0
  /// Records that the side itself says it lacks.
  package var skipped = 0
  package var gaps = 0
  /// The side itself says that there is more.
  package var isIncomplete = false
  /// Milliseconds in the finest unit in which its times differ.
  package var timeUnit: Int64 = 1

  private var finest: Int64 = 86_400_000

  private enum CodingKeys: String, CodingKey {
    case messages, edits, deleted, joins, leaves, reads, skipped, gaps
    case isIncomplete = "incomplete"
    case timeUnit = "time_unit"
  }

  var isMessagesOnly: Bool { joins + leaves + reads == 0 }

  mutating func count(_ row: SideRow) {
    switch row.kind {
    case .message: messages += 1
    case .join: joins += 1
    case .leave: leaves += 1
    case .read: reads += 1
    }
    if row.flags.contains(.deleted) { deleted += 1 }
    while finest > 1, row.time % finest != 0 { finest = finest > 60_000 ? 60_000 : finest > 1000 ? 1000 : 1 }
    // A few round times prove nothing.
    timeUnit = messages + joins + leaves > 50 ? finest : 1
  }
}
