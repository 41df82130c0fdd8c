package import FerryCore
import FerryRuntime

/// Somebody who goes by a name at an address.
package struct NameOwner: Hashable, Sendable {
  /// Where a bridge brings them from; nil when they are at home at the address.
  package let account: AccountName?
  package let id: UserID

  package init(account: AccountName?, id: UserID) {
    self.account = account
    self.id = id
  }
}

extension Journal {
  /// Notes that `owner` goes by a name that looks like `skeleton` at `place`, and returns all who do, in the order in
  /// which they were first seen.
  package func owners(
    of skeleton: String, at place: Address, with owner: NameOwner
  ) async throws(FerryError) -> [NameOwner] {
    let now = clock.now().milliseconds
    let known = try await database.read { try Self.owners(of: skeleton, at: place, $0) }
    if known.contains(where: { $0.owner == owner && $0.seen > now - 86_400_000 }) { return known.map(\.owner) }
    return try await database.write { connection in
      try connection.execute(
        """
        INSERT INTO names(account, channel, skeleton, owner_account, owner, seen) VALUES (?, ?, ?, ?, ?, ?)
        ON CONFLICT DO UPDATE SET seen = excluded.seen
        """, .text(place.account.rawValue), .text(place.channel.rawValue), .text(skeleton),
        .text(owner.account?.rawValue ?? ""), .text(owner.id.rawValue), .integer(now))
      return try Self.owners(of: skeleton, at: place, connection).map(\.owner)
    }
  }

  private static func owners(
    of skeleton: String, at place: Address, _ connection: Connection
  ) throws -> [(owner: NameOwner, seen: Int64)] {
    try connection.rows(
      """
      SELECT owner_account, owner, seen FROM names WHERE account = ? AND channel = ? AND skeleton = ? ORDER BY id
      """, .text(place.account.rawValue), .text(place.channel.rawValue), .text(skeleton)
    ) { row in
      let account = row.text(0)
      return (
        NameOwner(account: account.isEmpty ? nil : AccountName(account), id: UserID(row.text(1))), row.integer(2)
      )
    }
  }
}
