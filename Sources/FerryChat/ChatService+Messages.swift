package import FerryCore
import FerryRuntime

extension ChatService {
  /// Writes messages in one transaction, in order, all or none, and returns them in that order.
  ///
  /// A draft whose client id was used before in the room writes nothing and yields the first message, as it now reads.
  /// Makes the room on first use.
  package func post(_ drafts: [Draft], to room: ChannelID, by caller: Caller) async throws(FerryError) -> [Posted] {
    // Checked here and not by the writer, whom everybody waits for.
    let ready = try checked(drafts, to: room, by: caller, at: clock.now())
    return try await write { try $0.post(ready, to: room) }
  }

  package func post(_ draft: Draft, to room: ChannelID, by caller: Caller) async throws(FerryError) -> Posted {
    try await post([draft], to: room, by: caller)[0]
  }

  /// Changes a message of the caller's, or anybody's for a moderator. A change that changes nothing is no revision.
  package func edit(
    _ id: MessageID, in room: ChannelID, to change: Change, by caller: Caller
  ) async throws(FerryError) -> ChatMessage {
    try await write { try $0.edit(id, in: room, to: change, by: caller) }
  }

  /// Leaves a tombstone. Deleting a tombstone succeeds and does nothing.
  package func delete(
    _ id: MessageID, in room: ChannelID, by caller: Caller, as author: Author? = nil, stamp: Stamp? = nil
  ) async throws(FerryError) {
    try await write { try $0.delete(id, in: room, by: caller, as: author, stamp: stamp) }
  }

  // MARK: Pieces

  static let notYours = FerryError(
    .forbidden, "Only the message's author or a moderator may change or delete it.")

  /// A message that is ready to be written.
  struct Checked: Sendable {
    var message: Message
    var clientID: SendKey?
  }

  func checked(
    _ drafts: [Draft], to room: ChannelID, by caller: Caller, at now: Timestamp
  ) throws(FerryError) -> [Checked] {
    try limits.checkID(room.rawValue, "room")
    guard !drafts.isEmpty, drafts.count <= limits.batch else {
      throw FerryError(.badRequest, "Post between 1 and \(limits.batch) messages at once.")
    }
    var ready: [Checked] = []
    ready.reserveCapacity(drafts.count)
    for draft in drafts {
      ready.append(Checked(message: try checked(draft, by: caller, at: now), clientID: draft.clientID))
    }
    return ready
  }

  private func checked(_ draft: Draft, by caller: Caller, at now: Timestamp) throws(FerryError) -> Message {
    try limits.check(draft)
    if draft.time != nil { try caller.checkMayActAsAnybody("time") }
    if draft.stamp != nil { try caller.checkMayActAsAnybody("stamp") }
    if let attributes = draft.attributes { try check(attributes) }
    return Message(
      id: "", author: try caller.author(draft.author), text: draft.text, format: draft.format,
      time: draft.time ?? now, attachments: draft.attachments, replyTo: draft.replyTo, mentions: draft.mentions,
      stamp: draft.stamp, attributes: draft.attributes)
  }

  func check(_ attributes: JSONValue) throws(FerryError) {
    guard attributes.depth <= JSONValue.deepest else {
      throw FerryError(.badRequest, "The attributes are nested deeper than \(JSONValue.deepest) levels.")
    }
    var json = JSONWriter()
    json.value(attributes)
    guard json.utf8.count <= limits.extraBytes else {
      throw FerryError(.tooLarge, "The attributes are longer than \(limits.extraBytes) bytes.")
    }
  }
}
