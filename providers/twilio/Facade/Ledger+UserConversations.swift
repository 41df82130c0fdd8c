import FerryChat
import FerryCore

/// What users are in, and who is where.
extension Ledger {
  func conversations(ofUser key: String, _ call: Call) throws -> JSONValue {
    let user = try existingUser(key, call)
    let collection = Self.conversations(of: user.identity, call.service)
    return try call.list(collection, key: "conversations", maximum: 50, self) { document in
      try json(document.id, try document.value(), of: user, call)
    }
  }

  private func withConversation<T>(
    _ key: String, ofUser who: String, _ call: Call,
    _ body: (UserRecord, ConversationRecord, UserConversationRecord) throws -> T
  ) throws -> T {
    let user = try existingUser(who, call)
    let conversation = try existing(key, call)
    let mine: UserConversationRecord? = try chat.value(
      of: conversation.sid, in: Self.conversations(of: user.identity, call.service))
    guard let mine else { throw TwilioError.noConversation }
    return try body(user, conversation, mine)
  }

  func conversation(_ key: String, ofUser who: String, _ call: Call) throws -> JSONValue {
    try withConversation(key, ofUser: who, call) { user, conversation, mine in
      try json(conversation.sid, mine, of: user, call) ?? .null
    }
  }

  func update(conversation key: String, ofUser who: String, _ call: Call) throws -> JSONValue {
    try withConversation(key, ofUser: who, call) { user, conversation, mine in
      var mine = mine
      if let level = call.form["NotificationLevel"], !level.isEmpty {
        guard ["default", "muted"].contains(level.lowercased()) else {
          throw TwilioError.invalid("NotificationLevel", "it must be default or muted")
        }
        mine.isMuted = level.lowercased() == "muted"
        try chat.put(mine, as: conversation.sid, in: Self.conversations(of: user.identity, call.service))
      }
      let index = try call.form.index("LastReadMessageIndex")
      let timestamp = call.form["LastReadTimestamp"].flatMap { $0.isEmpty ? nil : $0 }
      if index != nil || timestamp != nil, var participant = try participant(mine.participant, of: conversation.sid) {
        try read(&participant, of: conversation, upTo: index, at: timestamp)
        participant.updated = now
        try keep(participant, of: conversation.sid)
        if call.isAnnounced { try announce("onParticipantUpdated", participant, of: conversation, .api) }
      }
      return try json(conversation.sid, mine, of: user, call) ?? .null
    }
  }

  func delete(conversation key: String, ofUser who: String, _ call: Call) throws {
    try withConversation(key, ofUser: who, call) { _, conversation, mine in
      guard let participant = try participant(mine.participant, of: conversation.sid) else { return }
      try remove(participant, of: conversation, call.isAnnounced ? .api : nil)
    }
  }

  private func json(
    _ sid: String, _ mine: UserConversationRecord, of user: UserRecord, _ call: Call
  ) throws -> JSONValue? {
    guard let conversation = try conversation(sid, in: call.service),
      let participant = try participant(mine.participant, of: sid)
    else { return nil }
    // Never known before the first mark, as in the original.
    let unread = try participant.lastReadIndex.map {
      Int64(try chat.countMessages(after: $0, in: ChannelID(conversation.room)))
    }
    return [
      "account_sid": .string(facade.settings.accountSID), "chat_service_sid": .string(call.service),
      "conversation_sid": .string(sid), "participant_sid": .string(participant.sid), "user_sid": .string(user.sid),
      "unread_messages_count": JSONValue(unread), "last_read_message_index": JSONValue(participant.lastReadIndex),
      "friendly_name": JSONValue(conversation.friendlyName), "unique_name": JSONValue(conversation.uniqueName),
      "conversation_state": .string(conversation.state.rawValue), "timers": timers(conversation),
      "attributes": .string(conversation.attributes), "created_by": "system",
      "notification_level": mine.isMuted ? "muted" : "default", "date_created": .date(conversation.created),
      "date_updated": .date(conversation.updated), "url": call.url("Users", user.sid, "Conversations", sid),
      "links": [
        "participant": call.url("Conversations", sid, "Participants", participant.sid),
        "conversation": call.url("Conversations", sid),
      ],
    ]
  }

  func participantConversations(_ call: Call) throws -> JSONValue {
    let identity = call.query["Identity"].flatMap { $0.isEmpty ? nil : $0 }
    let address = call.query["Address"].flatMap { $0.isEmpty ? nil : $0 }
    switch (identity, address) {
    case (.some, .some): throw TwilioError(400, 50451, "Ask for an identity or an address, not both")
    case (.some(let identity), nil):
      let collection = Self.conversations(of: identity, call.service)
      return try call.list(collection, key: "conversations", maximum: 50, self) { document in
        let mine: UserConversationRecord = try document.value()
        return try json(participant: mine.participant, in: document.id, call)
      }
    case (nil, .some(let address)):
      let collection = Self.conversations(at: address, call.service)
      return try call.list(collection, key: "conversations", maximum: 50, self) { document in
        try json(participant: document.id, in: try document.value(), call)
      }
    case (nil, nil): throw TwilioError.invalid("Identity", "ask for an identity or an address")
    }
  }

  private func json(participant sid: String, in conversationSID: String, _ call: Call) throws -> JSONValue? {
    guard let conversation = try conversation(conversationSID, in: call.service),
      let participant = try participant(sid, of: conversationSID)
    else { return nil }
    let participantUser = try participant.identity.flatMap { try user($0, in: call.service) }
    return [
      "account_sid": .string(facade.settings.accountSID), "chat_service_sid": .string(call.service),
      "participant_sid": .string(sid), "participant_user_sid": JSONValue(participantUser?.sid),
      "participant_identity": JSONValue(participant.identity),
      "participant_messaging_binding": participant.binding.map(\.json) ?? .null,
      "conversation_sid": .string(conversationSID), "conversation_unique_name": JSONValue(conversation.uniqueName),
      "conversation_friendly_name": JSONValue(conversation.friendlyName),
      "conversation_attributes": .string(conversation.attributes),
      "conversation_date_created": .date(conversation.created),
      "conversation_date_updated": .date(conversation.updated), "conversation_created_by": "system",
      "conversation_state": .string(conversation.state.rawValue), "conversation_timers": timers(conversation),
      "links": [
        "participant": call.url("Conversations", conversationSID, "Participants", sid),
        "conversation": call.url("Conversations", conversationSID),
      ],
    ]
  }
}
