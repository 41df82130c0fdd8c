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
