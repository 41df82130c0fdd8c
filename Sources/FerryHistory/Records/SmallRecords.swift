package import FerryCore

/// A channel, as the source described it. A later one with the same id replaces it.
package struct ChannelRecord: Hashable, Sendable {
  package var id: ChannelID
  package var name: String
  /// `public`, `private`, `direct`, `group`, or the source's own word.
  package var type: String?
  package var topic: String?
  /// Nil where the source does not say who is in it.
  package var members: [UserID]?
  package var created: Timestamp?
  package var attributes: JSONValue?
  package var extra: ExtraFields

  package init(
    id: ChannelID, name: String, type: String? = nil, topic: String? = nil, members: [UserID]? = nil,
    created: Timestamp? = nil, attributes: JSONValue? = nil, extra: ExtraFields = .none
  ) {
    self.id = id
    self.name = name
    self.type = type
    self.topic = topic
    self.members = members
    self.created = created
    self.attributes = attributes
    self.extra = extra
  }
}

/// Somebody who wrote or is a member. A later one with the same id replaces it.
package struct PersonRecord: Hashable, Sendable {
  package var id: UserID
  package var name: String
  /// `person`, `bot`, `guest`, `unknown` for a placeholder, or the source's own word.
  package var type: String?
  package var avatar: String?
  package var attributes: JSONValue?
  package var extra: ExtraFields

  package init(
    id: UserID, name: String, type: String? = nil, avatar: String? = nil, attributes: JSONValue? = nil,
    extra: ExtraFields = .none
  ) {
    self.id = id
    self.name = name
    self.type = type
    self.avatar = avatar
    self.attributes = attributes
    self.extra = extra
  }
}

/// A message is gone.
package struct DeleteRecord: Hashable, Sendable {
  package var channel: ChannelID
  package var id: MessageID
  package var by: Author?
  package var time: Timestamp?
  package var stamp: Stamp?
  package var extra: ExtraFields

  package init(
    channel: ChannelID, id: MessageID, by: Author? = nil, time: Timestamp? = nil, stamp: Stamp? = nil,
    extra: ExtraFields = .none
  ) {
    self.channel = channel
    self.id = id
    self.by = by
    self.time = time
    self.stamp = stamp
    self.extra = extra
  }
}

/// A reaction put on a message or taken off it. `tone` as in `ReactionTally`.
package struct ReactionRecord: Hashable, Sendable {
  package var channel: ChannelID
  package var reaction: Reaction
  package var tone: Int?
  package var time: Timestamp?
  package var extra: ExtraFields

  package init(
    channel: ChannelID, reaction: Reaction, tone: Int? = nil, time: Timestamp? = nil, extra: ExtraFields = .none
  ) {
    self.channel = channel
    self.reaction = reaction
    self.tone = tone
    self.time = time
    self.extra = extra
  }
}

/// Somebody came into a channel or went out of it.
package struct MembershipRecord: Hashable, Sendable {
  package var channel: ChannelID
  package var member: Author
  package var time: Timestamp?
  package var timeRaw: String?
  package var precision: TimePrecision
  package var stamp: Stamp?
  /// The source's own fields, verbatim.
  package var attributes: JSONValue?
  package var extra: ExtraFields

  package init(
    channel: ChannelID, member: Author, time: Timestamp? = nil, timeRaw: String? = nil,
    precision: TimePrecision = .milliseconds, stamp: Stamp? = nil, attributes: JSONValue? = nil,
    extra: ExtraFields = .none
  ) {
    self.channel = channel
    self.member = member
    self.time = time
    self.timeRaw = timeRaw
    self.precision = precision
    self.stamp = stamp
    self.attributes = attributes
    self.extra = extra
  }
}

/// Somebody has read, or been delivered, everything up to a message.
package struct ReadRecord: Hashable, Sendable {
  package var channel: ChannelID
  package var mark: ReadMark
  package var time: Timestamp?
  package var extra: ExtraFields

  package init(channel: ChannelID, mark: ReadMark, time: Timestamp? = nil, extra: ExtraFields = .none) {
    self.channel = channel
    self.mark = mark
    self.time = time
    self.extra = extra
  }
}

/// A stretch of time of which nobody can know what was said.
package struct GapRecord: Hashable, Sendable {
  package var channel: ChannelID
  package var from: Timestamp
  package var to: Timestamp
  package var reason: String
  package var extra: ExtraFields

  package init(channel: ChannelID, from: Timestamp, to: Timestamp, reason: String, extra: ExtraFields = .none) {
    self.channel = channel
    self.from = from
    self.to = to
    self.reason = reason
    self.extra = extra
  }
}

/// What the source held and the archive does not.
package struct SkippedRecord: Hashable, Sendable {
  /// Nil where it belongs to no channel.
  package var channel: ChannelID?
  package var reason: String
  package var count: Int
  /// File and line or byte in the source, where one place can be named.
  package var place: String?
  package var extra: ExtraFields

  package init(
    channel: ChannelID? = nil, reason: String, count: Int = 1, place: String? = nil, extra: ExtraFields = .none
  ) {
    self.channel = channel
    self.reason = reason
    self.count = count
    self.place = place
    self.extra = extra
  }
}

/// A channel has been taken to its end.
package struct EndRecord: Hashable, Sendable {
  package var channel: ChannelID
  /// False where the source is known to have more.
  package var isComplete: Bool
  /// How many different messages the archive has of this channel.
  package var messages: Int
  package var extra: ExtraFields

  package init(channel: ChannelID, isComplete: Bool, messages: Int, extra: ExtraFields = .none) {
    self.channel = channel
    self.isComplete = isComplete
    self.messages = messages
    self.extra = extra
  }
}
