import FerryCore
import FerryRuntime

/// Fetches attachments of records into a sink. What cannot be had becomes a status, never an end.
struct AttachmentKeeping: Sendable {
  let sink: any RecordSink
  let history: any ChannelHistory
  let patience: Patience
  let limit: Int64
  let report: TransferReport
  let progress: TransferProgress

  /// Tried so often before it counts as not to be had now.
  private static let attempts = 4

  /// The records with what became of their attachments.
  func keep(_ records: [Record]) async throws(FerryError) -> [Record] {
    var kept = records
    for (index, record) in records.enumerated() {
      switch record {
      case .message(let message) where !message.message.attachments.isEmpty:
        kept[index] = .message(try await keep(message))
      case .edit(let message) where !message.message.attachments.isEmpty:
        kept[index] = .edit(try await keep(message))
      default: break
      }
    }
    return kept
  }

  private func keep(_ record: MessageRecord) async throws(FerryError) -> MessageRecord {
    var record = record
    for index in record.message.attachments.indices {
      let attachment = record.message.attachments[index]
      while record.files.count <= index { record.files.append(FileState()) }
      do throws(FerryError) {
        let (sha256, size) = try await fetch(attachment)
        record.message.attachments[index].sha256 = sha256
        record.message.attachments[index].size = size
        record.files[index].status = .present
        progress.update { counts in
          counts.attachments += 1
          counts.attachmentBytes += size
        }
      } catch {
        guard let status = Self.status(for: error) else { throw error }
        record.files[index].status = status
        report.add(
          .init(
            what: "attachment", channel: record.channel, id: record.message.id.rawValue, reason: status.rawValue,
            detail: "\(attachment.name): \(error.message)"))
        progress.update { $0.lost += 1 }
      }
    }
    return record
  }

  private func fetch(_ attachment: Attachment) async throws(FerryError) -> (String, Int64) {
    if let size = attachment.size, size > limit {
      throw FerryError(.tooLarge, "The attachment has \(size) bytes; the limit is \(limit).")
    }
    var trouble = Patience.Trouble(at: patience.clock.now())
    var attempt = 1
    while true {
      switch await Patience.outcome({ () async throws(FerryError) in try await fetchOnce(attachment) }) {
      case .success(let kept): return kept
      case .failure(let error):
        guard attempt < Self.attempts, error.code != .storage else { throw error }
        try await patience.pause(after: error, &trouble)
      }
      attempt += 1
    }
  }

  private func fetchOnce(_ attachment: Attachment) async throws(FerryError) -> (String, Int64) {
    let bytes = try await history.bytes(of: attachment)
    let kept = try await sink.addBlob(bytes, limit: limit)
    if let declared = bytes.size, declared != kept.size {
      throw FerryError(.unavailable, "The attachment ended after \(kept.size) of \(declared) bytes.", retry: .now)
    }
    return (kept.sha256, kept.size)
  }

  /// Nil for what ends the run: the disk is full, or somebody stopped it.
  private static func status(for error: FerryError) -> FileState.Status? {
    switch error.code {
    case .cancelled, .storage, .badCredentials: nil
    case .tooLarge: .tooLarge
    case .notFound: .expired
    case .forbidden, .addressRefused, .badRequest, .unsupported: .refused
    default: .remote
    }
  }
}
