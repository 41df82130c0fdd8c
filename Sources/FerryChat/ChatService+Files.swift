package import FerryCore
import FerryRuntime
import FerryStorage

extension ChatService {
  /// Stores bytes as they arrive and returns how messages name them. Storing the same bytes again is harmless.
  ///
  /// Nothing is left behind when the stream fails, is longer than `limits.fileBytes`, has another size than it declares, or
  /// another sum than `expectedSHA256`. Cancelling the task has that effect too.
  package func store(
    _ bytes: ByteStream, name: String, mediaType: String, expectedSHA256: String? = nil
  ) async throws(FerryError) -> StoredFile {
    let name = FileName.plain(name)
    try limits.checkName(name, "file's name")
    try limits.checkName(mediaType, "file's type")
    let kept = try await shelf.store(bytes, limit: limits.fileBytes, expectedSHA256: expectedSHA256)
    let file = StoredFile(
      sha256: kept.sha256, mediaType: ImageType.of(kept.head) ?? MediaType.declared(mediaType), size: kept.size,
      name: name, pixels: ImageSize.of(kept.head))
    let now = clock.now()
    return try await database.write { [keptBytes] connection in
      try connection.execute(
        "INSERT INTO files(sha256, media_type, size, name, created) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        .text(file.sha256), .text(file.mediaType), .integer(file.size), .text(file.name),
        .integer(now.milliseconds))
      if connection.changes > 0 {
        connection.afterCommit { keptBytes.withLock { $0 = $0.map { $0 + file.size } } }
      }
      if let pixels = file.pixels {
        try connection.execute(
          "INSERT INTO pictures(sha256, width, height) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", .text(file.sha256),
          SQLValue(pixels.width), SQLValue(pixels.height))
      }
      return try Self.file(file.sha256, connection) ?? file
    }
  }

  /// What is known of a file; throws `notFound` when it is not here.
  package func file(_ sha256: String) async throws(FerryError) -> StoredFile {
    let found = try await database.read { try Self.file(sha256, $0) }
    guard let found else { throw FerryError(.notFound, "There is no such file.") }
    return found
  }

  /// How many bytes all files have. They are counted once, and then as they are stored.
  package func fileBytes() async throws(FerryError) -> Int64 {
    if let known = keptBytes.withLock({ $0 }) { return known }
    // Among the writes, so that no file that is being stored is counted twice or not at all.
    return try await database.write { [keptBytes] connection in
      let bytes = try connection.first("SELECT coalesce(sum(size), 0) FROM files") { $0.integer(0) } ?? 0
      connection.afterCommit { keptBytes.withLock { $0 = bytes } }
      return bytes
    }
  }

  /// The bytes of a file.
  package func bytes(of file: StoredFile) async throws(FerryError) -> ByteStream {
    try await shelf.open(file.sha256, mediaType: file.mediaType)
  }

  static func file(_ sha256: String, _ connection: Connection) throws -> StoredFile? {
    guard FileShelf.isName(sha256) else { return nil }
    return try connection.first(
      """
      SELECT files.sha256, media_type, size, name, width, height
      FROM files LEFT JOIN pictures ON pictures.sha256 = files.sha256 WHERE files.sha256 = ?
      """, .text(sha256)
    ) { row in
      var file = StoredFile(sha256: row.text(0), mediaType: row.text(1), size: row.integer(2), name: row.text(3))
      if let width = row.optionalInteger(4), let height = row.optionalInteger(5) {
        file.pixels = .init(width: Int(width), height: Int(height))
      }
      return file
    }
  }
}
