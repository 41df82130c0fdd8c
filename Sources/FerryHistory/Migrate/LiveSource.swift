package import FerryCore
import FerryRuntime

/// A live channel as the source of an import. Where it stands is in the book, so that the next run takes what is new.
package actor LiveSource: ImportSource {
  private let history: any ChannelHistory
  private let book: WorkBook
  private let patience: Patience
  private var rereading: Rereading?
  private var cursor: Cursor?
  private var hasBegun = false
  private var isAtEnd = false
  /// Where the pages handed out end, oldest first; the first is settled next.
  private var places: [Place] = []

  private struct Place {
    let cursor: Cursor?
    let hasRecords: Bool
    let isLast: Bool
  }

  /// The names under which the book keeps where this scope of the history stands.
  private let place: String
  private let complete: String

  package init(_ history: any ChannelHistory, book: WorkBook, patience: Patience) {
    self.history = history
    self.book = book
    self.patience = patience
    place = "place \(history.scope.name)"
    complete = "complete \(history.scope.name)"
  }

  package func next(limit: Int) async throws(FerryError) -> [Record] {
    if !hasBegun { try await begin() }
    if rereading != nil { return try await reread(limit) }
    while !isAtEnd {
      let (history, after) = (history, cursor)
      let page = try await patience.repeating { () async throws(FerryError) in
        try await history.page(after: after, limit: limit)
      }
      cursor = page.next ?? cursor
      isAtEnd = page.isLast
      places.append(Place(cursor: page.next, hasRecords: !page.records.isEmpty, isLast: page.isLast))
      if !page.records.isEmpty { return page.records }
    }
    return []
  }

  private func begin() async throws(FerryError) {
    hasBegun = true
    cursor = try await book.fact(place).map { Cursor($0) }
    guard !history.goesOn, try await book.fact(complete) != nil else { return }
    rereading = Rereading(history, book: book, patience: patience)
  }

  private func reread(_ limit: Int) async throws(FerryError) -> [Record] {
    guard var walk = rereading else { return [] }
    let records = try await walk.next(limit: limit)
    rereading = walk
    return records
  }

  package func bytes(of attachment: Attachment, _ state: FileState) async throws(FerryError) -> ByteStream? {
    try await history.bytes(of: attachment)
  }

  /// One page is read ahead of the one that is dealt with.
  package func settled() async throws(FerryError) {
    // Pages without records go with the next that has some, or are the end.
    guard let index = places.firstIndex(where: \.hasRecords) ?? places.indices.last else { return }
    var reached = places[index]
    places.removeFirst(index + 1)
    if isAtEnd, !places.contains(where: \.hasRecords), let last = places.last {
      reached = last
      places = []
    }
    var outcome = WorkBook.Outcome()
    if let cursor = reached.cursor { outcome.facts.append((place, cursor.rawValue)) }
    if reached.isLast, !history.goesOn { outcome.facts.append((complete, "1")) }
    try await book.commit(outcome)
  }
}

/// Finds what has changed in a channel that cannot tell: reads it from the newest back until nothing new has been met for
/// a while.
struct Rereading {
  private let history: any ChannelHistory
  private let book: WorkBook
  private let patience: Patience
  private var hasRead = false
  /// The newest page, where it was read already.
  private var first: RecordPage?

  /// So many messages in a row that are as they were known end the reading.
  private static let window = 500

  init(_ history: any ChannelHistory, book: WorkBook, patience: Patience, first: RecordPage? = nil) {
    self.history = history
    self.book = book
    self.patience = patience
    self.first = first
  }

  /// Oldest first; what is gone comes as deletions at the end.
  mutating func next(limit: Int) async throws(FerryError) -> [Record] {
    if !hasRead {
      try await book.forgetSpilled()
      try await readBack()
      hasRead = true
    }
    return try await book.takeSpilled(limit)
  }

  private mutating func readBack() async throws(FerryError) {
    var cursor: Cursor?
    var steady = 0
    var reachedEnd = false
    var oldest: Timestamp?
    repeat {
      let (history, after, first) = (history, cursor, first.take())
      let page = try await patience.repeating { () async throws(FerryError) in
        if let first { first } else { try await history.pageBackwards(after: after, limit: 500) }
      }
      var ids: Set<MessageID> = []
      for case .message(let record) in page.records { ids.insert(record.message.id) }
      let known = try await book.copies(of: ids)
      var news: [Record] = []
      for record in page.records {
        guard case .message(let message) = record else {
          news.append(record)
          continue
        }
        oldest = min(oldest ?? message.message.time, message.message.time)
        if let copy = known[message.message.id], !copy.isDeleted, copy.hash == ImportStamps.hash(message) {
          steady += 1
        } else {
          steady = 0
          news.append(record)
        }
      }
      try await book.spill(news, seen: ids)
      cursor = page.next
      reachedEnd = page.isLast
    } while !reachedEnd && steady < Self.window
    // Where only some of the time was asked for, what was not met may well be there.
    guard history.scope.since == nil, history.scope.until == nil else { return }
    try await book.spillDeletions(in: history.channel, since: reachedEnd ? nil : oldest)
  }
}
