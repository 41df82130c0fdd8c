package import FerryCore
import FerryRuntime

/// A live channel as records, its attachments read to the end and replaced by their digests.
package actor ChannelRecords: RecordSource {
  private let history: any ChannelHistory
  private let patience: Patience
  private let readsFiles: Bool
  private var cursor: Cursor?
  private var isAtEnd = false
  /// What the last page had beyond what was asked for.
  private var rest: ArraySlice<Record> = []

  private static let page = 500
  /// An attachment that failed so often counts as not to be had.
  private static let attempts = 4

  /// Without `readsFiles` attachments are compared by what the service says of them.
  package init(_ history: any ChannelHistory, patience: Patience = Patience(), readsFiles: Bool = true) {
    self.history = history
    self.patience = patience
    self.readsFiles = readsFiles
  }

  package func next(limit: Int) async throws(FerryError) -> [Record] {
    while rest.isEmpty, !isAtEnd {
      let (history, cursor) = (history, cursor)
      let page = try await patience.repeating { () async throws(FerryError) in
        try await history.page(after: cursor, limit: Self.page)
      }
      isAtEnd = page.isLast || page.next == nil || page.next == cursor
      self.cursor = page.next
      rest = page.records[...]
    }
    let taken = Array(rest.prefix(limit))
    rest = rest.dropFirst(taken.count)
    guard readsFiles else { return taken }
    var records: [Record] = []
    records.reserveCapacity(taken.count)
    for record in taken { records.append(try await digested(record)) }
    return records
  }

  package func blob(_ sha256: String) async throws(FerryError) -> ByteStream? { nil }

  private func digested(_ record: Record) async throws(FerryError) -> Record {
    switch record {
    case .message(let message) where !message.message.attachments.isEmpty: .message(try await digested(message))
    case .edit(let message) where !message.message.attachments.isEmpty: .edit(try await digested(message))
    default: record
    }
  }

  private func digested(_ record: MessageRecord) async throws(FerryError) -> MessageRecord {
    var record = record
    for index in record.message.attachments.indices {
      while record.files.count <= index { record.files.append(FileState()) }
      do throws(FerryError) {
        let (sha256, size) = try await digest(record.message.attachments[index])
        record.message.attachments[index].sha256 = sha256
        record.message.attachments[index].size = size
        record.files[index].status = .present
      } catch {
        guard ![.cancelled, .badCredentials, .storage].contains(error.code) else { throw error }
        record.message.attachments[index].sha256 = nil
        record.files[index].status =
          switch error.code {
          case .notFound: .expired
          case .unavailable, .timedOut, .rateLimited: .remote
          default: .refused
          }
      }
    }
    return record
  }

  private func digest(_ attachment: Attachment) async throws(FerryError) -> (String, Int64) {
    var trouble = Patience.Trouble(at: patience.clock.now())
    var attempt = 1
    while true {
      let history = history
      switch await Patience.outcome({ () async throws(FerryError) in try await Self.digest(attachment, of: history) }) {
      case .success(let found): return found
      case .failure(let error):
        guard attempt < Self.attempts else { throw error }
        try await patience.pause(after: error, &trouble)
      }
      attempt += 1
    }
  }

  private static func digest(
    _ attachment: Attachment, of history: any ChannelHistory
  ) async throws(FerryError) -> (String, Int64) {
    let bytes = try await history.bytes(of: attachment)
    var digest = IncrementalDigest(.sha256)
    var size: Int64 = 0
    while let piece = try await bytes.next() {
      digest.update(piece)
      size += Int64(piece.count)
    }
    return (Crypto.hex(digest.finish()), size)
  }
}
