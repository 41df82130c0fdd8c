package import FerryCore
import FerryRuntime

extension Journal {
  /// The copies of an original at one destination, by part.
  package func links(
    _ bridge: BridgeName, _ source: Address, _ origin: MessageID, to destination: Address
  ) async throws(FerryError) -> [Link] {
    try await database.read { connection in
      try connection.rows(
        """
        SELECT part, copy, revision, deleted FROM links WHERE bridge = ? AND origin_account = ?
        AND origin_channel = ? AND origin = ? AND account = ? AND channel = ? ORDER BY part
        """,
        .text(bridge.rawValue), .text(source.account.rawValue), .text(source.channel.rawValue),
        .text(origin.rawValue), .text(destination.account.rawValue), .text(destination.channel.rawValue)
      ) { row in
        Link(
          bridge: bridge, source: source, origin: origin, destination: destination, copy: MessageID(row.text(1)),
          part: Int(row.integer(0)), revision: Int(row.integer(2)), isDeleted: row.integer(3) != 0)
      }
    }
  }

  /// What a message at `source` is called at `destination`: its copy, its original, or the other copy of its
  /// original. Nil when the two are not linked.
  package func translate(
    _ message: MessageID, at source: Address, to destination: Address
  ) async throws(FerryError) -> MessageID? {
    try await database.read { try Self.translate(message, at: source, to: destination, $0) }
  }

  static func translate(
    _ message: MessageID, at source: Address, to destination: Address, _ connection: Connection
  ) throws -> MessageID? {
    let here = [SQLValue.text(source.account.rawValue), .text(source.channel.rawValue), .text(message.rawValue)]
    let there = [SQLValue.text(destination.account.rawValue), .text(destination.channel.rawValue)]
    if let copy = try copy(of: here, at: there, connection) { return copy }
    let origin = try connection.first(
      "SELECT origin_account, origin_channel, origin FROM links WHERE account = ? AND channel = ? AND copy = ?",
      here[0], here[1], here[2]
    ) { [SQLValue.text($0.text(0)), .text($0.text(1)), .text($0.text(2))] }
    guard let origin else { return nil }
    if Array(origin[..<2]) == there, case .text(let id) = origin[2] { return MessageID(id) }
    return try copy(of: origin, at: there, connection)
  }

  private static func copy(
    of origin: [SQLValue], at destination: [SQLValue], _ connection: Connection
  ) throws -> MessageID? {
    try connection.first(
      """
      SELECT copy FROM links WHERE origin_account = ? AND origin_channel = ? AND origin = ?
      AND account = ? AND channel = ? ORDER BY part LIMIT 1
      """, origin[0], origin[1], origin[2], destination[0], destination[1]
    ) { MessageID($0.text(0)) }
  }

  static func store(_ link: Link, _ connection: Connection) throws {
    try connection.execute(
      """
      INSERT INTO links(bridge, origin_account, origin_channel, origin, account, channel, part, copy, revision, deleted)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET copy = excluded.copy, revision = excluded.revision, deleted = excluded.deleted
      """,
      .text(link.bridge.rawValue), .text(link.source.account.rawValue), .text(link.source.channel.rawValue),
      .text(link.origin.rawValue), .text(link.destination.account.rawValue),
      .text(link.destination.channel.rawValue), SQLValue(link.part), .text(link.copy.rawValue),
      SQLValue(link.revision), SQLValue(link.isDeleted))
  }

  // MARK: Files served under a link

  /// The token under which a file is served: made at the first call, the same ever after.
  package func serve(
    sha256: String, name: String, mediaType: String, size: Int64
  ) async throws(FerryError) -> ServedFile {
    let fresh = Crypto.randomHex(bytes: 16)
    let now = clock.now().milliseconds
    return try await database.write { connection in
      try connection.execute(
        "INSERT OR IGNORE INTO files(token, sha256, name, type, size, created) VALUES (?, ?, ?, ?, ?, ?)",
        .text(fresh), .text(sha256), .text(name), .text(mediaType), .integer(size), .integer(now))
      let token = try connection.first(
        "SELECT token FROM files WHERE sha256 = ? AND name = ?", .text(sha256), .text(name)
      ) { $0.text(0) }
      return ServedFile(token: token ?? fresh, sha256: sha256, name: name, mediaType: mediaType, size: size)
    }
  }

  /// Whether a link to this file was given out: then it is no mere cache.
  package func isServed(sha256: String) async throws(FerryError) -> Bool {
    try await database.read { connection in
      try connection.first("SELECT 1 FROM files WHERE sha256 = ? LIMIT 1", .text(sha256)) { _ in true } ?? false
    }
  }

  package func file(token: String) async throws(FerryError) -> ServedFile? {
    try await database.read { connection in
      try connection.first("SELECT sha256, name, type, size FROM files WHERE token = ?", .text(token)) { row in
        ServedFile(
          token: token, sha256: row.text(0), name: row.text(1), mediaType: row.text(2), size: row.integer(3))
      }
    }
  }
}
