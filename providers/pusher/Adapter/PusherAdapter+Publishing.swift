import FerryCore
import FerryRuntime

/// How events leave: sealed where the channel is encrypted, in slices where they are long.
extension PusherAdapter {
  /// One event, whole.
  struct Outgoing: Sendable {
    let event: String
    let data: String
    /// Under which its slices are put together again: the same on every retry.
    let id: String
  }

  /// The longest data, in bytes, of one event on a channel.
  static func eventLimit(_ name: ChannelName) -> Int { name.isEncrypted ? SecretBox.longestText : Limits.dataBytes }

  /// Beyond this a message is refused even where it may go in slices.
  private static let longestData = 900 << 10

  func writer(for name: ChannelName) -> EventWriter {
    EventWriter(
      profile: settings.profile(for: name.text), channel: name.text, user: settings.user,
      limit: settings.long == .chunk ? Self.longestData : Self.eventLimit(name))
  }

  /// Publishes an event over the HTTP API, and with it, if there is a key, the marker that remembers it.
  func publish(
    _ outgoing: Outgoing, on name: ChannelName, marking key: SendKey? = nil, doing: String
  ) async throws(FerryError) {
    let api = try publisher()
    let box = try box(for: name)
    let limit = Self.eventLimit(name)
    let marked = settings.marker ? key : nil
    if outgoing.data.utf8.count <= limit, box == nil {
      // The marker keeps the event itself, so that one request to two channels will do.
      let marker = marked.map { [Marker.channel(for: ChannelID(name.text), $0)] } ?? []
      try await api.trigger(
        outgoing.event, on: [name.text] + marker, data: outgoing.data, except: excluded, doing: doing)
      return
    }
    var items = items(outgoing, on: name, box, limit: limit)
    if let marked { items.append(markerItem(marked, on: name, api.appKey)) }
    try await send(items, doing: doing)
  }

  /// Several events in one request that is carried out whole or not at all.
  func publish(
    batch: [Outgoing], on name: ChannelName, marking key: SendKey, doing: String
  ) async throws(FerryError) {
    let api = try publisher()
    let box = try box(for: name)
    let limit = Self.eventLimit(name)
    guard batch.allSatisfy({ $0.data.utf8.count <= limit }) else {
      throw FerryError(.tooLarge, "One of the messages is too long for a batch. Send it by itself.")
    }
    var items = batch.flatMap { self.items($0, on: name, box, limit: limit) }
    if settings.marker { items.append(markerItem(key, on: name, api.appKey)) }
    try await api.trigger(batch: items, doing: doing)
  }

  private func items(
    _ outgoing: Outgoing, on name: ChannelName, _ box: SecretBox?, limit: Int
  ) -> [PusherAPI.BatchItem] {
    func item(_ event: String, _ data: String) -> PusherAPI.BatchItem {
      PusherAPI.BatchItem(name: event, channel: name.text, data: box?.seal(data) ?? data, socketID: excluded)
    }
    guard outgoing.data.utf8.count > limit else { return [item(outgoing.event, outgoing.data)] }
    return Chunk.slices(of: outgoing.data, id: outgoing.id, limit: limit)
      .map { item(Chunk.prefix + outgoing.event, $0.data) }
  }

  private func markerItem(_ key: SendKey, on name: ChannelName, _ appKey: AppKey) -> PusherAPI.BatchItem {
    PusherAPI.BatchItem(
      name: settings.profile(for: name.text).events.message[0],
      channel: Marker.channel(for: ChannelID(name.text), key), data: Marker.data(Marker.token(key, on: name, appKey)))
  }

  /// In order, ten at a time, the marker in the last request: it says that everything arrived. When only a part did,
  /// the whole is sent again, and receivers know the slices that they have.
  private func send(_ items: [PusherAPI.BatchItem], doing: String) async throws(FerryError) {
    let api = try publisher()
    if items.count == 1, let item = items.first {
      try await api.trigger(item.name, on: [item.channel], data: item.data, except: item.socketID, doing: doing)
      return
    }
    for start in stride(from: 0, to: items.count, by: Limits.eventsPerBatch) {
      try await api.trigger(batch: Array(items[start...].prefix(Limits.eventsPerBatch)), doing: doing)
    }
  }

  /// The connection that is not to hear what Ferry itself publishes.
  private var excluded: String? { settings.echo ? nil : live.withLock { $0.connection }?.socketID }

  // MARK: Client events

  /// Sends an event by the way that the configuration names for its kind. Client events are offered on private and
  /// presence channels only; on all others the HTTP API takes their place, and so it does while nobody listens.
  func send(
    _ kind: Transports.Kind, named names: [String], _ data: String, on name: ChannelName, id: String, doing: String
  ) async throws(FerryError) {
    let plan = settings.profile(for: name.text).via.plan(kind, names)
    let (connection, isRunning) = live.withLock { $0 }
    guard plan.way == .client, name.access != .everybody, !name.isEncrypted, isRunning || appKey == nil else {
      return try await publish(Outgoing(event: plan.serverName, data: data, id: id), on: name, doing: doing)
    }
    guard data.utf8.count <= Limits.dataBytes else {
      throw FerryError(.tooLarge, "A client event holds \(Limits.dataBytes) bytes, and this one is longer.")
    }
    guard let connection, connection.session.withLock({ $0.isConfirmed(ChannelID(name.text)) }) else {
      throw FerryError(
        .unavailable, "Could not \(doing): client events need a connection that listens to \"\(name.text)\".",
        retry: .now)
    }
    let frame = FrameText.client(plan.name, channel: name.text, json: data)
    if kind == .typing { try await connection.send(frame) } else { try await connection.deliver(frame) }
  }
}
