/// Keeps everything that happened in a channel and can tell it again: every revision, deletion, join, leave, read mark
/// and reaction.
package protocol EventHistoryProvider: ChatProvider {
  /// One page, oldest first, of what happened after `cursor` (nil: from the beginning). At most `limit` events, perhaps
  /// fewer, and none. Throws `notFound` when the channel does not exist.
  func events(of channel: ChannelID, after cursor: Cursor?, limit: Int) async throws(FerryError) -> EventPage
}

package struct EventPage: Sendable {
  package var events: [Event]
  /// Where the next page begins, or where to go on another day; nil while nothing has happened yet.
  package var next: Cursor?
  package var isLast: Bool
  /// Messages of this page that have been deleted since: what they said is withheld.
  package var withheld: Set<MessageID>

  package init(events: [Event], next: Cursor?, isLast: Bool, withheld: Set<MessageID> = []) {
    self.events = events
    self.next = next
    self.isLast = isLast
    self.withheld = withheld
  }
}

/// Can write what happened in the past as having happened then, and tells nobody about it: no webhook is fired, nothing
/// is published, no phone rings.
///
/// Reading the history again gives the exact times and the stamps back.
package protocol ImportingProvider: ChatProvider {
  /// Makes the channel where it is missing. Throws `forbidden` when writing into it would reach people's phones, unless
  /// `notify`.
  func prepareImport(into channel: ChannelID, notify: Bool) async throws(FerryError)

  /// Writes at most `capabilities.importing.batch` items, in order, all or none. Returns what the messages among them
  /// are called here, and nil for every other item.
  ///
  /// Where `importing.isRepeatable`, an item whose key was written before is left as it is. Elsewhere a message whose
  /// outcome is unknown is settled with `find` before it is repeated; other items may be repeated everywhere.
  func write(_ items: [PastItem], into channel: ChannelID) async throws(FerryError) -> [MessageID?]
}

/// What an import can keep. Part of `Capabilities`.
package struct ImportPowers: Hashable, Sendable, Codable {
  /// How many items one request writes.
  package var batch = 1
  /// Whether repeating a key is harmless.
  package var isRepeatable = false
  /// Whether the texts before an edit are kept, with their times. Otherwise a message has its last text.
  package var revisions = false
  /// Whether joins and leaves are kept with their times. Otherwise those who are members at the end are made so.
  package var joins = false
  package var reads = false
  package var reactions = false
  /// Milliseconds in the finest time that the service itself shows; the exact one is kept beside it.
  package var timeUnit: Int64 = 1
  /// Whether messages are shown by their times, in whatever order they were written. Otherwise as they were written.
  package var sortsByTime = false
  /// Milliseconds by which a message may be older than what was written before it and still stand behind it, where
  /// messages are sorted by time: less than this.
  package var orderSlack: Int64 = 0

  package init() {}
}

/// Where what happened in the past comes to stand at a destination that sorts by time, told in the order in which it is
/// written.
package struct PastOrder: Hashable, Sendable {
  private let slack: Int64
  private var last = Int64.min
  private var newest = Int64.min

  package init(_ powers: ImportPowers?) { slack = powers?.orderSlack ?? 0 }

  /// The milliseconds by which it is sorted: what is only a little late, or as old as the one before, comes right behind
  /// that.
  package mutating func place(_ time: Timestamp) -> Int64 {
    let (late, isFar) = last.subtractingReportingOverflow(time.milliseconds)
    last = !isFar && late >= 0 && late < slack ? last + 1 : time.milliseconds
    return last
  }

  /// Whether it comes to stand before something that was written earlier.
  package mutating func movesBack(_ time: Timestamp) -> Bool {
    let place = place(time)
    defer { newest = max(newest, place) }
    return place < newest
  }
}

/// Something that happened in the past.
package struct PastItem: Hashable, Sendable {
  /// The same whenever this is imported; unique in the destination channel. Of a message, what `find` looks for.
  package var key: SendKey
  package var time: Timestamp
  package var kind: Kind
  package var stamp: Stamp?

  package enum Kind: Hashable, Sendable {
    case message(PastMessage)
    /// The whole message as it then read.
    case edit(PastReference, PastMessage)
    case delete(PastReference, by: Author?)
    case join(Author)
    case leave(Author)
    case read(PastReference, by: Author?, state: ReadMark.State)
    case reaction(PastReference, by: Author, emoji: String, added: Bool)
  }

  package init(key: SendKey, time: Timestamp, kind: Kind, stamp: Stamp? = nil) {
    self.key = key
    self.time = time
    self.kind = kind
    self.stamp = stamp
  }
}

/// A message imported before, or earlier in the same batch.
package struct PastReference: Hashable, Sendable {
  package var key: SendKey
  /// What it is called at the destination; nil as long as that is not known.
  package var id: MessageID?

  package init(key: SendKey, id: MessageID? = nil) {
    self.key = key
    self.id = id
  }
}

/// A message of the past, fitted to the destination's limits.
package struct PastMessage: Hashable, Sendable {
  package var author: Author
  package var text: String
  package var format: TextFormat
  /// When it got this text; nil when it is as it was first.
  package var edited: Timestamp?
  package var revision: Int
  package var attachments: [OutgoingAttachment]
  package var replyTo: PastReference?
  package var mentions: [UserID]
  /// It says what its author does. Kept in the message's attributes, as `action`.
  package var isAction: Bool
  /// What happened, where the service itself wrote it. Kept in the message's attributes, as `system`.
  package var system: String?

  package init(
    author: Author, text: String, format: TextFormat = .plain, edited: Timestamp? = nil, revision: Int = 0,
    attachments: [OutgoingAttachment] = [], replyTo: PastReference? = nil, mentions: [UserID] = [],
    isAction: Bool = false, system: String? = nil
  ) {
    self.author = author
    self.text = text
    self.format = format
    self.edited = edited
    self.revision = revision
    self.attachments = attachments
    self.replyTo = replyTo
    self.mentions = mentions
    self.isAction = isAction
    self.system = system
  }

  /// What `isAction` and `system` are in a message's attributes; nil when there is nothing to say.
  package var attributes: JSONValue? {
    var members: [String: JSONValue] = [:]
    if isAction { members["action"] = true }
    if let system { members["system"] = .string(system) }
    return members.isEmpty ? nil : .object(members)
  }
}
