import FerryCore
import FerryRuntime
import FerryTransport

/// What the HTTP API says about channels.
extension PusherFacade {
  /// The attributes that apply to the channel.
  func state(of channel: ChannelName, _ attributes: Set<ChannelAttribute>) -> JSONValue {
    let room = hub.withLock { $0.rooms[channel.text] }
    var state: [String: JSONValue] = [:]
    if attributes.contains(.userCount), channel.isPresence {
      state["user_count"] = .integer(Int64(room?.presence.count ?? 0))
    }
    if attributes.contains(.subscriptionCount) {
      state["subscription_count"] = .integer(Int64(room?.subscribers.count ?? 0))
    }
    return .object(state)
  }

  func channels(_ request: HTTPRequest) throws(Refusal) -> HTTPResponse {
    let prefix = request.query("filter_by_prefix") ?? ""
    let attributes = try ChannelAttribute.parse(request.query("info"))
    if attributes.contains(.userCount), !prefix.hasPrefix("presence-") {
      throw Refusal(400, "Invalid info attribute: user_count needs filter_by_prefix to begin with presence-")
    }
    let names = hub.withLock { hub in hub.rooms.keys.filter { $0.hasPrefix(prefix) } }
    var channels: [String: JSONValue] = [:]
    for name in names {
      // Users' own channels are an affair of the service.
      if let channel = ChannelName(name) { channels[name] = state(of: channel, attributes) }
    }
    return .json(["channels": channels])
  }

  func channel(_ request: HTTPRequest, _ channel: ChannelName) async throws -> HTTPResponse {
    let attributes = try ChannelAttribute.parse(request.query("info"))
    if attributes.contains(.userCount), !channel.isPresence {
      throw Refusal(400, "Invalid info attribute: user_count is for presence channels")
    }
    if attributes.contains(.cache), !channel.isCache {
      throw Refusal(400, "Invalid info attribute: cache is for cache channels")
    }
    var state = state(of: channel, attributes).object ?? [:]
    state["occupied"] = .bool(hub.withLock { $0.rooms[channel.text] != nil })
    if attributes.contains(.cache), let cached = try await cached(channel) {
      let now = clock.now()
      state["cache"] = [
        "data": .string(Frame(text: cached.frame)?.data?.string ?? ""),
        "ttl": .integer(Int64(Limits.cacheSeconds - cached.age(at: now))),
      ]
    }
    return .json(state)
  }

  func users(_ request: HTTPRequest, _ channel: ChannelName) throws(Refusal) -> HTTPResponse {
    guard channel.isPresence else { throw Refusal(400, "Invalid channel: only presence channels have users") }
    let users = hub.withLock { $0.rooms[channel.text]?.presence.users ?? [] }
    let hasInfo = request.query("with_user_info") == "1"
    let list = users.map { user in
      var members: [String: JSONValue] = ["id": .string(user.id)]
      if hasInfo { members["user_info"] = JSONText.decode(JSONValue.self, from: user.info) ?? [:] }
      return JSONValue.object(members)
    }
    return .json(["users": list])
  }

  /// The event that the channel keeps; the hub knows the store's answer from then on.
  @discardableResult
  func cached(_ channel: ChannelName) async throws(FerryError) -> Hub.Cached? {
    let name = channel.text
    if !hub.withLock({ $0.knowsCache(of: name) }) {
      let kept = try await store.kept(name)
      let now = clock.now()
      let cached = kept.map {
        Hub.Cached(frame: $0.event, time: now.advanced(by: .milliseconds(Int64($0.age * -1000))))
      }
      hub.withLock { hub in
        // An event published meanwhile is newer.
        if !hub.knowsCache(of: name) { hub.remember(cached, for: name) }
      }
    }
    let now = clock.now()
    return hub.withLock { $0.cached(name, now: now) }
  }
}
