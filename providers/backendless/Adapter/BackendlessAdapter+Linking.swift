import FerryConfig
import FerryCore
import FerryRuntime
import FerryTransport

extension BackendlessAdapter {
  /// Connects, in whichever version of the protocol the service speaks.
  func openLink(
    listening channels: [ChannelID], roles: Set<RealtimeSession.Role>? = nil
  ) async throws(FerryError) -> RealtimeLink {
    let place = try await api.realtimePlace()
    let token = try await api.token()
    var query = "apiKey=\(PercentEncoding.encode(place.key))&clientId=\(PercentEncoding.encode(identity.clientID))"
    if let token { query += "&userToken=\(PercentEncoding.encode(token))" }
    let path = "/\(BackendlessAPI.segment(place.appID))/"
    let engine = try await openEngine(EngineLink.Place(origin: place.url, path: path, query: query))
    var subscriptions = subscriptions(to: channels)
    if let roles { subscriptions = subscriptions.filter { roles.contains($0.role) } }
    let session = RealtimeSession(appID: place.appID, query: query, subscriptions: subscriptions)
    return RealtimeLink(engine: engine, session: session, identity: identity, clock: clock)
  }

  private func openEngine(_ place: EngineLink.Place) async throws(FerryError) -> EngineLink {
    var versions: [EngineVersion]
    switch settings.engine {
    case .four: versions = [.four]
    case .three: versions = [.three]
    case .auto:
      let last = version.withLock { $0 }
      versions = [last, last == .four ? .three : .four]
    }
    var failure = FerryError(
      .unsupported, "The real-time service speaks neither version of its protocol that Ferry knows. Check engine.",
      retry: .after(.seconds(30)))
    while !versions.isEmpty {
      let wanted = versions.removeFirst()
      switch await attempt(place, wanted) {
      case .success(let link):
        version.withLock { $0 = wanted }
        return link
      case .failure(.other): continue
      case .failure(.failed(let error)):
        // Over a WebSocket alone, a refusal does not say what for.
        guard settings.transport == .websocket, error.code == .badRequest, !versions.isEmpty else { throw error }
        failure = error
      }
    }
    throw failure
  }

  private enum Refusal: Error {
    case other
    case failed(FerryError)
  }

  private func attempt(_ place: EngineLink.Place, _ version: EngineVersion) async -> Result<EngineLink, Refusal> {
    do {
      let link = try await EngineLink.open(
        place, version: version, transport: settings.transport, client: client, clock: clock)
      return .success(link)
    } catch is EngineLink.OtherVersion {
      return .failure(.other)
    } catch { return .failure(.failed(.wrap(error))) }
  }

  // MARK: Subscriptions

  /// One of each kind for a channel, with ids that outlive the connection.
  func subscriptions(to channels: [ChannelID]) -> [RealtimeSession.Subscription] {
    var all: [RealtimeSession.Subscription] = []
    func add(_ role: RealtimeSession.Role, _ channel: ChannelID?, _ name: String, _ options: JSONValue) {
      let id = identity.id(for: "\(role):\(channel?.rawValue ?? "")")
      all.append(RealtimeSession.Subscription(id: id, role: role, channel: channel, name: name, options: options))
    }
    for channel in channels {
      let options: JSONValue = ["channel": .string(channel.rawValue)]
      add(.join, channel, "PUB_SUB_CONNECT", options)
      add(
        .messages, channel, "PUB_SUB_MESSAGES",
        settings.selector.map { ["channel": .string(channel.rawValue), "selector": .string($0)] } ?? options)
      add(.commands, channel, "PUB_SUB_COMMANDS", options)
      add(.users, channel, "PUB_SUB_USERS", options)
      guard let table = settings.table, let condition = try? condition(channel) else { continue }
      for change in [RealtimeSession.RowChange.created, .updated, .deleted, .upserted] {
        add(.rows(change), channel, "OBJECTS_CHANGES", Self.changes(change.rawValue, of: table, where: condition))
      }
    }
    guard let table = settings.table, !channels.isEmpty else { return all }
    if let column = settings.fields.channel {
      for change in [RealtimeSession.RowChange.updated, .deleted] {
        add(
          .looseRows(change), nil, "OBJECTS_CHANGES",
          Self.changes(change.rawValue, of: table, where: "\(column) is null"))
      }
    }
    for change in ["bulk-created", "bulk-updated", "bulk-deleted", "bulk-upserted"] {
      let id = identity.id(for: change)
      all.append(
        RealtimeSession.Subscription(
          id: id, role: .bulk, channel: nil, name: "OBJECTS_CHANGES",
          options: Self.changes(change, of: table, where: "")))
    }
    return all
  }

  private static func changes(_ event: String, of table: String, where condition: String) -> JSONValue {
    var options: [String: JSONValue] = ["event": .string(event), "tableName": .string(table)]
    if !condition.isEmpty { options["whereClause"] = .string(condition) }
    return .object(options)
  }

  // MARK: Without a run

  /// Uses the connection of the run, or one made for this.
  func withLink<Value: Sendable>(
    listening channels: [ChannelID] = [], roles: Set<RealtimeSession.Role>? = nil,
    hearing handle: @escaping @Sendable (RealtimeSession.Action) async -> Void = { _ in },
    _ body: @escaping @Sendable (RealtimeLink) async throws(FerryError) -> Value
  ) async throws(FerryError) -> Value {
    if channels.isEmpty, let link = live.withLock({ $0 }) { return try await body(link) }
    let link = try await openLink(listening: channels, roles: roles)
    let result = await withTaskGroup(of: Result<Value, FerryError>?.self) { group in
      group.addTask {
        let ending = await link.run(handle)
        switch ending {
        case .refused(let reason):
          return .failure(
            FerryError(
              .badCredentials, "The real-time service refuses. Check app_id and api_key.",
              cause: String(reason.prefix(200))))
        case .closed(let reason):
          return .failure(FerryError(.unavailable, "The connection ended: \(reason).", retry: .now, didNotAct: false))
        }
      }
      group.addTask {
        do throws(FerryError) { return .success(try await body(link)) } catch { return .failure(error) }
      }
      defer { group.cancelAll() }
      return await group.next() ?? nil
    }
    guard let result else { throw .cancelled() }
    return try result.get()
  }
}
