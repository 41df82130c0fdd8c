/// One configured account of a chat service: the seam between the relay and every provider.
///
/// The rules that hold for every method:
/// - All may be called from any task at any time, `run` included; an adapter guards its own state.
/// - All honour cancellation and end within a second of it.
/// - All throw `FerryError` whose `retry` and `didNotAct` are true statements: the relay acts on nothing else.
/// - None stores anything durable. The relay stores what methods return: ids as links, cursors with the events.
/// - Sends to one channel are made one after the other by the relay; sends to different channels overlap.
package protocol ChatProvider: Sendable {
  /// What this account can do and its limits. Constant after `init`.
  var capabilities: Capabilities { get }

  /// Keeps the account connected until cancelled, and hands every event of the subscribed channels to `inbox`.
  ///
  /// Called once, by the task that owns the account. Reconnects by itself with back-off for ever; throws only what
  /// no retry can mend (bad credentials, a channel that cannot exist). Reports its state to
  /// `inbox.connection(_:)`. An event counts as read only when `inbox.accept(_:)` has returned: until then a
  /// webhook is not answered and a cursor not moved. It may block on `accept` for as long as the disk is full.
  func run(_ subscriptions: [Subscription], into inbox: any Inbox) async throws(FerryError)

  /// Writes a message and returns the id the provider gave it.
  ///
  /// Called by a lane, for one channel one after the other. Limits in `capabilities` have been kept by the caller.
  /// May wait for the network as long as the account's request deadline, and for the provider's rate limit; must not
  /// repeat the request unless it is certain that the first did not act.
  func post(_ message: OutgoingMessage, to channel: ChannelID) async throws(FerryError) -> MessageID

  /// Whether the send made earlier under `key` was carried out: settles "did my lost request arrive?".
  ///
  /// Called before an unknown send is repeated, with no other send to the channel under way.
  func find(_ key: SendKey, in channel: ChannelID) async throws(FerryError) -> Finding

  /// The bytes of an attachment that this account's events named. The caller reads to the end or cancels.
  func attachment(_ reference: AttachmentReference) async throws(FerryError) -> ByteStream

  /// The channels this account can name, in no particular order.
  func channels() async throws(FerryError) -> [ChannelSummary]
}

/// Can write several messages to one channel in one request, in order, all or none.
package protocol BatchingProvider: ChatProvider {
  /// At most `capabilities.batch` messages. Ids are in the order of `messages`.
  func post(_ messages: [OutgoingMessage], to channel: ChannelID) async throws(FerryError) -> [MessageID]

  /// `find` for the keys of one whole batch, in its order. All or none of the batch was carried out.
  func find(_ keys: [SendKey], in channel: ChannelID) async throws(FerryError) -> [Finding]
}

/// Has to do something before a send, so that `find` can later tell whether the send was carried out.
package protocol PreparingProvider: ChatProvider {
  /// Called before a send is recorded as under way: what fails here, or is interrupted, did not send anything.
  /// Called for every send; should remember what it has done.
  func prepare(_ key: SendKey, in channel: ChannelID) async throws(FerryError)
}

/// Can make what channels need at the service: a table, a conversation, a room.
package protocol SetupProvider: ChatProvider {
  /// Makes what is not there yet, and returns what that was: for people, a line each. Repeating it makes nothing.
  func setUp(_ channels: [ChannelID]) async throws(FerryError) -> [String]
}

/// Can change a message that it wrote.
package protocol EditingProvider: ChatProvider {
  /// Replaces text and attachments. Repeating an edit is harmless; a message that is gone throws `notFound`.
  func edit(_ id: MessageID, in channel: ChannelID, to message: OutgoingMessage) async throws(FerryError)
}

/// Can take back a message that it wrote.
package protocol DeletingProvider: ChatProvider {
  /// Deleting what is gone already succeeds.
  func delete(_ id: MessageID, in channel: ChannelID, as author: Author?, stamp: Stamp?) async throws(FerryError)
}

/// Can show that somebody is typing.
package protocol TypingProvider: ChatProvider {
  /// Called at most once a second for one sender and channel; never retried.
  func setTyping(_ typing: Typing) async throws(FerryError)
}

/// Stores attachments' bytes.
package protocol UploadingProvider: ChatProvider {
  /// Streams the bytes and returns how messages name them. Repeating an upload is harmless.
  func upload(_ bytes: ByteStream, name: String, mediaType: String, to channel: ChannelID)
    async throws(FerryError) -> AttachmentReference
}

/// Keeps messages and can list them.
package protocol HistoryProvider: ChatProvider {
  /// One page, in the order asked for, starting after `cursor` (or at that order's beginning).
  func history(of channel: ChannelID, order: HistoryOrder, after cursor: Cursor?, limit: Int)
    async throws(FerryError) -> HistoryPage
}

/// Knows who is in a channel.
package protocol MembershipProvider: ChatProvider {
  func members(of channel: ChannelID) async throws(FerryError) -> [Author]
  /// Repeating it is harmless.
  func setMember(_ membership: Membership, of channel: ChannelID, present: Bool) async throws(FerryError)
}

/// Can carry read and delivery marks.
package protocol ReadingProvider: ChatProvider {
  func mark(_ mark: ReadMark, in channel: ChannelID) async throws(FerryError)
}

/// Can carry reactions.
package protocol ReactingProvider: ChatProvider {
  func react(_ reaction: Reaction, in channel: ChannelID) async throws(FerryError)
}

