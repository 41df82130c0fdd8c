package import FerryCore

/// One line of an archive: what happened in a channel, or what is known of channels and people.
///
/// Source: the page "The archive format" in this target's catalog.
package enum Record: Hashable, Sendable {
  case channel(ChannelRecord)
  case person(PersonRecord)
  /// A message as it read when it was taken. A later one with the same id replaces it.
  case message(MessageRecord)
  /// The whole message as it then read: `message.edited`, `message.revision` and `editedBy` say which edit.
  case edit(MessageRecord)
  case delete(DeleteRecord)
  case reaction(ReactionRecord)
  case join(MembershipRecord)
  case leave(MembershipRecord)
  case read(ReadRecord)
  case gap(GapRecord)
  case skipped(SkippedRecord)
  case end(EndRecord)
  /// Of a kind that a newer version made: its fields but for `seq` and `kind`, kept as they are.
  case unknown(kind: String, JSONValue)

  /// As in the JSON.
  package var kind: String {
    switch self {
    case .channel: "channel"
    case .person: "person"
    case .message: "message"
    case .edit: "edit"
    case .delete: "delete"
    case .reaction: "reaction"
    case .join: "join"
    case .leave: "leave"
    case .read: "read"
    case .gap: "gap"
    case .skipped: "skipped"
    case .end: "end"
    case .unknown(let kind, _): kind
    }
  }

  /// The channel that it belongs to; nil of people, of what concerns the whole source, and of unknown kinds.
  package var channel: ChannelID? {
    switch self {
    case .channel(let record): record.id
    case .message(let record), .edit(let record): record.channel
    case .delete(let record): record.channel
    case .reaction(let record): record.channel
    case .join(let record), .leave(let record): record.channel
    case .read(let record): record.channel
    case .gap(let record): record.channel
    case .skipped(let record): record.channel
    case .end(let record): record.channel
    case .person, .unknown: nil
    }
  }

  /// When it happened: of an edit when it was edited, where that is known.
  package var time: Timestamp? {
    switch self {
    case .message(let record): record.message.time
    case .edit(let record): record.message.edited
    case .delete(let record): record.time
    case .reaction(let record): record.time
    case .join(let record), .leave(let record): record.time
    case .read(let record): record.time
    case .gap, .skipped, .end, .channel, .person, .unknown: nil
    }
  }
}

/// Fields that this version does not know, kept verbatim: of the record, and of the objects in it.
package struct ExtraFields: Hashable, Sendable {
  package var record: [String: JSONValue]
  package var author: [String: JSONValue]
  package var edited: [String: JSONValue]
  package var origin: [String: JSONValue]

  package init(
    record: [String: JSONValue] = [:], author: [String: JSONValue] = [:], edited: [String: JSONValue] = [:],
    origin: [String: JSONValue] = [:]
  ) {
    self.record = record
    self.author = author
    self.edited = edited
    self.origin = origin
  }

  package static let none = ExtraFields()

  package var count: Int { record.count + author.count + edited.count + origin.count }
}
