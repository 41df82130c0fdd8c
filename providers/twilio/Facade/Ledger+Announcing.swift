import FerryChat
import FerryCore
import FerryRuntime

/// Who caused an event, as webhooks tell it.
struct Origin: Sendable {
  /// `API`, `SDK`, or nil where webhooks say nothing of it.
  var source: String?
  var identity: String?

  static let api = Origin(source: "API")
  static func sdk(_ identity: String?) -> Origin { Origin(source: "SDK", identity: identity) }
}

/// Post-action webhooks: what they carry, and to whom. They are written down in the transaction of what they tell.
extension Ledger {
  /// Puts an event down for every webhook that asks for it. `fields` is not called when none does.
  func announce(
    _ event: String, _ origin: Origin, service: String, conversation: String? = nil, _ fields: () throws -> Form
  ) throws {
    var targets: [(key: String, url: String, method: String)] = []
    for scope in [nil, service] {
      guard let settings = try webhookSettings(of: scope), let url = settings.postURL, !url.isEmpty,
        settings.filters?.contains(event) == true
      else { continue }
      targets.append((scope ?? "account", url, settings.method ?? "POST"))
    }
    let scoped = try conversation.map { try scopedWebhooks(of: $0) } ?? []
    guard !targets.isEmpty || !scoped.isEmpty else { return }
    let form = try common(event, origin, service: service, fields())
    for hook in scoped where hook.wants(event, form) {
      guard let url = hook.url else { continue }
      targets.append((hook.sid, url, hook.method ?? "POST"))
    }
    for target in targets { try send(event, form, to: target.key, url: target.url, method: target.method) }
  }

  func scopedWebhooks(of conversation: String) throws -> [ScopedWebhookRecord] {
    try chat.documents(in: "hooks/\(conversation)").map { try $0.value() }
  }

  /// What every webhook carries, and the rest.
  func common(_ event: String, _ origin: Origin, service: String, _ fields: Form) -> Form {
    var form: Form = [("AccountSid", facade.settings.accountSID), ("EventType", event)]
    form.add("Source", optional: origin.source)
    form.add("ClientIdentity", optional: origin.identity)
    form.add("ChatServiceSid", service)
    form.fields += fields.fields
    return form
  }

  func send(_ event: String, _ form: Form, to target: String, url: String, method: String) throws {
    let delivery = WebhookDelivery(
      event: event, url: url, method: method.uppercased(), fields: form.fields.flatMap { [$0.name, $0.value] },
      token: Crypto.randomHex(bytes: 16))
    try chat.put(delivery, as: delivery.token, in: WebhookSender.collection(target))
    chat.afterCommit { [sender = facade.sender] in sender.poke(target) }
  }

  // MARK: What webhooks carry

  func fields(_ stored: ChatMessage, of conversation: ConversationRecord, in event: String) throws -> Form {
    let message = stored.message
    let extra = MessageExtra(message)
    var form: Form = [("ConversationSid", conversation.sid), ("MessageSid", facade.sids.message(message.id))]
    if event == "onMessageAdded" { form.add("MessagingServiceSid", optional: conversation.messagingService) }
    form.add("Index", String(stored.position))
    form.add("DateCreated", Self.date(message.time.milliseconds))
    if event != "onMessageAdded" { form.add("DateUpdated", Self.date(extra.updated(of: message))) }
    if event == "onMessageRemoved" { form.add("DateRemoved", Self.date(now)) }
    form.add("Body", optional: message.text.isEmpty ? nil : message.text)
    form.add("Author", message.author.id.rawValue)
    form.add("ParticipantSid", optional: try participant(of: message, extra, in: conversation))
    form.add("Attributes", extra.attributes)
    let media = self.media(of: message, extra)
    if !media.isEmpty { form.add("Media", JSON.text(of: .array(media.map(\.webhookJSON)))) }
    return form
  }

