package import FerryCore
import FerryStorage

extension ChatTransaction {
  package func hasRoom(_ room: ChannelID) throws -> Bool { try ChatService.row(of: room, connection) != nil }

  /// As `ChatService.makeRoom`.
  @discardableResult
  package func makeRoom(_ id: ChannelID, title: String? = nil) throws -> (room: Room, isNew: Bool) {
    try limits.checkID(id.rawValue, "room")
    if let title { try limits.checkName(title, "room's title") }
    let isNew = try ChatService.row(of: id, connection) == nil
    let row = try ChatService.rowMakingRoom(id, at: now, connection)
    if let title {
      try connection.execute("UPDATE rooms SET title = ? WHERE id = ?", .text(title), .integer(row))
    }
    return (try ChatService.room(id, connection), isNew)
  }

  /// Removes a room with its messages, members and marks. Its events stay in the log, its name becomes free. False when
  /// there was none.
  @discardableResult
  package func removeRoom(_ id: ChannelID) throws -> Bool {
    guard let row = try ChatService.row(of: id, connection) else { return false }
    try connection.execute(
      "DELETE FROM reactions WHERE message IN (SELECT id FROM messages WHERE room = ?)", .integer(row))
    for table in ["messages", "members", "reads"] {
      try connection.execute("DELETE FROM \(table) WHERE room = ?", .integer(row))
    }
    // No room that anybody can name has a control character in its name.
    try connection.execute(
      "UPDATE rooms SET name = ?, removed = ? WHERE id = ?", .text("\u{1}\(row)"), .integer(now.milliseconds),
      .integer(row))
    return true
  }

  // MARK: Members

  package func isMember(_ user: UserID, of room: ChannelID) throws -> Bool {
    guard let row = try ChatService.row(of: room, connection) else { return false }
    return try connection.first(
      "SELECT 1 FROM members WHERE room = ? AND user = ?", .integer(row), .text(user.rawValue)
    ) { _ in true } ?? false
  }

  /// As `ChatService.join`.
  @discardableResult
  package func join(_ named: Author?, _ room: ChannelID, by caller: Caller, stamp: Stamp? = nil) throws -> Bool {
    try limits.checkID(room.rawValue, "room")
    // A moderator may bring in others.
    let member: Author
    if let named, caller.moderates { member = named } else { member = try caller.author(named) }
    try limits.check(member)
    try chat.check(stamp, caller)
    let isNew = try !isMember(member.id, of: room)
    let row = try ChatService.rowMakingRoom(room, at: now, connection)
    try connection.execute(
      """
      INSERT INTO members(room, user, name, avatar, joined) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT(room, user) DO UPDATE SET name = excluded.name, avatar = excluded.avatar
      """, .integer(row), .text(member.id.rawValue), .text(member.name), SQLValue(member.avatar),
      .integer(now.milliseconds))
    if isNew { try log(.joined(Membership(member: member, stamp: stamp)), of: room, row: row) }
    return isNew
  }

  /// As `ChatService.leave`.
  @discardableResult
  package func leave(_ user: UserID, _ room: ChannelID, by caller: Caller, stamp: Stamp? = nil) throws -> Bool {
    try limits.checkID(user.rawValue, "user id")
    try chat.check(stamp, caller)
    guard caller.mayChange(messageOf: user) else {
      throw FerryError(.forbidden, "Only a moderator may remove another member.")
    }
    let row = try ChatService.existingRow(of: room, connection)
    let member = try connection.first(
      "SELECT user, name, avatar FROM members WHERE room = ? AND user = ?", .integer(row), .text(user.rawValue),
      map: ChatService.author)
    guard let member else { return false }
    try connection.execute("DELETE FROM members WHERE room = ? AND user = ?", .integer(row), .text(user.rawValue))
    try log(.left(Membership(member: member, stamp: stamp)), of: room, row: row)
    return true
  }
}
