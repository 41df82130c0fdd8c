package import FerryCore
import FerryStorage

extension ChatService {
  /// Lets go of all but a room's last messages: the others with their reactions, and the events of which nobody needs
  /// to be told any more. For rooms that show what another service does not keep; nobody else's history is cut.
  ///
  /// Readers that are further behind than that are not told what is gone.
  package func trim(_ room: ChannelID, to count: Int) async throws(FerryError) {
    try await database.write { connection in
      guard let row = try Self.row(of: room, connection) else { return }
      let first = try connection.first(
        "SELECT id FROM messages WHERE room = ? ORDER BY id DESC LIMIT 1 OFFSET ?", .integer(row),
        SQLValue(max(count, 0))
      ) { $0.integer(0) }
      if let first {
        try connection.execute(
          "DELETE FROM reactions WHERE message IN (SELECT id FROM messages WHERE room = ? AND id <= ?)", .integer(row),
          .integer(first))
        try connection.execute("DELETE FROM messages WHERE room = ? AND id <= ?", .integer(row), .integer(first))
      }
      let last = try connection.first(
        "SELECT sequence FROM events WHERE room = ? ORDER BY sequence DESC LIMIT 1 OFFSET ?", .integer(row),
        SQLValue(max(count, 0) * Self.eventsPerMessage)
      ) { $0.integer(0) }
      if let last {
        try connection.execute(
          "DELETE FROM events WHERE room = ? AND sequence <= ?", .integer(row), .integer(last))
      }
    }
  }

  /// Posted, delivered, read, and now and then something else.
  private static let eventsPerMessage = 4
}
