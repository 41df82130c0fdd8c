import FerryCore

/// What webhooks tell. Source: the table of the Channels documentation, one case a name.
package enum WebhookEvent: Hashable, Sendable {
  case channelOccupied(String)
  case channelVacated(String)
  case memberAdded(String, user: String)
  case memberRemoved(String, user: String)
  case clientEvent(String, event: String, data: String, socketID: String, user: String?)
  case cacheMiss(String)
  case subscriptionCount(String, Int)

  package enum Kind: String, Sendable, CaseIterable {
    case channelOccupied = "channel_occupied"
    case channelVacated = "channel_vacated"
    case memberAdded = "member_added"
    case memberRemoved = "member_removed"
    case clientEvent = "client_event"
    case cacheMiss = "cache_miss"
    case subscriptionCount = "subscription_count"
  }

  package var kind: Kind {
    switch self {
    case .channelOccupied: .channelOccupied
    case .channelVacated: .channelVacated
    case .memberAdded: .memberAdded
    case .memberRemoved: .memberRemoved
    case .clientEvent: .clientEvent
    case .cacheMiss: .cacheMiss
    case .subscriptionCount: .subscriptionCount
    }
  }

  var json: JSONValue {
    var members: [String: JSONValue] = ["name": .string(kind.rawValue)]
    switch self {
    case .channelOccupied(let channel), .channelVacated(let channel), .cacheMiss(let channel):
      members["channel"] = .string(channel)
    case .memberAdded(let channel, let user), .memberRemoved(let channel, let user):
      members["channel"] = .string(channel)
      members["user_id"] = .string(user)
    case .clientEvent(let channel, let event, let data, let socketID, let user):
      members["channel"] = .string(channel)
      members["event"] = .string(event)
      members["data"] = .string(data)
      members["socket_id"] = .string(socketID)
      members["user_id"] = user.map(JSONValue.string)
    case .subscriptionCount(let channel, let count):
      members["channel"] = .string(channel)
      members["subscription_count"] = .integer(Int64(count))
    }
    return .object(members)
  }

  /// A request's body: whoever receives it checks the time, in milliseconds, against their own.
  static func body(of events: [WebhookEvent], at time: Timestamp) -> [UInt8] {
    JSONText.bytes(
      of: JSONValue.object(["time_ms": .integer(time.milliseconds), "events": .array(events.map(\.json))]))
  }
}
