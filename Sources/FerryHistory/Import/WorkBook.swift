package import FerryCore
import FerryRuntime
import FerryStorage

/// What a transfer has done so far, in a file of its own: what makes it resumable, and a second run take only what is new.
///
/// Without it nothing is lost: a run then looks at the destination instead, which takes longer.
package final class WorkBook: Sendable {
  let database: Database

  /// Opens or makes the file. Throws `storage` when another run uses it.
  package init(path: String) throws(FerryError) {
    database = try Database(path: path, migrations: Self.schema)
  }

  package func close() { database.close() }

  /// `stamp_*`: of a message that bears another stamp than its own id at the source. `copy` is what the first part is
  /// called at the destination, `more` are the further parts. State: 0 there, 1 deleted.
  private static let schema = [
    """
    CREATE TABLE facts(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE messages(
      ordinal INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, hash INTEGER NOT NULL, time INTEGER NOT NULL,
      revision INTEGER NOT NULL, state INTEGER NOT NULL DEFAULT 0, copy TEXT, more TEXT,
      stamp_origin TEXT, stamp_id TEXT, stamp_part INTEGER);
    CREATE UNIQUE INDEX messages_by_stamp ON messages(stamp_origin, stamp_id, stamp_part)
      WHERE stamp_origin IS NOT NULL;
    CREATE TABLE done(key TEXT PRIMARY KEY) WITHOUT ROWID;
    CREATE TABLE sending(key TEXT PRIMARY KEY) WITHOUT ROWID;
    CREATE TABLE found(key TEXT PRIMARY KEY, copy TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE members(user TEXT PRIMARY KEY, name TEXT NOT NULL, present INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE people(user TEXT PRIMARY KEY, name TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE spilled(number INTEGER PRIMARY KEY, line BLOB NOT NULL);
    CREATE TABLE seen(id TEXT PRIMARY KEY) WITHOUT ROWID;
    """
  ]

  // MARK: Facts

  package func fact(_ name: String) async throws(FerryError) -> String? {
    try await database.read { connection in
      try connection.first("SELECT value FROM facts WHERE name = ?", .text(name)) { $0.text(0) }
    }
  }

  package func setFact(_ name: String, to value: String) async throws(FerryError) {
    try await database.write { try Self.set(name, to: value, $0) }
  }

  static func set(_ name: String, to value: String, _ connection: Connection) throws {
    try connection.execute(
      "INSERT INTO facts(name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", .text(name),
      .text(value))
  }

  // MARK: Messages

  /// Those of the messages that are known.
  func copies(of ids: Set<MessageID>) async throws(FerryError) -> [MessageID: Copy] {
    if ids.isEmpty { return [:] }
    return try await database.read { connection in
      var copies: [MessageID: Copy] = [:]
      for id in ids {
        copies[id] = try connection.first(
          """
          SELECT hash, time, revision, state, copy, more, stamp_origin, stamp_id, stamp_part, ordinal
          FROM messages WHERE id = ?
          """, .text(id.rawValue), map: Copy.init)
      }
      return copies
    }
  }

  /// How many messages are known, deleted ones included.
  package func messageCount() async throws(FerryError) -> Int {
    try await database.read { connection in
      Int(try connection.first("SELECT count(*) FROM messages") { $0.integer(0) } ?? 0)
    }
  }

  /// Begins anew.
  func forgetMessages() async throws(FerryError) {
    try await database.write { try $0.script("DELETE FROM messages; DELETE FROM done;") }
  }

  /// Those of the stamps that a message bears already.
  func taken(_ stamps: [Stamp]) async throws(FerryError) -> Set<Stamp> {
    if stamps.isEmpty { return [] }
    return try await database.read { connection in
      var taken: Set<Stamp> = []
      for stamp in stamps {
        let isTaken = try connection.first(
          "SELECT 1 FROM messages WHERE stamp_origin = ? AND stamp_id = ? AND stamp_part = ?",
          .text(stamp.origin.description), .text(stamp.id.rawValue), SQLValue(stamp.part)
        ) { _ in true }
        if isTaken == true { taken.insert(stamp) }
      }
      return taken
    }
  }

  /// Notes what was done, all or nothing.
  func commit(_ outcome: Outcome) async throws(FerryError) {
    if outcome.isEmpty { return }
    try await database.write { connection in
      for (id, copy) in outcome.copies { try copy.store(as: id, connection) }
      for key in outcome.done {
        try connection.execute("INSERT OR IGNORE INTO done(key) VALUES (?)", .text(key.rawValue))
      }
      for key in outcome.settled {
        try connection.execute("DELETE FROM sending WHERE key = ?", .text(key.rawValue))
      }
      for (key, landing) in outcome.found { try Self.store(landing, as: key, connection) }
      for key in outcome.sending {
        try connection.execute("INSERT OR IGNORE INTO sending(key) VALUES (?)", .text(key.rawValue))
      }
      for (user, name, present) in outcome.members {
        try connection.execute(
          """
          INSERT INTO members(user, name, present) VALUES (?, ?, ?)
          ON CONFLICT DO UPDATE SET name = excluded.name, present = excluded.present
          """, .text(user.rawValue), .text(name), SQLValue(present))
      }
      for (user, name) in outcome.people {
        try connection.execute(
          "INSERT INTO people(user, name) VALUES (?, ?) ON CONFLICT DO UPDATE SET name = excluded.name",
          .text(user.rawValue), .text(name))
      }
      for (name, value) in outcome.facts { try Self.set(name, to: value, connection) }
    }
  }

  /// Something to be noted together.
  struct Outcome: Sendable {
    var copies: [(MessageID, Copy)] = []
    /// Items other than messages.
    var done: [SendKey] = []
    var sending: [SendKey] = []
    var settled: [SendKey] = []
    var found: [(SendKey, Landing)] = []
    var members: [(UserID, String, Bool)] = []
    var people: [(UserID, String)] = []
    var facts: [(String, String)] = []

    var isEmpty: Bool {
      copies.isEmpty && done.isEmpty && sending.isEmpty && settled.isEmpty && found.isEmpty && members.isEmpty
        && people.isEmpty && facts.isEmpty
    }
  }

  // MARK: Other items

  func done(_ keys: [SendKey]) async throws(FerryError) -> Set<SendKey> {
    if keys.isEmpty { return [] }
    return try await database.read { connection in
      var done: Set<SendKey> = []
      for key in keys
      where try connection.first("SELECT 1 FROM done WHERE key = ?", .text(key.rawValue), map: { _ in true }) == true {
        done.insert(key)
      }
      return done
    }
  }

  /// Sends whose outcome is unknown.
  func sending() async throws(FerryError) -> [SendKey] {
    try await database.read { connection in
      try connection.rows("SELECT key FROM sending") { SendKey($0.text(0)) }
    }
  }

  /// What the destination has under a key, as far as it was looked at or written.
  func found(_ keys: [SendKey]) async throws(FerryError) -> [SendKey: Landing] {
    if keys.isEmpty { return [:] }
    return try await database.read { connection in
      var found: [SendKey: Landing] = [:]
      for key in keys {
        found[key] = try connection.first("SELECT copy FROM found WHERE key = ?", .text(key.rawValue)) { row in
          let id = row.text(0)
          return id.isEmpty ? .unknown : .there(MessageID(id))
        }
      }
      return found
    }
  }

  func note(found: [(SendKey, MessageID)]) async throws(FerryError) {
    try await database.write { connection in
      for (key, copy) in found { try Self.store(.there(copy), as: key, connection) }
    }
  }

  /// An empty id stands for an unknown outcome.
  private static func store(_ landing: Landing, as key: SendKey, _ connection: Connection) throws {
    let id = if case .there(let id) = landing { id?.rawValue ?? "" } else { "" }
    try connection.execute(
      "INSERT INTO found(key, copy) VALUES (?, ?) ON CONFLICT DO UPDATE SET copy = excluded.copy",
      .text(key.rawValue), .text(id))
  }

  /// Who is in the channel by the last that was heard.
  func members() async throws(FerryError) -> [(member: Author, isPresent: Bool)] {
    try await database.read { connection in
      try connection.rows("SELECT user, name, present FROM members ORDER BY user") {
        (Author(id: UserID($0.text(0)), name: $0.text(1)), $0.integer(2) != 0)
      }
    }
  }

  func name(of user: UserID) async throws(FerryError) -> String? {
    try await database.read { connection in
      try connection.first("SELECT name FROM people WHERE user = ?", .text(user.rawValue)) { $0.text(0) }
    }
  }
}

