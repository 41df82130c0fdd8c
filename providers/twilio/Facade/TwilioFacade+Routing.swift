import FerryCore
import FerryRuntime

/// Which resource does what.
extension TwilioFacade {
  func get(_ call: Call) async throws -> JSONValue {
    try await read { ledger in
      switch call.route {
      case .conversations: try ledger.conversations(call)
      case .conversation(let key): ledger.json(try ledger.existing(key, call), call)
      case .participants(let key): try ledger.participants(of: key, call)
      case .participant(let key, let who):
        try ledger.withParticipant(who, of: key, call) { ledger.json($0, of: $1.sid, call) }
      case .messages(let key): try ledger.messages(of: key, call)
      case .message(let key, let sid):
        try ledger.withMessage(sid, of: key, call) { try ledger.json($0, of: $1, call) }
      case .receipts(let key, let sid): try ledger.receipts(of: sid, in: key, call)
      case .receipt(let key, let sid, let receipt): try ledger.receipt(receipt, of: sid, in: key, call)
      case .webhooks(let key): try ledger.webhooks(of: key, call)
      case .webhook(let key, let sid): try ledger.webhook(sid, of: key, call)
      case .users: try ledger.users(call)
      case .user(let key): try ledger.json(try ledger.existingUser(key, call), call)
      case .userConversations(let user): try ledger.conversations(ofUser: user, call)
      case .userConversation(let user, let key): try ledger.conversation(key, ofUser: user, call)
      case .participantConversations: try ledger.participantConversations(call)
      case .roles: try ledger.roles(call)
      case .role(let sid): ledger.json(try ledger.existingRole(sid, call), call)
      case .services: try ledger.services(call)
      case .service(let sid): ledger.json(try ledger.existingService(sid, call), call)
      case .configuration: try ledger.configuration(call)
      case .webhookConfiguration: try ledger.webhookConfiguration(call)
      case .mediaRecord(let sid): try ledger.media(sid, call)
      case .conversationWithParticipants, .media, .mediaContent, .mediaSet: throw TwilioError.notFound(call.path)
      }
    }
  }

  /// The body, and whether something was made.
  func post(_ call: Call) async throws -> (body: JSONValue, isNew: Bool) {
    switch call.route {
    case .conversations: (try await makeConversation(call), true)
    case .conversation(let key): (try await update(conversation: key, call), false)
    case .conversationWithParticipants: (try await makeConversationWithParticipants(call), true)
    case .participants(let key): (try await addParticipant(to: key, call), true)
    case .participant(let key, let who): (try await update(participant: who, of: key, call), false)
    case .messages(let key): (try await post(to: key, call), true)
    case .message(let key, let sid): (try await update(message: sid, of: key, call), false)
    case .webhooks(let key): (try await write { try $0.makeWebhook(for: key, call) }, true)
    case .webhook(let key, let sid): (try await write { try $0.update(webhook: sid, of: key, call) }, false)
    case .users: (try await write { try $0.makeUser(call) }, true)
    case .user(let key): (try await update(user: key, call), false)
    case .userConversation(let user, let key):
      (try await write { try $0.update(conversation: key, ofUser: user, call) }, false)
    case .roles: (try await write { try $0.makeRole(call) }, true)
    case .role(let sid): (try await write { try $0.update(role: sid, call) }, false)
    case .services: (try await write { try $0.makeService(call) }, true)
    case .configuration: (try await write { try $0.updateConfiguration(call) }, false)
    case .webhookConfiguration: (try await write { try $0.updateWebhookConfiguration(call) }, false)
    case .receipts, .receipt, .userConversations, .participantConversations, .service, .media, .mediaRecord,
      .mediaContent, .mediaSet:
      throw TwilioError.notFound(call.path)
    }
  }

  func delete(_ call: Call) async throws {
    switch call.route {
    case .conversation(let key): try await delete(conversation: key, call)
    case .participant(let key, let who): try await delete(participant: who, of: key, call)
    case .message(let key, let sid): try await delete(message: sid, of: key, call)
    case .webhook(let key, let sid): try await write { try $0.delete(webhook: sid, of: key, call) }
    case .user(let key): try await write { try $0.delete(user: key, call) }
    case .userConversation(let user, let key):
      try await write { try $0.delete(conversation: key, ofUser: user, call) }
    case .role(let sid): try await write { try $0.delete(role: sid, call) }
    case .service(let sid): try await write { try $0.delete(service: sid, call) }
    default: throw TwilioError.notFound(call.path)
    }
  }

  // MARK: Pre-action webhooks

  /// Asks the pre-action webhooks of account and service whether something may happen, and returns what they change.
  /// `fields` is not called when none is to be asked.
  func consent(
    to event: String, _ call: Call, _ fields: @escaping @Sendable (Ledger) throws -> Form
  ) async throws -> [JSONValue] {
    guard call.isAnnounced else { return [] }
    let asked = try await read { ledger in
      var asked: [WebhookDelivery] = []
      for scope in [nil, call.service] {
        guard let settings = try ledger.webhookSettings(of: scope), let url = settings.preURL, !url.isEmpty,
          settings.filters?.contains(event) == true
        else { continue }
        let form = ledger.common(event, .api, service: call.service, try fields(ledger))
        asked.append(
          WebhookDelivery(
            event: event, url: url, method: (settings.method ?? "POST").uppercased(),
            fields: form.fields.flatMap { [$0.name, $0.value] }, token: Crypto.randomHex(bytes: 16)))
      }
      return asked
    }
    var changes: [JSONValue] = []
    for delivery in asked {
      if let change = try await sender.consent(delivery) { changes.append(change) }
    }
    return changes
  }
}
