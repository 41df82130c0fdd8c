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

/// What happens by itself, later.
extension Ledger {
  /// Something was written to a conversation: its timers begin anew, and it is active again.
  func touched(_ conversation: ConversationRecord, _ origin: Origin?) throws -> ConversationRecord {
    guard conversation.state == .inactive || !conversation.timers.isEmpty else { return conversation }
    var record = conversation
    if !record.timers.isEmpty { record.timers.activity = now }
    if record.state == .inactive { record.state = .active }
    try keep(record)
    if let origin, record.state != conversation.state {
      try announceState(record, from: conversation.state, reason: "EVENT", origin)
    }
    return record
  }

  /// Remembers when a conversation's state is to change.
  func schedule(_ record: ConversationRecord) throws {
    let due = [record.due(.inactive), record.due(.closed)].compactMap { $0 }.min()
    guard let due else {
      try chat.remove(record.sid, from: "timers")
      return
    }
    try chat.put(["service": .string(record.service), "due": .integer(due)] as JSONValue, as: record.sid, in: "timers")
    chat.afterCommit { [schedule = facade.schedule] in _ = schedule.offer(()) }
  }

  /// Does what is due, and returns when the next thing is.
  func endWhatIsDue() throws -> Int64? {
    var next: [Int64] = []
    // The oldest first: the rest has time when the first has.
    while let oldest = try chat.documents(in: "unattached", DocumentQuery(limit: 1)).first {
      let due = try oldest.value(Int64.self) + Int64(Limits.mediaWaits) * 1000
      if due > now {
        next.append(due)
        break
      }
      try chat.remove(oldest.id, from: "unattached")
      try chat.remove(oldest.id, from: "media")
    }
    for timer in try allDocuments(in: "timers") {
      let value = try timer.value(JSONValue.self)
      guard let due = value["due"]?.integer, let service = value["service"]?.string else { continue }
      if due <= now { try changeState(of: timer.id, in: service) }
      if let again = try chat.value(JSONValue.self, of: timer.id, in: "timers")?["due"]?.integer { next.append(again) }
    }
    return next.min()
  }

  private func changeState(of sid: String, in service: String) throws {
    guard var record = try conversation(sid, in: service) else {
      try chat.remove(sid, from: "timers")
      return
    }
    let before = record.state
    if let due = record.due(.closed), due <= now {
      record.state = .closed
    } else if let due = record.due(.inactive), due <= now {
      record.state = .inactive
    }
    if record.state != before { record.updated = now }
    try keep(record)
    if record.state != before { try announceState(record, from: before, reason: "TIMER", Origin(source: "API")) }
  }
}

extension ConversationRecord {
  /// When its timer moves it into a state; nil when none will.
  func due(_ wanted: State) -> Int64? {
    let start = timers.activity ?? updated
    switch wanted {
    case .active: return nil
    case .inactive: return state == .active ? timers.inactive.map { start + $0 } : nil
    case .closed: return state == .closed ? nil : timers.closed.map { start + $0 }
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

  /// Collects media that nobody took and moves conversations on whose timers ran out, until cancelled.
  func endWhatIsDue() async {
    while !Task.isCancelled {
      var next: Int64?
      do {
        next = try await write { try $0.endWhatIsDue() }
      } catch {
        logger.error("what is due cannot be done: \(error)")
        next = clock.now().milliseconds + 1000
      }
      await wait(until: next, orTold: schedule)
    }
  }

  func wait(until due: Int64?, orTold news: BoundedChannel<Void>) async {
    await withTaskGroup { group in
      group.addTask { _ = await news.next() }
      if let due {
        let left = max(due - clock.now().milliseconds, 1)
        group.addTask { try? await self.clock.sleep(for: .milliseconds(left)) }
      }
      await group.next()
      group.cancelAll()
    }
  }
}
