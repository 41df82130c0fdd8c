package import FerryCore
import FerryRuntime

extension PusherAdapter: BatchingProvider {
  package func post(_ message: OutgoingMessage, to channel: ChannelID) async throws(FerryError) -> MessageID {
    let name = try checked(channel)
    _ = try publisher()
    let (outgoing, id) = try await outgoing(message, on: name)
    if settings.marker { try await prepareMarker(for: name, message.key) }
    try await publish(outgoing, on: name, marking: message.key, doing: "post the message")
    noteMarker(for: channel, message.key)
    return id
  }

  /// The events go out in order and the marker last, all in one request that is carried out whole or not at all.
  package func post(_ messages: [OutgoingMessage], to channel: ChannelID) async throws(FerryError) -> [MessageID] {
    guard messages.count <= capabilities.batch else {
      throw FerryError(.badRequest, "A batch holds \(capabilities.batch) messages at most, not \(messages.count).")
    }
    guard let last = messages.last else { return [] }
    guard messages.count > 1 else { return [try await post(last, to: channel)] }
    let name = try checked(channel)
    var batch: [Outgoing] = []
    var ids: [MessageID] = []
    for message in messages {
      let (outgoing, id) = try await outgoing(message, on: name)
      batch.append(outgoing)
      ids.append(id)
    }
    if settings.marker { try await prepareMarker(for: name, last.key) }
    try await publish(batch: batch, on: name, marking: last.key, doing: "post the messages")
    noteMarker(for: channel, last.key)
    return ids
  }

  private func outgoing(
    _ message: OutgoingMessage, on name: ChannelName
  ) async throws(FerryError) -> (Outgoing, MessageID) {
    let writer = writer(for: name)
    let id = Marker.messageID(message.key, writer.profile.ids)
    let data = try await data(of: message, id: id, writer)
    return (Outgoing(event: writer.profile.events.message[0], data: data, id: id.rawValue), id)
  }

  // MARK: Long messages

  private static let previewBytes = 1000

  /// The message as data. Where long ones are stored elsewhere, that is done first and the text ends with the link.
  private func data(
    of message: OutgoingMessage, id: MessageID, _ writer: EventWriter
  ) async throws(FerryError) -> String {
    guard settings.long == .link, let upload = settings.upload else {
      return try writer.message(message, id: id, now: clock.now())
    }
    do { return try writer.message(message, id: id, now: clock.now()) } catch {
      guard error.code == .tooLarge else { throw error }
    }
    let link = try await upload.store(message.text, with: client)
    var shortened = message
    shortened.text = "\(Self.preview(message.text))\u{2026}\n\(link)"
    return try writer.message(shortened, id: id, now: clock.now())
  }

  /// The beginning, between characters.
  private static func preview(_ text: String) -> String {
    var preview = ""
    var size = 0
    for character in text {
      size += character.utf8.count
      guard size <= previewBytes else { break }
      preview.append(character)
    }
    return preview
  }

  // MARK: Finding

  package func find(_ key: SendKey, in channel: ChannelID) async throws(FerryError) -> Finding {
    guard settings.marker, let appKey else {
      return .unknown(reason: "Pusher keeps no history, and the account has no marker.")
    }
    let name = try checked(channel)
    guard let data = try await markerData(for: channel, key) else {
      return .unknown(
        reason: "Pusher keeps no history, and the marker of the last send is gone: it is kept for 30 minutes.")
    }
    let isThere = Marker.key(in: data) == Marker.token(key, on: name, appKey)
    return isThere ? .found(Marker.messageID(key, settings.profile(for: name.text).ids)) : .absent
  }

  /// A batch's marker holds the key of its last message.
  package func find(_ keys: [SendKey], in channel: ChannelID) async throws(FerryError) -> [Finding] {
    guard let last = keys.last else { return [] }
    switch try await find(last, in: channel) {
    case .found:
      let style = settings.profile(for: channel.rawValue).ids
      return keys.map { .found(Marker.messageID($0, style)) }
    case let finding: return keys.map { _ in finding }
    }
  }

  private func markerData(for channel: ChannelID, _ key: SendKey) async throws(FerryError) -> String? {
    let answer = try await publisher().get(
      "channels/\(Marker.channel(for: channel, key))", [("info", "cache")], doing: "read the marker of the last send")
    return answer["cache"]?["data"]?.string
  }

  /// Sees to it that the marker holds something before the first send that needs it: only then does its not holding
  /// the send's key prove that the send was not carried out. Once, and again after it may have been forgotten.
  private func prepareMarker(for name: ChannelName, _ key: SendKey) async throws(FerryError) {
    guard Marker.isShared(key) else { return }
    let channel = ChannelID(name.text)
    let marker = Marker.channel(for: channel, key)
    let now = clock.now()
    let last = marked.withLock { $0[marker] }
    if let last, Double(now.milliseconds - last.milliseconds) / 1000 < Limits.cacheSeconds / 2 { return }
    do {
      // Published again as it is, it starts its time anew.
      let data = try await markerData(for: channel, key)
      let event = settings.profile(for: name.text).events.message[0]
      try await publisher().trigger(event, on: [marker], data: data ?? Marker.data(nil), doing: "prepare the marker")
    } catch {
      // The message itself has not been sent, whatever became of this.
      var error = error
      error.didNotAct = true
      throw error
    }
    noteMarker(for: channel, key)
  }

  private func noteMarker(for channel: ChannelID, _ key: SendKey) {
    guard settings.marker, Marker.isShared(key) else { return }
    let now = clock.now()
    marked.withLock { $0[Marker.channel(for: channel, key)] = now }
  }
}

extension PusherAdapter: PreparingProvider {
  package func prepare(_ key: SendKey, in channel: ChannelID) async throws(FerryError) {
    if settings.marker, appKey != nil { try await prepareMarker(for: try checked(channel), key) }
  }
}

extension PusherAdapter: EditingProvider {
  package func edit(
    _ id: MessageID, in channel: ChannelID, to message: OutgoingMessage
  ) async throws(FerryError) {
    let name = try checked(channel)
    let writer = writer(for: name)
    let data = try await data(of: message, id: id, writer)
    try await send(
      .edit, named: writer.profile.events.edit, data, on: name, id: "\(id)-\(message.stamp?.revision ?? 0)",
      doing: "edit the message")
  }
}
