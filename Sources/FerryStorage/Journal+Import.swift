package import FerryCore
import FerryRuntime

extension Journal {
  /// Settles deliveries of messages that an import has copied meanwhile: their links are there. Returns how many.
  ///
  /// Called before the lane runs.
  package func settleImported(_ lane: LaneID, from source: Address) async throws(FerryError) -> Int {
    let now = clock.now().milliseconds
    return try await database.write { connection in
      try connection.execute(
        """
        UPDATE deliveries SET state = 2, updated = ?1
        WHERE bridge = ?2 AND account = ?3 AND channel = ?4 AND state < 2 AND event IN (
          SELECT events.id FROM events JOIN links ON links.origin_account = events.account
            AND links.origin_channel = events.channel AND links.origin = events.message
          WHERE events.account = ?5 AND events.channel = ?6 AND events.kind = 'message'
            AND links.bridge = ?2 AND links.account = ?3 AND links.channel = ?4)
        """, .integer(now), .text(lane.bridge.rawValue), .text(lane.destination.account.rawValue),
        .text(lane.destination.channel.rawValue), .text(source.account.rawValue), .text(source.channel.rawValue))
      return connection.changes
    }
  }

  /// Those of the messages that were deleted later on.
  package func deleted(_ messages: Set<MessageID>, of address: Address) async throws(FerryError) -> Set<MessageID> {
    if messages.isEmpty { return [] }
    return try await database.read { connection in
      var deleted: Set<MessageID> = []
      for id in messages {
        let isDeleted = try connection.first(
          "SELECT 1 FROM events WHERE account = ? AND channel = ? AND message = ? AND kind = 'delete'",
          .text(address.account.rawValue), .text(address.channel.rawValue), .text(id.rawValue)
        ) { _ in true }
        if isDeleted == true { deleted.insert(id) }
      }
      return deleted
    }
  }

  /// What was accepted from a channel, in the order of its acceptance, and the place of the last of it.
  package func events(
    of address: Address, after place: Int64, limit: Int
  ) async throws(FerryError) -> (events: [Event], place: Int64) {
    try await database.read { connection in
      let rows = try connection.rows(
        "SELECT id, body FROM events WHERE account = ? AND channel = ? AND id > ? ORDER BY id LIMIT ?",
        .text(address.account.rawValue), .text(address.channel.rawValue), .integer(place), SQLValue(limit)
      ) { ($0.integer(0), $0.text(1)) }
      return (try rows.map { try EventText.read($0.1) }, rows.last?.0 ?? place)
    }
  }
}
