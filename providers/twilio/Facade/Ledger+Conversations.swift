import FerryChat
import FerryCore

extension Ledger {
  /// Throws when there is none.
  func existing(_ key: String, _ call: Call) throws -> ConversationRecord {
    guard let record = try conversation(key, in: call.service) else { throw TwilioError.noConversation }
    return record
  }

  /// One that may be changed.
  func open(_ key: String, _ call: Call) throws -> ConversationRecord {
    let record = try existing(key, call)
    guard record.state != .closed else { throw TwilioError.closed }
    return record
  }

  func conversations(_ call: Call) throws -> JSONValue {
    let start = try call.query.date("StartDate", code: 20001)
    var end = try call.query.date("EndDate", code: 20001)
    // A day without a time counts to its end.
    if call.query["EndDate"]?.utf8.count == 10 { end = end.map { $0 + 86_399_999 } }
    let state = try call.query.word("State", ConversationRecord.State.self)
    return try call.list("conversations/\(call.service)", key: "conversations", maximum: 100, self) { document in
      let record: ConversationRecord = try document.value()
      if let start, record.created < start { return nil }
      if let end, record.created > end { return nil }
      if let state, record.state != state { return nil }
      return json(record, call)
    }
  }

  /// With the account's timers where the request has none.
  func makeConversation(_ change: ConversationChange, _ call: Call) throws -> ConversationRecord {
    let defaults = try accountConfiguration()
    let name = change.uniqueName.flatMap { $0.isEmpty ? nil : $0 }
    let record = try makeConversation(in: call.service, uniqueName: name) { record in
      record.timers.inactive = defaults.inactiveTimer.flatMap(ISODuration.milliseconds)
      record.timers.closed = defaults.closedTimer.flatMap(ISODuration.milliseconds)
      record.messagingService = defaults.messagingService
      change.apply(to: &record)
      record.updated = change.updated ?? change.created ?? now
      if !record.timers.isEmpty { record.timers.activity = now }
    }
    if call.isAnnounced {
      try announce("onConversationAdded", .api, service: record.service, conversation: record.sid) {
        fields(record, in: "onConversationAdded")
      }
    }
    return record
  }

  func update(_ key: String, _ change: ConversationChange, _ call: Call) throws -> ConversationRecord {
    var record = try open(key, call)
    let state = record.state
    if let name = change.uniqueName, name != record.uniqueName ?? "" {
      if let old = record.uniqueName { try chat.remove(old, from: "names/\(record.service)") }
      if !name.isEmpty, try !claim(uniqueName: name, for: record.sid, in: record.service) { throw Self.nameTaken }
      record.uniqueName = name.isEmpty ? nil : name
    }
    change.apply(to: &record)
    record.updated = change.updated ?? now
    if record.timers.isEmpty { record.timers.activity = nil } else { record.timers.activity = now }
    try keep(record)
    if let title = change.friendlyName, !title.isEmpty {
      try chat.makeRoom(ChannelID(record.room), title: title)
    }
    guard call.isAnnounced else { return record }
    try announce("onConversationUpdated", .api, service: record.service, conversation: record.sid) {
      fields(record, in: "onConversationUpdated")
    }
    if record.state != state { try announceState(record, from: state, reason: "API", .api) }
    return record
  }

  func announceState(
    _ record: ConversationRecord, from state: ConversationRecord.State, reason: String, _ origin: Origin
  ) throws {
    try announce("onConversationStateUpdated", origin, service: record.service, conversation: record.sid) {
      fields(of: record, from: state, reason: reason)
    }
  }
}
