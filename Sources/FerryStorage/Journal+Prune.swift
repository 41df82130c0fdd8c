package import FerryCore
import FerryRuntime

/// How far pruning has come.
package struct PruneStep: Sendable {
  /// Where to go on; nil when everything was looked at.
  package let next: Int64?
  /// Events that are gone, with their deliveries and links.
  package let pruned: Int
  /// Changes that waited too long for their message, and are dead letters now.
  package let givenUp: Int
}

extension Journal {
  /// Names that are in use are noted once a day.
  private static let nameMemory = Duration.seconds(2 * 86_400)
  /// What was pruned is known again for at least so long: a year.
  private static let memory = Duration.seconds(365 * 86_400)

  /// Removes what was settled before `cutoff`: events with their deliveries, and the links of messages about which
  /// nothing was said since. One small transaction over at most `limit` events after `start`.
  ///
  /// What is not delivered, and dead letters, stay, and so does everything about their messages. A change that has waited
  /// since before `cutoff` for its message becomes a dead letter. A digest of each message is kept, so that a late
  /// repetition is not taken for something new.
  package func prune(
    settledBefore cutoff: Timestamp, from start: Int64 = 0, limit: Int = 256
  ) async throws(FerryError) -> PruneStep {
    let now = clock.now()
    return try await database.write { connection in
      let rows = try connection.rows(
        "SELECT id, account, channel, key, message, accepted FROM events WHERE id > ? ORDER BY id LIMIT ?",
        .integer(start), SQLValue(limit)
      ) { row in
        Candidate(
          id: row.integer(0), place: [.text(row.text(1)), .text(row.text(2))], key: row.text(3),
          message: row.optionalText(4), accepted: row.integer(5))
      }
      let old = rows.prefix { $0.accepted < cutoff.milliseconds }
      var pruned = 0
      for candidate in old { pruned += try Self.prune(candidate, cutoff.milliseconds, now, connection) }
      let givenUp = start == 0 ? try Self.giveUp(waitingSince: cutoff, now, connection) : 0
      let isDone = old.count < rows.count || rows.count < limit
      return PruneStep(next: isDone ? nil : rows.last?.id, pruned: pruned, givenUp: givenUp)
    }
  }

  /// Gives back to the system what pruning has freed, `pages` at most.
  package func shrink(pages: Int = 1000) async throws(FerryError) {
    try await database.write { try $0.execute("PRAGMA incremental_vacuum(\(pages))") }
  }

  /// Forgets names and gaps that are older than `cutoff`, names not before two days, and digests that are older than a
  /// year.
  ///
  /// `slice`, from 0 to 255, chooses a 256th of the digests, so that no step takes long.
  package func tidy(before cutoff: Timestamp, slice: Int) async throws(FerryError) {
    let now = clock.now()
    let lastDay = now.advanced(by: .zero - Self.memory).day
    let unnamed = min(cutoff, now.advanced(by: .zero - Self.nameMemory))
    let width = UInt64(1) << 56
    let first = Int64(bitPattern: UInt64(slice & 255) * width)
    let last = Int64(bitPattern: UInt64(slice & 255) * width + (width - 1))
    try await database.write { connection in
      try connection.execute("DELETE FROM names WHERE seen < ?", .integer(unnamed.milliseconds))
      try connection.execute("DELETE FROM gaps WHERE ended < ?", .integer(cutoff.milliseconds))
      try connection.execute(
        "DELETE FROM forgotten WHERE digest BETWEEN ? AND ? AND day < ?", .integer(min(first, last)),
        .integer(max(first, last)), .integer(lastDay))
    }
  }

  // MARK: Statements

  private struct Candidate {
    let id: Int64
    let place: [SQLValue]
    let key: String
    let message: String?
    let accepted: Int64
  }

  private static func prune(
    _ event: Candidate, _ cutoff: Int64, _ now: Timestamp, _ connection: Connection
  ) throws -> Int {
    if let message = event.message, try !isCopy(message, event.place, connection) {
      return try prune(message: message, event.place, cutoff, now, connection)
    }
    let isOpen = try connection.first(
      "SELECT 1 FROM deliveries WHERE event = ? AND (state <> 2 OR updated >= ?) LIMIT 1", .integer(event.id),
      .integer(cutoff)
    ) { _ in true }
    guard isOpen == nil else { return 0 }
    try remember(digest("e", event.place, event.key), now, connection)
    try connection.execute("DELETE FROM events WHERE id = ?", .integer(event.id))
    return connection.changes
  }

