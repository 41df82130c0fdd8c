import FerryCore
import FerryStorage

/// Threads as Slack has them: one deep, every answer naming the first message, and that one naming its answers.
extension SlackExportWriter {
  /// What a message is in a thread.
  enum Thread: Sendable {
    case first(answers: [(ts: Int64, user: UserID)])
    case answer(to: Int64, by: UserID)
  }

  /// Finds the first message of every answer's thread: answers to answers belong to the thread that those are in. Of a
  /// message that is not in the export, or comes later, nothing can be an answer.
  func findThreads(in channel: ChannelID) async throws(FerryError) {
    var after = Int64(-1)
    var orphans = 0
    while true {
      let start = after
      let page = try await database.write { try Self.findThreads(in: channel, after: start, $0) }
      guard let last = page.last else { break }
      after = last
      orphans += page.orphans
    }
    if orphans > 0 { note(orphans, lostAs: "reply") }
  }

  /// Oldest first, so that what is answered has its own thread by then. Nil at the end.
  private static func findThreads(
    in channel: ChannelID, after start: Int64, _ connection: Connection
  ) throws -> (last: Int64?, orphans: Int) {
    let room = SQLValue.text(channel.rawValue)
    let replies = try connection.rows(
      "SELECT ts, reply FROM message WHERE channel = ? AND ts > ? AND reply IS NOT NULL ORDER BY ts LIMIT 1000", room,
      .integer(start)
    ) { ($0.integer(0), $0.text(1)) }
    var orphans = 0
    for (ts, reply) in replies {
      let root = try connection.first(
        "SELECT coalesce(root, ts) FROM message WHERE channel = ? AND id = ? AND ts < ?", room, .text(reply),
        .integer(ts)
      ) { $0.integer(0) }
      guard let root else {
        orphans += 1
        continue
      }
      try connection.execute(
        "UPDATE message SET root = ? WHERE channel = ? AND ts = ?", .integer(root), room, .integer(ts))
    }
    return (replies.last?.0, orphans)
  }

  /// By time, of those of the rows that are in one.
  func threads(
    of rows: [(ts: Int64, root: Int64?)], in channel: ChannelID
  ) async throws(FerryError) -> [Int64: Thread] {
    try await database.read { connection in
      let room = SQLValue.text(channel.rawValue)
      var threads: [Int64: Thread] = [:]
      let answered = try connection.rows(
        "SELECT DISTINCT root FROM message WHERE channel = ? AND root BETWEEN ? AND ?", room,
        .integer(rows.first?.ts ?? 0), .integer(rows.last?.ts ?? 0)
      ) { $0.integer(0) }
      let firsts = Set(answered)
      for (ts, root) in rows {
        if let root {
          let author = try connection.first(
            "SELECT author FROM message WHERE channel = ? AND ts = ?", room, .integer(root)
          ) { $0.optionalText(0) }
          threads[ts] = .answer(to: root, by: UserID((author ?? nil) ?? ""))
          continue
        }
        guard firsts.contains(ts) else { continue }
        let answers = try connection.rows(
          "SELECT ts, author FROM message WHERE channel = ? AND root = ? ORDER BY ts", room, .integer(ts)
        ) { (ts: $0.integer(0), user: UserID($0.optionalText(1) ?? "")) }
        threads[ts] = .first(answers: answers)
      }
      return threads
    }
  }
}
