import FerryCore
import FerryRuntime
import FerryTransport

/// The HTTP API.
extension PusherFacade {
  /// Ten events of the largest size, each character escaped, fit in.
  private static let bodyBytes = 1 << 20

  /// `path` is what follows the app, behind `prefix` parts that the client does not sign.
  func answer(
    _ request: HTTPRequest, path: [String], appID: String, prefix: Int
  ) async throws -> HTTPResponse {
    guard appID == settings.appID else { throw Refusal(404, "Unknown application: there is no app \"\(appID)\" here") }
    let body = try await self.body(of: request)
    try RequestCheck(appKey: appKey).verify(
      method: request.method, paths: Self.signedPaths(request, prefix: prefix),
      parameters: request.queryItems, body: body, now: clock.now())

    switch (request.method, path.first, path.count) {
    case ("POST", "events", 1): return try await trigger(try PublishedEvent.one(from: body))
    case ("POST", "batch_events", 1): return try await trigger(batch: try PublishedEvent.batch(from: body))
    case ("GET", "channels", 1): return try channels(request)
    case ("GET", "channels", 2): return try await channel(request, try ChannelName.checked(path[1]))
    case ("GET", "channels", 3) where path[2] == "users": return try users(request, try ChannelName.checked(path[1]))
    case ("POST", "channels", 3) where path[2] == "events":
      return try await triggerOldStyle(request, path[1], body)
    case ("POST", "users", 3) where path[2] == "terminate_connections": return try terminate(path[1])
    case ("GET", "connections", 1): return .json(["connections": hub.withLock { $0.connections.count }])
    default: throw Refusal(404, "Not found: the API has no \(request.method) \(request.path)")
    }
  }

  func body(of request: HTTPRequest) async throws -> [UInt8] {
    do {
      return try await request.body.collect(upTo: Self.bodyBytes)
    } catch {
      guard error.code == .tooLarge else { throw error }
      throw Refusal(413, "The body of this request exceeds the allowed maximum (\(Self.bodyBytes) bytes)")
    }
  }

  /// The forms in which the client may have signed its path: as it arrived or unescaped, without the prefix or, when
  /// something on the way added none, with it.
  private static func signedPaths(_ request: HTTPRequest, prefix: Int) -> [String] {
    let raw = request.path.split(separator: "/").dropFirst(prefix)
    var paths = ["/" + raw.joined(separator: "/")]
    for path in ["/" + raw.map { PercentEncoding.decode($0) }.joined(separator: "/"), request.path]
    where !paths.contains(path) { paths.append(path) }
    return paths
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

  /// One channel in the path, name and exception in the query, the data as they are.
  private func triggerOldStyle(
    _ request: HTTPRequest, _ channel: String, _ body: [UInt8]
  ) async throws -> HTTPResponse {
    try await publish([
      try PublishedEvent(
        name: request.query("name"), channels: [channel], data: String(decoding: body, as: UTF8.self),
        exceptSocketID: request.query("socket_id"))
    ])
    return .json([String: JSONValue](), status: 202)
  }

  /// Keeps what cache channels keep, then delivers everything in one go, in order. The view is not told what it
  /// publishes itself.
  func publish(_ events: [PublishedEvent], isOfView: Bool = false) async throws(FerryError) {
    let frames = events.map { event in
      event.channels.map { (channel: $0, text: FrameText.event(event.name, channel: $0.text, data: event.data)) }
    }
    var kept: [String: String] = [:]
    for frame in frames.joined() where frame.channel.isCache { kept[frame.channel.text] = frame.text }
    for (channel, frame) in kept { try await store.keep(frame, for: channel) }

    let now = clock.now()
    let echoes = echoesWrites
    let deliveries = change { hub in
      for (channel, frame) in kept { hub.remember(Hub.Cached(frame: frame, time: now), for: channel) }
      if !kept.isEmpty { hub.notices.planPruning(now: now) }
      var deliveries = 0
      for (event, frames) in zip(events, frames) {
        let except = echoes ? nil : hub.number(of: event.exceptSocketID)
        for frame in frames { deliveries += hub.deliver(frame.text, to: frame.channel.text, except: except) }
      }
      return deliveries
    }
    if let view, !isOfView {
      for event in events {
        for channel in event.channels { view.heard(event.name, on: channel, event.data) }
      }
    }
    metrics?.add(Double(events.count), to: "ferry_pusher_facade_events_total")
    metrics?.add(Double(deliveries), to: "ferry_pusher_facade_deliveries_total")
  }

  /// Lets go every socket on which the user has signed in.
  private func terminate(_ userID: String) throws(Refusal) -> HTTPResponse {
    guard ChannelName.isUserID(userID) else {
      throw Refusal(400, "Invalid user id: it must be letters, digits and signs _-=@,.;")
    }
    for socket in hub.withLock({ $0.sockets(of: userID) }) {
      Self.end(socket, .unauthorized, "Connection terminated by the application")
    }
    return .json([String: JSONValue]())
  }
}
