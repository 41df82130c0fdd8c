package import FerryCore

/// What an import reads: an archive, another service's export, or a live channel.
package protocol ImportSource: Sendable {
  /// At most `limit` records, in order; none at the end, and ever after.
  func next(limit: Int) async throws(FerryError) -> [Record]

  /// The bytes of an attachment; nil where the source does not have them.
  func bytes(of attachment: Attachment, _ state: FileState) async throws(FerryError) -> ByteStream?

  /// Everything that `next` has returned so far has been dealt with, durably.
  func settled() async throws(FerryError)
}

/// Records that lie somewhere already.
package struct RecordedSource: ImportSource {
  private let records: any RecordSource

  package init(_ records: any RecordSource) { self.records = records }

  package func next(limit: Int) async throws(FerryError) -> [Record] { try await records.next(limit: limit) }

  package func bytes(of attachment: Attachment, _ state: FileState) async throws(FerryError) -> ByteStream? {
    guard let sha256 = attachment.sha256, state.status == nil || state.status == .present else { return nil }
    return try await records.blob(sha256)
  }

  package func settled() {}
}
