package import FerryCore
import FerryRuntime

/// Takes a channel's past into a sink, page after page; each page is durable before the next is asked for, and a run that
/// was broken off goes on behind the last one.
///
/// One task at a time.
package struct Exporter: Sendable {
  package struct Settings: Sendable {
    package var attachments = true
    /// The largest attachment, in bytes.
    package var attachmentBytes: Int64 = 1 << 30
    package init() {}
  }

  private let settings: Settings
  private let history: any ChannelHistory
  private let sink: any ExportSink
  /// What was taken before, of a source that cannot go on from where it stood.
  private let book: WorkBook?
  private let report: TransferReport
  private let progress: TransferProgress
  private let patience: Patience
  private var place = ExportPlace()
  private var people: Set<UserID> = []
  private var hasWritten = false

  private static let pageSize = 500
  /// So many names are remembered; who is named a second time does no harm.
  private static let mostPeople = 20_000

  /// `book` may be nil where `history.goesOn`.
  package init(
    _ settings: Settings, of history: any ChannelHistory, into sink: any ExportSink, book: WorkBook?,
    report: TransferReport, progress: TransferProgress, patience: Patience
  ) {
    self.settings = settings
    self.history = history
    self.sink = sink
    self.book = book
    self.report = report
    self.progress = progress
    self.patience = patience
  }

  /// What was read before anything was made.
  package struct Beginning: Sendable {
    fileprivate let place: ExportPlace
    fileprivate let page: RecordPage

    /// Throws `badRequest` when there is an archive and the notes on what is in it are not in the book.
    package func check(_ book: WorkBook, of channel: ChannelID) async throws(FerryError) {
      try await place.check(book, of: channel)
    }
  }

  /// Reads the first page, so that an account that refuses leaves nothing behind. `place` is what the sink, which is not
  /// opened yet, will have for the channel.
  package static func begin(
    _ history: any ChannelHistory, at place: String?, _ patience: Patience
  ) async throws(FerryError) -> Beginning {
    let place = ExportPlace(text: place)
    let page = try await patience.repeating { () async throws(FerryError) in
      place.rereads(history)
        ? try await history.pageBackwards(after: nil, limit: pageSize)
        : try await history.page(after: place.cursor, limit: pageSize)
    }
    return Beginning(place: place, page: page)
  }

  /// To the end of what there is now; returns what `ExportSink.finish` does. `members` are those who are in the channel,
  /// where the history does not tell.
  @discardableResult
  package mutating func run(
    from beginning: Beginning? = nil, members: [Author]? = nil
  ) async throws(FerryError) -> String? {
    let channel = history.channel
    let text = try await sink.place(of: channel)
    place = ExportPlace(text: text)
    let first = beginning?.place == place ? beginning?.page : nil
    if !history.goesOn, let book { try await match(book, isNew: text == nil) }
    if place == ExportPlace() {
      try await sink.append([
        .channel(ChannelRecord(id: channel, name: channel.rawValue, members: members?.map(\.id)))
      ])
      try await write(people: members ?? [])
    }
    if place.rereads(history), let book {
      try await takeChanges(book, first)
    } else {
      try await takePages(first)
    }
    let isFirst = !place.isComplete
    place.isComplete = true
    if hasWritten || isFirst {
      try await sink.append([.end(EndRecord(channel: channel, isComplete: true, messages: place.messages))])
    }
    try await sink.commit(place.text, of: channel)
    return try await sink.finish()
  }

  /// The book and what is written are of the same export.
  private func match(_ book: WorkBook, isNew: Bool) async throws(FerryError) {
    let count = try await book.messageCount()
    if isNew {
      // Begun anew: what was taken before is not in there.
      if count > 0 { try await book.forgetMessages() }
    } else {
      try await place.check(book, of: history.channel)
    }
  }

  private mutating func takePages(_ first: RecordPage?) async throws(FerryError) {
    let (history, patience) = (history, patience)
    @Sendable func fetch(_ cursor: Cursor?) async -> Result<RecordPage, FerryError> {
      await Patience.outcome { () async throws(FerryError) in
        try await patience.repeating { () async throws(FerryError) in
          try await history.page(after: cursor, limit: Self.pageSize)
        }
      }
    }
    var page: RecordPage
    if let first { page = first } else { page = try await fetch(place.cursor).get() }
    while true {
      let (current, next) = (page, page.next ?? place.cursor)
      // The next page is on its way while this one is written.
      async let upcoming = current.isLast ? .success(current) : fetch(next)
      let result = await Patience.outcome { () async throws(FerryError) in try await take(current) }
      let following = await upcoming
      try result.get()
      if current.isLast { return }
      page = try following.get()
    }
  }

  private mutating func take(_ page: RecordPage) async throws(FerryError) {
    if history.goesOn {
      try await write(page.records)
    } else {
      // After an interruption the page may be known already.
      try await writeNews(page.records)
    }
    place.cursor = page.isLast && !history.goesOn ? nil : page.next ?? place.cursor
    try await sink.commit(place.text, of: history.channel)
  }

  private mutating func takeChanges(_ book: WorkBook, _ first: RecordPage?) async throws(FerryError) {
    var walk = Rereading(history, book: book, patience: patience, first: first)
    while true {
      let records = try await walk.next(limit: Self.pageSize)
      if records.isEmpty { return }
      try await writeNews(records)
      try await sink.commit(place.text, of: history.channel)
    }
  }

  /// Writes what differs from what was written before.
  private mutating func writeNews(_ records: [Record]) async throws(FerryError) {
    guard let book else { return try await write(records) }
    var ids: Set<MessageID> = []
    for record in records { if let id = record.messageID { ids.insert(id) } }
    let known = try await book.copies(of: ids)
    let done = try await book.done(records.compactMap { key(of: $0) })
    var outcome = WorkBook.Outcome()
    var news: [Record] = []
    for record in records {
      guard let id = record.messageID else {
        if let key = key(of: record) {
          if done.contains(key) { continue }
          outcome.done.append(key)
        }
        news.append(record)
        continue
      }
      var copy = known[id]
      switch record {
      case .message(let message):
        let hash = ImportStamps.hash(message)
        if let copy, !copy.isDeleted, copy.hash == hash {
          progress.update { counts in
            counts.read += 1
            counts.unchanged += 1
          }
          continue
        }
        outcome.copies.append(
          (id, Copy(hash: hash, time: message.message.time, revision: message.message.revision, parts: [], stamp: nil)))
      case .delete:
        guard copy?.isDeleted == false else { continue }
        copy?.isDeleted = true
        if let copy { outcome.copies.append((id, copy)) }
      default: break
      }
      news.append(record)
    }
    try await write(news)
    // After the sink has it: what is written and not noted is written again, which does no harm.
    try await sink.commit(place.text, of: history.channel)
    try await book.commit(outcome)
    // Not counted while writing: a page may have been written before, by a run that could not note it.
    place.messages = try await book.messageCount()
  }

  /// Of joins and leaves that lie among the messages.
  private func key(of record: Record) -> SendKey? {
    switch record {
    case .join(let membership), .leave(let membership):
      ImportStamps.key(
        record.kind, [membership.member.id.rawValue, membership.time.map { String($0.milliseconds) } ?? "-"],
        from: Address(account: "export", channel: membership.channel))
    default: nil
    }
  }

  private mutating func write(_ records: [Record]) async throws(FerryError) {
    var kept = records
    if settings.attachments {
      kept = try await AttachmentKeeping(
        sink: sink, history: history, patience: patience, limit: settings.attachmentBytes, report: report,
        progress: progress
      ).keep(records)
    } else {
      kept = records.map { $0.withRemoteAttachments }
    }
    try await write(people: records.compactMap(\.author))
    if !kept.isEmpty {
      try await sink.append(kept)
      hasWritten = true
    }
    if history.goesOn || book == nil {
      place.messages += kept.count { if case .message = $0 { true } else { false } }
    }
    progress.update { counts in
      counts.read += records.count
      for record in kept {
        switch record {
        case .message: counts.messages += 1
        case .edit: counts.edits += 1
        case .delete: counts.deletes += 1
        default: counts.others += 1
        }
        counts.place = record.time ?? counts.place
      }
    }
  }

  private mutating func write(people authors: [Author]) async throws(FerryError) {
    if people.count > Self.mostPeople { people = [] }
    var records: [Record] = []
    for author in authors where people.insert(author.id).inserted {
      records.append(.person(PersonRecord(id: author.id, name: author.name)))
    }
    if !records.isEmpty { try await sink.append(records) }
  }
}

extension Record {
  /// Of what is told about one message.
  var messageID: MessageID? {
    switch self {
    case .message(let record), .edit(let record): record.message.id
    case .delete(let record): record.id
    default: nil
    }
  }

  fileprivate var author: Author? {
    switch self {
    case .message(let record), .edit(let record): record.message.author
    case .delete(let record): record.by
    case .reaction(let record): record.reaction.by
    case .join(let record), .leave(let record): record.member
    case .read(let record): record.mark.by
    case .channel, .person, .gap, .skipped, .end, .unknown: nil
    }
  }

  fileprivate var withRemoteAttachments: Record {
    func remote(_ record: MessageRecord) -> MessageRecord {
      guard !record.message.attachments.isEmpty else { return record }
      var record = record
      record.files = record.message.attachments.map { _ in FileState(status: .remote) }
      return record
    }
    switch self {
    case .message(let record): return .message(remote(record))
    case .edit(let record): return .edit(remote(record))
    default: return self
    }
  }
}
