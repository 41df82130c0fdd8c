import FerryChat
import FerryCore

extension Ledger {
  func existingRole(_ sid: String, _ call: Call) throws -> RoleRecord {
    guard let role: RoleRecord = try chat.value(of: Self.sid(sid), in: "roles/\(call.service)") else {
      throw TwilioError.notFound(call.path)
    }
    return role
  }

  func roles(_ call: Call) throws -> JSONValue {
    try call.list("roles/\(call.service)", key: "roles", maximum: 50, self) { json(try $0.value() as RoleRecord, call) }
  }

  func makeRole(_ call: Call) throws -> JSONValue {
    guard let name = try call.form.name("FriendlyName", limit: Limits.roleName), !name.isEmpty else {
      throw TwilioError.invalid("FriendlyName", "it is required")
    }
    guard let type = call.form["Type"]?.lowercased(), ["conversation", "service"].contains(type) else {
      throw TwilioError.invalid("Type", "it must be conversation or service")
    }
    let permissions = try permissions(call)
    let role = RoleRecord(
      sid: SID.make(.role), friendlyName: name, type: type, permissions: permissions, created: now, updated: now)
    try chat.put(role, as: role.sid, in: "roles/\(call.service)")
    return json(role, call)
  }

  func update(role sid: String, _ call: Call) throws -> JSONValue {
    var role = try existingRole(sid, call)
    role.permissions = try permissions(call)
    role.updated = now
    try chat.put(role, as: role.sid, in: "roles/\(call.service)")
    return json(role, call)
  }

  private func permissions(_ call: Call) throws(TwilioError) -> [String] {
    let permissions = call.form.all("Permission")
    guard !permissions.isEmpty else { throw .invalid("Permission", "at least one is required") }
    return permissions
  }

  func delete(role sid: String, _ call: Call) throws {
    let role = try existingRole(sid, call)
    let standard = try configuration(of: call.service)
    guard ![standard.creatorRole, standard.conversationRole, standard.serviceRole].contains(role.sid) else {
      throw TwilioError.invalid("Sid", "this role is a default of the service")
    }
    try chat.remove(role.sid, from: "roles/\(call.service)")
  }
}
