package import FerryCore

/// Who asks, as established by the facade that checked their credentials.
package struct Caller: Hashable, Sendable {
  /// The one user the caller may act as; nil when it may act as anybody.
  package var user: UserID?
  /// May change and delete everybody's messages and members.
  package var moderates: Bool

  package init(user: UserID?, moderates: Bool) {
    self.user = user
    self.moderates = moderates
  }

  /// The owner of the namespace: acts as anybody, moderates, may set times and stamps.
  package static let owner = Caller(user: nil, moderates: true)
}

/// A message to be posted.
package struct Draft: Hashable, Sendable {
  /// The same on every retry; unique in the room. Nil when the poster cannot retry.
  package var clientID: SendKey?
  /// Nil when the caller is bound to a user who speaks under their id.
  package var author: Author?
  package var text: String
  package var format: TextFormat
  /// When the original was written; nil means now.
  package var time: Timestamp?
  /// `.provider` references are SHA-256 sums of stored files.
  package var attachments: [Attachment]
  package var replyTo: MessageID?
  package var mentions: [UserID]
  package var stamp: Stamp?
  package var attributes: JSONValue?

  package init(
    clientID: SendKey? = nil, author: Author?, text: String, format: TextFormat = .plain, time: Timestamp? = nil,
    attachments: [Attachment] = [], replyTo: MessageID? = nil, mentions: [UserID] = [], stamp: Stamp? = nil,
    attributes: JSONValue? = nil
  ) {
    self.clientID = clientID
    self.author = author
    self.text = text
    self.format = format
    self.time = time
    self.attachments = attachments
    self.replyTo = replyTo
    self.mentions = mentions
    self.stamp = stamp
    self.attributes = attributes
  }
}

/// What an edit changes; nil leaves a part as it is.
package struct Change: Hashable, Sendable {
  package var text: String?
  package var format: TextFormat?
  package var attachments: [Attachment]?
  /// Author and time as which the message is to be shown. Only for callers who may act as anybody.
  package var author: Author?
  package var time: Timestamp?
  package var attributes: JSONValue?
  /// The revision the editor saw: when the message has another by now, the edit is refused with `conflict`.
  package var revision: Int?
  package var stamp: Stamp?

  package init(
    text: String? = nil, format: TextFormat? = nil, attachments: [Attachment]? = nil, author: Author? = nil,
    time: Timestamp? = nil, attributes: JSONValue? = nil, revision: Int? = nil, stamp: Stamp? = nil
  ) {
    self.text = text
    self.format = format
    self.attachments = attachments
    self.author = author
    self.time = time
    self.attributes = attributes
    self.revision = revision
    self.stamp = stamp
  }
}

/// A stored message, or what is left of it.
package struct ChatMessage: Hashable, Sendable {
  package var message: Message
  package var room: ChannelID
  package var clientID: SendKey?
  /// When it was deleted: text and attachments are empty then.
  package var deleted: Timestamp?
  /// In the order in which the emoji were first used.
  package var reactions: [ReactionSummary]
  /// Grows with every message of the room, from zero. Edits and deletions are counted too, so that numbers are skipped.
  package var position: Int64

  package init(
    message: Message, room: ChannelID, clientID: SendKey? = nil, deleted: Timestamp? = nil,
    reactions: [ReactionSummary] = [], position: Int64 = 0
  ) {
    self.message = message
    self.room = room
    self.clientID = clientID
    self.deleted = deleted
    self.reactions = reactions
    self.position = position
  }
}

package struct ReactionSummary: Hashable, Sendable {
  package var emoji: String
  package var users: [Author]

  package init(emoji: String, users: [Author]) {
    self.emoji = emoji
    self.users = users
  }
}

/// The outcome of a post.
package struct Posted: Hashable, Sendable {
  package var message: ChatMessage
  /// The client id had been used before in this room: nothing was written.
  package var isRepeat: Bool
}

/// One page of a room's messages.
package struct MessagePage: Hashable, Sendable {
  package var messages: [ChatMessage]
  /// The id after (or, newest first, before) which the next page begins; nil on the last page.
  package var next: MessageID?
}

package struct Room: Hashable, Sendable {
  package var id: ChannelID
  /// For people; the id where none was given.
  package var title: String
  package var created: Timestamp
  package var members: Int
  package var last: ChatMessage?
}

/// A stored file, named by the SHA-256 of its bytes.
package struct StoredFile: Hashable, Sendable {
  /// Lower-case hexadecimal.
  package var sha256: String
  /// As found in the bytes for images, otherwise as first declared.
  package var mediaType: String
  package var size: Int64
  /// As first uploaded.
  package var name: String
  /// Of a picture whose head says it.
  package var pixels: Attachment.Pixels?
}

/// Where one user stands in a room.
package struct Standing: Hashable, Sendable {
  /// Messages of others after the user's read mark; counted up to `ChatLimits.unread`.
  package var unread: Int
  /// The last message read; nil when none was.
  package var read: MessageID?
}
