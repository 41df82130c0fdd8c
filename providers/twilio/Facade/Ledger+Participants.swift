import FerryChat
import FerryCore

extension Ledger {
  func withParticipant<T>(
    _ who: String, of key: String, _ call: Call, _ body: (ParticipantRecord, ConversationRecord) throws -> T
  ) throws -> T {
    let conversation = try existing(key, call)
    guard let participant = try participant(who, of: conversation.sid) else { throw TwilioError.noParticipant }
    return try body(participant, conversation)
  }

  func participants(of key: String, _ call: Call) throws -> JSONValue {
    let conversation = try existing(key, call)
    return try call.list("participants/\(conversation.sid)", key: "participants", maximum: 100, self) { document in
      json(try document.value() as ParticipantRecord, of: conversation.sid, call)
    }
  }

  func addParticipant(
    _ change: ParticipantChange, to conversation: inout ConversationRecord, _ call: Call
  ) throws -> ParticipantRecord {
    try checkRole(change.roleSID, in: conversation.service)
    let participant = try change.record(role: configuration(of: conversation.service).conversationRole, now: now)
    try checkRoom(for: participant, in: conversation)
    guard try add(participant, to: &conversation) else {
      throw TwilioError(409, 50433, "Participant already exists")
    }
    let origin: Origin? = call.isAnnounced ? .api : nil
    if let identity = participant.identity {
      let (user, isNew) = try user(makingIdentity: identity, in: conversation.service)
      if isNew, let origin { try announceNew(user, in: conversation.service, origin) }
      // A relay is one to hear typing, and no member for people to see.
      if FerryAttributes(participant.attributes)?.isOwn != true {
        try chat.join(Self.author(user, as: participant), ChannelID(conversation.room), by: .owner)
      }
    }
    if let origin { try announce("onParticipantAdded", participant, of: conversation, origin) }
    return participant
  }

  private func checkRoom(for participant: ParticipantRecord, in conversation: ConversationRecord) throws {
    guard try chat.count(in: "participants/\(conversation.sid)") < Limits.participants else {
      throw TwilioError(409, 50417, "The conversation has \(Limits.participants) participants already")
    }
    if let identity = participant.identity {
      let collection = Self.conversations(of: identity, conversation.service)
      guard try chat.count(in: collection) < Limits.conversationsPerIdentity else {
        throw TwilioError(409, 50403, "The user is in \(Limits.conversationsPerIdentity) conversations already")
      }
    } else if conversation.phones >= Limits.phoneParticipants {
      throw TwilioError(409, 50418, "The conversation has \(Limits.phoneParticipants) participants on phones already")
    }
    guard let address = participant.binding?.address else { return }
    // A phone and a number of ours make one conversation: an answer from the phone must have one place to go.
    for document in try allDocuments(in: Self.conversations(at: address, conversation.service)) {
      let sid: String = try document.value()
      guard let other: ParticipantRecord = try chat.value(of: document.id, in: "participants/\(sid)"),
        other.binding?.proxyAddress == participant.binding?.proxyAddress,
        try self.conversation(sid, in: conversation.service)?.state != .closed
      else { continue }
      throw TwilioError(
        409, 50416, "A binding for this participant and proxy address already exists in Conversation \(sid)")
    }
  }

  func update(
    _ participant: ParticipantRecord, of conversation: ConversationRecord, _ change: ParticipantChange, _ call: Call
  ) throws -> ParticipantRecord {
    guard conversation.state != .closed else { throw TwilioError.closed }
    try checkRole(change.roleSID, in: conversation.service)
    var conversation = conversation
    var participant = participant
    if let attributes = change.attributes { participant.attributes = attributes }
    if let role = change.roleSID { participant.roleSID = role }
    try rebind(&participant, change)
    if let identity = change.identity, !identity.isEmpty, identity != participant.identity {
      try rename(&participant, to: identity, in: &conversation)
    }
    if let created = change.created { participant.created = created }
    participant.updated = change.updated ?? now
    try read(&participant, of: conversation, upTo: change.lastReadIndex, at: change.lastReadTimestamp)
    try keep(participant, of: conversation.sid)
    if call.isAnnounced { try announce("onParticipantUpdated", participant, of: conversation, .api) }
    return participant
  }

