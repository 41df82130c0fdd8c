import FerryChat
import FerryCore
import FerryRuntime

/// Records as answers show them.
extension Ledger {
  private var account: JSONValue { .string(facade.settings.accountSID) }

  func json(_ record: ConversationRecord, _ call: Call) -> JSONValue {
    let sid = record.sid
    var bindings: [String: JSONValue] = [:]
    if record.emailAddress != nil || record.emailName != nil {
      bindings["email"] = ["address": JSONValue(record.emailAddress), "name": JSONValue(record.emailName)]
    }
    return [
      "sid": .string(sid), "account_sid": account, "chat_service_sid": .string(record.service),
      "messaging_service_sid": JSONValue(record.messagingService), "friendly_name": JSONValue(record.friendlyName),
      "unique_name": JSONValue(record.uniqueName), "attributes": .string(record.attributes),
      "state": .string(record.state.rawValue), "timers": timers(record), "bindings": .object(bindings),
      "date_created": .date(record.created), "date_updated": .date(record.updated),
      "url": call.url("Conversations", sid),
      "links": [
        "participants": call.url("Conversations", sid, "Participants"),
        "messages": call.url("Conversations", sid, "Messages"),
        "webhooks": call.url("Conversations", sid, "Webhooks"),
      ],
    ]
  }

  /// When the state will change, unless something happens.
  func timers(_ record: ConversationRecord) -> JSONValue {
    var timers: [String: JSONValue] = [:]
    if let due = record.due(.inactive) { timers["date_inactive"] = .date(due) }
    if let due = record.due(.closed) { timers["date_closed"] = .date(due) }
    return .object(timers)
  }

  func json(_ record: ParticipantRecord, of conversation: String, _ call: Call) -> JSONValue {
    var json: [String: JSONValue] = [
      "sid": .string(record.sid), "account_sid": account, "conversation_sid": .string(conversation),
      "identity": JSONValue(record.identity), "attributes": .string(record.attributes),
      "messaging_binding": record.binding.map(\.json) ?? .null, "role_sid": JSONValue(record.roleSID),
      "last_read_message_index": JSONValue(record.lastReadIndex),
      "last_read_timestamp": JSONValue(record.lastReadTimestamp), "date_created": .date(record.created),
      "date_updated": .date(record.updated), "url": call.url("Conversations", conversation, "Participants", record.sid),
    ]
    if call.isInService { json["chat_service_sid"] = .string(call.service) }
    return .object(json)
  }

  func json(_ stored: ChatMessage, of conversation: ConversationRecord, _ call: Call) throws -> JSONValue {
    let message = stored.message
    let extra = MessageExtra(message)
    let sid = facade.sids.message(message.id)
    let media = self.media(of: message, extra)
    func url(_ rest: String...) -> JSONValue {
      .string("\(call.root)/Conversations/\(conversation.sid)/Messages/\(sid)" + rest.map { "/\($0)" }.joined())
    }
    var json: [String: JSONValue] = [
      "sid": .string(sid), "account_sid": account, "conversation_sid": .string(conversation.sid),
      "index": .integer(stored.position), "author": .string(message.author.id.rawValue),
      "participant_sid": JSONValue(try participant(of: message, extra, in: conversation)),
      "body": message.text.isEmpty && !media.isEmpty ? .null : .string(message.text),
      "media": media.isEmpty ? .null : .array(media.map(\.json)), "attributes": .string(extra.attributes),
      "content_sid": JSONValue(extra.contentSID),
      "delivery": Self.delivery(try receipts(of: sid, extra, in: conversation)),
      "date_created": .date(message.time.milliseconds), "date_updated": .date(extra.updated(of: message)),
      "url": url(), "links": ["delivery_receipts": url("Receipts"), "channel_metadata": url("ChannelMetadata")],
    ]
    if call.isInService { json["chat_service_sid"] = .string(call.service) }
    return .object(json)
  }

  /// The participant as whom the author wrote: as of then where the facade knows, otherwise as of now.
  func participant(of message: Message, _ extra: MessageExtra, in conversation: ConversationRecord) throws -> String? {
    extra.isOurs
      ? extra.participant
      : try participantSID(ofIdentity: message.author.id.rawValue, in: conversation.sid)
  }

  /// Attachments as media. What was not uploaded to the media service has SIDs that are worked out.
  func media(of message: Message, _ extra: MessageExtra) -> [MediaItem] {
    message.attachments.enumerated().map { index, attachment in
      index < extra.media.count
        ? extra.media[index]
        : MediaItem(
          sid: facade.sids.media(message.id, index), size: attachment.size ?? 0, contentType: attachment.mediaType,
          filename: attachment.name)
    }
  }

  /// Everything that is sent to a phone here arrives.
  private static func delivery(_ receipts: Int) -> JSONValue {
    guard receipts > 0 else { return .null }
    return [
      "total": .integer(Int64(receipts)), "sent": "all", "delivered": "all", "read": "none", "failed": "none",
      "undelivered": "none",
    ]
  }

