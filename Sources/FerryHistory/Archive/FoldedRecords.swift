package import FerryCore
import FerryRuntime
import FerryStorage
import Glibc

/// An archive's records, each message once: as it was last written, followed by what happened to it later.
///
/// A message that an export took again replaces the earlier one, and with it the edits that came before it. Channels and
/// people come as they were last described; everything else comes as it was written. Memory stays flat: what is known of
/// each message lies in a temporary database.
package struct FoldedRecords: RecordSource {
  private let reader: ArchiveReader
  private let index: FoldIndex

  /// Reads the whole archive once. Throws what `ArchiveReader` throws.
  package init(_ path: String) async throws(FerryError) {
    let first = try ArchiveReader(path)
    index = try FoldIndex()
    while true {
      let records = try await first.numbered(limit: 2000)
      if records.isEmpty { break }
      try await index.note(records)
    }
    reader = try ArchiveReader(path)
  }

  package var header: ArchiveHeader { reader.header }

  package func next(limit: Int) async throws(FerryError) -> [Record] {
    while true {
      let records = try await reader.numbered(limit: max(limit, 1))
      if records.isEmpty { return [] }
      let kept = try await index.current(records)
      if !kept.isEmpty { return kept }
    }
  }

  package func blob(_ sha256: String) async throws(FerryError) -> ByteStream? { try reader.blob(sha256) }
}

/// Where in the log each message was last written.
final class FoldIndex: Sendable {
  private let folder: ScratchFolder
  private let database: Database

  init() throws(FerryError) {
    folder = try ScratchFolder()
    database = try Database(
      path: "\(folder.path)/fold.db",
      migrations: ["CREATE TABLE last (key INTEGER PRIMARY KEY, seq INTEGER NOT NULL)"])
  }

  deinit { database.close() }

  func note(_ records: [(seq: Int64, record: Record)]) async throws(FerryError) {
    let rows = records.compactMap { seq, record in Self.key(record).map { ($0, seq) } }
    guard !rows.isEmpty else { return }
    try await database.write { connection in
      for (key, seq) in rows {
        try connection.execute(
          "INSERT INTO last VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET seq = excluded.seq", .integer(key),
          .integer(seq))
      }
    }
  }

  /// Those that no later record replaces.
  func current(_ records: [(seq: Int64, record: Record)]) async throws(FerryError) -> [Record] {
    try await database.read { connection in
      try records.compactMap { seq, record in
        guard let key = Self.key(record) ?? Self.subject(record) else { return record }
        let last = try connection.first("SELECT seq FROM last WHERE key = ?", .integer(key)) { $0.integer(0) }
        return last.map { seq >= $0 } ?? true ? record : nil
      }
    }
  }

  /// Of what a later record of the same kind and id replaces.
  private static func key(_ record: Record) -> Int64? {
    switch record {
    case .message(let record): hash("message", record.channel.rawValue, record.message.id.rawValue)
    case .channel(let record): hash("channel", record.id.rawValue, "")
    case .person(let record): hash("person", record.id.rawValue, "")
    case .end(let record): hash("end", record.channel.rawValue, "")
    default: nil
    }
  }

  /// The key of the message that a record is about.
  private static func subject(_ record: Record) -> Int64? {
    switch record {
    case .edit(let record): hash("message", record.channel.rawValue, record.message.id.rawValue)
    case .delete(let record): hash("message", record.channel.rawValue, record.id.rawValue)
    case .reaction(let record): hash("message", record.channel.rawValue, record.reaction.message.rawValue)
    default: nil
    }
  }

  /// 64 bits of a digest: two of a hundred million messages share one with a chance of one in 4,000.
  static func hash(_ parts: String...) -> Int64 {
    var text: [UInt8] = []
    for part in parts {
      text += Array(part.utf8)
      text.append(0xff)
    }
    return Crypto.digest(.sha256, of: text).prefix(8).reduce(0) { $0 << 8 | Int64($1) }
  }
}

/// A folder for temporary files, gone with its last reference.
final class ScratchFolder: Sendable {
  let path: String

  init() throws(FerryError) {
    let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    path = "\(parent)/ferry-\(Crypto.randomHex(bytes: 12))"
    guard mkdir(path, 0o700) == 0 else { throw DiskFile.failure(path) }
  }

  deinit {
    for (name, _) in (try? DiskFile.names(in: path)) ?? [] { unlink("\(path)/\(name)") }
    rmdir(path)
  }
}
