package import FerryCore
import FerryRuntime

extension MemoryProvider: EventHistoryProvider, ImportingProvider {
  package func events(
    of channel: ChannelID, after cursor: Cursor?, limit: Int
  ) async throws(FerryError) -> EventPage {
    let start = cursor.flatMap { Int($0.rawValue) } ?? 0
    return try await perform(.history) { state throws(FerryError) in
      guard let room = state.rooms[channel] else {
        throw FerryError(.notFound, "There is no channel \(channel).")
      }
      let rest = room.events.dropFirst(start)
      var withheld: Set<MessageID> = []
      let events = rest.prefix(limit).map { event in
        guard case .posted(var message) = event.kind, room.messages[message.id] == nil else { return event }
        withheld.insert(message.id)
        message.text = ""
        message.attachments = []
        var event = event
        event.kind = .posted(message)
        return event
      }
      return EventPage(
        events: events, next: events.last?.cursor ?? cursor, isLast: rest.count <= limit, withheld: withheld)
    }
  }

  package func prepareImport(into channel: ChannelID, notify: Bool) async throws(FerryError) {
    try checkCredentials()
    state.update { $0.rooms[channel] = $0.rooms[channel] ?? Room() }
  }

  package func write(
    _ items: [PastItem], into channel: ChannelID
  ) async throws(FerryError) -> [MessageID?] {
    let isRepeatable = capabilities.importing?.isRepeatable == true
    return try await perform(.past) { state in
      items.map { state.bring($0, into: channel, isRepeatable: isRepeatable) }
    }
  }
}

extension MemoryProvider.State {
  fileprivate mutating func bring(_ item: PastItem, into channel: ChannelID, isRepeatable: Bool) -> MessageID? {
    let known = rooms[channel]?.sends[item.key]
    if isRepeatable, let known { return known.rawValue.isEmpty ? nil : known }
    func id(_ reference: PastReference) -> MessageID { reference.id ?? rooms[channel]?.sends[reference.key] ?? "" }
    switch item.kind {
    case .message(let past):
      var message = Message(
        id: "", author: past.author, text: past.text, format: past.format, time: item.time, revision: past.revision,
        edited: past.edited,
        attachments: past.attachments.map {
          Attachment(
            name: $0.name, mediaType: $0.mediaType, size: $0.size, sha256: $0.sha256, reference: $0.reference)
        }, mentions: past.mentions, stamp: item.stamp,
        attributes: past.attributes)
      message.replyTo = past.replyTo.map { id($0) }
      return add(message, key: item.key, to: channel)
    case .edit(let reference, let past):
      change(id(reference), in: channel, at: item.time) { $0.text = past.text }
    case .delete(let reference, let by):
      remove(Deletion(id: id(reference), by: by, stamp: item.stamp), in: channel, at: item.time)
    case .join(let member):
      rooms[channel, default: MemoryProvider.Room()].members[member.id] = member
      record(.joined(Membership(member: member, stamp: item.stamp)), in: channel, at: item.time)
    case .leave(let member):
      rooms[channel]?.members[member.id] = nil
      record(.left(Membership(member: member, stamp: item.stamp)), in: channel, at: item.time)
    case .read(let reference, let by, let state):
      record(
        .read(ReadMark(upTo: id(reference), by: by, state: state, stamp: item.stamp)), in: channel, at: item.time)
    case .reaction(let reference, let by, let emoji, let added):
      let reaction = Reaction(message: id(reference), by: by, emoji: emoji, added: added, stamp: item.stamp)
      record(.reacted(reaction), in: channel, at: item.time)
    }
    rooms[channel]?.sends[item.key] = ""
    return nil
  }
}
