import FerryCore
import FerryStorage

extension ChatService {
  /// Refuses a stamp from a caller who speaks for one user only: what bears one is not mirrored.
  func check(_ stamp: Stamp?, _ caller: Caller) throws(FerryError) {
    guard let stamp else { return }
    try caller.checkMayActAsAnybody("stamp")
    try limits.check(stamp)
  }
}

/// What happens inside write transactions. Writer thread.
extension ChatService {
  /// The row of a room; nil when it does not exist.
  static func row(of room: ChannelID, _ connection: Connection) throws -> Int64? {
    try connection.first("SELECT id FROM rooms WHERE name = ?", .text(room.rawValue)) { $0.integer(0) }
  }

  static func existingRow(of room: ChannelID, _ connection: Connection) throws -> Int64 {
    guard let row = try row(of: room, connection) else { throw noRoom(room) }
    return row
  }

  /// The row of a room, made on first use.
  static func rowMakingRoom(_ room: ChannelID, at now: Timestamp, _ connection: Connection) throws -> Int64 {
    if let row = try row(of: room, connection) { return row }
    try connection.execute(
      "INSERT INTO rooms(name, created) VALUES (?, ?)", .text(room.rawValue), .integer(now.milliseconds))
    return connection.lastInsertedID
  }

  static func noRoom(_ room: ChannelID) -> FerryError {
    FerryError(.notFound, "There is no room \"\(room)\".")
  }

  /// Appends to the log. `stored` as in `Wire.Event.init`.
  static func append(
    _ kind: Event.Kind, stored: ChatMessage? = nil, to room: ChannelID, row: Int64, at now: Timestamp,
    _ connection: Connection
  ) throws -> LoggedEvent {
    var event = Event(key: "", channel: room, time: now, kind: kind)
    let json = try Wire.Event(event, stored: stored).json()
    try connection.execute("INSERT INTO events(room, json) VALUES (?, ?)", .integer(row), .text(json))
    let sequence = connection.lastInsertedID
    event.key = EventKey("s\(sequence)")
    event.cursor = Cursor(String(sequence))
    return LoggedEvent(sequence: sequence, room: room, json: json, event: event)
  }

  /// Hands the transaction's events to the readers once they are durable.
  func publish(
    _ events: [LoggedEvent], of room: ChannelID, typingEnds authors: [UserID] = [], _ connection: Connection
  ) {
    if events.isEmpty { return }
    connection.afterCommit { [feed] in feed.publish(events, of: room, typingEnds: authors) }
  }

  /// Appends and publishes one event.
  func log(
    _ kind: Event.Kind, stored: ChatMessage? = nil, of room: ChannelID, row: Int64, at now: Timestamp,
    _ connection: Connection
  ) throws {
    let event = try Self.append(kind, stored: stored, to: room, row: row, at: now, connection)
    publish([event], of: room, connection)
  }
}
