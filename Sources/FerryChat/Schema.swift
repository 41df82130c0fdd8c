/// The schema of a namespace, one string a step. A step that has been released is never changed.
enum Schema {
  /// Message ids and event sequences start at the microsecond of the file's creation instead of one. So a namespace
  /// that was wiped and made again never reuses an id: what others remember about the old one (cursors, links,
  /// keys of seen events) does not match by accident, and a cursor of the old one is before everything in the new.
  ///
  /// `messages.position` counts what happened to the messages of a room, posts, edits and deletions alike, when the
  /// message was posted; `skips` of the last message are the edits and deletions since. `rooms.removed` is the time at
  /// which a room ended; its row stays for the events in the log, under a name that nobody can ask for.
  static let steps = [
    """
    CREATE TABLE rooms(
      id INTEGER PRIMARY KEY,
      name TEXT NOT NULL UNIQUE,
      title TEXT,
      created INTEGER NOT NULL);
    CREATE TABLE members(
      room INTEGER NOT NULL, user TEXT NOT NULL, name TEXT NOT NULL, avatar TEXT, joined INTEGER NOT NULL,
      PRIMARY KEY(room, user)) WITHOUT ROWID;

    CREATE TABLE messages(
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      room INTEGER NOT NULL,
      client_id TEXT,
      author TEXT NOT NULL, author_name TEXT NOT NULL, author_avatar TEXT,
      text TEXT NOT NULL,
      format TEXT NOT NULL,
      time INTEGER NOT NULL,
      revision INTEGER NOT NULL DEFAULT 0,
      edited INTEGER,
      deleted INTEGER,
      reply_to INTEGER,
      extra TEXT,
      stamp TEXT);
    CREATE INDEX messages_by_room ON messages(room);
    CREATE UNIQUE INDEX messages_by_client_id ON messages(room, client_id) WHERE client_id IS NOT NULL;

    CREATE TABLE reactions(
      message INTEGER NOT NULL, emoji TEXT NOT NULL, user TEXT NOT NULL, name TEXT NOT NULL, avatar TEXT,
      time INTEGER NOT NULL,
      PRIMARY KEY(message, emoji, user)) WITHOUT ROWID;
    CREATE TABLE reads(
      room INTEGER NOT NULL, user TEXT NOT NULL, state TEXT NOT NULL, name TEXT NOT NULL, avatar TEXT,
      message INTEGER NOT NULL, time INTEGER NOT NULL,
      PRIMARY KEY(room, user, state)) WITHOUT ROWID;
    CREATE TABLE files(
      sha256 TEXT PRIMARY KEY, media_type TEXT NOT NULL, size INTEGER NOT NULL, name TEXT NOT NULL,
      created INTEGER NOT NULL) WITHOUT ROWID;

    CREATE TABLE events(
      sequence INTEGER PRIMARY KEY AUTOINCREMENT,
      room INTEGER NOT NULL,
      json TEXT NOT NULL);
    CREATE INDEX events_by_room ON events(room);

    CREATE TABLE kept(key TEXT PRIMARY KEY, value TEXT NOT NULL, time INTEGER NOT NULL) WITHOUT ROWID;

    INSERT INTO sqlite_sequence(name, seq)
      SELECT name, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) * 1000
      FROM (SELECT 'messages' AS name UNION SELECT 'events');
    """,
    """
    ALTER TABLE messages ADD COLUMN position INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE messages ADD COLUMN skips INTEGER NOT NULL DEFAULT 0;
    UPDATE messages SET position = numbered.position
      FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY room ORDER BY id) - 1 AS position FROM messages) AS numbered
      WHERE numbered.id = messages.id;
    ALTER TABLE rooms ADD COLUMN removed INTEGER;

    CREATE TABLE documents(
      sequence INTEGER PRIMARY KEY AUTOINCREMENT,
      collection TEXT NOT NULL,
      id TEXT NOT NULL,
      json TEXT NOT NULL,
      UNIQUE(collection, id));
    CREATE INDEX documents_in_order ON documents(collection, sequence);
    """,
    """
    CREATE TABLE pictures(
      sha256 TEXT PRIMARY KEY, width INTEGER NOT NULL, height INTEGER NOT NULL) WITHOUT ROWID;
    """,
  ]
}
