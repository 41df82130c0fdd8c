import FerryChat
import FerryCore
import FerryRuntime

/// Services and what is configured: of the account, of a service, and their webhooks.
extension Ledger {
  func existingService(_ sid: String, _ call: Call) throws -> ServiceRecord {
    guard let service = try service(Self.sid(sid)) else { throw TwilioError.notFound(call.path) }
    return service
  }

  func services(_ call: Call) throws -> JSONValue {
    try call.list("services", key: "services", maximum: 100, self) { json(try $0.value() as ServiceRecord, call) }
  }

  func makeService(_ call: Call) throws -> JSONValue {
    guard let name = try call.form.name("FriendlyName"), !name.isEmpty else {
      throw TwilioError.invalid("FriendlyName", "it is required")
    }
    return json(try makeService(SID.make(.service), name: name), call)
  }

  /// With everything in it.
  func delete(service sid: String, _ call: Call) throws {
    let service = try existingService(sid, call)
    guard service.sid != facade.settings.serviceSID, service.sid != (try accountConfiguration().service) else {
      throw TwilioError.invalid("Sid", "the account's default service cannot be deleted")
    }
    for document in try allDocuments(in: "conversations/\(service.sid)") { try remove(try document.value()) }
    for collection in ["users", "identities", "roles"] { try chat.removeAll(from: "\(collection)/\(service.sid)") }
    for key in [service.sid, Self.webhookKey(service.sid)] { try chat.remove(key, from: "configuration") }
    try chat.remove(service.sid, from: "services")
  }

  // MARK: Configuration

  func configuration(_ call: Call) throws -> JSONValue {
    if call.isInService { return try serviceConfiguration(call) }
    let record = try accountConfiguration()
    return [
      "account_sid": .string(facade.settings.accountSID), "default_chat_service_sid": .string(record.service),
      "default_messaging_service_sid": JSONValue(record.messagingService),
      "default_inactive_timer": JSONValue(record.inactiveTimer),
      "default_closed_timer": JSONValue(record.closedTimer), "url": call.url("Configuration"),
      "links": [
        "service": .string("\(call.base)/v1/Services/\(record.service)/Configuration"),
        "webhooks": call.url("Configuration", "Webhooks"),
      ],
    ]
  }

  private func serviceConfiguration(_ call: Call) throws -> JSONValue {
    let record = try configuration(of: call.service)
    return [
      "chat_service_sid": .string(call.service),
      "default_conversation_creator_role_sid": JSONValue(record.creatorRole),
      "default_conversation_role_sid": JSONValue(record.conversationRole),
      "default_chat_service_role_sid": JSONValue(record.serviceRole),
      "reachability_enabled": .bool(record.reachability), "url": call.url("Configuration"),
      "links": ["webhooks": call.url("Configuration", "Webhooks")],
    ]
  }

  func updateConfiguration(_ call: Call) throws -> JSONValue {
    if call.isInService {
      var record = try configuration(of: call.service)
      let fields: [(String, WritableKeyPath<ServiceConfiguration, String?>)] = [
        ("DefaultConversationCreatorRoleSid", \.creatorRole), ("DefaultConversationRoleSid", \.conversationRole),
        ("DefaultChatServiceRoleSid", \.serviceRole),
      ]
      for (name, field) in fields {
        guard let sid = call.form[name], !sid.isEmpty else { continue }
        guard try chat.document(Self.sid(sid), in: "roles/\(call.service)") != nil else {
          throw TwilioError.invalid(name, "there is no such role in this service")
        }
        record[keyPath: field] = Self.sid(sid)
      }
      if let reachability = try call.form.bool("ReachabilityEnabled") { record.reachability = reachability }
      try chat.put(record, as: call.service, in: "configuration")
      return try serviceConfiguration(call)
    }
    var record = try accountConfiguration()
    if let sid = call.form["DefaultChatServiceSid"], !sid.isEmpty {
      guard let service = try service(Self.sid(sid)) else {
        throw TwilioError.invalid("DefaultChatServiceSid", "there is no such service")
      }
      record.service = service.sid
    }
    if let sid = call.form["DefaultMessagingServiceSid"] { record.messagingService = sid.isEmpty ? nil : sid }
    for (name, field, least) in [
      ("DefaultInactiveTimer", \AccountConfiguration.inactiveTimer, Int64(60_000)),
      ("DefaultClosedTimer", \AccountConfiguration.closedTimer, 600_000),
    ] {
      guard let timer = try ConversationChange.timer(name, call.form[name], atLeast: least) else { continue }
      record[keyPath: field] = timer == 0 ? nil : call.form[name]
    }
    try chat.put(record, as: "account", in: "configuration")
    let service = record.service
    chat.afterCommit { [facade] in facade.defaultService.withLock { $0 = service } }
    return try configuration(call)
  }

