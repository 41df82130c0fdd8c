package import FerryCore
import FerryStorage

extension ChatService {
  /// Writes what happened in the past, each with its own time, in one transaction. Returns the ids of the messages among
  /// the items, nil for the others. What was imported under the same key before is left as it is.
  ///
  /// Makes the room on first use. Only for callers who may act as anybody and moderate.
  package func bring(
    _ items: [PastItem], into room: ChannelID, by caller: Caller
  ) async throws(FerryError) -> [MessageID?] {
    guard caller.user == nil, caller.moderates else {
      throw FerryError(.forbidden, "Only a moderator whose token is bound to no user may import.")
    }
    try limits.checkID(room.rawValue, "room")
    guard items.count <= limits.imported else {
      throw FerryError(.badRequest, "Import at most \(limits.imported) items at once.")
    }
    for item in items { try limits.check(item) }
    return try await write { transaction in
      let row = try ChatService.rowMakingRoom(room, at: transaction.now, transaction.connection)
      var bringing = Bringing(transaction, into: room, row: row)
      for item in items { try bringing.take(item) }
      return try bringing.finish()
    }
  }
}

extension ChatLimits {
  func check(_ item: PastItem) throws(FerryError) {
    try checkID(item.key.rawValue, "key")
    if let stamp = item.stamp { try check(stamp) }
    switch item.kind {
    case .message(let message), .edit(_, let message):
      try check(message.author)
      try checkText(message.text)
      try check(message.attachments.map(Attachment.init))
      guard message.mentions.count <= mentions else {
        throw FerryError(.badRequest, "A message mentions at most \(mentions) users.")
      }
      for user in message.mentions { try checkID(user.rawValue, "mentioned user's id") }
    case .delete(_, let by), .read(_, let by, _): if let by { try check(by) }
    case .join(let member), .leave(let member): try check(member)
    case .reaction(_, let by, let emoji, _):
      try check(by)
      try checkEmoji(emoji)
    }
  }
}

extension Attachment {
  init(_ sent: OutgoingAttachment) {
    self.init(
      name: sent.name, mediaType: sent.mediaType, size: sent.size, sha256: sent.sha256.isEmpty ? nil : sent.sha256,
      reference: sent.reference)
  }
}

extension ChatTransaction {
  /// The keys of what was imported that is no message, one collection a room.
  private static func imported(_ row: Int64) -> String { "imported/\(row)" }

  /// Something other than a message; nothing where it was imported before.
  func bring(other item: PastItem, into room: ChannelID, row: Int64) throws {
    guard try insert(true, as: item.key.rawValue, in: Self.imported(row)) else { return }
    try at(item.time).bring(item, into: room, row: row)
  }

  /// Something other than a message, for the first time. What is about a message that is not there, or not any more, has
  /// nothing to change.
  private func bring(_ item: PastItem, into room: ChannelID, row: Int64) throws {
    switch item.kind {
    case .message: return
    // The past is kept as it was told, also who came twice or left without having come.
    case .join(let member):
      if try !join(member, room, by: .owner, stamp: item.stamp) {
        try log(.joined(Membership(member: member, stamp: item.stamp)), of: room, row: row)
      }
    case .leave(let member):
      if try !leave(member.id, room, by: .owner, stamp: item.stamp) {
        try log(.left(Membership(member: member, stamp: item.stamp)), of: room, row: row)
      }
    case .edit(let reference, let past):
      guard let id = try liveID(of: reference, in: room, row: row) else { return }
      let change = Change(
        text: past.text, format: past.format, attachments: past.attachments.map(Attachment.init), stamp: item.stamp)
      try edit(id, in: room, to: change, by: .owner)
    case .delete(let reference, let author):
      guard let id = try liveID(of: reference, in: room, row: row) else { return }
      try delete(id, in: room, by: .owner, as: author, stamp: item.stamp)
    case .read(let reference, let reader, let state):
      guard let id = try id(of: reference, in: room, row: row) else { return }
      let reader = reader ?? Author(id: "somebody", name: "Somebody")
      try mark(ReadMark(upTo: id, by: reader, state: state, stamp: item.stamp), in: room, by: .owner)
    case .reaction(let reference, let author, let emoji, let added):
      guard let id = try liveID(of: reference, in: room, row: row) else { return }
      let reaction = Reaction(message: id, by: author, emoji: emoji, added: added, stamp: item.stamp)
      try react(reaction, in: room, by: .owner)
    }
  }

  func id(of reference: PastReference, in room: ChannelID, row: Int64) throws -> MessageID? {
    if let id = reference.id { return try message(id, in: room)?.message.id }
    return try ChatService.message(clientID: reference.key, in: room, row: row, connection)?.message.id
  }

  private func liveID(of reference: PastReference, in room: ChannelID, row: Int64) throws -> MessageID? {
    guard let id = try id(of: reference, in: room, row: row) else { return nil }
    return try message(id, in: room)?.deleted == nil ? id : nil
  }
}
