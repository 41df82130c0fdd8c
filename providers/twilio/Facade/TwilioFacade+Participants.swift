import FerryChat
import FerryCore

extension TwilioFacade {
  func addParticipant(to key: String, _ call: Call) async throws -> JSONValue {
    let change = try ParticipantChange(call.form)
    _ = try await consent(to: "onParticipantAdd", call) { ledger in
      let conversation = try ledger.open(key, call)
      let role = try ledger.configuration(of: call.service).conversationRole
      return ledger.fields(try change.record(role: role, now: ledger.now), of: conversation, in: "onParticipantAdd")
    }
    return try await write { ledger in
      var conversation = try ledger.open(key, call)
      let participant = try ledger.addParticipant(change, to: &conversation, call)
      return ledger.json(participant, of: conversation.sid, call)
    }
  }

  func update(participant who: String, of key: String, _ call: Call) async throws -> JSONValue {
    let change = try ParticipantChange(call.form)
    _ = try await consent(to: "onParticipantUpdate", call) { ledger in
      try ledger.withParticipant(who, of: key, call) { ledger.fields($0, of: $1, in: "onParticipantUpdate") }
    }
    return try await write { ledger in
      try ledger.withParticipant(who, of: key, call) { participant, conversation in
        ledger.json(try ledger.update(participant, of: conversation, change, call), of: conversation.sid, call)
      }
    }
  }

  func delete(participant who: String, of key: String, _ call: Call) async throws {
    _ = try await consent(to: "onParticipantRemove", call) { ledger in
      try ledger.withParticipant(who, of: key, call) { ledger.fields($0, of: $1, in: "onParticipantRemove") }
    }
    try await write { ledger in
      try ledger.withParticipant(who, of: key, call) { participant, conversation in
        try ledger.remove(participant, of: conversation, call.isAnnounced ? .api : nil)
      }
    }
  }
}
