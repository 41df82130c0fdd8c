import FerryChat
import FerryCore
import FerryRuntime

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
        form.add(pascal(name), JSON.text(of: value))
      } else {
        form.add(pascal(name), optional: value.text)
      }
    }
    return form
  }
}
