import FerryCore
import FerryStorage

/// Goes through the pairs and says of every record what became of it.
struct Account {
  private let matcher: Matcher
  private(set) var report: VerifyReport

  init(_ matcher: Matcher) {
    self.matcher = matcher
    report = VerifyReport(
      from: matcher.from.side.name, to: matcher.to.side.name, fromTallies: matcher.from.tallies,
      toTallies: matcher.to.tallies, zoneOffset: matcher.zoneOffset)
  }

  private var connection: Connection { matcher.connection }

  mutating func write(_ line: (VerifyLine) throws -> Void) throws {
    let cursor = try connection.cursor("SELECT \(SideTable.columns) FROM a ORDER BY n")
    while let found = try cursor.next() {
      let account = try account(for: SideRow(found))
      report.count(account)
      try line(account)
    }
    let rest = try connection.cursor("SELECT \(SideTable.columns) FROM b ORDER BY n")
    while let found = try rest.next() {
      guard matcher.pairs.partner(ofTo: Int(found.integer(0))) == 0, let account = extra(SideRow(found)) else {
        continue
      }
      report.count(account)
      try line(account)
    }
  }

  private func extra(_ row: SideRow) -> VerifyLine? {
    let isDuplicate = matcher.pairs.toMarks[row.ordinal].contains(.duplicate)
    // What is gone shows nothing.
    if row.flags.contains(.deleted) { return nil }
    switch row.kind {
    case .message: break
    // Who imports becomes a member; and what FROM tells nothing of, TO may know.
    case .join, .leave:
      if !matcher.projection.keepsJoins || matcher.from.tallies.joins + matcher.from.tallies.leaves == 0 { return nil }
    case .read: if !matcher.projection.keepsReads || matcher.from.tallies.reads == 0 { return nil }
    }
    return VerifyLine(
      outcome: isDuplicate ? .duplicate : .extra, kind: row.kind.name, to: [place(of: row, matcher.to)])
  }

  private func account(for row: SideRow) throws -> VerifyLine {
    var comparison = Comparison(
      matcher.projection, fromUnit: matcher.from.tallies.timeUnit, toUnit: matcher.to.tallies.timeUnit,
      zoneOffset: matcher.zoneOffset)
    let pairs = matcher.pairs
    var line = VerifyLine(outcome: .missing, kind: row.kind.name, from: place(of: row, matcher.from))
    let partner = pairs.partner(ofFrom: row.ordinal)
    guard partner > 0, let other = try matcher.to.row(partner) else {
      line.outcome = comparison.missing(row)
      line.losses = comparison.losses
      return line
    }
    line.to = [place(of: other, matcher.to)]
    let marks = pairs.fromMarks[row.ordinal]
    if marks.contains(.mergedInto) {
      // Compared with the first of them.
      line.outcome = .converted
      line.losses = ["joined"]
      return line
    }
    var parts: [SideRow] = []
    if marks.contains(.split) {
      for ordinal in try connection.rows(
        "SELECT m FROM part WHERE n = ? ORDER BY place", SQLValue(row.ordinal), map: { Int($0.integer(0)) })
      {
        if let part = try matcher.to.row(ordinal) { parts.append(part) }
      }
      line.to += parts.map { place(of: $0, matcher.to) }
    }
    var joined: [SideRow] = []
    if marks.contains(.merged) {
      for ordinal in try connection.rows(
        "SELECT n FROM joined WHERE m = ? ORDER BY place", SQLValue(partner), map: { Int($0.integer(0)) })
      {
        if let piece = try matcher.from.row(ordinal) { joined.append(piece) }
      }
    }
    let files = (
      from: ([row] + joined).flatMap { SideFile.read($0.files) },
      to: ([other] + parts).flatMap { SideFile.read($0.files) },
      apart: parts.contains { !$0.files.isEmpty } && !parts.allSatisfy { $0.files.isEmpty }
    )
    comparison.compare(row, other, files: files, texts: try texts(row, other, joined, parts))
    if row.reply != nil || other.reply != nil {
      comparison.compareReplies(row, other, isRight: try isRightReply(row, other))
    }
    line.losses = comparison.losses
    line.faults = comparison.faults
    line.outcome = comparison.outcome
    if marks.contains(.sorted) {
      line.losses.append("order:time")
      if line.outcome == .identical { line.outcome = .converted }
    }
    if line.outcome != .altered, marks.contains(.reordered) { line.outcome = .reordered }
    return line
  }