/// What an adapter hands events to; made by the relay and by `ferry tail`.
package protocol Inbox: Sendable {
  /// Returns once the events are durable, in order, duplicates dropped. Events of several channels may be mixed.
  /// Throws when they cannot be stored: the caller keeps them, tells the source nothing, and tries again.
  func accept(_ events: [Event]) async throws(FerryError)

  /// Remembers where a channel's stream stands when no event does it: on the first subscription.
  func accept(cursor: Cursor, for channel: ChannelID) async throws(FerryError)

  /// What was accepted from a channel lately, the last accepted first, at most `limit` messages: what an adapter of a
  /// service without an event log compares with the service's own list, to find what nobody announced.
  func recent(in channel: ChannelID, limit: Int) async throws(FerryError) -> [KnownMessage]

  /// Never waits and never fails; the newest of one sender and channel counts.
  func typing(_ typing: Typing)

  /// A source without history was not being listened to. Returns once that is durable.
  func gap(_ gap: Gap) async

  func connection(_ state: ConnectionState)
}

/// A message of a source as it was last accepted.
package struct KnownMessage: Hashable, Sendable {
  package var id: MessageID
  /// As posted or last edited; nil when it was deleted.
  package var message: Message?
  /// Whether its posting is among what was looked at, and not only what became of it.
  package var isPosted: Bool

  package init(id: MessageID, message: Message?, isPosted: Bool = true) {
    self.id = id
    self.message = message
    self.isPosted = isPosted
  }

  /// What events say of messages, each message once; the events newest first.
  package static func latest(of events: some Sequence<Event>) -> [KnownMessage] {
    var places: [MessageID: Int] = [:]
    var known: [KnownMessage] = []
    func note(_ id: MessageID, _ message: Message?, isPosted: Bool) {
      if let place = places[id] {
        known[place].isPosted = known[place].isPosted || isPosted
      } else {
        places[id] = known.count
        known.append(KnownMessage(id: id, message: message, isPosted: isPosted))
      }
    }
    for event in events {
      switch event.kind {
      case .posted(let message): note(message.id, message, isPosted: true)
      case .edited(let message): note(message.id, message, isPosted: false)
      case .deleted(let deletion): note(deletion.id, nil, isPosted: false)
      case .joined, .left, .read, .reacted: break
      }
    }
    return known
  }
}

/// What the account is doing, for `ferry status`, the console and the metrics.
package struct ConnectionState: Hashable, Sendable, Codable {
  package enum Phase: String, Hashable, Sendable, Codable {
    case connecting, connected, degraded, badCredentials = "bad_credentials", stopped
    /// No bridge listens to it: it is only written to.
    case idle
  }
  package var phase: Phase
  /// Why, in words for the user; nil when all is well.
  package var reason: String?

  package init(_ phase: Phase, reason: String? = nil) {
    self.phase = phase
    self.reason = reason
  }
}

/// A channel to listen to, and where its stream stood when it was last listened to.
package struct Subscription: Hashable, Sendable {
  package var channel: ChannelID
  /// Nil the first time: start with what happens from now on.
  package var cursor: Cursor?
  /// When the last event was accepted or the last connection ended, for reporting a gap. Nil the first time.
  package var lastSeen: Timestamp?

  package init(channel: ChannelID, cursor: Cursor? = nil, lastSeen: Timestamp? = nil) {
    self.channel = channel
    self.cursor = cursor
    self.lastSeen = lastSeen
  }
}

/// A message to be written, already fitted to the destination's limits.
package struct OutgoingMessage: Hashable, Sendable, Codable {
  /// The same on every retry.
  package var key: SendKey
  package var author: Author
  package var text: String
  package var format: TextFormat
  /// When the original was written; kept where the destination can.
  package var time: Timestamp?
  package var attachments: [OutgoingAttachment]
  package var replyTo: MessageID?
  /// Present on everything the relay writes, absent on a person's own post.
  package var stamp: Stamp?

  package init(
    key: SendKey, author: Author, text: String, format: TextFormat = .plain, time: Timestamp? = nil,
    attachments: [OutgoingAttachment] = [], replyTo: MessageID? = nil, stamp: Stamp? = nil
  ) {
    self.key = key
    self.author = author
    self.text = text
    self.format = format
    self.time = time
    self.attachments = attachments
    self.replyTo = replyTo
    self.stamp = stamp
  }
}

/// An attachment as the destination will name it: uploaded before, or served by Ferry under a link.
package struct OutgoingAttachment: Hashable, Sendable, Codable {
  package var name: String
  package var mediaType: String
  package var size: Int64
  package var sha256: String
  package var reference: AttachmentReference

  package init(name: String, mediaType: String, size: Int64, sha256: String, reference: AttachmentReference) {
    self.name = name
    self.mediaType = mediaType
    self.size = size
    self.sha256 = sha256
    self.reference = reference
  }
}

/// The answer of `ChatProvider.find(_:in:)`.
package enum Finding: Hashable, Sendable {
  case found(MessageID)
  /// Certainly not carried out: it may be repeated.
  case absent
  /// The provider cannot tell, and why.
  case unknown(reason: String)
}

package enum HistoryOrder: String, Sendable, Codable { case oldestFirst, newestFirst }

package struct HistoryPage: Sendable {
  package var messages: [Message]
  /// Joins and leaves that lie among the messages, at services that keep them there.
  package var notices: [Event]
  /// Nil on the last page.
  package var next: Cursor?

  package init(messages: [Message], notices: [Event] = [], next: Cursor?) {
    self.messages = messages
    self.notices = notices
    self.next = next
  }
}

package struct ChannelSummary: Hashable, Sendable, Codable {
  package var id: ChannelID
  package var name: String
  /// How many are in it, where the provider says.
  package var members: Int?

  package init(id: ChannelID, name: String, members: Int? = nil) {
    self.id = id
    self.name = name
    self.members = members
  }
}
