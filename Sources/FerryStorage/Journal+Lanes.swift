package import FerryCore
import FerryRuntime

extension Journal {
  /// The first open deliveries of a lane, in order.
  package func open(_ lane: LaneID, limit: Int) async throws(FerryError) -> [Delivery] {
    let recent = recent
    return try await database.read { connection in
      try connection.rows(
        """
        SELECT d.id, d.state, d.attempts, d.updated, e.account, e.channel, e.id, e.body
        FROM deliveries d JOIN events e ON e.id = d.event
        WHERE d.bridge = ? AND d.account = ? AND d.channel = ? AND d.state < 2 ORDER BY d.id LIMIT ?
        """,
        .text(lane.bridge.rawValue), .text(lane.destination.account.rawValue),
        .text(lane.destination.channel.rawValue), SQLValue(limit)
      ) { row in
        Delivery(
          id: row.integer(0), lane: lane, state: Delivery.State(rawValue: row.integer(1)) ?? .pending,
          attempts: Int(row.integer(2)), updated: Timestamp(milliseconds: row.integer(3)),
          source: Address(account: AccountName(row.text(4)), channel: ChannelID(row.text(5))),
          event: try recent[row.integer(6)] ?? EventText.read(row.text(7)))
      }
    }
  }

  /// Settles deliveries and marks others as being sent, in one commit: a lane does both between two sends. Returns the
  /// lanes in which something had waited for a message that now has a copy.
  @discardableResult
  package func advance(settled: [Settlement], sending: [Int64] = []) async throws(FerryError) -> Set<LaneID> {
    guard !settled.isEmpty || !sending.isEmpty else { return [] }
    let now = clock.now().milliseconds
    return try await database.write { connection in
      var woken: Set<LaneID> = []
      for settlement in settled {
        for link in settlement.links { try Self.store(link, connection) }
        try Self.set(.settled, settlement.delivery, now, connection)
        if let link = settlement.links.first { woken.formUnion(try Self.wake(waitingFor: link, now, connection)) }
      }
      for delivery in sending { try Self.set(.sending, delivery, now, connection) }
      return woken
    }
  }

  /// Links of the parts of a split message that have been sent, before its delivery is settled.
  package func store(_ links: [Link]) async throws(FerryError) {
    try await database.write { connection in
      for link in links { try Self.store(link, connection) }
    }
  }

  /// Back to pending after an attempt that failed and certainly did not act; `isSending` when that is not certain.
  package func failed(_ deliveries: [Int64], _ error: FerryError, isSending: Bool) async throws(FerryError) {
    let now = clock.now().milliseconds
    let text = error.description
    try await database.write { connection in
      for delivery in deliveries {
        try connection.execute(
          "UPDATE deliveries SET state = ?, attempts = attempts + 1, error = ?, updated = ? WHERE id = ?",
          .integer(isSending ? 1 : 0), .text(text), .integer(now), .integer(delivery))
        try Self.recordAttempt(delivery, text, now, connection)
      }
    }
  }

  /// Makes a dead letter (G10).
  package func bury(_ delivery: Int64, _ error: FerryError) async throws(FerryError) {
    let now = clock.now().milliseconds
    let text = error.description
    try await database.write { connection in
      try connection.execute(
        "UPDATE deliveries SET state = 3, attempts = attempts + 1, error = ?, updated = ? WHERE id = ?",
        .text(text), .integer(now), .integer(delivery))
      try Self.recordAttempt(delivery, text, now, connection)
    }
  }

  /// Sets a delivery aside until the message it is about has a copy (G4). Leaves it open when another lane has made
  /// one meanwhile.
  package func park(_ delivery: Delivery) async throws(FerryError) {
    let now = clock.now().milliseconds
    try await database.write { connection in
      if let message = delivery.event.message,
        try Self.translate(message, at: delivery.source, to: delivery.lane.destination, connection) != nil
      {
        return
      }
      try Self.set(.waiting, delivery.id, now, connection)
    }
  }

  /// A person's decision about a dead letter; true when there was one.
  package func retryDead(_ delivery: Int64) async throws(FerryError) -> Bool {
    try await decide(delivery, .pending)
  }

  package func dropDead(_ delivery: Int64) async throws(FerryError) -> Bool {
    try await decide(delivery, .settled)
  }

  private func decide(_ delivery: Int64, _ state: Delivery.State) async throws(FerryError) -> Bool {
    let now = clock.now().milliseconds
    return try await database.write { connection in
      try connection.execute(
        "UPDATE deliveries SET state = ?, updated = ? WHERE id = ? AND state = 3",
        .integer(state.rawValue), .integer(now), .integer(delivery))
      return connection.changes > 0
    }
  }

