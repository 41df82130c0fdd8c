package import FerryCore
import FerryStorage

extension ChatService {
  /// Makes a room, or gives an existing one another title.
  package func makeRoom(
    _ id: ChannelID, title: String? = nil
  ) async throws(FerryError) -> (room: Room, isNew: Bool) {
    try await write { try $0.makeRoom(id, title: title) }
  }

  package func room(_ id: ChannelID) async throws(FerryError) -> Room {
    try await database.read { try Self.room(id, $0) }
  }

  /// Rooms by name, from after one.
  package func rooms(after: ChannelID? = nil, limit: Int = 500) async throws(FerryError) -> [Room] {
    let limit = limits.checkPage(limit)
    return try await database.read { connection in
      let rooms = try connection.rows(
        "\(Self.selectRoom) WHERE rooms.name > ? AND rooms.removed IS NULL ORDER BY rooms.name LIMIT ?",
        .text(after?.rawValue ?? ""),
        SQLValue(limit), map: Self.bareRoom)
      return try rooms.map { try Self.withLast($0.room, row: $0.row, connection) }
    }
  }

  /// Where a user stands in rooms, in their order. A room that does not exist has nothing unread.
  package func standings(of user: UserID, in rooms: [ChannelID]) async throws(FerryError) -> [Standing] {
    let most = limits.unread
    return try await database.read { connection in
      try rooms.map { room in
        guard let row = try Self.row(of: room, connection) else { return Standing(unread: 0, read: nil) }
        let read = try connection.first(
          "SELECT message FROM reads WHERE room = ? AND user = ? AND state = 'read'", .integer(row),
          .text(user.rawValue)
        ) { $0.integer(0) }
        let unread = try connection.first(
          """
          SELECT COUNT(*) FROM (
            SELECT 1 FROM messages WHERE room = ? AND id > ? AND author <> ? AND deleted IS NULL LIMIT ?)
          """, .integer(row), .integer(read ?? 0), .text(user.rawValue), SQLValue(most)
        ) { Int($0.integer(0)) }
        return Standing(unread: unread ?? 0, read: read.map { MessageID(String($0)) })
      }
    }
  }

  // MARK: Members

  /// Those in the room, longest first.
  package func members(of room: ChannelID) async throws(FerryError) -> [Author] {
    try await database.read { connection in
      let row = try Self.existingRow(of: room, connection)
      return try connection.rows(
        "SELECT user, name, avatar FROM members WHERE room = ? ORDER BY joined, user", .integer(row), map: Self.author)
    }
  }

  /// Joining again changes name and avatar and tells nobody. Makes the room on first use. True when new.
  @discardableResult
  package func join(
    _ member: Author?, _ room: ChannelID, by caller: Caller, stamp: Stamp? = nil
  ) async throws(FerryError) -> Bool {
    try await write { try $0.join(member, room, by: caller, stamp: stamp) }
  }

  /// Leaving where one is not succeeds and tells nobody. True when somebody left.
  @discardableResult
  package func leave(
    _ user: UserID, _ room: ChannelID, by caller: Caller, stamp: Stamp? = nil
  ) async throws(FerryError) -> Bool {
    try await write { try $0.leave(user, room, by: caller, stamp: stamp) }
  }

  // MARK: Pieces

  static func author(_ row: Row) -> Author {
    Author(id: UserID(row.text(0)), name: row.text(1), avatar: row.optionalText(2))
  }

  private static let selectRoom = """
    SELECT rooms.id, rooms.name, rooms.title, rooms.created,
      (SELECT COUNT(*) FROM members WHERE members.room = rooms.id)
    FROM rooms
    """

  private static func bareRoom(_ row: Row) -> (row: Int64, room: Room) {
    let id = ChannelID(row.text(1))
    let room = Room(
      id: id, title: row.optionalText(2) ?? id.rawValue, created: Timestamp(milliseconds: row.integer(3)),
      members: Int(row.integer(4)), last: nil)
    return (row.integer(0), room)
  }

  static func room(_ id: ChannelID, _ connection: Connection) throws -> Room {
    guard let found = try connection.first("\(selectRoom) WHERE rooms.name = ?", .text(id.rawValue), map: bareRoom)
    else { throw noRoom(id) }
    return try withLast(found.room, row: found.row, connection)
  }

  private static func withLast(_ room: Room, row: Int64, _ connection: Connection) throws -> Room {
    var room = room
    room.last = try connection.first(
      "SELECT \(MessageRow.columns) FROM messages WHERE room = ? ORDER BY messages.id DESC LIMIT 1", .integer(row)
    ) { try MessageRow.message($0, room: room.id) }
    return room
  }
}
