import FerryChat
import FerryCore

/// What a request sets of a conversation, checked.
struct ConversationChange: Sendable {
  var friendlyName: String?
  var uniqueName: String?
  var attributes: String?
  var messagingService: String?
  var state: ConversationRecord.State?
  /// Milliseconds; zero for none.
  var inactive: Int64?
  var closed: Int64?
  var emailAddress: String?
  var emailName: String?
  var created: Int64?
  var updated: Int64?

  init(_ form: Form) throws {
    friendlyName = try form.name("FriendlyName")
    uniqueName = try form.name("UniqueName")
    if let name = uniqueName, SID.isOne(name, of: .conversation) {
      throw TwilioError(400, 50306, "Unique name is not valid: it looks like a SID")
    }
    attributes = try form.attributes(limit: Limits.conversationAttributes)
    messagingService = try form.name("MessagingServiceSid")
    if let sid = messagingService, !sid.isEmpty, !SID.isOne(sid, of: .messagingService) {
      throw TwilioError.invalid("MessagingServiceSid", "it is no SID of a messaging service")
    }
    state = try form.word("State", ConversationRecord.State.self)
    inactive = try Self.timer("Timers.Inactive", form["Timers.Inactive"], atLeast: 60_000)
    closed = try Self.timer("Timers.Closed", form["Timers.Closed"], atLeast: 600_000)
    emailAddress = try form.name("Bindings.Email.Address")
    emailName = try form.name("Bindings.Email.Name")
    (created, updated) = try form.dates()
  }

  static func timer(_ name: String, _ text: String?, atLeast least: Int64) throws(TwilioError) -> Int64? {
    guard let text else { return nil }
    if text.isEmpty { return 0 }
    guard let duration = ISODuration.milliseconds(text), duration == 0 || duration >= least else {
      throw .invalid(name, "it must be an ISO 8601 duration of at least \(least / 60_000) minutes")
    }
    return duration
  }

  /// What a pre-action webhook changes.
  mutating func apply(_ changes: [JSONValue]) throws {
    for change in changes {
      guard let name = change["friendly_name"]?.string else { continue }
      guard name.count <= Limits.name else { throw TwilioError(400, 50003, "FriendlyName too long") }
      friendlyName = name
    }
  }

  /// All but the unique name, which has to be claimed.
  func apply(to record: inout ConversationRecord) {
    if let friendlyName { record.friendlyName = friendlyName }
    if let attributes { record.attributes = attributes }
    if let messagingService { record.messagingService = messagingService.isEmpty ? nil : messagingService }
    if let state { record.state = state }
    if let inactive { record.timers.inactive = inactive > 0 ? inactive : nil }
    if let closed { record.timers.closed = closed > 0 ? closed : nil }
    if let emailAddress { record.emailAddress = emailAddress.isEmpty ? nil : emailAddress }
    if let emailName { record.emailName = emailName.isEmpty ? nil : emailName }
    if let created { record.created = created }
  }
}

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

extension TwilioFacade {
  func makeConversation(_ call: Call) async throws -> JSONValue {
    let change = try await consentedChange(call)
    return try await write { ledger in ledger.json(try ledger.makeConversation(change, call), call) }
  }

  private func consentedChange(_ call: Call) async throws -> ConversationChange {
    var change = try ConversationChange(call.form)
    if change.state == .closed {
      throw TwilioError(400, 50384, "A conversation cannot be created in the state closed")
    }
    let wanted = change
    try change.apply(
      try await consent(to: "onConversationAdd", call) { ledger in
        var record = ConversationRecord(
          sid: "", service: call.service, room: "", uniqueName: wanted.uniqueName, created: ledger.now,
          updated: ledger.now)
        wanted.apply(to: &record)
        return ledger.fields(record, in: "onConversationAdd")
      })
    return change
  }

  func update(conversation key: String, _ call: Call) async throws -> JSONValue {
    var change = try ConversationChange(call.form)
    let wanted = change
    try change.apply(
      try await consent(to: "onConversationUpdate", call) { ledger in
        var record = try ledger.open(key, call)
        wanted.apply(to: &record)
        return ledger.fields(record, in: "onConversationUpdate")
      })
    let agreed = change
    return try await write { ledger in ledger.json(try ledger.update(key, agreed, call), call) }
  }

  func delete(conversation key: String, _ call: Call) async throws {
    _ = try await consent(to: "onConversationRemove", call) { ledger in
      ledger.fields(try ledger.existing(key, call), in: "onConversationRemove")
    }
    try await write { ledger in
      let record = try ledger.existing(key, call)
      if call.isAnnounced {
        try ledger.announce("onConversationRemoved", .api, service: record.service, conversation: record.sid) {
          ledger.fields(record, in: "onConversationRemoved")
        }
      }
      try ledger.remove(record)
    }
  }

  /// Everything or nothing, in one step.
  func makeConversationWithParticipants(_ call: Call) async throws -> JSONValue {
    let change = try await consentedChange(call)
    let texts = call.form.all("Participant")
    guard texts.count <= Limits.participantsAtOnce else {
      throw TwilioError.invalid("Participant", "there may be \(Limits.participantsAtOnce) of them")
    }
    let forms = try texts.map { try Self.participantForm($0) }
    return try await write { ledger in
      var record = try ledger.makeConversation(change, call)
      for form in forms { _ = try ledger.addParticipant(try ParticipantChange(form), to: &record, call) }
      return ledger.json(record, call)
    }
  }

  /// A participant written as JSON, its names in Twilio's form or with underscores, flat or nested.
  private static func participantForm(_ text: String) throws -> Form {
    guard let members = JSONText.value(text)?.object else {
      throw TwilioError.invalid("Participant", "it must be a JSON object")
    }
    var form = Form()
    func pascal(_ name: String) -> String {
      name.split(separator: ".").map { part in
        part.split(separator: "_").map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
      }.joined(separator: ".")
    }
    for (name, value) in members.sorted(by: { $0.key < $1.key }) {
      if let inner = value.object, pascal(name) == "MessagingBinding" {
        for (part, value) in inner.sorted(by: { $0.key < $1.key }) {
          form.add("MessagingBinding.\(pascal(part))", optional: value.text)
        }
      } else if value.object != nil {
        form.add(pascal(name), JSONText.text(value))
      } else {
        form.add(pascal(name), optional: value.text)
      }
    }
    return form
  }
}

/// Durations such as `PT1M` or `P1DT2H`. Years and months, whose length varies, are refused.
enum ISODuration {
  static func milliseconds(_ text: String) -> Int64? {
    var rest = text.uppercased()[...]
    guard rest.popFirst() == "P", !rest.isEmpty else { return nil }
    var total: Int64 = 0
    var isTime = false
    while !rest.isEmpty {
      if rest.first == "T", !isTime {
        isTime = true
        rest.removeFirst()
        guard !rest.isEmpty else { return nil }
        continue
      }
      let digits = rest.prefix { $0.isASCII && $0.isNumber }
      guard let number = Int64(digits), digits.count <= 9, let unit = rest.dropFirst(digits.count).first else {
        return nil
      }
      rest = rest.dropFirst(digits.count + 1)
      let factor: Int64
      switch (unit, isTime) {
      case ("W", false): factor = 604_800_000
      case ("D", false): factor = 86_400_000
      case ("H", true): factor = 3_600_000
      case ("M", true): factor = 60_000
      case ("S", true): factor = 1000
      default: return nil
      }
      total += number * factor
    }
    return total
  }
}
