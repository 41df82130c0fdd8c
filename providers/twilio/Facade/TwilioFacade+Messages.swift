import FerryChat
import FerryCore
import FerryRuntime

extension TwilioFacade {
  func post(to key: String, _ call: Call) async throws -> JSONValue {
    var change = try MessageChange(call.form)
    let wanted = change
    try change.apply(
      try await consent(to: "onMessageAdd", call) { ledger in
        let conversation = try ledger.open(key, call)
        var form: Form = [("ConversationSid", conversation.sid)]
        form.add("Body", optional: wanted.body)
        form.add("Author", wanted.author ?? "system")
        form.add(
          "ParticipantSid",
          optional: try ledger.participantSID(ofIdentity: wanted.author ?? "system", in: conversation.sid))
        form.add("Attributes", wanted.attributes ?? "{}")
        if let sid = wanted.mediaSID {
          let media = try ledger.unattachedMedia(sid, in: conversation.service)
          form.add("Media", JSON.text(of: [media.item.webhookJSON]))
        }
        return form
      })
    let agreed = change
    return try await write { ledger in
      let conversation = try ledger.open(key, call)
      return try ledger.json(try ledger.post(agreed, to: conversation, call), of: conversation, call)
    }
  }

  func update(message sid: String, of key: String, _ call: Call) async throws -> JSONValue {
    var change = try MessageChange(call.form)
    try change.apply(try await consent("onMessageUpdate", sid, key, call, change))
    let agreed = change
    return try await write { ledger in
      try ledger.withMessage(sid, of: key, call) { stored, conversation in
        try ledger.json(try ledger.update(stored, of: conversation, agreed, call), of: conversation, call)
      }
    }
  }

  func delete(message sid: String, of key: String, _ call: Call) async throws {
    _ = try await consent("onMessageRemove", sid, key, call, nil)
    try await write { ledger in
      try ledger.withMessage(sid, of: key, call) { try ledger.delete($0, of: $1, call) }
    }
  }

  private func consent(
    _ event: String, _ sid: String, _ key: String, _ call: Call, _ change: MessageChange?
  ) async throws -> [JSONValue] {
    try await consent(to: event, call) { ledger in
      try ledger.withMessage(sid, of: key, call) { stored, conversation in
        var stored = stored
        if let body = change?.body { stored.message.text = body }
        if let author = change?.author { stored.message.author = Author(id: UserID(author), name: author) }
        if let attributes = change?.attributes {
          var extra = MessageExtra(stored.message)
          extra.attributes = attributes
          stored.message.attributes = extra.kept
        }
        return try ledger.fields(stored, of: conversation, in: event)
      }
    }
  }
}
