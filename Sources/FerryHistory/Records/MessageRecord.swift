package import FerryCore

/// A message with all that its source knew of it.
package struct MessageRecord: Hashable, Sendable {
  package var channel: ChannelID
  /// Its `format` is plain or Markdown; see `formatName` for others.
  package var message: Message
  /// How exact `message.time` is.
  package var precision: TimePrecision
  /// The time as the source wrote it, where that says more than `message.time`.
  package var timeRaw: String?
  /// `stated`, or `assumed:Area/City` where the source names no zone. Nil: the source's times are absolute.
  package var zone: String?
  /// The text as the source wrote it, when `message.text` was converted from it.
  package var textRaw: String?
  /// How `message.text` is written when that is neither plain nor Markdown: `mrkdwn`, `html`. It is shown as plain then.
  package var formatName: String?
  /// The first message of its thread.
  package var thread: MessageID?
  /// It is gone; what is left is its place, so that replies to it keep their root.
  package var isDeleted: Bool
  /// What happened, where the service itself wrote it: `topic`, `call`, `name`, `pinned`.
  package var system: String?
  /// It says what its author does ("/me waves").
  package var isAction: Bool
  /// A reply in a thread that the whole channel was shown as well.
  package var isBroadcast: Bool
  package var editedBy: UserID?
  package var reactions: [ReactionTally]
  /// What is known of `message.attachments` beyond `Attachment`, in the same order. It may be shorter.
  package var files: [FileState]
  /// How many parts the original was split into, where known; `message.stamp` says which one this is.
  package var parts: Int?
  /// Some of its text could not be kept exactly: bytes that were no text were replaced.
  package var isLossy: Bool
  package var extra: ExtraFields

  package init(
    channel: ChannelID, message: Message, precision: TimePrecision = .milliseconds, timeRaw: String? = nil,
    zone: String? = nil, textRaw: String? = nil, formatName: String? = nil, thread: MessageID? = nil,
    isDeleted: Bool = false, system: String? = nil, isAction: Bool = false, isBroadcast: Bool = false,
    editedBy: UserID? = nil, reactions: [ReactionTally] = [], files: [FileState] = [], parts: Int? = nil,
    isLossy: Bool = false, extra: ExtraFields = .none
  ) {
    self.channel = channel
    self.message = message
    self.precision = precision
    self.timeRaw = timeRaw
    self.zone = zone
    self.textRaw = textRaw
    self.formatName = formatName
    self.thread = thread
    self.isDeleted = isDeleted
    self.system = system
    self.isAction = isAction
    self.isBroadcast = isBroadcast
    self.editedBy = editedBy
    self.reactions = reactions
    self.files = files
    self.parts = parts
    self.isLossy = isLossy
    self.extra = extra
  }

  /// What is known of the attachment at `index`.
  package func file(at index: Int) -> FileState { files.indices.contains(index) ? files[index] : FileState() }
}

/// How exact a time is.
package enum TimePrecision: String, Hashable, Sendable {
  case microseconds = "us"
  case milliseconds = "ms"
  case seconds = "s"
  case minutes = "min"
  case days = "day"

  /// The unit, in milliseconds; 1 where it is finer.
  package var unit: Int64 {
    switch self {
    case .microseconds, .milliseconds: 1
    case .seconds: 1000
    case .minutes: 60_000
    case .days: 86_400_000
    }
  }
}

/// All reactions of one kind on a message, as the source counts them.
package struct ReactionTally: Hashable, Sendable {
  /// An emoji, or the source's name of one.
  package var key: String
  /// Skin tone, 2 to 6.
  package var tone: Int?
  /// Those whom the source names: it may name fewer than it counts.
  package var users: [UserID]
  package var count: Int
  package var extra: [String: JSONValue]

  package init(
    key: String, tone: Int? = nil, users: [UserID] = [], count: Int? = nil, extra: [String: JSONValue] = [:]
  ) {
    self.key = key
    self.tone = tone
    self.users = users
    self.count = count ?? users.count
    self.extra = extra
  }
}

/// What an archive knows of an attachment beyond `Attachment`.
package struct FileState: Hashable, Sendable {
  package enum Status: String, Hashable, Sendable {
    /// The archive has its bytes: the blob that `Attachment.sha256` names.
    case present
    /// The bytes are where `Attachment.reference` says.
    case remote
    /// They were there and the link has run out.
    case expired
    /// The source keeps them from us, behind a plan's limit for example.
    case hidden
    case deleted
    /// The source was asked and refused.
    case refused
    case tooLarge = "too_large"
  }

  /// The source's identifier of the file.
  package var id: String?
  /// Nil where nobody has looked.
  package var status: Status?
  package var extra: [String: JSONValue]

  package init(id: String? = nil, status: Status? = nil, extra: [String: JSONValue] = [:]) {
    self.id = id
    self.status = status
    self.extra = extra
  }
}
