package import FerryCore
import FerryRuntime

/// Writes records into a channel, oldest first: what is there already is left alone, what cannot be kept is reported,
/// and a run that was broken off is gone on with.
///
/// One task at a time.
package struct Importer: Sendable {
  package struct Settings: Sendable {
    /// Where the records come from: the origin in the stamps of what is written.
    package var source: Address
    /// Only records of this channel; nil for all.
    package var channel: ChannelID?
    /// Items a second, at most.
    package var rate: Double?
    /// Whom an author of the source is at the destination.
    package var authors: [UserID: UserID] = [:]
    package var attachments = true
    /// Whether phones may ring.
    package var notify = false
    /// Writes nothing and counts what would be written.
    package var isPlan = false

    package init(source: Address) { self.source = source }
  }

  /// A message that was written, for the relay's links.
  package struct Written: Sendable {
    package var id: MessageID
    package var revision: Int
    package var isDeleted: Bool
    package var parts: [(number: Int, id: MessageID)]
  }

  let settings: Settings
  let provider: any ImportingProvider
  let powers: ImportPowers
  let channel: ChannelID
  let source: any ImportSource
  let book: WorkBook
  let report: TransferReport
  let progress: TransferProgress
  let patience: Patience
  /// Told of messages before they count as done.
  let linking: (@Sendable ([Written]) async throws(FerryError) -> Void)?

  /// Items to be written, in order.
  var pending: [Pending] = []
  var pendingBytes = 0
  /// What is known of the messages that the page at hand is about.
  var known: [MessageID: Copy] = [:]
  var done: Set<SendKey> = []
  var outcome = WorkBook.Outcome()
  var underway: Underway?
  /// How many batches have been begun to be written beside this.
  var begun = 0
  let lane = WritingLane()
  /// Whether what the destination holds already is in the book.
  var isIndexed = false
  var nextTurn: Timestamp
  var lastTime: Timestamp?
  var order: PastOrder
  var repeats = Repeats()
  /// Keys that the destination had already.
  var adopted: Set<SendKey> = []
  /// Messages that the destination did not take, as long as something that names them may be on its way.
  var refused: Set<SendKey> = []

  private static let pageSize = 500
  /// A request is not made larger than about this.
  private static let requestBytes = 2 << 20

  /// Throws `unsupported` when the destination cannot take the past.
  package init(
    _ settings: Settings, from source: any ImportSource, to provider: any ChatProvider, _ address: Address,
    book: WorkBook, report: TransferReport, progress: TransferProgress, patience: Patience,
    linking: (@Sendable ([Written]) async throws(FerryError) -> Void)? = nil
  ) throws(FerryError) {
    guard let importing = provider as? any ImportingProvider, let powers = provider.capabilities.importing else {
      let reason = provider.capabilities.absent["history"] ?? "This kind of account keeps no messages."
      throw FerryError(.unsupported, "Nothing can be imported into \(address): \(reason)")
    }
    self.settings = settings
    self.provider = importing
    self.powers = powers
    channel = address.channel
    self.source = source
    self.book = book
    self.report = report
    self.progress = progress
    self.patience = patience
    self.linking = linking
    nextTurn = patience.clock.now()
    order = PastOrder(powers)
  }

  /// To the source's end. Throws only what ends every attempt: bad credentials, a full disk, no answer for too long,
  /// cancellation. What was written until then is noted, and the next run goes on behind it.
  package mutating func run() async throws(FerryError) {
    if !settings.isPlan {
      let (provider, channel, notify) = (provider, channel, settings.notify)
      try await patience.repeating { () async throws(FerryError) in
        try await provider.prepareImport(into: channel, notify: notify)
      }
      try await settleInterrupted()
    }
    try await indexDestination()
    try await writingAlong { (importer) async throws(FerryError) in try await importer.takeAll() }
    try await applyMembers()
    if !settings.isPlan { try await source.settled() }
  }

  mutating func takeAll() async throws(FerryError) {
    let source = source
    var page = try await source.next(limit: Self.pageSize)
    var isOwed = false
    while !page.isEmpty {
      // The next page is read while this one is written.
      async let upcoming = Patience.outcome { () async throws(FerryError) in
        try await source.next(limit: Self.pageSize)
      }
      let result = await Patience.outcome { () async throws(FerryError) in try await take(page) }
      let following = await upcoming
      try result.get()
      if isOwed { try await source.settled() }
      isOwed = !settings.isPlan
      if underway == nil, isOwed {
        try await source.settled()
        isOwed = false
      }
      page = try following.get()
    }
    try await flush()
    if isOwed { try await source.settled() }
  }

  /// The destination knows a message by its id alone, not by the key under which it was written.
  var needsIDs: Bool { powers.batch == 1 }

  /// No more than a second's worth where there is a rate; one where an unknown outcome has to be asked about.
  var batchSize: Int {
    powers.isRepeatable ? max(min(powers.batch, settings.rate.map { Int($0) } ?? .max), 1) : 1
  }

  // MARK: A page

  private mutating func take(_ records: [Record]) async throws(FerryError) {
    let records = records.filter { record in
      guard let wanted = settings.channel, let channel = record.channel else { return true }
      return channel == wanted
    }
    let keys = records.map { key(of: $0) }
    var copies = try await book.copies(of: Self.messages(in: records))
    // What is being written is not in the book yet.
    let unnoted = underway?.messages ?? []
    for id in unnoted { copies[id] = known[id] }
    known = copies
    done = try await book.done(keys.compactMap { $0 } + records.flatMap { tallyKeys(in: $0) })
    let taken = try await book.taken(
      records.compactMap { record in
        switch record {
        case .message(let message), .edit(let message): ImportStamps.brought(message, from: settings.source)
        default: nil
        }
      })
    let earlier = begun
    repeats.taken = taken.union(unnoted.compactMap { known[$0]?.stamp })
    for (record, key) in zip(records, keys) {
      if Task.isCancelled { throw .cancelled(didNotAct: true) }
      lastTime = record.time ?? lastTime
      try await take(record, key)
      if pending.count >= batchSize || pendingBytes >= Self.requestBytes { try await advance() }
    }
    // What this page has begun may go on while the next one is taken.
    if !pending.isEmpty || !outcome.isEmpty || begun == earlier { try await advance() }
    // People belong to no channel, and are told with each.
    let count = records.count { $0.channel != nil }
    progress.update { [lastTime] counts in
      counts.read += count
      counts.place = lastTime
    }
  }

  private func tallyKeys(in record: Record) -> [SendKey] {
    guard powers.reactions, case .message(let message) = record else { return [] }
    return message.reactions.flatMap { tallyKeys($0, message) }
  }

  private mutating func take(_ record: Record, _ key: SendKey?) async throws(FerryError) {
    switch record {
    case .message(let message): try await take(message)
    case .edit(let message): try await takeEdit(message)
    case .delete(let deletion): try await takeDeletion(of: deletion.id, by: deletion.by, at: deletion.time)
    case .join(let membership): takeMembership(membership, isPresent: true, key)
    case .leave(let membership): takeMembership(membership, isPresent: false, key)
    case .reaction(let reaction): takeReaction(reaction, key)
    case .read(let mark): takeRead(mark, key)
    case .person(let person): outcome.people.append((person.id, person.name))
    case .channel(let channel):
      for user in channel.members ?? [] {
        outcome.members.append((user, try await name(of: user), true))
      }
    case .gap(let gap):
      lose("gap", nil, "the source has a gap", "\(gap.from.iso8601) to \(gap.to.iso8601): \(gap.reason)")
    case .skipped(let skipped):
      lose("record", skipped.place, "skipped at the source", skipped.reason, count: max(skipped.count, 1))
    case .end(let end):
      if !end.isComplete { lose("record", nil, "the source is not complete") }
    case .unknown(let kind, _): lose("record", nil, "of an unknown kind", kind)
    }
  }

  private static func messages(in records: [Record]) -> Set<MessageID> {
    var ids: Set<MessageID> = []
    for record in records {
      switch record {
      case .message(let message), .edit(let message):
        ids.insert(message.message.id)
        if let reply = message.message.replyTo { ids.insert(reply) }
      case .delete(let deletion): ids.insert(deletion.id)
      case .reaction(let reaction): ids.insert(reaction.reaction.message)
      case .read(let mark): ids.insert(mark.mark.upTo)
      default: break
      }
    }
    return ids
  }

  // MARK: Records

  /// As the source last told it, whether that is noted yet or not.
  private func name(of user: UserID) async throws(FerryError) -> String {
    let unnoted = (underway?.outcome.people ?? []) + outcome.people
    if let (_, name) = unnoted.last(where: { $0.0 == user }) { return name }
    return try await book.name(of: user) ?? user.rawValue
  }

  func lose(_ what: String, _ id: String?, _ reason: String, _ detail: String? = nil, count: Int = 1) {
    report.add(
      .init(
        what: what, channel: settings.channel ?? settings.source.channel, id: id, reason: reason, detail: detail,
        count: count))
    progress.update { $0.lost.add(count) }
  }

  func author(_ author: Author) -> Author {
    if author.isNobody { return .unknown }
    guard let id = settings.authors[author.id] else { return author }
    return Author(id: id, name: author.name, avatar: author.avatar)
  }
}
