import FerryCore

/// What is known of a channel's messages, and so what of all that is heard about them is news. A pure value.
///
/// The same message is heard of up to four times: as a row that was created, as a publish, when rows are listed, and
/// as a row that changed. Its event's key is its id, however it is learned.
struct ChannelBook: Sendable {
  /// How something was learned.
  enum Origin: Hashable, Sendable {
    case published
    case created
    case changed
    /// Read from the table; `asOf` is what `mark` said before the question was asked.
    case listed(asOf: UInt64)
    /// Read from the table among what has changed lately.
    case listedAsChanged(asOf: UInt64)
  }

  private struct Known: Sendable {
    var content: Int
    /// As the service says; zero for never.
    var updated: Int64
    /// As Ferry says: rises with every edit, also within the service's tick.
    var revision: Int
    /// A row stands behind it, so that its absence from the table means something.
    var isRow: Bool
    /// Its coming has been reported.
    var isPosted: Bool
    var isDeleted = false
    /// When it last changed, in steps of the book.
    var step: UInt64
  }

  private let limit: Int
  private var known: [MessageID: Known] = [:]
  /// In the order of their first mention; the oldest are forgotten.
  private var order: [MessageID] = []
  private var step: UInt64 = 0

  init(limit: Int = 4000) { self.limit = limit }

  /// Seeded with what was accepted before, the newest first.
  init(recent: [KnownMessage], limit: Int = 4000) {
    self.init(limit: limit)
    for item in recent.reversed() {
      guard let message = item.message else {
        note(
          item.id, Known(content: 0, updated: 0, revision: 0, isRow: false, isPosted: true, isDeleted: true, step: 0))
        continue
      }
      let isRow = message.attributes?["created"]?.integer != nil
      // The service tells of changes in whole seconds, and an edit's own time may be finer: another edit in the same
      // second is no older.
      let updated = (message.edited?.milliseconds ?? 0) / 1000 * 1000
      note(
        item.id,
        Known(
          content: Self.content(message), updated: updated, revision: message.revision, isRow: isRow,
          isPosted: item.isPosted, step: 0))
    }
  }

  /// The place of now: changes after it are newer than an answer to a question asked now.
  var mark: UInt64 { step }

  func isKnown(_ id: MessageID) -> Bool { known[id].map { !$0.isDeleted } ?? false }

  /// Rows that were there when last heard of, the newest first.
  func live(_ count: Int) -> [MessageID] {
    Array(order.reversed().lazy.filter { known[$0].map { $0.isRow && !$0.isDeleted } ?? false }.prefix(count))
  }

  // MARK: News

  /// The news in a message that was heard of, if there is any.
  mutating func observe(_ said: ChatReader.Said, _ origin: Origin) -> Event.Kind? {
    let message = said.message
    guard var known = known[message.id] else {
      let isPosted = origin != .changed && !origin.isListedAsChanged
      step += 1
      note(
        message.id,
        Known(
          content: Self.content(message), updated: said.updated ?? 0, revision: message.revision, isRow: said.isRow,
          isPosted: isPosted, step: step))
      if isPosted { return .posted(message) }
      return message.revision > 0 ? .edited(message) : nil
    }
    guard !known.isDeleted else { return nil }
    known.isRow = known.isRow || said.isRow
    let kind = news(message, said, origin, &known)
    self.known[message.id] = known
    return kind
  }

  private mutating func news(
    _ message: Message, _ said: ChatReader.Said, _ origin: Origin, _ known: inout Known
  ) -> Event.Kind? {
    let isComing = origin != .changed && !origin.isListedAsChanged && !known.isPosted
    if isComing { known.isPosted = true }
    let content = Self.content(message)
    let updated = said.updated ?? 0
    guard content != known.content, updated >= known.updated, origin != .published || updated > known.updated,
      !origin.isOlder(than: known.step)
    else {
      known.updated = max(known.updated, content == known.content ? updated : 0)
      return isComing ? .posted(message) : nil
    }
    step += 1
    known.step = step
    known.content = content
    known.updated = updated
    if isComing {
      known.revision = max(message.revision, known.revision)
      return .posted(message)
    }
    known.revision = max(message.revision, known.revision + 1)
    var edited = message
    edited.revision = known.revision
    return .edited(edited)
  }

  /// A row is gone. Nil when that is known.
  mutating func delete(_ id: MessageID) -> Bool {
    step += 1
    guard var known = known[id] else {
      note(id, Known(content: 0, updated: 0, revision: 0, isRow: true, isPosted: false, isDeleted: true, step: step))
      return true
    }
    guard !known.isDeleted else { return false }
    known.isDeleted = true
    known.step = step
    self.known[id] = known
    return true
  }

  /// Whether a message's row, asked for after `mark` said `asOf` and not found, is gone: not when it came or changed
  /// since.
  func isGone(_ id: MessageID, asOf: UInt64) -> Bool {
    known[id].map { !$0.isDeleted && $0.isRow && $0.step <= asOf } ?? false
  }

  private mutating func note(_ id: MessageID, _ value: Known) {
    if known.updateValue(value, forKey: id) == nil { order.append(id) }
    // By halves, so that forgetting costs little.
    guard order.count > limit else { return }
    for old in order.prefix(limit / 2) { known[old] = nil }
    order.removeFirst(limit / 2)
  }

  /// What an edit changes.
  private static func content(_ message: Message) -> Int {
    var hasher = Hasher()
    hasher.combine(Array(message.text.utf8))
    for attachment in message.attachments {
      switch attachment.reference {
      case .url(let url), .provider(let url): hasher.combine(url)
      }
    }
    return hasher.finalize()
  }
}

extension ChannelBook.Origin {
  var isListedAsChanged: Bool { if case .listedAsChanged = self { true } else { false } }

  /// An answer that was asked for before the last change says nothing about it.
  func isOlder(than step: UInt64) -> Bool {
    switch self {
    case .listed(let asOf), .listedAsChanged(let asOf): step > asOf
    case .published, .created, .changed: false
    }
  }
}
