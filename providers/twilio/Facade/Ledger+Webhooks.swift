import FerryChat
import FerryCore

/// Webhooks of one conversation.
extension Ledger {
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
