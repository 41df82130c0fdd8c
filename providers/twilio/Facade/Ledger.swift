import FerryChat
import FerryCore
import FerryRuntime

/// The account's data inside one transaction: typed documents, and the chat they belong to.
///
/// Collections, by name: `services`, `configuration`, `rooms` (which conversation a room is), `media` and `unattached`,
/// `timers`; of a service `conversations/IS`, `names/IS`, `users/IS`, `identities/IS`, `roles/IS`, and of what its
/// people and phones are in, `of/IS/IDENTITY` and `at/IS/ADDRESS`; of a conversation `participants/CH`, `members/CH`
/// (by identity) and `hooks/CH`; of a message `receipts/IM`; and `webhooks/TARGET` for what is to be sent.
struct Ledger {
  let chat: ChatTransaction
  let facade: TwilioFacade

  var now: Int64 { chat.now.milliseconds }

  // MARK: Services and configuration

  func service(_ sid: String) throws -> ServiceRecord? { try chat.value(of: sid, in: "services") }

  func accountConfiguration() throws -> AccountConfiguration {
    try chat.value(of: "account", in: "configuration") ?? AccountConfiguration(service: facade.settings.serviceSID)
  }

  func configuration(of service: String) throws -> ServiceConfiguration {
    try chat.value(of: service, in: "configuration") ?? ServiceConfiguration()
  }

  /// The account's for nil.
  func webhookSettings(of service: String?) throws -> WebhookSettings? {
    try chat.value(of: Self.webhookKey(service), in: "configuration")
  }

  static func webhookKey(_ service: String?) -> String { "\(service ?? "account")/webhooks" }

  /// Makes a service with its roles.
  func makeService(_ sid: String, name: String) throws -> ServiceRecord {
    let record = ServiceRecord(sid: sid, friendlyName: name, created: now, updated: now)
    try chat.put(record, as: sid, in: "services")
    var roles: [String] = []
    for (name, type, permissions) in RolePermissions.standard {
      let role = RoleRecord(
        sid: SID.make(.role), friendlyName: name, type: type, permissions: permissions, created: now, updated: now)
      try chat.put(role, as: role.sid, in: "roles/\(sid)")
      roles.append(role.sid)
    }
    let configuration = ServiceConfiguration(creatorRole: roles[1], conversationRole: roles[0], serviceRole: roles[2])
    try chat.put(configuration, as: sid, in: "configuration")
    return record
  }

  // MARK: Conversations

  /// By SID or unique name. A room that somebody else made is a conversation of the default service.
  func conversation(_ key: String, in service: String) throws -> ConversationRecord? {
    if let found: ConversationRecord = try chat.value(of: Self.sid(key), in: "conversations/\(service)") {
      return found
    }
    guard let sid: String = try chat.value(of: key, in: "names/\(service)") else { return nil }
    return try chat.value(of: sid, in: "conversations/\(service)")
  }

  /// The conversation that a room is; nil when the facade does not know the room.
  func conversation(ofRoom room: ChannelID) throws -> ConversationRecord? {
    guard let place: [String] = try chat.value(of: room.rawValue, in: "rooms"), place.count == 2 else { return nil }
    return try chat.value(of: place[1], in: "conversations/\(place[0])")
  }

  /// False when the unique name is taken.
  func claim(uniqueName name: String, for sid: String, in service: String) throws -> Bool {
    try chat.insert(sid, as: name, in: "names/\(service)")
  }

  /// A new conversation, kept. Throws when its unique name is taken.
  func makeConversation(
    in service: String, uniqueName: String?, room: ChannelID? = nil,
    _ set: (inout ConversationRecord) -> Void = { _ in }
  ) throws -> ConversationRecord {
    let sid = SID.make(.conversation)
    var record = ConversationRecord(
      sid: sid, service: service, room: room?.rawValue ?? sid, uniqueName: uniqueName, created: now, updated: now)
    if let uniqueName {
      guard try claim(uniqueName: uniqueName, for: sid, in: service) else { throw Self.nameTaken }
      // The unique name reads better on other pages than the SID, where it can be a room's name and is free.
      if room == nil, try Self.mayBeRoom(uniqueName) && !chat.hasRoom(ChannelID(uniqueName)) {
        record.room = uniqueName
      }
    }
    set(&record)
    try chat.makeRoom(ChannelID(record.room), title: record.friendlyName.flatMap { $0.isEmpty ? nil : $0 })
    try chat.put([service, sid], as: record.room, in: "rooms")
    try keep(record)
    return record
  }

  func keep(_ record: ConversationRecord) throws {
    try chat.put(record, as: record.sid, in: "conversations/\(record.service)")
    try schedule(record)
  }

  static let nameTaken = TwilioError(409, 50353, "Conversation with provided unique name already exists")

  private static func mayBeRoom(_ name: String) -> Bool {
    !name.isEmpty && !name.utf8.contains { $0 < 0x20 || $0 == 0x7f }
  }

