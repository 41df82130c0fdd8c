import FerryCore

/// Writes one batch while the next is prepared: half of an import's time is the destination's.
///
/// Only where the destination knows what it has by key, so that nothing need be known of the one batch to write the
/// next. What became of a batch is noted while the next is on its way: a run that is broken off repeats two at most.
extension Importer {
  /// A batch that is being written.
  struct Underway: Sendable {
    let batch: [Pending]
    /// What is to be noted with it.
    let outcome: WorkBook.Outcome
    let messages: Set<MessageID>
    let task: Task<Result<[Result<Landing, FerryError>], FerryError>, Never>
  }

  private var overlaps: Bool {
    powers.isRepeatable && !needsIDs && !isIndexed && !settings.isPlan && settings.rate == nil
  }

  /// Begins to write what is pending, or writes it where batches cannot overlap. Afterwards everything is noted but what
  /// has been begun.
  mutating func advance() async throws(FerryError) {
    guard overlaps, !pending.isEmpty, pending.count <= batchSize else { return try await flush() }
    let finished = try await finishUnderway()
    let (writer, batch) = (self, pending)
    let task = Task {
      await Patience.outcome { () async throws(FerryError) in try await writer.deliver(batch) }
    }
    underway = Underway(
      batch: batch, outcome: outcome, messages: Set(batch.compactMap(\.message)), task: task)
    outcome = .init()
    pending = []
    pendingBytes = 0
    if let finished { try await note(finished) }
  }

  /// Waits for what is being written, and notes it.
  mutating func settleUnderway() async throws(FerryError) {
    if let finished = try await finishUnderway() { try await note(finished) }
  }

  private typealias Finished = (underway: Underway, results: [Result<Landing, FerryError>])

  private mutating func finishUnderway() async throws(FerryError) -> Finished? {
    guard let current = underway else { return nil }
    underway = nil
    let result = await withTaskCancellationHandler {
      await current.task.value
    } onCancel: {
      current.task.cancel()
    }
    return (current, try result.get())
  }

  private mutating func note(_ finished: Finished) async throws(FerryError) {
    let later = outcome
    outcome = finished.underway.outcome
    for (entry, result) in zip(finished.underway.batch, finished.results) { note(entry, result) }
    try await commit()
    outcome = later
  }

  /// What changes a message has to know what became of it.
  mutating func settleUnderway(if message: MessageID) async throws(FerryError) {
    if underway?.messages.contains(message) == true { try await settleUnderway() }
  }

  /// After a failure: nothing is written any more once this returns.
  mutating func abandonUnderway() async {
    underway?.task.cancel()
    _ = await underway?.task.value
    underway = nil
  }
}