  // MARK: Webhooks

  func webhookConfiguration(_ call: Call) throws -> JSONValue {
    let record = try webhookSettings(of: call.isInService ? call.service : nil)
    var json: [String: JSONValue] = [
      "account_sid": .string(facade.settings.accountSID), "pre_webhook_url": JSONValue(record?.preURL),
      "post_webhook_url": JSONValue(record?.postURL),
      "filters": record?.filters.map { .array($0.map(JSONValue.string)) } ?? .null,
      "method": JSONValue(record?.method), "url": call.url("Configuration", "Webhooks"),
    ]
    if call.isInService {
      json["chat_service_sid"] = .string(call.service)
    } else {
      json["method"] = .string(record?.method ?? "POST")
      json["target"] = .string(record?.target ?? "webhook")
      if record?.filters == nil { json["filters"] = [] }
    }
    return .object(json)
  }

  func updateWebhookConfiguration(_ call: Call) throws -> JSONValue {
    let scope = call.isInService ? call.service : nil
    var record = try webhookSettings(of: scope) ?? WebhookSettings(method: "POST", filters: [])
    if let method = call.form["Method"], !method.isEmpty {
      guard ["GET", "POST"].contains(method.uppercased()) else {
        throw TwilioError.invalid("Method", "it must be GET or POST")
      }
      record.method = method.uppercased()
    }
    if let url = try WebhookRules.url(call.form["PreWebhookUrl"]) { record.preURL = url.isEmpty ? nil : url }
    if let url = try WebhookRules.url(call.form["PostWebhookUrl"]) { record.postURL = url.isEmpty ? nil : url }
    let filters = call.form.all("Filters").filter { !$0.isEmpty }
    if call.form["Filters"] != nil {
      try WebhookRules.check(filters, among: WebhookRules.preActions + WebhookRules.postActions)
      record.filters = filters
    }
    if !call.isInService, let target = call.form["Target"]?.lowercased(), !target.isEmpty {
      guard ["webhook", "flex"].contains(target) else {
        throw TwilioError.invalid("Target", "it must be webhook or flex")
      }
      record.target = target
    }
    try chat.put(record, as: Self.webhookKey(scope), in: "configuration")
    return try webhookConfiguration(call)
  }

  // MARK: Webhooks of a conversation

  func webhooks(of key: String, _ call: Call) throws -> JSONValue {
    let conversation = try existing(key, call)
    return try call.list("hooks/\(conversation.sid)", key: "webhooks", maximum: Limits.webhooks, self) {
      json(try $0.value() as ScopedWebhookRecord, of: conversation.sid, call)
    }
  }

  private func withWebhook<T>(
    _ sid: String, of key: String, _ call: Call, _ body: (ScopedWebhookRecord, ConversationRecord) throws -> T
  ) throws -> T {
    let conversation = try existing(key, call)
    guard let hook: ScopedWebhookRecord = try chat.value(of: Self.sid(sid), in: "hooks/\(conversation.sid)") else {
      throw TwilioError.notFound(call.path)
    }
    return try body(hook, conversation)
  }

  func webhook(_ sid: String, of key: String, _ call: Call) throws -> JSONValue {
    try withWebhook(sid, of: key, call) { json($0, of: $1.sid, call) }
  }

  func makeWebhook(for key: String, _ call: Call) throws -> JSONValue {
    let conversation = try existing(key, call)
    guard try chat.count(in: "hooks/\(conversation.sid)") < Limits.webhooks else {
      throw TwilioError(409, 50361, "The conversation has \(Limits.webhooks) webhooks already")
    }
    guard let target = call.form["Target"]?.lowercased(), ["webhook", "trigger", "studio"].contains(target) else {
      throw TwilioError.invalid("Target", "it must be webhook, trigger or studio")
    }
    var hook = ScopedWebhookRecord(sid: SID.make(.webhook), target: target, created: now, updated: now)
    try set(&hook, call)
    guard target == "studio" || hook.url?.isEmpty == false else {
      throw TwilioError(400, 50372, "Configuration.Url is required")
    }
    hook.replayAfter = try call.form.index("Configuration.ReplayAfter") ?? nil
    try chat.put(hook, as: hook.sid, in: "hooks/\(conversation.sid)")
    try replay(to: hook, of: conversation)
    return json(hook, of: conversation.sid, call)
  }

