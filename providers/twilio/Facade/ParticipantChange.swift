import FerryCore

/// What a request sets of a participant, checked.
struct ParticipantChange: Sendable {
  var identity: String?
  var address: String?
  var proxyAddress: String?
  var projectedAddress: String?
  var attributes: String?
  var roleSID: String?
  /// Nil inside takes away what was set.
  var lastReadIndex: Int64??
  var lastReadTimestamp: String?
  var created: Int64?
  var updated: Int64?

  init(_ form: Form) throws {
    identity = try form.name("Identity", code: 50207)
    if let identity, SID.isOne(identity, of: .user) {
      throw TwilioError(400, 50206, "Identity is not valid: it looks like a SID")
    }
    address = try form.name("MessagingBinding.Address", code: 50411)
    proxyAddress = try form.name("MessagingBinding.ProxyAddress", code: 50412)
    projectedAddress = try form.name("MessagingBinding.ProjectedAddress", code: 50408)
    for (value, code) in [(address, 50411), (proxyAddress, 50412), (projectedAddress, 50408)] {
      guard let value, !value.isEmpty, value != "null" else { continue }
      guard Address.isOne(value) else { throw TwilioError(400, code, "Messaging binding address is not valid") }
    }
    attributes = try form.attributes()
    roleSID = form["RoleSid"].flatMap { $0.isEmpty ? nil : $0 }
    lastReadIndex = try form.index("LastReadMessageIndex")
    lastReadTimestamp = form["LastReadTimestamp"].flatMap { $0.isEmpty ? nil : $0 }
    (created, updated) = try form.dates()
  }

  /// A new participant, or what is wrong with it.
  func record(role: String?, now: Int64) throws(TwilioError) -> ParticipantRecord {
    let identity = self.identity.flatMap { $0.isEmpty ? nil : $0 }
    let address = self.address.flatMap { $0.isEmpty ? nil : $0 }
    guard (identity == nil) != (address == nil) else {
      throw TwilioError(400, 50204, "A participant has either an identity or a messaging binding address")
    }
    // With nobody's projected address to write to, a phone needs the number that it writes to.
    guard address == nil || proxyAddress?.isEmpty == false || projectedAddress?.isEmpty == false else {
      throw TwilioError(400, 50204, "A messaging binding needs both address and proxy address")
    }
    var binding: ParticipantRecord.Binding?
    if address != nil || projectedAddress != nil {
      binding = ParticipantRecord.Binding(
        type: Address.type(of: address ?? projectedAddress ?? ""), address: address, proxyAddress: proxyAddress,
        projectedAddress: projectedAddress)
    }
    return ParticipantRecord(
      sid: SID.make(.participant), identity: identity, binding: binding, attributes: attributes ?? "{}",
      roleSID: roleSID ?? role, created: created ?? now, updated: updated ?? created ?? now)
  }

  /// Addresses of phones and other networks.
  enum Address {
    /// `+15551234567`, `whatsapp:+15551234567`, `messenger:123`, `ada@example.org`.
    static func isOne(_ text: String) -> Bool {
      if text.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7f }) { return false }
      let plain = text.split(separator: ":", maxSplits: 1).last ?? ""
      if text.contains(":") || text.contains("@") { return !plain.isEmpty }
      let digits = plain.dropFirst(plain.hasPrefix("+") ? 1 : 0)
      return (3...15).contains(digits.count) && digits.allSatisfy { $0.isASCII && $0.isNumber }
    }

    static func type(of address: String) -> String {
      let prefix = address.split(separator: ":", maxSplits: 1).first.map(String.init) ?? ""
      if address.contains(":"), ["whatsapp", "messenger", "gbm", "rcs", "apple", "email"].contains(prefix) {
        return prefix
      }
      return address.contains("@") ? "email" : "sms"
    }
  }
}