/// What became of a message that was written.
enum Landing: Hashable, Sendable {
  /// Nil where the destination goes by keys and does not say the id.
  case there(MessageID?)
  /// Nobody can tell: it is not written again, and nothing can refer to it.
  case unknown
}

/// A message of the source at the destination.
struct Copy: Hashable, Sendable {
  struct Part: Hashable, Sendable {
    var number: Int
    /// Nil until it is written.
    var id: MessageID?
  }

  var hash: Int64
  var time: Timestamp
  var revision: Int
  var isDeleted = false
  var parts: [Part]
  /// The stamp that the source's message bore, where the copy bears it on.
  var stamp: Stamp?
  /// In the order in which the source told of them; 0 until it is stored.
  var ordinal: Int64 = 0

  init(hash: Int64, time: Timestamp, revision: Int, parts: [Part], stamp: Stamp?) {
    self.hash = hash
    self.time = time
    self.revision = revision
    self.parts = parts
    self.stamp = stamp
  }

  init(_ row: Row) throws {
    hash = row.integer(0)
    time = Timestamp(milliseconds: row.integer(1))
    revision = Int(row.integer(2))
    isDeleted = row.integer(3) != 0
    parts = row.optionalText(4).map { [Part(number: 0, id: MessageID($0))] } ?? []
    if let more = row.optionalText(5) { parts = Self.parts(more) }
    if let origin = row.optionalText(6).flatMap({ Address($0) }) {
      stamp = Stamp(
        bridge: ImportStamps.bridge, origin: origin, id: MessageID(row.text(7)), part: Int(row.integer(8)))
    }
    ordinal = row.integer(9)
  }

