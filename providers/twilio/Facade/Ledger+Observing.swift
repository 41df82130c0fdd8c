import FerryChat
import FerryCore
import FerryRuntime

/// What others do in the chat, the page among them: the facade's documents keep step with it, in the same transaction,
/// and webhooks tell of it as of anything that client SDKs do.
extension Ledger {
  func observe(_ told: ObservedEvent) throws {
    let room = told.event.channel
    switch told.event.kind {
    case .posted(let message):
      guard let stored = told.stored else { return }
      let conversation = try adopt(room, by: message.author.id.rawValue)
      if told.isLive, conversation.state == .closed {
        throw FerryError(.forbidden, "The conversation is closed: nobody can write to it any more.")
      }
      let origin = Origin.sdk(message.author.id.rawValue)
      let active = try touched(conversation, origin)
      try announce("onMessageAdded", stored, of: active, origin)
      try deliver(stored, to: try phones(in: active), of: active)
    case .edited(let message):
      guard let stored = told.stored else { return }
      try announce("onMessageUpdated", stored, of: try adopt(room), .sdk(message.author.id.rawValue))
    case .deleted(let deletion):
      guard let stored = try told.before ?? chat.message(deletion.id, in: room) else { return }
      let conversation = try adopt(room)
      try announce("onMessageRemoved", stored, of: conversation, .sdk(deletion.by?.id.rawValue))
      try forget(stored, of: conversation)
    case .joined(let membership): try joined(membership.member, room)
    case .left(let membership):
      let conversation = try adopt(room)
      guard let participant = try participant(membership.member.id.rawValue, of: conversation.sid) else { return }
      try announce("onParticipantRemoved", participant, of: conversation, .sdk(participant.identity))
      try forget(participant, of: conversation)
    case .read(let mark): try moved(mark, in: room)
    case .reacted: return
    }
  }

  /// The conversation that a room is, made when there is none: of the default service, under the room's name.
  func adopt(_ room: ChannelID, by identity: String? = nil) throws -> ConversationRecord {
    if let known = try conversation(ofRoom: room) { return known }
    let service = try accountConfiguration().service
    let name = room.rawValue
    let mayBeName =
      try name.count <= Limits.name && !SID.isOne(name, of: .conversation)
      && chat.document(name, in: "names/\(service)") == nil
    let record = try makeConversation(in: service, uniqueName: mayBeName ? name : nil, room: room) { record in
      record.friendlyName = name
    }
    try announce("onConversationAdded", .sdk(identity), service: service, conversation: record.sid) {
      fields(record, in: "onConversationAdded")
    }
    return record
  }

  private func joined(_ member: Author, _ room: ChannelID) throws {
    let identity = member.id.rawValue
    var conversation = try adopt(room, by: identity)
    let origin = Origin.sdk(identity)
    var (user, isNew) = try user(makingIdentity: identity, in: conversation.service)
    if isNew {
      if member.name != identity {
        user.friendlyName = member.name
        try keep(user, in: conversation.service)
      }
      try announceNew(user, in: conversation.service, origin)
    }
    let participant = ParticipantRecord(
      sid: SID.make(.participant), identity: identity,
      roleSID: try configuration(of: conversation.service).conversationRole, created: now, updated: now)
    guard try add(participant, to: &conversation) else { return }
    try announce("onParticipantAdded", participant, of: conversation, origin)
  }

  private func moved(_ mark: ReadMark, in room: ChannelID) throws {
    guard mark.state == .read, let identity = mark.by?.id.rawValue, let message = try chat.message(mark.upTo, in: room),
      case let conversation = try adopt(room),
      var participant = try participant(identity, of: conversation.sid),
      participant.lastReadIndex ?? -1 < message.position
    else { return }
    participant.lastReadIndex = message.position
    participant.lastReadTimestamp = TwilioDate.seconds(Timestamp(milliseconds: now))
    participant.updated = now
    try keep(participant, of: conversation.sid)
    try announce("onParticipantUpdated", participant, of: conversation, .sdk(identity))
  }

  private func announce(
    _ event: String, _ stored: ChatMessage, of conversation: ConversationRecord, _ origin: Origin
  ) throws {
    try announce(event, origin, service: conversation.service, conversation: conversation.sid) {
      try fields(stored, of: conversation, in: event)
    }
  }
}

extension TwilioFacade {
  func observe(_ told: ObservedEvent, _ ledger: Ledger) throws {
    // A refusal of the account's is one of the chat's to whoever else writes.
    do { try ledger.observe(told) } catch let error as TwilioError {
      throw FerryError(.conflict, error.message)
    }
  }
}
