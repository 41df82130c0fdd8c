/// Something that happened in a channel.
package struct Event: Hashable, Sendable, Codable {
  /// The same however often the source reports this occurrence.
  package var key: EventKey
  package var channel: ChannelID
  package var time: Timestamp
  package var kind: Kind
  /// Where the source's stream stands after this event, on sources that can be resumed.
  package var cursor: Cursor?

  package init(key: EventKey, channel: ChannelID, time: Timestamp, kind: Kind, cursor: Cursor? = nil) {
    self.key = key
    self.channel = channel
    self.time = time
    self.kind = kind
    self.cursor = cursor
  }

  package enum Kind: Hashable, Sendable, Codable {
    case posted(Message)
    /// The whole message as it now reads; `revision` and `edited` say which edit.
    case edited(Message)
    case deleted(Deletion)
    case joined(Membership)
    case left(Membership)
    case read(ReadMark)
    case reacted(Reaction)
  }

  /// The mark Ferry left on what caused this event, or nil when somebody else caused it.
  package var stamp: Stamp? {
    switch kind {
    case .posted(let message), .edited(let message): message.stamp
    case .deleted(let deletion): deletion.stamp
    case .read(let mark): mark.stamp
    case .reacted(let reaction): reaction.stamp
    case .joined(let membership), .left(let membership): membership.stamp
    }
  }
}

/// A message is gone.
package struct Deletion: Hashable, Sendable, Codable {
  package var id: MessageID
  /// Who deleted it, where the source says.
  package var by: Author?
  package var stamp: Stamp?

  package init(id: MessageID, by: Author? = nil, stamp: Stamp? = nil) {
    self.id = id
    self.by = by
    self.stamp = stamp
  }
}

/// Somebody came into a channel or went out of it.
package struct Membership: Hashable, Sendable, Codable {
  package var member: Author
  package var stamp: Stamp?

  package init(member: Author, stamp: Stamp? = nil) {
    self.member = member
    self.stamp = stamp
  }
}

/// Somebody has read (or has been delivered) everything up to a message.
package struct ReadMark: Hashable, Sendable, Codable {
  package enum State: String, Sendable, Codable { case delivered, read }
  package var upTo: MessageID
  /// Nil where the source does not name the reader.
  package var by: Author?
  package var state: State
  package var stamp: Stamp?

  package init(upTo: MessageID, by: Author?, state: State, stamp: Stamp? = nil) {
    self.upTo = upTo
    self.by = by
    self.state = state
    self.stamp = stamp
  }
}

/// A reaction put on a message or taken off it.
package struct Reaction: Hashable, Sendable, Codable {
  package var message: MessageID
  package var by: Author
  package var emoji: String
  package var added: Bool
  package var stamp: Stamp?

  package init(message: MessageID, by: Author, emoji: String, added: Bool, stamp: Stamp? = nil) {
    self.message = message
    self.by = by
    self.emoji = emoji
    self.added = added
    self.stamp = stamp
  }
}

/// Somebody started or stopped typing. Never durable (G6), so it is not an `Event`.
package struct Typing: Hashable, Sendable, Codable {
  package var channel: ChannelID
  package var by: Author
  package var on: Bool
  package var stamp: Stamp?

  package init(channel: ChannelID, by: Author, on: Bool, stamp: Stamp? = nil) {
    self.channel = channel
    self.by = by
    self.on = on
    self.stamp = stamp
  }
}

/// A stretch of time in which a source without history may have said things nobody can know (G1).
package struct Gap: Hashable, Sendable, Codable {
  package var channel: ChannelID
  package var start: Timestamp
  package var end: Timestamp

  package init(channel: ChannelID, start: Timestamp, end: Timestamp) {
    self.channel = channel
    self.start = start
    self.end = end
  }
}
