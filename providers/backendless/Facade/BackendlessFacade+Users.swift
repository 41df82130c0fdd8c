import FerryChat
import FerryCore
import FerryRuntime
import FerryTransport

/// `/users`, and the tokens by which users are known.
extension BackendlessFacade {
  private static let sessions = "sessions"
  private static let identities = "identities"
  private static let passwords = "passwords"

  private struct Session: Codable, Sendable {
    let user: UserReference
    var used: Timestamp
  }

  /// What is kept of a password.
  private struct Password: Codable, Sendable {
    let salt: String
    let key: String
    let rounds: Int
  }

  func users(_ context: RequestContext) async throws(Fault) -> HTTPResponse {
    let path = context.path.filter { !$0.isEmpty }
    switch (context.request.method, path.first, path.count) {
    case ("POST", "register", 1): return try await register(context)
    case ("POST", "register", 2) where path[1] == "guest": return try await registerGuest(context)
    case ("POST", "login", 1): return try await login(context)
    case ("GET", "logout", 1): return try await logout(context)
    case ("GET", "isvalidusertoken", 2):
      let user = try? await self.user(token: path[1])
      return .value(.bool((user ?? nil) != nil))
    case ("GET", .some(let id), 1):
      let row = try await read { try $0.value(Row.self, of: id, in: TableWriter.collection(TableWriter.users)) }
      guard let row else { throw .noEntity(id) }
      return .value(row.shown(as: TableWriter.users, files: context.files))
    case ("PUT", .some(let id), 1):
      return try await updateUser(id, try await context.object(), context)
    default: throw .nothingHere
    }
  }

  // MARK: Registering

  private func register(_ context: RequestContext) async throws(Fault) -> HTTPResponse {
    let body = try await context.object()
    guard let email = body["email"]?.string, let identity = Identity(email), let password = body["password"]?.string,
      (1...1024).contains(password.utf8.count)
    else { throw .noIdentity }
    var columns = try Row.writable(body)
    columns["password"] = nil
    columns["userStatus"] = "ENABLED"
    let kept = await Self.keep(password, rounds: settings.passwordRounds)
    let values = columns
    let row = try await change { writer in
      guard try writer.transaction.document(identity.text, in: Self.identities) == nil else {
        throw Fault.identityTaken(email)
      }
      let id = GUID.new()
      let row = try writer.create(values, as: id, in: TableWriter.users, owner: id)
      try writer.transaction.put(id, as: identity.text, in: Self.identities)
      try writer.transaction.put(kept, as: id, in: Self.passwords)
      return row
    }
    return .value(row.shown(as: TableWriter.users, files: context.files))
  }

  private func registerGuest(_ context: RequestContext) async throws(Fault) -> HTTPResponse {
    let columns = try Row.writable(try await context.object())
    let token = UserToken.new()
    let row = try await change { writer in
      let id = GUID.new()
      var values = columns
      values["password"] = nil
      values["userStatus"] = "GUEST"
      let row = try writer.create(values, as: id, in: TableWriter.users, owner: id)
      try Self.open(token, for: row, writer.transaction)
      return row
    }
    return .value(Self.shown(row, token, context))
  }

  func updateUser(
    _ id: String, _ body: [String: JSONValue], _ context: RequestContext
  ) async throws(Fault) -> HTTPResponse {
    guard context.user?.id == id else { throw .notYours }
    var columns = try Row.writable(body)
    columns["userStatus"] = nil
    // The identity is what one logs in by.
    columns["email"] = nil
    let password = columns.removeValue(forKey: "password")?.string
    let kept: Password? =
      if let password, (1...1024).contains(password.utf8.count) {
        await Self.keep(password, rounds: settings.passwordRounds)
      } else { nil }
    let values = columns
    let row = try await change { writer in
      let old = try writer.existingRow(id, in: TableWriter.users)
      if let kept { try writer.transaction.put(kept, as: id, in: Self.passwords) }
      return try writer.update(old, with: values, in: TableWriter.users)
    }
    return .value(row.shown(as: TableWriter.users, files: context.files))
  }

  // MARK: Logging in and out

  private func login(_ context: RequestContext) async throws(Fault) -> HTTPResponse {
    let body = try await context.object()
    guard let name = body["login"]?.text, let password = body["password"]?.string, password.utf8.count <= 1024 else {
      throw .badLogin
    }
    let known = try await read { transaction -> (id: String, password: Password)? in
      guard let identity = Identity(name),
        let id = try transaction.value(String.self, of: identity.text, in: Self.identities),
        let password = try transaction.value(Password.self, of: id, in: Self.passwords)
      else { return nil }
      return (id, password)
    }
    // A user who is not there takes as long as a wrong password: nobody learns who is.
    guard await Self.isRight(password, known?.password, rounds: settings.passwordRounds), let known else {
      throw .badLogin
    }
    let token = UserToken.new()
    let row = try await change { writer in
      let row = try writer.existingRow(known.id, in: TableWriter.users)
      try Self.open(token, for: row, writer.transaction)
      return row
    }
    return .value(Self.shown(row, token, context))
  }

