import FerryCore
import FerryStorage

/// Records that are read in one order and wanted in the other.
extension WorkBook {
  func forgetSpilled() async throws(FerryError) {
    try await database.write { try $0.script("DELETE FROM spilled; DELETE FROM seen;") }
  }

  /// `records` are newer than all that follow.
  func spill(_ records: [Record], seen: Set<MessageID>) async throws(FerryError) {
    try await database.write { connection in
      for record in records {
        try connection.execute("INSERT INTO spilled(line) VALUES (?)", .blob(record.line()))
      }
      for id in seen { try connection.execute("INSERT OR IGNORE INTO seen(id) VALUES (?)", .text(id.rawValue)) }
    }
  }

  /// Messages that must lie in the stretch that was read, and were not met. The stretch goes back to `oldest`, or to the
  /// beginning.
  func spillDeletions(in channel: ChannelID, since oldest: Timestamp?) async throws(FerryError) {
    try await database.write { connection in
      // By both orders, since a service sorts by one of them: by when it was written, or when it was told.
      let first = try connection.first("SELECT min(ordinal) FROM messages JOIN seen USING(id)") {
        $0.optionalInteger(0)
      }
      let gone = try connection.rows(
        """
        SELECT id FROM messages WHERE state = 0 AND id NOT IN (SELECT id FROM seen)
        AND (?1 IS NULL OR (time > ?1 AND ordinal > ?2)) ORDER BY ordinal DESC
        """, SQLValue(oldest?.milliseconds), SQLValue((first ?? nil) ?? 0)
      ) { MessageID($0.text(0)) }
      // Numbered below all others, so that they are taken last.
      let lines = gone.map { Record.delete(DeleteRecord(channel: channel, id: $0)).line() }
      let lowest = try connection.first("SELECT min(number) FROM spilled") { $0.optionalInteger(0) }
      var number = ((lowest ?? nil) ?? 1) - Int64(lines.count)
      for line in lines {
        try connection.execute("INSERT INTO spilled(number, line) VALUES (?, ?)", .integer(number), .blob(line))
        number += 1
      }
    }
  }

  /// The oldest first. What was taken is gone with the next call.
  func takeSpilled(_ limit: Int) async throws(FerryError) -> [Record] {
    try await database.write { connection in
      let rows = try connection.rows(
        "SELECT number, line FROM spilled ORDER BY number DESC LIMIT ?", SQLValue(limit)
      ) { ($0.integer(0), $0.blob(1)) }
      if let last = rows.last {
        try connection.execute("DELETE FROM spilled WHERE number >= ?", .integer(last.0))
      }
      return try rows.map { try Record(line: $0.1) }
    }
  }
}
