package import FerryCore
import FerryRuntime

/// What the console shows of the journal. Every answer is bounded.
extension Journal {
  /// The queue of every lane that has something to deliver, as its first delivery shows it.
  package func queues() async throws(FerryError) -> [LaneID: LaneQueue] {
    let rows = try await database.read { try Self.queues($0) }
    return Dictionary(rows) { first, _ in first }
  }

  static func queues(_ connection: Connection) throws -> [(LaneID, LaneQueue)] {
    // The partial index of open deliveries answers the inner question by itself.
    try connection.rows(
      """
      SELECT d.bridge, d.account, d.channel, g.pending, d.attempts, d.error, d.updated, e.accepted
      FROM (SELECT count(*) AS pending, min(id) AS first FROM deliveries WHERE state < 2
            GROUP BY bridge, account, channel) g
      JOIN deliveries d ON d.id = g.first JOIN events e ON e.id = d.event
      """
    ) { row in
      let queue = LaneQueue(
        pending: Int(row.integer(3)), oldest: Timestamp(milliseconds: row.integer(7)),
        attempts: Int(row.integer(4)), error: row.optionalText(5), tried: Timestamp(milliseconds: row.integer(6)))
      return (lane(row, 0), queue)
    }
  }

  /// Dead letters that `filter` lets through, the newest delivery first, those before `before` only.
  package func deadLetters(
    _ filter: DeadFilter, before: Int64 = .max, limit: Int
  ) async throws(FerryError) -> [DeadLetterDetail] {
    try await database.read { connection in
      try connection.rows(
        """
        SELECT d.id, d.bridge, d.account, d.channel, e.account, e.channel, e.key, e.kind, e.message, d.attempts,
          d.error, d.updated, e.accepted
        FROM deliveries d JOIN events e ON e.id = d.event
        WHERE d.state > 2 AND d.state = 3 AND d.id < ?1 AND \(DeadFilter.condition) ORDER BY d.id DESC LIMIT ?6
        """,
        .integer(before), filter.bridge, filter.account, filter.channel, filter.words, SQLValue(limit)
      ) { row in
        DeadLetterDetail(
          id: row.integer(0), lane: Self.lane(row, 1), source: Self.address(row, 4), key: EventKey(row.text(6)),
          kind: row.text(7), message: row.optionalText(8).map { MessageID($0) }, attempts: Int(row.integer(9)),
          reason: row.text(10), died: Timestamp(milliseconds: row.integer(11)),
          accepted: Timestamp(milliseconds: row.integer(12)))
      }
    }
  }

  /// How many dead letters `filter` lets through, and the newest of them; 0 when there are none.
  package func countDeadLetters(_ filter: DeadFilter) async throws(FerryError) -> (count: Int, newest: Int64) {
    try await database.read { connection in
      try connection.first(
        """
        SELECT count(*), max(d.id) FROM deliveries d JOIN events e ON e.id = d.event
        WHERE d.state > 2 AND d.state = 3 AND d.id <= ?1 AND \(DeadFilter.condition)
        """,
        .integer(.max), filter.bridge, filter.account, filter.channel, filter.words
      ) { (Int($0.integer(0)), $0.integer(1)) } ?? (0, 0)
    }
  }

  /// A person's decision about all dead letters that `filter` lets through, up to the newest that was known when it
  /// was taken. Returns how many there were.
  package func decideDead(
    _ filter: DeadFilter, upTo newest: Int64, retry: Bool
  ) async throws(FerryError) -> Int {
    let now = clock.now().milliseconds
    return try await database.write { connection in
      try connection.execute(
        """
        UPDATE deliveries SET state = ?6, updated = ?7 WHERE id IN (
          SELECT d.id FROM deliveries d JOIN events e ON e.id = d.event
          WHERE d.state > 2 AND d.state = 3 AND d.id <= ?1 AND \(DeadFilter.condition))
        """,
        .integer(newest), filter.bridge, filter.account, filter.channel, filter.words,
        .integer(retry ? Delivery.State.pending.rawValue : Delivery.State.settled.rawValue), .integer(now))
      return connection.changes
    }
  }

  /// The events accepted last, the newest first, those before `before` only.
  package func events(before: Int64 = .max, limit: Int) async throws(FerryError) -> [EventSummary] {
    try await database.read { connection in
      try connection.rows(
        """
        SELECT e.id, e.account, e.channel, e.kind, e.message, e.key, e.accepted,
          (SELECT count(*) FROM deliveries d WHERE d.event = e.id),
          (SELECT count(*) FROM deliveries d WHERE d.event = e.id AND d.state = 2),
          (SELECT count(*) FROM deliveries d WHERE d.event = e.id AND d.state = 3)
        FROM events e WHERE e.id < ? ORDER BY e.id DESC LIMIT ?
        """, .integer(before), SQLValue(limit)
      ) { row in
        EventSummary(
          id: row.integer(0), source: Self.address(row, 1), kind: row.text(3),
          message: row.optionalText(4).map { MessageID($0) }, key: EventKey(row.text(5)),
          accepted: Timestamp(milliseconds: row.integer(6)), deliveries: Int(row.integer(7)),
          settled: Int(row.integer(8)), dead: Int(row.integer(9)))
      }
    }
  }

  /// The number of the event accepted last; 0 when there is none.
  package func lastEvent() async throws(FerryError) -> Int64 {
    try await database.read { try $0.first("SELECT max(id) FROM events") { $0.integer(0) } ?? 0 }
  }

  /// One accepted event, whole.
  package func event(_ key: EventKey, at source: Address) async throws(FerryError) -> Event? {
    let body = try await database.read { connection in
      try connection.first(
        "SELECT body FROM events WHERE account = ? AND channel = ? AND key = ?", .text(source.account.rawValue),
        .text(source.channel.rawValue), .text(key.rawValue)
      ) { $0.text(0) }
    }
    guard let body else { return nil }
    do { return try EventText.read(body) } catch { throw .wrap(error) }
  }

  /// What became of a message at its source: when it was accepted, and how each delivery stands. Nil while it was not.
  package func fate(of message: MessageID, at source: Address) async throws(FerryError) -> MessageFate? {
    try await database.read { connection in
      let event = try connection.first(
        """
        SELECT id, accepted FROM events WHERE account = ? AND channel = ? AND message = ? AND kind = 'message'
        ORDER BY id LIMIT 1
        """,
        .text(source.account.rawValue), .text(source.channel.rawValue), .text(message.rawValue)
      ) { ($0.integer(0), Timestamp(milliseconds: $0.integer(1))) }
      guard let (id, accepted) = event else { return nil }
      let legs = try connection.rows(
        "SELECT bridge, account, channel, state, attempts, error, updated FROM deliveries WHERE event = ? ORDER BY id",
        .integer(id)
      ) { row in
        MessageFate.Leg(
          lane: Self.lane(row, 0), state: Delivery.State(rawValue: row.integer(3)) ?? .pending,
          attempts: Int(row.integer(4)), error: row.optionalText(5), updated: Timestamp(milliseconds: row.integer(6)))
      }
      return MessageFate(accepted: accepted, legs: legs)
    }
  }

  static func lane(_ row: Row, _ first: Int32) -> LaneID {
    LaneID(bridge: BridgeName(row.text(first)), destination: address(row, first + 1))
  }

  private static func address(_ row: Row, _ first: Int32) -> Address {
    Address(account: AccountName(row.text(first)), channel: ChannelID(row.text(first + 1)))
  }
}