  /// Of every lane that has something left. Looks at one event for each lane.
  package func counts() async throws(FerryError) -> [LaneID: LaneCounts] {
    let (queues, aside) = try await database.read { connection in
      (try Self.queues(connection), try Self.setAside(connection))
    }
    var counts: [LaneID: LaneCounts] = [:]
    for (lane, queue) in queues { counts[lane, default: LaneCounts()].queue = queue }
    for (lane, isDead, number) in aside {
      if isDead {
        counts[lane, default: LaneCounts()].dead += number
      } else {
        counts[lane, default: LaneCounts()].waiting += number
      }
    }
    return counts
  }

  /// Dead letters and what waits for its message, by lane.
  private static func setAside(_ connection: Connection) throws -> [(LaneID, isDead: Bool, Int)] {
    try connection.rows(
      "SELECT bridge, account, channel, state = 3, count(*) FROM deliveries WHERE state > 2 GROUP BY 1, 2, 3, 4"
    ) { row in (lane(row, 0), row.integer(3) != 0, Int(row.integer(4))) }
  }

  package func deadLetters(limit: Int = 1000) async throws(FerryError) -> [DeadLetter] {
    try await database.read { connection in
      try connection.rows(
        """
        SELECT d.id, d.bridge, d.account, d.channel, e.account, e.channel, e.key, d.error
        FROM deliveries d JOIN events e ON e.id = d.event WHERE d.state > 2 AND d.state = 3 ORDER BY d.id LIMIT ?
        """, SQLValue(limit)
      ) { row in
        DeadLetter(
          delivery: row.integer(0),
          lane: LaneID(
            bridge: BridgeName(row.text(1)),
            destination: Address(account: AccountName(row.text(2)), channel: ChannelID(row.text(3)))),
          source: Address(account: AccountName(row.text(4)), channel: ChannelID(row.text(5))),
          key: EventKey(row.text(6)), reason: row.text(7))
      }
    }
  }

  /// Lanes with a dead letter whose reason begins so, and when the newest of these came to be one.
  package func lanes(withDeadLettersFor reason: String) async throws(FerryError) -> [LaneID: Timestamp] {
    let found = try await database.read { connection in
      try connection.rows(
        """
        SELECT bridge, account, channel, max(updated) FROM deliveries
        WHERE state > 2 AND state = 3 AND substr(error, 1, length(?1)) = ?1 GROUP BY 1, 2, 3
        """, .text(reason)
      ) { (Self.lane($0, 0), Timestamp(milliseconds: $0.integer(3))) }
    }
    return Dictionary(found) { max($0, $1) }
  }

  // MARK: Statements

  private static func set(
    _ state: Delivery.State, _ delivery: Int64, _ now: Int64, _ connection: Connection
  ) throws {
    try connection.execute(
      "UPDATE deliveries SET state = ?, updated = ? WHERE id = ?",
      .integer(state.rawValue), .integer(now), .integer(delivery))
  }

  private static func recordAttempt(
    _ delivery: Int64, _ error: String, _ now: Int64, _ connection: Connection
  ) throws {
    try connection.execute(
      "INSERT INTO attempts(delivery, time, error) VALUES (?, ?, ?)",
      .integer(delivery), .integer(now), .text(error))
    // The newest are what explains a failure; a month of outage must not fill the disk.
    try connection.execute(
      """
      DELETE FROM attempts WHERE delivery = ?1 AND id <=
        (SELECT id FROM attempts WHERE delivery = ?1 ORDER BY id DESC LIMIT 1 OFFSET 20)
      """, .integer(delivery))
  }

  /// What waits for the original, here or elsewhere, or for any copy of it: a reaction to one copy can now reach
  /// another. Found by the message: there may be very many that wait for others.
  private static func wake(waitingFor link: Link, _ now: Int64, _ connection: Connection) throws -> [LaneID] {
    try connection.rows(
      """
      UPDATE deliveries SET state = 0, updated = ?1 WHERE +state = 4 AND bridge = ?2 AND event IN (
        SELECT id FROM events WHERE account = ?3 AND channel = ?4 AND message = ?5
        UNION ALL
        SELECT e.id FROM links l JOIN events e
        ON e.account = l.account AND e.channel = l.channel AND e.message = l.copy
        WHERE l.bridge = ?2 AND l.origin_account = ?3 AND l.origin_channel = ?4 AND l.origin = ?5)
      RETURNING bridge, account, channel
      """,
      .integer(now), .text(link.bridge.rawValue), .text(link.source.account.rawValue),
      .text(link.source.channel.rawValue), .text(link.origin.rawValue)
    ) { row in
      LaneID(
        bridge: BridgeName(row.text(0)),
        destination: Address(account: AccountName(row.text(1)), channel: ChannelID(row.text(2))))
    }
  }
}

extension Journal {
  /// Back to pending: a send that was found not to have been carried out.
  package func reopen(_ delivery: Int64) async throws(FerryError) {
    let now = clock.now().milliseconds
    try await database.write { connection in
      try connection.execute(
        "UPDATE deliveries SET state = 0, updated = ? WHERE id = ?", .integer(now), .integer(delivery))
    }
  }
}