  func store(as id: MessageID, _ connection: Connection) throws {
    let isPlain = parts.count == 1 && parts[0].number == 0 && parts[0].id != nil
    try connection.execute(
      """
      INSERT INTO messages(id, hash, time, revision, state, copy, more, stamp_origin, stamp_id, stamp_part)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
      ON CONFLICT(id) DO UPDATE SET hash = ?2, revision = ?4, state = ?5, copy = ?6, more = ?7
      """, .text(id.rawValue), .integer(hash), .integer(time.milliseconds), SQLValue(revision), SQLValue(isDeleted),
      SQLValue(isPlain ? parts[0].id?.rawValue : nil), SQLValue(isPlain || parts.isEmpty ? nil : Self.text(parts)),
      SQLValue(stamp?.origin.description), SQLValue(stamp?.id.rawValue), stamp.map { SQLValue($0.part) } ?? .null)
  }

  /// `number` and id of each part, a line each.
  private static func text(_ parts: [Part]) -> String {
    parts.map { "\($0.number) \($0.id?.rawValue ?? "")" }.joined(separator: "\n")
  }

  private static func parts(_ text: String) -> [Part] {
    text.split(separator: "\n").compactMap { line in
      guard let space = line.firstIndex(of: " "), let number = Int(line[..<space]) else { return nil }
      let id = line[line.index(after: space)...]
      return Part(number: number, id: id.isEmpty ? nil : MessageID(String(id)))
    }
  }
}
