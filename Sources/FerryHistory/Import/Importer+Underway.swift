import FerryCore
import FerryRuntime

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
  }

  /// Where batches are handed to the task that writes them, one at a time, and where it says what became of each.
  struct WritingLane: Sendable {
    let batches = BoundedChannel<(batch: [Pending], refused: Set<SendKey>)>(capacity: 1)
    let results = BoundedChannel<Result<[Result<Landing, FerryError>], FerryError>>(capacity: 1)
  }

  /// Runs `body` with a task beside it that writes; once, in an importer's life. After a failure nothing is written any
  /// more once this returns.
  mutating func writingAlong(
    _ body: (inout Importer) async throws(FerryError) -> Void
  ) async throws(FerryError) {
    let writer = self
    let result = await withTaskGroup(of: Void.self) { group in
      group.addTask { await writer.writeBatches() }
      let result = await Patience.outcome { () async throws(FerryError) in try await body(&self) }
      if case .failure = result { group.cancelAll() }
      lane.batches.finish()
      await group.waitForAll()
      return result
    }
    underway = nil
    try result.get()
  }

  private func writeBatches() async {
    while let (batch, refused) = await lane.batches.next() {
      await lane.results.send(
        await Patience.outcome { () async throws(FerryError) in try await deliver(batch, without: refused) })
    }
  }

  private var overlaps: Bool {
    powers.isRepeatable && !needsIDs && !isIndexed && !settings.isPlan && settings.rate == nil
  }

  /// Begins to write what is pending, or writes it where batches cannot overlap. Afterwards everything is noted but what
  /// has been begun.
  mutating func advance() async throws(FerryError) {
    guard overlaps, !pending.isEmpty, pending.count <= batchSize else { return try await flush() }
    let finished = try await finishUnderway()
    guard await lane.batches.send((pending, refused.union(finished?.refused ?? []))) else {
      throw .cancelled(didNotAct: true)
    }
    begun += 1
    underway = Underway(batch: pending, outcome: outcome, messages: Set(pending.compactMap(\.message)))
    outcome = .init()
    pending = []
    pendingBytes = 0
    guard let finished else { return }
    // What was refused in the batch before it was known when the one that has now begun was prepared.
    let earlier = refused
    try await note(finished)
    refused.subtract(earlier)
  }

  /// Waits for what is being written, and notes it.
  mutating func settleUnderway() async throws(FerryError) {
    if let finished = try await finishUnderway() { try await note(finished) }
  }

  private struct Finished {
    let underway: Underway
    let results: [Result<Landing, FerryError>]

    /// Messages that were not taken.
    var refused: Set<SendKey> {
      var keys: Set<SendKey> = []
      for (entry, result) in zip(underway.batch, results) where entry.message != nil {
        if case .failure = result { keys.insert(entry.item.key) }
      }
      return keys
    }
  }

  private mutating func finishUnderway() async throws(FerryError) -> Finished? {
    guard let current = underway else { return nil }
    underway = nil
    guard let result = await lane.results.next() else { throw .cancelled() }
    return Finished(underway: current, results: try result.get())
  }

  private mutating func note(_ finished: Finished) async throws(FerryError) {
    let later = outcome
    outcome = finished.underway.outcome
    for (entry, result) in zip(finished.underway.batch, finished.results) { note(entry, result) }
    try await commit()
    outcome = later
  }

  /// Before a change of a message: it has been written and noted, or it stands in the batch that its `changes` will
  /// stand in too, so that they are noted together.
  mutating func settle(_ message: MessageID, before changes: Int) async throws(FerryError) {
    if needsIDs { return try await flush() }
    if underway?.messages.contains(message) == true { try await settleUnderway() }
    if pending.count + changes >= batchSize, pending.contains(where: { $0.message == message }) { try await flush() }
  }
}
