package import FerryCore
package import FerryStorage

/// What a relay's journal remembers of a channel: all that was mirrored from it. Reactions and reads included, files not:
/// their bytes are fetched from where the events say they are.
package struct JournalHistory: ChannelHistory {
  package let channel: ChannelID
  private let journal: Journal
  private let address: Address
  package let scope: HistoryScope
  private let files: @Sendable (AttachmentReference) async throws(FerryError) -> ByteStream

  /// `files` fetches attachments by the references in the events.
  package init(
    _ journal: Journal, _ address: Address, _ scope: HistoryScope = .init(),
    files: @escaping @Sendable (AttachmentReference) async throws(FerryError) -> ByteStream
  ) {
    channel = address.channel
    self.journal = journal
    self.address = address
    self.scope = scope
    self.files = files
  }

  package var goesOn: Bool { true }

  package func page(after cursor: Cursor?, limit: Int) async throws(FerryError) -> RecordPage {
    let start = cursor.flatMap { Int64($0.rawValue) } ?? 0
    let (events, last) = try await journal.events(of: address, after: start, limit: limit)
    return RecordPage(
      records: events.compactMap { Record($0, withheld: [], scope) }, next: Cursor(String(last)),
      isLast: events.count < limit)
  }

  package func pageBackwards(after cursor: Cursor?, limit: Int) async throws(FerryError) -> RecordPage {
    throw FerryError(.internal, "A journal is read forwards.")
  }

  package func bytes(of attachment: Attachment) async throws(FerryError) -> ByteStream {
    try await files(attachment.reference)
  }
}
