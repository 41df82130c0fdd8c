package import FerryCore
package import FerryRuntime
import FerryStorage

/// The chat of one namespace: rooms, members, messages, reactions, reads, files and typing, on one SQLite file.
///
/// Every change is durable when its method returns, and is one row of an event log whose sequence readers resume
/// from. All methods may be called from any task at any time.
package final class ChatService: Sendable {
  let database: Database
  let feed = Feed()
  let shelf: FileShelf
  let observation = Locked<Observation?>(nil)
  /// Bytes of all files; nil before they were first counted.
  let keptBytes = Locked<Int64?>(nil)
  let clock: any FerryClock
  let logger: Logger
  package let limits: ChatLimits

  /// Opens or creates the database file `path` and the folder `files`. Throws `storage` when either cannot be used.
  package init(
    path: String, files: String, clock: any FerryClock = SystemClock(), logger: Logger, limits: ChatLimits = .init()
  ) throws(FerryError) {
    self.clock = clock
    self.logger = logger
    self.limits = limits
    shelf = try FileShelf(folder: files)
    do throws(FerryError) {
      database = try Database(path: path, migrations: Schema.steps)
    } catch {
      shelf.close()
      throw error
    }
  }

  /// Ends typing that is not renewed, until cancelled. Everything else works without it.
  package func run() async {
    while await feed.typingBegan.next() != nil {
      while let due = feed.endTyping(dueBy: clock.now()) {
        let wait = max(due.milliseconds - clock.now().milliseconds, 1)
        do { try await clock.sleep(for: .milliseconds(wait)) } catch { return }
      }
    }
  }

  /// Ends all readers, finishes the writes under way and lets go of the files. Later calls throw.
  package func close() {
    feed.close()
    database.close()
    shelf.close()
    // An observer holds on to whom it tells, and that to this.
    observation.withLock { $0 = nil }
  }

  // MARK: The log

  /// The sequence of the last event, or the one before the first.
  package func head() async throws(FerryError) -> Int64 {
    if let head = feed.head { return head }
    let last = try await database.read { connection in
      try connection.first("SELECT seq FROM sqlite_sequence WHERE name = 'events'") { $0.integer(0) }
    }
    return feed.learn(head: last ?? 0)
  }

  /// A reader of one room, or of all when `room` is nil, from after a sequence (nil: from now on). The room need not
  /// exist yet. The caller closes it.
  package func reader(of room: ChannelID?, after: Int64?) async throws(FerryError) -> FeedReader {
    if let room { try limits.checkID(room.rawValue, "room") }
    _ = try await head()
    return try FeedReader(feed: feed, room: room, after: after) { [database] after, limit async throws(FerryError) in
      try await Self.log(of: room, after: after, limit: limit, in: database)
    }
  }

  /// One page of the log, oldest first.
  package func events(of room: ChannelID?, after: Int64, limit: Int) async throws(FerryError) -> [LoggedEvent] {
    try await Self.log(of: room, after: after, limit: limits.checkPage(limit), in: database)
  }

  /// One page of a room's log as it may be handed to others: messages that have been deleted since say nothing, and
  /// bear the time of their deletion.
  package func archivedEvents(of room: ChannelID, after: Int64, limit: Int) async throws(FerryError) -> [LoggedEvent] {
    let limit = limits.checkPage(limit)
    return try await database.read { connection in
      let row = try Self.existingRow(of: room, connection)
      return try connection.rows(
        """
        SELECT sequence, json, messages.deleted FROM events
        LEFT JOIN messages ON messages.id = CAST(json_extract(json, '$.message.id') AS INTEGER)
          AND messages.deleted IS NOT NULL
        WHERE events.room = ? AND sequence > ? ORDER BY sequence LIMIT ?
        """, .integer(row), .integer(after), SQLValue(limit)
      ) { found in
        var json = found.text(1)
        if let deleted = found.optionalInteger(2) {
          json = try Self.withheld(json, deleted: Timestamp(milliseconds: deleted))
        }
        return LoggedEvent(sequence: found.integer(0), room: room, json: json)
      }
    }
  }

  private static func withheld(_ json: String, deleted: Timestamp) throws(FerryError) -> String {
    var event = try Wire.value(Wire.Event.self, from: json.utf8)
    event.message?.text = ""
    event.message?.attachments = []
    event.message?.mentions = nil
    event.message?.attributes = nil
    event.message?.deleted = Wire.Time(deleted)
    return try event.json()
  }

  private static func log(
    of room: ChannelID?, after: Int64, limit: Int, in database: Database
  ) async throws(FerryError) -> [LoggedEvent] {
    try await database.read { connection in
      if let room {
        guard let row = try Self.row(of: room, connection) else { return [] }
        return try connection.rows(
          "SELECT sequence, json FROM events WHERE room = ? AND sequence > ? ORDER BY sequence LIMIT ?",
          .integer(row), .integer(after), SQLValue(limit)
        ) { LoggedEvent(sequence: $0.integer(0), room: room, json: $0.text(1)) }
      }
      return try connection.rows(
        """
        SELECT sequence, json, rooms.name FROM events JOIN rooms ON rooms.id = events.room
        WHERE sequence > ? ORDER BY sequence LIMIT ?
        """, .integer(after), SQLValue(limit)
      ) { LoggedEvent(sequence: $0.integer(0), room: ChannelID($0.text(2)), json: $0.text(1)) }
    }
  }

  // MARK: Small durable values

  /// Remembers a value under a key, over an earlier one.
  package func keep(_ value: String, as key: String) async throws(FerryError) {
    let now = clock.now()
    try await database.write { connection in
      try connection.execute(
        """
        INSERT INTO kept(key, value, time) VALUES (?, ?, ?)
        ON CONFLICT(key) DO UPDATE SET value = excluded.value, time = excluded.time
        """, .text(key), .text(value), .integer(now.milliseconds))
    }
  }

  /// The value under a key and its age in seconds; nil when there is none.
  package func kept(_ key: String) async throws(FerryError) -> (value: String, age: Double)? {
    let now = clock.now()
    return try await database.read { connection in
      try connection.first("SELECT value, time FROM kept WHERE key = ?", .text(key)) { row in
        (row.text(0), Double(max(now.milliseconds - row.integer(1), 0)) / 1000)
      }
    }
  }

  /// Forgets values under keys that begin with `prefix` and are older than `age`. True when others are left.
  package func forget(_ prefix: String, olderThan age: Duration) async throws(FerryError) -> Bool {
    let oldest = clock.now().advanced(by: .milliseconds(-age.milliseconds))
    return try await database.write { connection in
      // No character sorts behind the last one of Unicode.
      let (first, last) = (SQLValue.text(prefix), SQLValue.text(prefix + "\u{10FFFF}"))
      try connection.execute(
        "DELETE FROM kept WHERE key >= ? AND key < ? AND time < ?", first, last, .integer(oldest.milliseconds))
      return try connection.first("SELECT 1 FROM kept WHERE key >= ? AND key < ?", first, last) { _ in true } ?? false
    }
  }

  /// One more than what was counted under the key before; 1 at first.
  package func count(_ key: String) async throws(FerryError) -> Int64 {
    let now = clock.now()
    return try await database.write { connection in
      try connection.first(
        """
        INSERT INTO kept(key, value, time) VALUES (?, '1', ?)
        ON CONFLICT(key) DO UPDATE SET value = CAST(value AS INTEGER) + 1, time = excluded.time
        RETURNING CAST(value AS INTEGER)
        """, .text(key), .integer(now.milliseconds)
      ) { $0.integer(0) } ?? 1
    }
  }

  // MARK: Typing

  /// Tells the room's readers that somebody started or stopped typing. Never stored; ends after five seconds without
  /// renewal, or with that user's message.
  package func setTyping(_ typing: Typing, by caller: Caller) throws(FerryError) {
    try limits.checkID(typing.channel.rawValue, "room")
    var typing = typing
    typing.by = try caller.author(typing.by)
    try limits.check(typing.by)
    try check(typing.stamp, caller)
    feed.publish(typing, at: clock.now(), lasting: limits.typingLasts)
  }
}
