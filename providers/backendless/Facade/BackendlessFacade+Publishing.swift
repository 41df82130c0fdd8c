import FerryChat
import FerryCore
import FerryRuntime

/// What is published: at once, later, and again and again.
extension BackendlessFacade {
  static let published = "published"
  static let scheduled = "scheduled"
  static let polls = "polls"
  /// How long it is remembered what became of a message.
  private static let remembered = Duration.seconds(3600)
  private static let mostScheduled = 10_000

  /// A message with its time and what became of it.
  struct Record: Codable, Sendable {
    var publication: Publication
    var time: Timestamp
    var status: String
    /// Of a message that waits.
    var due: Timestamp?
  }

  // MARK: At once

  /// Makes it a message of the chat and tells the listeners once that is durable.
  func publish(_ publication: Publication, _ writer: TableWriter) throws {
    try rows.published(publication, writer.transaction)
    try tellAfterCommit(publication, writer.transaction)
  }

  func tellAfterCommit(_ publication: Publication, _ transaction: ChatTransaction) throws {
    let now = transaction.now
    try transaction.put(
      Record(publication: publication, time: now, status: "published"), as: publication.id, in: Self.published)
    transaction.afterCommit { [hub] in hub.withLock { $0.deliver(publication, at: now) } }
  }

  // MARK: Later

  /// At once or at its time, and then again.
  func accept(_ publication: Publication) async throws(Fault) {
    let due = try await change { [self] writer in
      let now = writer.transaction.now
      var record = Record(publication: publication, time: now, status: "scheduled", due: nil)
      if publication.publishAt > now.milliseconds {
        record.due = Timestamp(milliseconds: publication.publishAt)
      } else {
        try publish(publication, writer)
        record.status = "published"
        record.due = Self.next(after: now, of: publication, last: now)
      }
      guard let due = record.due else { return nil as Timestamp? }
      guard try writer.transaction.count(in: Self.scheduled) < Self.mostScheduled else {
        throw Fault(429, 429, "\(Self.mostScheduled) messages wait for their time already: cancel some")
      }
      try writer.transaction.put(record, as: publication.id, in: Self.scheduled)
      return due
    }
    if let due { noteDue(due) }
    await prune(now: clock.now())
  }

  /// The first time after `now` in the row that began with `last`; nil when there is none.
  static func next(after now: Timestamp, of publication: Publication, last: Timestamp) -> Timestamp? {
    guard publication.repeatEvery > 0 else { return nil }
    let step = publication.repeatEvery.multipliedReportingOverflow(by: 1000)
    guard !step.overflow else { return nil }
    let missed = max(now.milliseconds - last.milliseconds, 0) / step.partialValue
    let (ahead, isTooFar) = (missed + 1).multipliedReportingOverflow(by: step.partialValue)
    let next = last.milliseconds.addingReportingOverflow(ahead)
    guard !isTooFar, !next.overflow,
      publication.repeatExpiresAt == 0 || next.partialValue <= publication.repeatExpiresAt
    else {
      return nil
    }
    return Timestamp(milliseconds: next.partialValue)
  }

  private func noteDue(_ due: Timestamp) {
    nextDue.withLock { $0 = min($0 ?? due, due) }
    wake()
  }

  /// Finds out at the start what waits.
  func prepare() async {
    while !Task.isCancelled {
      do throws(Fault) {
        let due = try await read { try Self.earliest($0) }
        if let due { noteDue(due) }
        return
      } catch {
        logger.warning("messages that wait for their time cannot be read: \(error.message)")
        guard (try? await clock.sleep(for: .seconds(5))) != nil else { return }
      }
    }
  }

  private static func earliest(_ transaction: ChatTransaction) throws -> Timestamp? {
    try transaction.documents(in: scheduled, DocumentQuery(limit: mostScheduled + 1))
      .compactMap { try $0.value(Record.self).due }.min()
  }

  /// Each message and the next time of it in one transaction: none goes out twice, whenever this process ends.
  func publishDue(now: Timestamp) async {
    do throws(Fault) {
      let next = try await change { [self] writer in
        let transaction = writer.transaction
        for document in try transaction.documents(
          in: Self.scheduled, DocumentQuery(limit: Self.mostScheduled + 1))
        {
          var record = try document.value(Record.self)
          guard let due = record.due, due <= transaction.now else { continue }
          var publication = record.publication
          // Every repetition is a message of its own.
          if record.status == "published" { publication.id = Publication.newID() }
          try publishAnyway(publication, writer)
          record.status = "published"
          record.due = Self.next(after: transaction.now, of: record.publication, last: due)
          if record.due == nil {
            try transaction.remove(document.id, from: Self.scheduled)
          } else {
            try transaction.put(record, as: document.id, in: Self.scheduled)
          }
        }
        return try Self.earliest(transaction)
      }
      nextDue.withLock { $0 = next }
    } catch {
      logger.warning("messages that were due could not be published: \(error.message)")
    }
  }

  /// A message that the chat refuses must not hold up the others: its listeners are told all the same.
  private func publishAnyway(_ publication: Publication, _ writer: TableWriter) throws {
    do { try publish(publication, writer) } catch let error as FerryError where error.code != .storage {
      logger.warning("a delayed message is not kept in the chat: \(error)")
      try tellAfterCommit(publication, writer.transaction)
    }
  }

  // MARK: What became of it

  func status(of id: String) async throws(Fault) -> String {
    try await read { transaction in
      if try transaction.document(id, in: Self.scheduled) != nil { return "scheduled" }
      return try transaction.value(Record.self, of: id, in: Self.published)?.status ?? "unknown"
    }
  }

  /// False when it does not wait, or not any more.
  func cancel(_ id: String) async throws(Fault) -> Bool {
    try await change { writer in
      let transaction = writer.transaction
      guard var record = try transaction.value(Record.self, of: id, in: Self.scheduled) else { return false }
      try transaction.remove(id, from: Self.scheduled)
      record.status = "cancelled"
      record.time = transaction.now
      try transaction.put(record, as: id, in: Self.published)
      return true
    }
  }

  /// Forgets what nobody asks for any more, a page at a time.
  func prune(now: Timestamp) async {
    let isDue = lastPruned.withLock { last in
      guard now.milliseconds - last.milliseconds >= 60_000 else { return false }
      last = now
      return true
    }
    guard isDue else { return }
    let limit = now.advanced(by: .zero - Self.remembered)
    var isMore = true
    while isMore, !Task.isCancelled {
      let pruned = try? await chat.write(isOfObserver: true) { transaction in
        let page = try transaction.documents(in: Self.published, DocumentQuery(limit: 500))
        var count = 0
        for document in page where try document.value(Record.self).time < limit {
          try transaction.remove(document.id, from: Self.published)
          count += 1
        }
        return count
      }
      isMore = pruned == 500
    }
    await pruneSessions(now: now)
  }
}