  /// Nil when the hashes say that author and text are equal.
  private func texts(
    _ row: SideRow, _ other: SideRow, _ joined: [SideRow], _ parts: [SideRow]
  ) throws -> Comparison.Texts? {
    guard row.key != other.key || !joined.isEmpty || !parts.isEmpty else { return nil }
    var texts = Comparison.Texts(
      from: try ([row] + joined).map { try matcher.from.body($0.ordinal) },
      to: try ([other] + parts).map { try matcher.to.body($0.ordinal) })
    texts.isEarlier = row.earlier > 0 ? try matcher.from.had(other.key, row.ordinal) : false
    texts.isLater = other.earlier > 0 ? try matcher.to.had(row.key, other.ordinal) : false
    return texts
  }

  private func isRightReply(_ row: SideRow, _ other: SideRow) throws -> Bool? {
    guard let reply = row.reply else { return other.reply == nil }
    guard let target = try matcher.from.ordinal(ofOwn: reply) else { return nil }
    guard let reply = other.reply, let found = try matcher.to.ordinal(ofOwn: reply) else {
      // What is not at TO cannot be replied to.
      return matcher.pairs.partner(ofFrom: target) == 0 && other.reply == nil ? true : false
    }
    return matcher.pairs.partner(ofTo: found) == target || matcher.pairs.partner(ofFrom: target) == found
  }

  private func place(of row: SideRow, _ table: SideTable) -> VerifyLine.Place {
    VerifyLine.Place(
      channel: table.name(ofChannel: row.channel), id: row.id, time: Timestamp(milliseconds: row.time),
      record: row.ordinal)
  }
}

extension SideRow.Kind {
  var name: String {
    switch self {
    case .message: "message"
    case .join: "join"
    case .leave: "leave"
    case .read: "read"
    }
  }
}

extension SideTable {
  func row(_ ordinal: Int) throws -> SideRow? {
    try connection.first("SELECT \(Self.columns) FROM \(letter) WHERE n = ?", SQLValue(ordinal), map: { SideRow($0) })
  }

  func body(_ ordinal: Int) throws -> String {
    try connection.first("SELECT body FROM \(letter) WHERE n = ?", SQLValue(ordinal), map: { $0.text(0) }) ?? ""
  }

  /// Whether a message had this text before an edit.
  func had(_ key: Int64, _ ordinal: Int) throws -> Bool {
    try connection.first(
      "SELECT 1 FROM earlier_\(letter) WHERE n = ? AND key = ?", SQLValue(ordinal), .integer(key), map: { _ in true })
      ?? false
  }

  func ordinal(ofOwn own: Int64) throws -> Int? {
    try connection.first(
      "SELECT n FROM \(letter) INDEXED BY \(letter)_own WHERE own = ? AND kind = 0", .integer(own),
      map: { Int($0.integer(0)) })
  }
}

extension SideRow {
  /// A row of `SideTable.columns`.
  init(_ row: Row) {
    ordinal = Int(row.integer(0))
    seq = row.integer(1)
    kind = Kind(rawValue: row.integer(2)) ?? .message
    key = row.integer(3)
    time = row.integer(4)
    channel = row.integer(5)
    own = row.integer(6)
    id = row.text(7)
    author = row.integer(8)
    authorID = row.integer(9)
    flags = Flags(rawValue: row.integer(10))
    unit = row.integer(11)
    edited = row.optionalInteger(12)
    revision = row.integer(13)
    earlier = row.integer(14)
    origin = row.optionalInteger(15)
    originAccount = row.integer(16)
    part = row.integer(17)
    reply = row.optionalInteger(18)
    files = row.text(19)
    reactions = row.integer(20)
    reactors = row.integer(21)
    mentions = row.integer(22)
    rest = row.integer(23)
  }
}
