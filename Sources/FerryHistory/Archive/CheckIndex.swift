import FerryCore
import FerryRuntime
import FerryStorage

/// What an archive's records name, in a temporary database: memory stays flat however many there are.
final class CheckIndex: Sendable {
  struct Note: Sendable {
    enum Kind: Sendable {
      case message(channel: Int64)
      case reply
      case person
      case author
      case blob(sha256: String, size: Int64)
    }
    let kind: Kind
    let key: Int64
    let place: String
  }

  private let folder: ScratchFolder
  private let database: Database

  init() throws(FerryError) {
    folder = try ScratchFolder()
    database = try Database(
      path: "\(folder.path)/check.db",
      migrations: [
        """
        CREATE TABLE message (key INTEGER PRIMARY KEY, channel INTEGER NOT NULL);
        CREATE TABLE reply (key INTEGER PRIMARY KEY, place TEXT NOT NULL);
        CREATE TABLE person (key INTEGER PRIMARY KEY);
        CREATE TABLE author (key INTEGER PRIMARY KEY, place TEXT NOT NULL);
        CREATE TABLE blob (sha256 TEXT PRIMARY KEY, size INTEGER NOT NULL, place TEXT NOT NULL) WITHOUT ROWID;
        """
      ])
  }

  deinit { database.close() }

  static func notes(_ record: Record, at line: LogScanner.Line) -> [Note] {
    switch record {
    case .person(let person):
      return [Note(kind: .person, key: FoldIndex.hash(person.id.rawValue), place: "")]
    case .message(let message), .edit(let message):
      var notes: [Note] = []
      if case .message = record { notes.append(note(of: message)) }
      let author = FoldIndex.hash(message.message.author.id.rawValue)
      notes.append(Note(kind: .author, key: author, place: line.place.description))
      if let reply = replyNote(of: message, at: line.place.description) { notes.append(reply) }
      for (index, attachment) in message.message.attachments.enumerated()
      where message.file(at: index).status == .present {
        // A digest that is none is looked for in vain, and named.
        let kind = Note.Kind.blob(sha256: attachment.sha256 ?? "", size: attachment.size ?? -1)
        notes.append(Note(kind: kind, key: 0, place: line.place.description))
      }
      return notes
    default: return []
    }
  }

  static func note(of record: MessageRecord) -> Note {
    let channel = record.channel.rawValue
    let key = FoldIndex.hash(channel, record.message.id.rawValue)
    return Note(kind: .message(channel: FoldIndex.hash(channel)), key: key, place: "")
  }

  /// Nil of what answers nothing.
  static func replyNote(of record: MessageRecord, at place: String) -> Note? {
    guard let root = record.message.replyTo else { return nil }
    return Note(kind: .reply, key: FoldIndex.hash(record.channel.rawValue, root.rawValue), place: place)
  }

  func add(_ notes: [Note]) async throws(FerryError) {
    guard !notes.isEmpty else { return }
    try await database.write { connection in
      for note in notes {
        switch note.kind {
        case .message(let channel):
          try connection.execute("INSERT OR IGNORE INTO message VALUES (?, ?)", .integer(note.key), .integer(channel))
        case .reply:
          try connection.execute("INSERT OR IGNORE INTO reply VALUES (?, ?)", .integer(note.key), .text(note.place))
        case .person: try connection.execute("INSERT OR IGNORE INTO person VALUES (?)", .integer(note.key))
        case .author:
          try connection.execute("INSERT OR IGNORE INTO author VALUES (?, ?)", .integer(note.key), .text(note.place))
        case .blob(let sha256, let size):
          try connection.execute(
            "INSERT OR IGNORE INTO blob VALUES (?, ?, ?)", .text(sha256), .integer(size), .text(note.place))
        }
      }
    }
  }

  func blobs() async throws(FerryError) -> [(sha256: String, size: Int64, place: String)] {
    try await database.read { connection in
      try connection.rows("SELECT sha256, size, place FROM blob") { ($0.text(0), $0.integer(1), $0.text(2)) }
    }
  }

  func messages() async throws(FerryError) -> Int {
    try await database.read { try $0.first("SELECT count(*) FROM message") { Int($0.integer(0)) } ?? 0 }
  }

  func messages(in channel: ChannelID) async throws(FerryError) -> Int {
    let key = FoldIndex.hash(channel.rawValue)
    return try await database.read {
      try $0.first("SELECT count(*) FROM message WHERE channel = ?", .integer(key)) { Int($0.integer(0)) } ?? 0
    }
  }

  /// Replies to messages that are not there.
  func orphans() async throws(FerryError) -> (count: Int, first: String) {
    try await missing("FROM reply WHERE key NOT IN (SELECT key FROM message)")
  }

  /// Authors without a record of their own, where an archive has such records at all.
  func strangers() async throws(FerryError) -> (count: Int, first: String) {
    try await missing("FROM author WHERE key NOT IN (SELECT key FROM person) AND EXISTS (SELECT 1 FROM person)")
  }

  private func missing(_ rows: String) async throws(FerryError) -> (count: Int, first: String) {
    try await database.read { connection in
      let count = try connection.first("SELECT count(*) \(rows)") { Int($0.integer(0)) } ?? 0
      return (count, try connection.first("SELECT place \(rows) ORDER BY length(place), place") { $0.text(0) } ?? "")
    }
  }
}