  private func rebind(_ participant: inout ParticipantRecord, _ change: ParticipantChange) throws {
    if let proxy = change.proxyAddress {
      guard participant.binding?.address != nil else {
        throw TwilioError(400, 50441, "Proxy address cannot be set on a participant without an address")
      }
      participant.binding?.proxyAddress = proxy == "null" || proxy.isEmpty ? nil : proxy
    }
    if let projected = change.projectedAddress {
      let isGone = projected == "null" || projected.isEmpty
      if participant.binding == nil, !isGone { participant.binding = .init(type: "sms") }
      participant.binding?.projectedAddress = isGone ? nil : projected
      if isGone, participant.binding?.address == nil { participant.binding = nil }
    }
  }

  /// Another identity for the same participant.
  private func rename(
    _ participant: inout ParticipantRecord, to identity: String, in conversation: inout ConversationRecord
  ) throws {
    let room = ChannelID(conversation.room)
    if let old = participant.identity, try chat.isMember(UserID(old), of: room) {
      try chat.leave(UserID(old), room, by: .owner)
    }
    try forget(participant, of: conversation)
    if participant.identity == nil { conversation.phones = max(conversation.phones - 1, 0) }
    participant.identity = identity
    guard try add(participant, to: &conversation) else {
      throw TwilioError(409, 50433, "Participant already exists")
    }
    try keep(conversation)
    let user = try user(makingIdentity: identity, in: conversation.service).user
    try chat.join(Self.author(user), room, by: .owner)
  }

  /// Moves a read horizon, also backwards. Where it moves forward the chat's mark moves with it.
  func read(
    _ participant: inout ParticipantRecord, of conversation: ConversationRecord, upTo index: Int64??,
    at timestamp: String?
  ) throws {
    if let timestamp { participant.lastReadTimestamp = timestamp }
    guard let index else { return }
    participant.lastReadIndex = index
    guard let index else {
      participant.lastReadTimestamp = nil
      return
    }
    if timestamp == nil { participant.lastReadTimestamp = TwilioDate.seconds(Timestamp(milliseconds: now)) }
    let room = ChannelID(conversation.room)
    guard let identity = participant.identity, let message = try chat.message(atOrBefore: index, in: room) else {
      return
    }
    let reader = Author(id: UserID(identity), name: identity)
    try chat.mark(ReadMark(upTo: message.message.id, by: reader, state: .read), in: room, by: .owner)
  }

  func remove(_ participant: ParticipantRecord, of conversation: ConversationRecord, _ origin: Origin?) throws {
    var conversation = conversation
    if let origin { try announce("onParticipantRemoved", participant, of: conversation, origin) }
    try forget(participant, of: conversation)
    if participant.identity == nil {
      conversation.phones = max(conversation.phones - 1, 0)
      try keep(conversation)
    }
    if let identity = participant.identity {
      try chat.leave(UserID(identity), ChannelID(conversation.room), by: .owner)
    }
  }

  func announce(
    _ event: String, _ participant: ParticipantRecord, of conversation: ConversationRecord, _ origin: Origin
  ) throws {
    try announce(event, origin, service: conversation.service, conversation: conversation.sid) {
      fields(participant, of: conversation, in: event)
    }
  }

  /// Whoever has no name of their own goes by the one under which a relay made them a participant.
  private static func author(_ user: UserRecord, as participant: ParticipantRecord) -> Author {
    var author = author(user)
    if author.name == user.identity, let name = FerryAttributes(participant.attributes)?.display { author.name = name }
    return author
  }

  static func author(_ user: UserRecord) -> Author {
    Author(id: UserID(user.identity), name: user.friendlyName.flatMap { $0.isEmpty ? nil : $0 } ?? user.identity)
  }
}
