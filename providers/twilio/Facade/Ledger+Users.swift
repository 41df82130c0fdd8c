import FerryChat
import FerryCore

extension Ledger {
  func existingUser(_ key: String, _ call: Call) throws -> UserRecord {
    guard let user = try user(key, in: call.service) else { throw TwilioError.noUser }
    return user
  }

  func users(_ call: Call) throws -> JSONValue {
    try call.list("users/\(call.service)", key: "users", maximum: 50, self) { document in
      try json(try document.value() as UserRecord, call)
    }
  }

  func makeUser(_ call: Call) throws -> JSONValue {
    guard let identity = try call.form.name("Identity", code: 50207), !identity.isEmpty else {
      throw TwilioError.invalid("Identity", "it is required")
    }
    guard !SID.isOne(identity, of: .user) else {
      throw TwilioError(400, 50206, "Identity is not valid: it looks like a SID")
    }
    guard try user(identity, in: call.service) == nil else { throw TwilioError(409, 50201, "User already exists") }
    var user = try user(makingIdentity: identity, in: call.service).user
    try set(&user, call)
    user.updated = user.created
    try keep(user, in: call.service)
    if call.isAnnounced { try announceNew(user, in: call.service, .api) }
    return try json(user, call)
  }

  private func set(_ user: inout UserRecord, _ call: Call) throws {
    let role = call.form["RoleSid"].flatMap { $0.isEmpty ? nil : $0 }
    try checkRole(role, in: call.service)
    if let name = try call.form.name("FriendlyName") { user.friendlyName = name }
    if let attributes = try call.form.attributes() { user.attributes = attributes }
    if let role { user.roleSID = Self.sid(role) }
    user.updated = now
  }

  func update(user key: String, _ call: Call) throws -> UserRecord {
    var user = try existingUser(key, call)
    try set(&user, call)
    try keep(user, in: call.service)
    if call.isAnnounced {
      try announce("onUserUpdated", .api, service: call.service) { fields(user, of: call.service, in: "onUserUpdated") }
    }
    return user
  }

  func announceNew(_ user: UserRecord, in service: String, _ origin: Origin) throws {
    try announce("onUserAdded", origin, service: service) { fields(user, of: service, in: "onUserAdded") }
  }

  /// Out of every conversation too.
  func delete(user key: String, _ call: Call) throws {
    let user = try existingUser(key, call)
    for document in try allDocuments(in: Self.conversations(of: user.identity, call.service)) {
      guard let conversation = try conversation(document.id, in: call.service),
        let participant = try participant(user.identity, of: conversation.sid)
      else { continue }
      try remove(participant, of: conversation, call.isAnnounced ? .api : nil)
    }
    try chat.remove(user.identity, from: "identities/\(call.service)")
    try chat.remove(user.sid, from: "users/\(call.service)")
  }
}

extension TwilioFacade {
  func update(user key: String, _ call: Call) async throws -> JSONValue {
    _ = try await consent(to: "onUserUpdate", call) { ledger in
      ledger.fields(try ledger.existingUser(key, call), of: call.service, in: "onUserUpdate")
    }
    return try await write { ledger in try ledger.json(try ledger.update(user: key, call), call) }
  }
}
