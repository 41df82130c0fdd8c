package import FerryCore
import FerryRuntime

extension Journal {
  /// How many events are looked through for one answer, whatever channels they are of.
  private static let lookBack = 20_000

  /// What was accepted from a channel lately, the last accepted first, at most `limit` messages.
  ///
  /// Reads events backwards from the newest, so that the cost does not grow with the journal. Of the part that is
  /// looked through, everything counts: a message's last event, which may be an edit of an old one.
  package func recent(
    _ account: AccountName, _ channel: ChannelID, limit: Int
  ) async throws(FerryError) -> [KnownMessage] {
    try await database.read { connection in
      // The rowids are walked backwards: an index on account and channel would cost every event that is accepted.
      let bodies = try connection.rows(
        """
        SELECT body FROM events NOT INDEXED
        WHERE account = ? AND channel = ? AND kind IN ('message', 'edit', 'delete')
        AND id > (SELECT max(id) FROM events) - ? ORDER BY id DESC LIMIT ?
        """, .text(account.rawValue), .text(channel.rawValue), .integer(Int64(Self.lookBack)),
        .integer(Int64(limit) * 4)
      ) { $0.text(0) }
      return Array(KnownMessage.latest(of: try bodies.map(EventText.read)).prefix(limit))
    }
  }
}