  /// Of a message that did not come in through the facade nobody wrote down how many there are.
  private func receipts(of sid: String, _ extra: MessageExtra, in conversation: ConversationRecord) throws -> Int {
    if extra.isOurs || conversation.phones == 0 { return extra.receipts }
    return try chat.count(in: Self.receipts(sid, conversation.sid))
  }

  func json(_ record: ReceiptRecord, of message: String, in conversation: String, _ call: Call) -> JSONValue {
    var json: [String: JSONValue] = [
      "sid": .string(record.sid), "account_sid": account, "conversation_sid": .string(conversation),
      "message_sid": .string(message), "channel_message_sid": .string(record.channelMessage),
      "participant_sid": .string(record.participant), "status": .string(record.status), "error_code": 0,
      "date_created": .date(record.created), "date_updated": .date(record.updated),
      "url": call.url("Conversations", conversation, "Messages", message, "Receipts", record.sid),
    ]
    if call.isInService { json["chat_service_sid"] = .string(call.service) }
    return .object(json)
  }

  func json(_ record: UserRecord, _ call: Call) throws -> JSONValue {
    let isReachable = try configuration(of: call.service).reachability
    let isOnline = facade.hub.withLock { $0.isOnline(record.identity, in: call.service) }
    return [
      "sid": .string(record.sid), "account_sid": account, "chat_service_sid": .string(call.service),
      "role_sid": JSONValue(record.roleSID), "identity": .string(record.identity),
      "friendly_name": JSONValue(record.friendlyName), "attributes": .string(record.attributes),
      "is_online": isReachable ? .bool(isOnline) : .null, "is_notifiable": .null,
      "date_created": .date(record.created), "date_updated": .date(record.updated),
      "url": call.url("Users", record.sid),
      "links": ["user_conversations": call.url("Users", record.sid, "Conversations")],
    ]
  }

  func json(_ record: RoleRecord, _ call: Call) -> JSONValue {
    [
      "sid": .string(record.sid), "account_sid": account, "chat_service_sid": .string(call.service),
      "friendly_name": .string(record.friendlyName), "type": .string(record.type),
      "permissions": .array(record.permissions.map(JSONValue.string)), "date_created": .date(record.created),
      "date_updated": .date(record.updated), "url": call.url("Roles", record.sid),
    ]
  }

  func json(_ record: ServiceRecord, _ call: Call) -> JSONValue {
    let url = "\(call.base)/v1/Services/\(record.sid)"
    let links = [
      ("conversations", "Conversations"), ("users", "Users"), ("roles", "Roles"), ("configuration", "Configuration"),
      ("participant_conversations", "ParticipantConversations"),
      ("conversation_with_participants", "ConversationWithParticipants"),
    ].map { ($0, JSONValue.string("\(url)/\($1)")) }
    return [
      "sid": .string(record.sid), "account_sid": account, "friendly_name": .string(record.friendlyName),
      "date_created": .date(record.created), "date_updated": .date(record.updated), "url": .string(url),
      "links": .object(Dictionary(links, uniquingKeysWith: { first, _ in first })),
    ]
  }

  func json(_ record: ScopedWebhookRecord, of conversation: String, _ call: Call) -> JSONValue {
    var configuration: [String: JSONValue] = [:]
    configuration["url"] = record.url.map(JSONValue.string)
    configuration["method"] = record.method.map(JSONValue.string)
    configuration["filters"] = record.filters.map { .array($0.map(JSONValue.string)) }
    configuration["triggers"] = record.triggers.map { .array($0.map(JSONValue.string)) }
    configuration["flow_sid"] = record.flowSID.map(JSONValue.string)
    configuration["replay_after"] = record.replayAfter.map(JSONValue.integer)
    var json: [String: JSONValue] = [
      "sid": .string(record.sid), "account_sid": account, "conversation_sid": .string(conversation),
      "target": .string(record.target), "configuration": .object(configuration),
      "date_created": .date(record.created), "date_updated": .date(record.updated),
      "url": call.url("Conversations", conversation, "Webhooks", record.sid),
    ]
    if call.isInService { json["chat_service_sid"] = .string(call.service) }
    return .object(json)
  }
}

extension ParticipantRecord.Binding {
  var json: JSONValue {
    var json: [String: JSONValue] = [
      "type": .string(type), "address": JSONValue(address), "proxy_address": JSONValue(proxyAddress),
    ]
    json["projected_address"] = projectedAddress.map(JSONValue.string)
    return .object(json)
  }
}

extension JSONValue {
  init(_ value: String?) { self = value.map(JSONValue.string) ?? .null }
  init(_ value: Int64?) { self = value.map(JSONValue.integer) ?? .null }

  /// A moment as REST writes it.
  static func date(_ milliseconds: Int64) -> JSONValue {
    .string(TwilioDate.seconds(Timestamp(milliseconds: milliseconds)))
  }
}