  func fields(_ participant: ParticipantRecord, of conversation: ConversationRecord, in event: String) -> Form {
    var form: Form = [("ConversationSid", conversation.sid)]
    if event != "onParticipantAdd" {
      form.add("ParticipantSid", participant.sid)
      form.add("DateCreated", Self.date(participant.created))
    }
    if event != "onParticipantAdd", event != "onParticipantAdded" {
      form.add("DateUpdated", Self.date(participant.updated))
    }
    if event == "onParticipantRemoved" { form.add("DateRemoved", Self.date(now)) }
    if event == "onParticipantUpdated" {
      form.add("LastReadMessageIndex", optional: participant.lastReadIndex.map { String($0) })
    }
    form.add("Identity", optional: participant.identity)
    form.add("RoleSid", optional: participant.roleSID)
    form.add("Attributes", participant.attributes)
    form.add("MessagingBinding.ProxyAddress", optional: participant.binding?.proxyAddress)
    form.add("MessagingBinding.Address", optional: participant.binding?.address)
    form.add("MessagingBinding.ProjectedAddress", optional: participant.binding?.projectedAddress)
    form.add("MessagingBinding.Type", (participant.binding?.type ?? "chat").uppercased())
    return form
  }

  func fields(_ conversation: ConversationRecord, in event: String) -> Form {
    var form = Form()
    if event != "onConversationAdd" {
      form.add("ConversationSid", conversation.sid)
      form.add("DateCreated", Self.date(conversation.created))
      form.add("DateUpdated", Self.date(conversation.updated))
    }
    if event == "onConversationRemoved" { form.add("DateRemoved", Self.date(now)) }
    form.add("FriendlyName", optional: conversation.friendlyName)
    form.add("UniqueName", optional: conversation.uniqueName)
    form.add("Attributes", conversation.attributes)
    form.add("MessagingServiceSid", optional: conversation.messagingService)
    form.add("State", conversation.state.rawValue)
    return form
  }

  func fields(
    of conversation: ConversationRecord, from state: ConversationRecord.State, reason: String
  ) -> Form {
    var form: Form = [("ConversationSid", conversation.sid)]
    form.add("MessagingServiceSid", optional: conversation.messagingService)
    form.add("StateUpdated", Self.date(now))
    form.add("StateFrom", state.rawValue)
    form.add("StateTo", conversation.state.rawValue)
    form.add("Reason", reason)
    return form
  }

  func fields(_ user: UserRecord, of service: String, in event: String) -> Form {
    var form: Form = [("UserSid", user.sid), ("DateCreated", Self.date(user.created))]
    if event != "onUserAdded" { form.add("DateUpdated", Self.date(user.updated)) }
    form.add("Identity", user.identity)
    form.add("RoleSid", optional: user.roleSID)
    form.add("Attributes", user.attributes)
    form.add("FriendlyName", optional: user.friendlyName)
    if event == "onUserUpdated" {
      form.add("isOnline", String(facade.hub.withLock { $0.isOnline(user.identity, in: service) }))
      form.add("isNotifiable", "false")
    }
    return form
  }

  func fields(_ receipt: ReceiptRecord, of message: String, in conversation: String) -> Form {
    [
      ("ConversationSid", conversation), ("MessageSid", message), ("DeliveryReceiptSid", receipt.sid),
      ("ChannelMessageSid", receipt.channelMessage), ("ParticipantSid", receipt.participant),
      ("Status", receipt.status), ("ErrorCode", "0"), ("DateCreated", Self.date(receipt.created)),
      ("DateUpdated", Self.date(receipt.updated)),
    ]
  }

  static func date(_ milliseconds: Int64) -> String {
    TwilioDate.milliseconds(Timestamp(milliseconds: milliseconds))
  }
}

extension ScopedWebhookRecord {
  /// A trigger waits for a message that begins with one of its words; a studio flow has nobody here to run it.
  func wants(_ event: String, _ form: Form) -> Bool {
    switch target {
    case "webhook": return filters?.contains(event) == true
    case "trigger":
      guard event == "onMessageAdded", let body = form["Body"] else { return false }
      return (triggers ?? []).contains { body.lowercased().hasPrefix($0.lowercased()) }
    default: return false
    }
  }
}
