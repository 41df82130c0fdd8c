package import FerryCore

/// Records that are read once, in order: an archive, or another service's export.
package protocol RecordSource: Sendable {
  /// At most `limit` records, in the source's order; none at the end, and ever after.
  ///
  /// One task at a time. What cannot be understood comes as a `skipped` record; an error means that nothing further can
  /// be read.
  func next(limit: Int) async throws(FerryError) -> [Record]

  /// The bytes that an attachment names by this digest (lower-case hexadecimal), or nil where the source lacks them.
  func blob(_ sha256: String) async throws(FerryError) -> ByteStream?
}

/// What takes records and attachments' bytes: an archive being written.
package protocol RecordSink: Sendable {
  /// Adds records at the end, in order. When they are durable is for the sink to say.
  func append(_ records: [Record]) async throws(FerryError)

  /// Keeps bytes and says under which digest; the same bytes are kept once. `tooLarge` above `limit` bytes, and then
  /// nothing is kept.
  func addBlob(_ bytes: ByteStream, limit: Int64) async throws(FerryError) -> (sha256: String, size: Int64)
}
