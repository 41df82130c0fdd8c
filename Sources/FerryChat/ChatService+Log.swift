import FerryCore
import FerryStorage

extension ChatService {
  /// Refuses a stamp from a caller who speaks for one user only: what bears one is not mirrored.
  func check(_ stamp: Stamp?, _ caller: Caller) throws(FerryError) {
    guard let stamp else { return }
    try caller.checkMayActAsAnybody("stamp")
    try limits.check(stamp)
  }

  /// The row of a room; nil when it does not exist.
  static func row(of room: ChannelID, _ connection: Connection) throws -> Int64? {
    try connection.first("SELECT id FROM rooms WHERE name = ?", .text(room.rawValue)) { $0.integer(0) }
  }

  static func existingRow(of room: ChannelID, _ connection: Connection) throws -> Int64 {
    guard let row = try row(of: room, connection) else { throw noRoom(room) }
    return row
  }

  /// The row of a room, made on first use. Writer thread.
  static func rowMakingRoom(_ room: ChannelID, at now: Timestamp, _ connection: Connection) throws -> Int64 {
    if let row = try row(of: room, connection) { return row }
    try connection.execute(
      "INSERT INTO rooms(name, created) VALUES (?, ?)", .text(room.rawValue), .integer(now.milliseconds))
    return connection.lastInsertedID
  }

  static func noRoom(_ room: ChannelID) -> FerryError {
    FerryError(.notFound, "There is no room \"\(room)\".")
  }
}