  private func set(_ hook: inout ScopedWebhookRecord, _ call: Call) throws {
    if let url = try WebhookRules.url(call.form["Configuration.Url"]) { hook.url = url }
    if let method = call.form["Configuration.Method"]?.lowercased(), !method.isEmpty {
      guard ["get", "post"].contains(method) else {
        throw TwilioError.invalid("Configuration.Method", "it must be get or post")
      }
      hook.method = method
    }
    let filters = call.form.all("Configuration.Filters").filter { !$0.isEmpty }
    try WebhookRules.check(filters, among: WebhookRules.postActions)
    if call.form["Configuration.Filters"] != nil { hook.filters = filters }
    if call.form["Configuration.Triggers"] != nil { hook.triggers = call.form.all("Configuration.Triggers") }
    if let flow = call.form["Configuration.FlowSid"] { hook.flowSID = flow.isEmpty ? nil : flow }
    if hook.target != "studio", hook.method == nil { hook.method = "post" }
  }

  /// Tells a new webhook of the messages after an index, as if they came now.
  private func replay(to hook: ScopedWebhookRecord, of conversation: ConversationRecord) throws {
    guard let index = hook.replayAfter, let url = hook.url else { return }
    let room = ChannelID(conversation.room)
    var edge = try chat.message(atOrBefore: index, in: room)?.message.id
    while true {
      let page = try chat.liveMessages(in: room, order: .oldestFirst, after: edge, limit: 100)
      for stored in page {
        let fields = try fields(stored, of: conversation, in: "onMessageAdded")
        let form = common("onMessageAdded", .api, service: conversation.service, fields)
        guard hook.wants("onMessageAdded", form) else { continue }
        try send("onMessageAdded", form, to: hook.sid, url: url, method: hook.method ?? "POST")
      }
      guard page.count == 100 else { return }
      edge = page.last?.message.id
    }
  }

  func update(webhook sid: String, of key: String, _ call: Call) throws -> JSONValue {
    try withWebhook(sid, of: key, call) { hook, conversation in
      var hook = hook
      try set(&hook, call)
      hook.updated = now
      try chat.put(hook, as: hook.sid, in: "hooks/\(conversation.sid)")
      return json(hook, of: conversation.sid, call)
    }
  }

  func delete(webhook sid: String, of key: String, _ call: Call) throws {
    try withWebhook(sid, of: key, call) { hook, conversation in
      try chat.remove(hook.sid, from: "hooks/\(conversation.sid)")
      try chat.removeAll(from: WebhookSender.collection(hook.sid))
    }
  }
}

/// What webhooks may be told of, and where.
enum WebhookRules {
  static let preActions = [
    "onMessageAdd", "onMessageUpdate", "onMessageRemove", "onConversationAdd", "onConversationUpdate",
    "onConversationRemove", "onParticipantAdd", "onParticipantUpdate", "onParticipantRemove", "onUserUpdate",
  ]

  static let postActions = [
    "onMessageAdded", "onMessageUpdated", "onMessageRemoved", "onConversationAdded", "onConversationUpdated",
    "onConversationRemoved", "onConversationStateUpdated", "onParticipantAdded", "onParticipantUpdated",
    "onParticipantRemoved", "onDeliveryUpdated", "onUserAdded", "onUserUpdated",
  ]

  static func check(_ filters: [String], among valid: [String]) throws(TwilioError) {
    for filter in filters where !valid.contains(filter) {
      throw TwilioError(400, 50365, "Invalid webhook filter \(filter.prefix(64))")
    }
  }

  /// Nil when none is given; an empty one takes away what was set.
  static func url(_ text: String?) throws(TwilioError) -> String? {
    guard let text else { return nil }
    let lower = text.lowercased()
    guard text.isEmpty || lower.hasPrefix("http://") || lower.hasPrefix("https://"),
      !text.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7f }), text.utf8.count <= 2048
    else { throw TwilioError(400, 50372, "The webhook's URL must begin with http:// or https://") }
    return text
  }
}
