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
}