  /// A message with all that was ever said about it, or nothing of it. What is said about a copy of it needs its links.
  private static func prune(
    message: String, _ place: [SQLValue], _ cutoff: Int64, _ now: Timestamp, _ connection: Connection
  ) throws -> Int {
    let isOpen = try connection.first(
      """
      SELECT 1 FROM events e LEFT JOIN deliveries d ON d.event = e.id
      WHERE e.id IN (
        SELECT id FROM events WHERE account = ?1 AND channel = ?2 AND message = ?3
        UNION ALL
        SELECT c.id FROM links l JOIN events c
        ON c.account = l.account AND c.channel = l.channel AND c.message = l.copy
        WHERE l.origin_account = ?1 AND l.origin_channel = ?2 AND l.origin = ?3)
      AND (e.accepted >= ?4 OR d.state <> 2 OR d.updated >= ?4) LIMIT 1
      """, place[0], place[1], .text(message), .integer(cutoff)
    ) { _ in true }
    guard isOpen == nil else { return 0 }
    try remember(digest("m", place, message), now, connection)
    let copies = try connection.rows(
      "SELECT account, channel, copy FROM links WHERE origin_account = ? AND origin_channel = ? AND origin = ?",
      place[0], place[1], .text(message)
    ) { digest("m", [.text($0.text(0)), .text($0.text(1))], $0.text(2)) }
    for copy in copies { try remember(copy, now, connection) }
    try connection.execute(
      "DELETE FROM links WHERE origin_account = ? AND origin_channel = ? AND origin = ?", place[0], place[1],
      .text(message))
    try connection.execute(
      "DELETE FROM events WHERE account = ? AND channel = ? AND message = ?", place[0], place[1], .text(message))
    return connection.changes
  }

  private static func giveUp(waitingSince cutoff: Timestamp, _ now: Timestamp, _ connection: Connection) throws -> Int {
    try connection.execute(
      """
      UPDATE deliveries SET state = 3, error = ?, updated = ? WHERE id IN (
        SELECT id FROM deliveries WHERE state > 2 AND state = 4 AND updated < ? LIMIT 1000)
      """, .text("not_found: The message that this is about never came, or was not mirrored."),
      .integer(now.milliseconds), .integer(cutoff.milliseconds))
    return connection.changes
  }

  private static func isCopy(_ message: String, _ place: [SQLValue], _ connection: Connection) throws -> Bool {
    try connection.first(
      "SELECT 1 FROM links WHERE account = ? AND channel = ? AND copy = ? LIMIT 1", place[0], place[1], .text(message)
    ) { _ in true } ?? false
  }

  private static func remember(_ digest: Int64, _ now: Timestamp, _ connection: Connection) throws {
    try connection.execute(
      "INSERT OR REPLACE INTO forgotten(digest, day) VALUES (?, ?)", .integer(digest), .integer(now.day))
  }

  /// Whether an event, or the message that it is about, was pruned.
  static func isForgotten(_ event: Event, at source: Address, _ connection: Connection) throws -> Bool {
    guard try connection.first("SELECT 1 FROM forgotten LIMIT 1", map: { _ in true }) ?? false else { return false }
    let place = [SQLValue.text(source.account.rawValue), .text(source.channel.rawValue)]
    let message = event.message.map { digest("m", place, $0.rawValue) }
    return try connection.first(
      "SELECT 1 FROM forgotten WHERE digest IN (?, ?) LIMIT 1", SQLValue(message),
      .integer(digest("e", place, event.key.rawValue))
    ) { _ in true } ?? false
  }

  /// 64 bits tell a hundred million messages apart with one error in thousands of such journals.
  private static func digest(_ kind: String, _ place: [SQLValue], _ id: String) -> Int64 {
    var text = kind
    for case .text(let part) in place + [.text(id)] { text += "\(part.utf8.count):\(part)" }
    let bytes = Crypto.digest(.sha256, of: Array(text.utf8)).prefix(8)
    return Int64(bitPattern: bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
  }
}

extension Timestamp {
  fileprivate var day: Int64 { milliseconds / 86_400_000 }
}
