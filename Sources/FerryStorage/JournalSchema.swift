/// The steps by which the journal's schema came to be. Never change one that has shipped: add another.
enum JournalSchema {
  static let migrations = [
    """
    CREATE TABLE events(
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      account TEXT NOT NULL, channel TEXT NOT NULL, key TEXT NOT NULL,
      kind TEXT NOT NULL, message TEXT, time INTEGER NOT NULL, accepted INTEGER NOT NULL, body TEXT NOT NULL,
      UNIQUE(account, channel, key));
    CREATE INDEX events_by_message ON events(account, channel, message, id) WHERE message IS NOT NULL;

    -- state: 0 pending, 1 sending (outcome unknown after a restart), 2 settled, 3 dead, 4 waits for its message
    CREATE TABLE deliveries(
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      event INTEGER NOT NULL REFERENCES events(id) ON DELETE CASCADE,
      bridge TEXT NOT NULL, account TEXT NOT NULL, channel TEXT NOT NULL,
      state INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0, error TEXT, updated INTEGER NOT NULL);
    CREATE INDEX open_deliveries ON deliveries(bridge, account, channel, id) WHERE state < 2;
    CREATE INDEX dead_deliveries ON deliveries(state, id) WHERE state > 2;
    CREATE INDEX deliveries_by_event ON deliveries(event);

    CREATE TABLE links(
      bridge TEXT NOT NULL,
      origin_account TEXT NOT NULL, origin_channel TEXT NOT NULL, origin TEXT NOT NULL,
      account TEXT NOT NULL, channel TEXT NOT NULL, part INTEGER NOT NULL,
      copy TEXT NOT NULL, revision INTEGER NOT NULL DEFAULT 0, deleted INTEGER NOT NULL DEFAULT 0,
      PRIMARY KEY(bridge, origin_account, origin_channel, origin, account, channel, part)) WITHOUT ROWID;
    CREATE INDEX links_by_origin ON links(origin_account, origin_channel, origin);
    CREATE INDEX links_by_copy ON links(account, channel, copy);

    CREATE TABLE cursors(
      account TEXT NOT NULL, channel TEXT NOT NULL, cursor TEXT, seen INTEGER NOT NULL,
      PRIMARY KEY(account, channel)) WITHOUT ROWID;

    CREATE TABLE gaps(
      id INTEGER PRIMARY KEY, account TEXT NOT NULL, channel TEXT NOT NULL,
      began INTEGER NOT NULL, ended INTEGER NOT NULL);

    CREATE TABLE attempts(
      id INTEGER PRIMARY KEY, delivery INTEGER NOT NULL REFERENCES deliveries(id) ON DELETE CASCADE,
      time INTEGER NOT NULL, error TEXT NOT NULL);
    CREATE INDEX attempts_by_delivery ON attempts(delivery);

    CREATE TABLE files(
      token TEXT PRIMARY KEY, sha256 TEXT NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL, size INTEGER NOT NULL,
      created INTEGER NOT NULL, UNIQUE(sha256, name));
    """,
    """
    -- Who goes by a name that looks like this at an address. owner_account is empty for those at home there.
    CREATE TABLE names(
      id INTEGER PRIMARY KEY, account TEXT NOT NULL, channel TEXT NOT NULL, skeleton TEXT NOT NULL,
      owner_account TEXT NOT NULL, owner TEXT NOT NULL, seen INTEGER NOT NULL,
      UNIQUE(account, channel, skeleton, owner_account, owner));

    -- Digests of what was pruned, so that it is not taken for new when it comes again. day: since 1970.
    CREATE TABLE forgotten(digest INTEGER PRIMARY KEY, day INTEGER NOT NULL);
    """,
  ]
}
