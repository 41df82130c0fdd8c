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
    var said: Set<MessageID> = []
    for event in events {
      switch event.kind {
      case .posted(let message), .edited(let message): said.insert(message.id)
      default: break
      }
    }
    let deleted = try await journal.deleted(said, of: address)
    return RecordPage(
      records: events.compactMap { Record($0.without(deleted), withheld: deleted, scope) }, next: Cursor(String(last)),
      isLast: events.count < limit)
  }

  package func pageBackwards(after cursor: Cursor?, limit: Int) async throws(FerryError) -> RecordPage {
    throw FerryError(.internal, "A journal is read forwards.")
  }

  package func bytes(of attachment: Attachment) async throws(FerryError) -> ByteStream {
    try await files(attachment.reference)
  }
}

extension Event {
  /// Of a deleted message its place stays, and not what it said.
  fileprivate func without(_ deleted: Set<MessageID>) -> Event {
    guard case .posted(let message) = kind, deleted.contains(message.id) else { return self }
    var event = self
    event.kind = .posted(
      Message(id: message.id, author: message.author, text: "", format: message.format, time: message.time))
    return event
  }
}
