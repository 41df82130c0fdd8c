import FerryCore
import FerryRuntime
import FerryTransport

/// The HTTP API.
extension PusherFacade {
  /// Ten events of the largest size, each character escaped, fit in.
  private static let bodyBytes = 1 << 20

  func answer(_ request: HTTPRequest, path: [String], appID: String) async throws -> HTTPResponse {
    guard appID == settings.appID else { throw Refusal(404, "Unknown application: there is no app \"\(appID)\" here") }
    let body = try await self.body(of: request)
    let unescaped = "/" + request.segments.joined(separator: "/")
    try RequestCheck(appKey: appKey).verify(
      method: request.method, paths: request.path == unescaped ? [unescaped] : [request.path, unescaped],
      parameters: request.queryItems, body: body, now: clock.now())

    switch (request.method, path.first, path.count) {
    case ("POST", "events", 1): return try await trigger(try PublishedEvent.one(from: body))
    case ("POST", "batch_events", 1): return try await trigger(batch: try PublishedEvent.batch(from: body))
    case ("GET", "channels", 1): return try channels(request)
    case ("GET", "channels", 2): return try await channel(request, try ChannelName.checked(path[1]))
    case ("GET", "channels", 3) where path[2] == "users": return try users(try ChannelName.checked(path[1]))
    default: throw Refusal(404, "Not found: the API has no \(request.method) \(request.path)")
    }
  }

  private func body(of request: HTTPRequest) async throws -> [UInt8] {
    do {
      return try await request.body.collect(upTo: Self.bodyBytes)
    } catch {
      guard error.code == .tooLarge else { throw error }
      throw Refusal(413, "The body of this request exceeds the allowed maximum (\(Self.bodyBytes) bytes)")
    }
  }

  // MARK: Publishing

  private func trigger(_ event: PublishedEvent) async throws(FerryError) -> HTTPResponse {
    try await publish([event])
    guard !event.info.isEmpty else { return .json([String: JSONValue]()) }
    let channels = event.channels.map { ($0.text, state(of: $0, event.info)) }
    return .json(["channels": JSONValue.object(Dictionary(channels, uniquingKeysWith: { first, _ in first }))])
  }

  private func trigger(batch events: [PublishedEvent]) async throws(FerryError) -> HTTPResponse {
    try await publish(events)
    guard events.contains(where: { !$0.info.isEmpty }) else { return .json([String: JSONValue]()) }
    let states = events.map { event in event.channels.first.map { state(of: $0, event.info) } ?? [:] }
    return .json(["batch": JSONValue.array(states)])
  }

  /// Keeps what cache channels keep, then delivers everything in one go, in order.
  private func publish(_ events: [PublishedEvent]) async throws(FerryError) {
    let frames = events.map { event in
      event.channels.map { (channel: $0, text: FrameText.event(event.name, channel: $0.text, data: event.data)) }
    }
    var kept: [String: String] = [:]
    for frame in frames.joined() where frame.channel.isCache { kept[frame.channel.text] = frame.text }
    for (channel, frame) in kept { try await store.keep(frame, for: channel) }

    let now = clock.now()
    let deliveries = hub.withLock { hub in
      for (channel, frame) in kept { hub.remember(Hub.Cached(frame: frame, time: now), for: channel) }
      var deliveries = 0
      for (event, frames) in zip(events, frames) {
        let except = hub.number(of: event.exceptSocketID)
        for frame in frames { deliveries += hub.deliver(frame.text, to: frame.channel.text, except: except) }
      }
      return deliveries
    }
    metrics?.add(Double(events.count), to: "ferry_pusher_facade_events_total")
    metrics?.add(Double(deliveries), to: "ferry_pusher_facade_deliveries_total")
  }

  /// The attributes that apply to the channel.
  private func state(of channel: ChannelName, _ attributes: Set<ChannelAttribute>) -> JSONValue {
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

  // MARK: Asking

  private func channels(_ request: HTTPRequest) throws(Refusal) -> HTTPResponse {
    let prefix = request.query("filter_by_prefix") ?? ""
    let attributes = try ChannelAttribute.parse(request.query("info"))
    if attributes.contains(.userCount), !prefix.hasPrefix("presence-") {
      throw Refusal(400, "Invalid info attribute: user_count needs filter_by_prefix to begin with presence-")
    }
    let names = hub.withLock { hub in hub.rooms.keys.filter { $0.hasPrefix(prefix) } }
    var channels: [String: JSONValue] = [:]
    for name in names {
      if let channel = ChannelName(name) { channels[name] = state(of: channel, attributes) }
    }
    return .json(["channels": channels])
  }

  private func channel(_ request: HTTPRequest, _ channel: ChannelName) async throws -> HTTPResponse {
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

  private func users(_ channel: ChannelName) throws(Refusal) -> HTTPResponse {
    guard channel.isPresence else { throw Refusal(400, "Invalid channel: only presence channels have users") }
    let ids = hub.withLock { $0.rooms[channel.text]?.presence.ids ?? [] }
    return .json(["users": ids.map { ["id": $0] }])
  }

  // MARK: Cache channels

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
