import FerryChat
import FerryCore

/// What a request sets of a participant, checked.
struct ParticipantChange: Sendable {
  var identity: String?
  var address: String?
  var proxyAddress: String?
  var projectedAddress: String?
  var attributes: String?
  var roleSID: String?
  /// Nil inside takes away what was set.
  var lastReadIndex: Int64??
  var lastReadTimestamp: String?
  var created: Int64?
  var updated: Int64?

  init(_ form: Form) throws {
    identity = try form.name("Identity", code: 50207)
    if let identity, SID.isOne(identity, of: .user) {
      throw TwilioError(400, 50206, "Identity is not valid: it looks like a SID")
    }
    address = try form.name("MessagingBinding.Address", code: 50411)
    proxyAddress = try form.name("MessagingBinding.ProxyAddress", code: 50412)
    projectedAddress = try form.name("MessagingBinding.ProjectedAddress", code: 50408)
    for (value, code) in [(address, 50411), (proxyAddress, 50412), (projectedAddress, 50408)] {
      guard let value, !value.isEmpty, value != "null" else { continue }
      guard Address.isOne(value) else { throw TwilioError(400, code, "Messaging binding address is not valid") }
    }
    attributes = try form.attributes()
    roleSID = form["RoleSid"].flatMap { $0.isEmpty ? nil : $0 }
    lastReadIndex = try form.index("LastReadMessageIndex")
    lastReadTimestamp = form["LastReadTimestamp"].flatMap { $0.isEmpty ? nil : $0 }
    (created, updated) = try form.dates()
  }

  /// A new participant, or what is wrong with it.
  func record(role: String?, now: Int64) throws(TwilioError) -> ParticipantRecord {
    let identity = self.identity.flatMap { $0.isEmpty ? nil : $0 }
    let address = self.address.flatMap { $0.isEmpty ? nil : $0 }
    guard (identity == nil) != (address == nil) else {
      throw TwilioError(400, 50204, "A participant has either an identity or a messaging binding address")
    }
    // With nobody's projected address to write to, a phone needs the number that it writes to.
    guard address == nil || proxyAddress?.isEmpty == false || projectedAddress?.isEmpty == false else {
      throw TwilioError(400, 50204, "A messaging binding needs both address and proxy address")
    }
    var binding: ParticipantRecord.Binding?
    if address != nil || projectedAddress != nil {
      binding = ParticipantRecord.Binding(
        type: Address.type(of: address ?? projectedAddress ?? ""), address: address, proxyAddress: proxyAddress,
        projectedAddress: projectedAddress)
    }
    return ParticipantRecord(
      sid: SID.make(.participant), identity: identity, binding: binding, attributes: attributes ?? "{}",
      roleSID: roleSID ?? role, created: created ?? now, updated: updated ?? created ?? now)
  }

  /// Addresses of phones and other networks.
  enum Address {
    /// `+15551234567`, `whatsapp:+15551234567`, `messenger:123`, `ada@example.org`.
    static func isOne(_ text: String) -> Bool {
      if text.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7f }) { return false }
      let plain = text.split(separator: ":", maxSplits: 1).last ?? ""
      if text.contains(":") || text.contains("@") { return !plain.isEmpty }
      let digits = plain.dropFirst(plain.hasPrefix("+") ? 1 : 0)
      return (3...15).contains(digits.count) && digits.allSatisfy { $0.isASCII && $0.isNumber }
    }

    static func type(of address: String) -> String {
      let prefix = address.split(separator: ":", maxSplits: 1).first.map(String.init) ?? ""
      if address.contains(":"), ["whatsapp", "messenger", "gbm", "rcs", "apple", "email"].contains(prefix) {
        return prefix
      }
      return address.contains("@") ? "email" : "sms"
    }
  }
}

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
      try chat.join(Self.author(user), ChannelID(conversation.room), by: .owner)
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

  static func author(_ user: UserRecord) -> Author {
    Author(id: UserID(user.identity), name: user.friendlyName.flatMap { $0.isEmpty ? nil : $0 } ?? user.identity)
  }
}

extension TwilioFacade {
  func addParticipant(to key: String, _ call: Call) async throws -> JSONValue {
    let change = try ParticipantChange(call.form)
    _ = try await consent(to: "onParticipantAdd", call) { ledger in
      let conversation = try ledger.open(key, call)
      let role = try ledger.configuration(of: call.service).conversationRole
      return ledger.fields(try change.record(role: role, now: ledger.now), of: conversation, in: "onParticipantAdd")
    }
    return try await write { ledger in
      var conversation = try ledger.open(key, call)
      let participant = try ledger.addParticipant(change, to: &conversation, call)
      return ledger.json(participant, of: conversation.sid, call)
    }
  }

  func update(participant who: String, of key: String, _ call: Call) async throws -> JSONValue {
    let change = try ParticipantChange(call.form)
    _ = try await consent(to: "onParticipantUpdate", call) { ledger in
      try ledger.withParticipant(who, of: key, call) { ledger.fields($0, of: $1, in: "onParticipantUpdate") }
    }
    return try await write { ledger in
      try ledger.withParticipant(who, of: key, call) { participant, conversation in
        ledger.json(try ledger.update(participant, of: conversation, change, call), of: conversation.sid, call)
      }
    }
  }

  func delete(participant who: String, of key: String, _ call: Call) async throws {
    _ = try await consent(to: "onParticipantRemove", call) { ledger in
      try ledger.withParticipant(who, of: key, call) { ledger.fields($0, of: $1, in: "onParticipantRemove") }
    }
    try await write { ledger in
      try ledger.withParticipant(who, of: key, call) { participant, conversation in
        try ledger.remove(participant, of: conversation, call.isAnnounced ? .api : nil)
      }
    }
  }
}