  private func logout(_ context: RequestContext) async throws(Fault) -> HTTPResponse {
    guard let token = context.token else { throw .badToken }
    try await change { _ = try $0.transaction.remove(UserToken.kept(token), from: Self.sessions) }
    return .nothing
  }

  private static func shown(_ row: Row, _ token: String, _ context: RequestContext) -> JSONValue {
    var shown = row.shown(as: TableWriter.users, files: context.files).object ?? [:]
    shown["user-token"] = .string(token)
    return .object(shown)
  }

  private static func open(_ token: String, for row: Row, _ transaction: ChatTransaction) throws {
    let name = row.values["name"]?.string ?? row.values["email"]?.string ?? row.id
    let session = Session(user: UserReference(id: row.id, name: name), used: transaction.now)
    try transaction.put(session, as: UserToken.kept(token), in: sessions)
  }

  // MARK: Tokens

  /// Whose token it is; nil for no token. Throws when it is not good any more.
  func user(token: String?) async throws(Fault) -> UserReference? {
    guard let token else { return nil }
    let kept = UserToken.kept(token)
    let found = try await read { transaction in
      try transaction.value(Session.self, of: kept, in: Self.sessions).map { ($0, transaction.now) }
    }
    guard let (session, now) = found, now < session.used.advanced(by: settings.sessionTimeout) else { throw .badToken }
    // Not at every request: it would cost each of them a write.
    if now.milliseconds - session.used.milliseconds > min(60_000, settings.sessionTimeout.milliseconds / 4) {
      try await change { writer in
        guard var session = try writer.transaction.value(Session.self, of: kept, in: Self.sessions) else { return }
        session.used = writer.transaction.now
        try writer.transaction.put(session, as: kept, in: Self.sessions)
      }
    }
    return session.user
  }

  /// Forgets sessions that have ended, a page at a time.
  func pruneSessions(now: Timestamp) async {
    let limit = now.advanced(by: .zero - settings.sessionTimeout)
    _ = try? await chat.write(isOfObserver: true) { transaction in
      for document in try transaction.documents(in: Self.sessions, DocumentQuery(limit: 1000))
      where try document.value(Session.self).used < limit {
        try transaction.remove(document.id, from: Self.sessions)
      }
    }
    await prunePolls(now: now)
  }

  // MARK: Passwords

  // Both take their time, and must not take it on the thread that serves.

  @concurrent
  private static func keep(_ password: String, rounds: Int) async -> Password {
    let salt = Crypto.randomBytes(16)
    let key = Crypto.passwordKey(.sha256, password: password, salt: salt, rounds: rounds)
    return Password(salt: Crypto.hex(salt), key: Crypto.hex(key), rounds: rounds)
  }

  @concurrent
  private static func isRight(_ password: String, _ kept: Password?, rounds: Int) async -> Bool {
    let salt = kept.flatMap { HexText.bytes($0.salt) } ?? [UInt8](repeating: 0, count: 16)
    let key = Crypto.passwordKey(.sha256, password: password, salt: salt, rounds: kept?.rounds ?? rounds)
    return Crypto.areEqual(Crypto.hex(key), kept?.key ?? "")
  }
}

/// By what a user logs in: letters of either case are one.
struct Identity {
  let text: String

  init?(_ name: String) {
    guard (1...256).contains(name.utf8.count), !name.utf8.contains(where: { $0 < 0x20 }) else { return nil }
    text = name.lowercased()
  }
}

enum UserToken {
  static func new() -> String { GUID.new() }

  /// The libraries write several things for "nobody".
  static func given(_ text: String?) -> String? {
    guard let text, !["", "null", "undefined"].contains(text), text.utf8.count <= 256 else { return nil }
    return text
  }

  /// Tokens are kept as digests: who reads the file learns none.
  static func kept(_ token: String) -> String { Crypto.hex(Crypto.digest(.sha256, of: token.utf8)) }
}

enum HexText {
  static func bytes(_ text: String) -> [UInt8]? {
    let digits = text.utf8.compactMap { Character(UnicodeScalar($0)).hexDigitValue.map { UInt8($0) } }
    guard digits.count == text.utf8.count, digits.count.isMultiple(of: 2) else { return nil }
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }
}