  /// With everything that belongs to it. The room goes too.
  func remove(_ conversation: ConversationRecord) throws {
    for participant in try participants(of: conversation.sid) { try forget(participant, of: conversation) }
    for collection in try chat.collections(beginningWith: "receipts/\(conversation.sid)/") {
      try chat.removeAll(from: collection)
    }
    for media in try allDocuments(in: "attached/\(conversation.sid)") { try chat.remove(media.id, from: "media") }
    for collection in ["hooks", "attached", "participants", "members"] {
      try chat.removeAll(from: "\(collection)/\(conversation.sid)")
    }
    if let name = conversation.uniqueName { try chat.remove(name, from: "names/\(conversation.service)") }
    try chat.remove(conversation.sid, from: "conversations/\(conversation.service)")
    try chat.remove(conversation.sid, from: "timers")
    try chat.remove(conversation.room, from: "rooms")
    try chat.removeRoom(ChannelID(conversation.room))
  }

  // MARK: Participants

  /// By SID or identity.
  func participant(_ key: String, of conversation: String) throws -> ParticipantRecord? {
    if let found: ParticipantRecord = try chat.value(of: Self.sid(key), in: "participants/\(conversation)") {
      return found
    }
    guard let sid = try participantSID(ofIdentity: key, in: conversation) else { return nil }
    return try chat.value(of: sid, in: "participants/\(conversation)")
  }

  func participantSID(ofIdentity identity: String, in conversation: String) throws -> String? {
    try chat.value(of: identity, in: "members/\(conversation)")
  }

  func participants(of conversation: String) throws -> [ParticipantRecord] {
    try allDocuments(in: "participants/\(conversation)").map { try $0.value() }
  }

  /// False when the identity is in the conversation already.
  func add(_ participant: ParticipantRecord, to conversation: inout ConversationRecord) throws -> Bool {
    let sid = conversation.sid
    if let identity = participant.identity {
      guard try chat.insert(participant.sid, as: identity, in: "members/\(sid)") else { return false }
      let mine = UserConversationRecord(participant: participant.sid)
      try chat.put(mine, as: sid, in: Self.conversations(of: identity, conversation.service))
    } else {
      conversation.phones += 1
      try keep(conversation)
    }
    if let address = participant.binding?.address {
      try chat.put(sid, as: participant.sid, in: Self.conversations(at: address, conversation.service))
    }
    try chat.put(participant, as: participant.sid, in: "participants/\(sid)")
    return true
  }

  func keep(_ participant: ParticipantRecord, of conversation: String) throws {
    try chat.put(participant, as: participant.sid, in: "participants/\(conversation)")
  }

  /// Removes what is kept of a participant, but not the member of the room.
  func forget(_ participant: ParticipantRecord, of conversation: ConversationRecord) throws {
    try chat.remove(participant.sid, from: "participants/\(conversation.sid)")
    if let identity = participant.identity {
      try chat.remove(identity, from: "members/\(conversation.sid)")
      try chat.remove(conversation.sid, from: Self.conversations(of: identity, conversation.service))
    }
    if let address = participant.binding?.address {
      try chat.remove(participant.sid, from: Self.conversations(at: address, conversation.service))
    }
  }

  static func conversations(of identity: String, _ service: String) -> String { "of/\(service)/\(identity)" }
  static func conversations(at address: String, _ service: String) -> String { "at/\(service)/\(address)" }

  // MARK: Users and roles

  /// By SID or identity.
  func user(_ key: String, in service: String) throws -> UserRecord? {
    if let found: UserRecord = try chat.value(of: Self.sid(key), in: "users/\(service)") { return found }
    guard let sid: String = try chat.value(of: key, in: "identities/\(service)") else { return nil }
    return try chat.value(of: sid, in: "users/\(service)")
  }

  /// The user of an identity, made on first sight.
  func user(makingIdentity identity: String, in service: String) throws -> (user: UserRecord, isNew: Bool) {
    if let sid: String = try chat.value(of: identity, in: "identities/\(service)"),
      let found: UserRecord = try chat.value(of: sid, in: "users/\(service)")
    {
      return (found, false)
    }
    let role = try configuration(of: service).serviceRole
    let user = UserRecord(
      sid: SID.make(.user), identity: identity, roleSID: role, created: now, updated: now)
    try keep(user, in: service)
    return (user, true)
  }

  func keep(_ user: UserRecord, in service: String) throws {
    try chat.put(user.sid, as: user.identity, in: "identities/\(service)")
    try chat.put(user, as: user.sid, in: "users/\(service)")
  }

  func checkRole(_ sid: String?, in service: String) throws {
    guard let sid else { return }
    guard SID.isOne(sid, of: .role), try chat.document(Self.sid(sid), in: "roles/\(service)") != nil else {
      throw TwilioError(400, 20001, "Invalid parameter RoleSid: there is no such role in this service")
    }
  }

  // MARK: Pieces

  /// The whole collection: of those that are small.
  func allDocuments(in collection: String) throws -> [Document] {
    var all: [Document] = []
    while true {
      let page = try chat.documents(in: collection, DocumentQuery(after: all.last?.sequence, limit: 500))
      all += page
      if page.count < 500 { return all }
    }
  }

  /// A key with its digits in lower case when it is a SID; a name as it is.
  static func sid(_ key: String) -> String {
    guard key.utf8.count == 34, SID.Kind.allCases.contains(where: { SID.isOne(key, of: $0) }) else { return key }
    return key.prefix(2) + key.dropFirst(2).lowercased()
  }
}
