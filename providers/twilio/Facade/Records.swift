import FerryCore

/// What the facade keeps as documents beside the chat. Times are milliseconds since 1970.

struct ServiceRecord: Codable, Sendable {
  var sid: String
  var friendlyName: String
  var created: Int64
  var updated: Int64
}

/// A conversation; its messages and members are those of a room.
struct ConversationRecord: Codable, Sendable {
  enum State: String, Codable, Sendable { case active, inactive, closed }

  var sid: String
  var service: String
  /// Chosen once: the unique name it was made with, or the SID.
  var room: String
  var friendlyName: String?
  var uniqueName: String?
  var attributes = "{}"
  var state = State.active
  var messagingService: String?
  var timers = Timers()
  var emailAddress: String?
  var emailName: String?
  var created: Int64
  var updated: Int64
  /// How many participants are not on the chat.
  var phones = 0

  struct Timers: Codable, Sendable, Equatable {
    /// Milliseconds without activity after which the state changes.
    var inactive: Int64?
    var closed: Int64?
    /// The last activity, kept only while there are timers.
    var activity: Int64?

    var isEmpty: Bool { inactive == nil && closed == nil }
  }
}

struct ParticipantRecord: Codable, Sendable {
  var sid: String
  var identity: String?
  var binding: Binding?
  var attributes = "{}"
  var roleSID: String?
  var lastReadIndex: Int64?
  var lastReadTimestamp: String?
  var created: Int64
  var updated: Int64

  struct Binding: Codable, Sendable {
    var type: String
    var address: String?
    var proxyAddress: String?
    var projectedAddress: String?
  }
}

/// What a user has set for a conversation that they are in.
struct UserConversationRecord: Codable, Sendable {
  var participant: String
  var isMuted = false
}

struct UserRecord: Codable, Sendable {
  var sid: String
  var identity: String
  var friendlyName: String?
  var attributes = "{}"
  var roleSID: String?
  var created: Int64
  var updated: Int64
}

struct RoleRecord: Codable, Sendable {
  var sid: String
  var friendlyName: String
  /// `conversation` or `service`.
  var type: String
  var permissions: [String]
  var created: Int64
  var updated: Int64
}

/// A webhook of one conversation.
struct ScopedWebhookRecord: Codable, Sendable {
  var sid: String
  /// `webhook`, `trigger` or `studio`.
  var target: String
  var url: String?
  var method: String?
  var filters: [String]?
  var triggers: [String]?
  var flowSID: String?
  var replayAfter: Int64?
  var created: Int64
  var updated: Int64
}

/// The webhooks of the account or of a service.
struct WebhookSettings: Codable, Sendable {
  var method: String?
  var filters: [String]?
  var preURL: String?
  var postURL: String?
  var target: String?
}

struct AccountConfiguration: Codable, Sendable {
  var service: String
  var messagingService: String?
  /// ISO 8601 durations.
  var inactiveTimer: String?
  var closedTimer: String?
}

struct ServiceConfiguration: Codable, Sendable {
  var creatorRole: String?
  var conversationRole: String?
  var serviceRole: String?
  var reachability = false
}

struct ReceiptRecord: Codable, Sendable {
  var sid: String
  var participant: String
  var channelMessage: String
  var status: String
  var created: Int64
  var updated: Int64
}

struct MediaRecord: Codable, Sendable {
  var sid: String
  var service: String
  var sha256: String
  var size: Int64
  var contentType: String
  var filename: String?
  var author: String
  var category: String
  var created: Int64
  var updated: Int64
  var conversation: String?
  var message: String?
}

/// A webhook on its way.
struct WebhookDelivery: Codable, Sendable {
  var event: String
  var url: String
  /// `GET` or `POST`.
  var method: String
  /// Names and values in turn.
  var fields: [String]
  /// The same on every attempt, so that the receiver knows a repetition.
  var token: String
}
