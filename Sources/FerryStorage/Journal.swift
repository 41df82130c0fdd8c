package import FerryCore
package import FerryRuntime

/// The durable record of accepted events, deliveries, links and cursors. Every method returns once what it wrote is
/// on disk, and throws `storage` when it cannot be.
package final class Journal: Sendable {
  let database: Database
  let clock: any FerryClock
  let recent = RecentEvents()

  package init(path: String, clock: any FerryClock = SystemClock()) throws(FerryError) {
    database = try Database(path: path, migrations: JournalSchema.migrations, shrinks: true)
    self.clock = clock
  }

  /// Opens a journal to read it, also while a relay is writing it.
  package init(reading path: String) throws(FerryError) {
    database = try Database(reading: path, schema: JournalSchema.migrations.count)
    clock = SystemClock()
  }

  package func close() { database.close() }

  // MARK: Accepting

  /// Takes events in: drops duplicates and what Ferry wrote itself, records the rest with one delivery for every
  /// lane that `lanes` names, and moves the cursors. All or nothing.
  ///
  /// `refuse` is asked about each event that is new and goes somewhere; with the reason that it returns, its deliveries
  /// are dead letters from the start. Both are called on the writer's thread.
  package func accept(
    _ events: [Event], from account: AccountName, lanes: @escaping @Sendable (Event) -> [LaneID],
    refuse: @escaping @Sendable (Event) -> String? = { _ in nil }
  ) async throws(FerryError) -> Acceptance {
    let writable = events.map { event in (event: event, body: EventText.writeWhatCanBe(event)) }
    let now = clock.now().milliseconds
    let recent = recent
    return try await database.write { connection in
      var acceptance = Acceptance()
      var cursors: [ChannelID: Cursor?] = [:]
      for (event, body) in writable {
        if let cursor = event.cursor {
          cursors[event.channel] = cursor
        } else if cursors[event.channel] == nil {
          cursors[event.channel] = .some(nil)
        }
        guard let body else {
          // Kept waiting, it would hold up everything behind it for ever.
          acceptance.unwritable.append(event.key)
          continue
        }
        if let id = try Self.accept(event, body, account, now, lanes, refuse, connection, &acceptance) {
          connection.afterCommit { recent.keep(event, id) }
        }
      }
      for (channel, cursor) in cursors {
        try Self.move(cursor, account, channel, now, connection)
      }
      return acceptance
    }
  }

  /// The row of an event that is new and goes somewhere.
  private static func accept(
    _ event: Event, _ body: String, _ account: AccountName, _ now: Int64, _ lanes: (Event) -> [LaneID],
    _ refuse: (Event) -> String?, _ connection: Connection, _ acceptance: inout Acceptance
  ) throws -> Int64? {
    let source = Address(account: account, channel: event.channel)
    if try isOurs(event, at: source, connection) {
      acceptance.echoes += 1
      return nil
    }
    let lanes = lanes(event)
    guard !lanes.isEmpty else { return nil }
    guard try !isForgotten(event, at: source, connection) else {
      acceptance.forgotten += 1
      return nil
    }
    try connection.execute(
      """
      INSERT OR IGNORE INTO events(account, channel, key, kind, message, time, accepted, body)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      """,
      .text(account.rawValue), .text(event.channel.rawValue), .text(event.key.rawValue), .text(event.kindName),
      SQLValue(event.message?.rawValue), .integer(event.time.milliseconds), .integer(now), .text(body))
    guard connection.changes > 0 else {
      acceptance.duplicates += 1
      return nil
    }
    acceptance.accepted += 1
    acceptance.keys.append(event.key)
    let id = connection.lastInsertedID
    let refusal = refuse(event)
    if let refusal { acceptance.refused[refusal, default: 0] += 1 }
    let state = refusal == nil ? Delivery.State.pending : .dead
    for lane in lanes {
      try connection.execute(
        "INSERT INTO deliveries(event, bridge, account, channel, state, error, updated) VALUES (?, ?, ?, ?, ?, ?, ?)",
        .integer(id), .text(lane.bridge.rawValue), .text(lane.destination.account.rawValue),
        .text(lane.destination.channel.rawValue), .integer(state.rawValue), SQLValue(refusal), .integer(now))
      acceptance.lanes.insert(lane)
    }
    return id
  }

  /// G5: a stamp marks our own writing; where a provider loses stamps, the link does.
  private static func isOurs(_ event: Event, at source: Address, _ connection: Connection) throws -> Bool {
    if event.stamp != nil { return true }
    switch event.kind {
    case .posted, .edited, .deleted:
      guard let message = event.message else { return false }
      return try connection.first(
        "SELECT 1 FROM links WHERE account = ? AND channel = ? AND copy = ? LIMIT 1",
        .text(source.account.rawValue), .text(source.channel.rawValue), .text(message.rawValue)
      ) { _ in true } ?? false
    case .joined, .left, .read, .reacted: return false
    }
  }

  // MARK: Cursors and gaps

  /// Where every channel of an account stands.
  package func cursors(of account: AccountName) async throws(FerryError) -> [ChannelID: (Cursor?, Timestamp)] {
    let rows = try await database.read { connection in
      try connection.rows("SELECT channel, cursor, seen FROM cursors WHERE account = ?", .text(account.rawValue)) {
        (ChannelID($0.text(0)), $0.optionalText(1).map { Cursor($0) }, Timestamp(milliseconds: $0.integer(2)))
      }
    }
    return Dictionary(uniqueKeysWithValues: rows.map { ($0.0, ($0.1, $0.2)) })
  }

  package func move(to cursor: Cursor?, _ account: AccountName, _ channel: ChannelID) async throws(FerryError) {
    let now = clock.now().milliseconds
    try await database.write { try Self.move(cursor, account, channel, now, $0) }
  }

  private static func move(
    _ cursor: Cursor?, _ account: AccountName, _ channel: ChannelID, _ now: Int64, _ connection: Connection
  ) throws {
    try connection.execute(
      """
      INSERT INTO cursors(account, channel, cursor, seen) VALUES (?1, ?2, ?3, ?4)
      ON CONFLICT DO UPDATE SET cursor = coalesce(?3, cursor), seen = ?4
      """,
      .text(account.rawValue), .text(channel.rawValue), SQLValue(cursor?.rawValue), .integer(now))
  }

  package func record(_ gap: Gap, at account: AccountName) async throws(FerryError) {
    try await database.write { connection in
      try connection.execute(
        "INSERT INTO gaps(account, channel, began, ended) VALUES (?, ?, ?, ?)",
        .text(account.rawValue), .text(gap.channel.rawValue), .integer(gap.start.milliseconds),
        .integer(gap.end.milliseconds))
    }
  }

  /// The newest, in the order in which they were noted.
  package func gaps(limit: Int = 100) async throws(FerryError) -> [(AccountName, Gap)] {
    try await database.read { connection in
      let newest = "SELECT account, channel, began, ended FROM gaps ORDER BY id DESC LIMIT ?"
      return try connection.rows(newest, SQLValue(limit)) { row in
        let gap = Gap(
          channel: ChannelID(row.text(1)), start: Timestamp(milliseconds: row.integer(2)),
          end: Timestamp(milliseconds: row.integer(3)))
        return (AccountName(row.text(0)), gap)
      }.reversed()
    }
  }
}

extension Event {
  /// The message this is about.
  package var message: MessageID? {
    switch kind {
    case .posted(let message), .edited(let message): message.id
    case .deleted(let deletion): deletion.id
    case .read(let mark): mark.upTo
    case .reacted(let reaction): reaction.message
    case .joined, .left: nil
    }
  }

  package var kindName: String {
    switch kind {
    case .posted: "message"
    case .edited: "edit"
    case .deleted: "delete"
    case .joined: "join"
    case .left: "leave"
    case .read: "read"
    case .reacted: "reaction"
    }
  }
}
