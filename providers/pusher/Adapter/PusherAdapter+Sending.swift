package import FerryCore
import FerryRuntime

extension PusherAdapter: BatchingProvider {
  package func post(_ message: OutgoingMessage, to channel: ChannelID) async throws(FerryError) -> MessageID {
    let name = try checked(channel)
    let id = Marker.messageID(message.key)
    let data = try writer.message(message, id: id)
    var channels = [name.text]
    if settings.marker {
      try await prepareMarker(for: channel, message.key)
      channels.append(Marker.channel(for: channel, message.key))
    }
    try await api.trigger(settings.events.message[0], on: channels, data: data, doing: "post the message")
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
    var items: [PusherAPI.BatchItem] = []
    var ids: [MessageID] = []
    for message in messages {
      let id = Marker.messageID(message.key)
      let data = try writer.message(message, id: id)
      items.append(PusherAPI.BatchItem(name: settings.events.message[0], channel: name.text, data: data))
      ids.append(id)
    }
    if settings.marker {
      try await prepareMarker(for: channel, last.key)
      items.append(
        PusherAPI.BatchItem(
          name: settings.events.message[0], channel: Marker.channel(for: channel, last.key),
          data: Marker.data(last.key)))
    }
    try await api.trigger(batch: items, doing: "post the messages")
    noteMarker(for: channel, last.key)
    return ids
  }

  package func find(_ key: SendKey, in channel: ChannelID) async throws(FerryError) -> Finding {
    guard settings.marker else {
      return .unknown(reason: "Pusher keeps no history, and the account's marker is turned off.")
    }
    guard let data = try await markerData(for: channel, key) else {
      return .unknown(
        reason: "Pusher keeps no history, and the marker of the last send is gone: it is kept for 30 minutes.")
    }
    return Marker.key(in: data) == key ? .found(Marker.messageID(key)) : .absent
  }

  /// A batch's marker holds the key of its last message.
  package func find(_ keys: [SendKey], in channel: ChannelID) async throws(FerryError) -> [Finding] {
    guard let last = keys.last else { return [] }
    switch try await find(last, in: channel) {
    case .found: return keys.map { .found(Marker.messageID($0)) }
    case let finding: return keys.map { _ in finding }
    }
  }

  // MARK: The marker

  private func markerData(for channel: ChannelID, _ key: SendKey) async throws(FerryError) -> String? {
    let answer = try await api.get(
      "channels/\(Marker.channel(for: channel, key))", [("info", "cache")], doing: "read the marker of the last send")
    return answer["cache"]?["data"]?.string
  }

  /// Sees to it that the marker holds something before the first send that needs it: only then does its not holding
  /// the send's key prove that the send was not carried out. Once, and again after it may have been forgotten.
  private func prepareMarker(for channel: ChannelID, _ key: SendKey) async throws(FerryError) {
    guard Marker.isShared(key) else { return }
    let marker = Marker.channel(for: channel, key)
    let now = clock.now()
    let last = marked.withLock { $0[marker] }
    if let last, Double(now.milliseconds - last.milliseconds) / 1000 < Limits.cacheSeconds / 2 { return }
    do {
      // Published again as it is, it starts its time anew.
      let data = try await markerData(for: channel, key)
      try await api.trigger(
        settings.events.message[0], on: [marker], data: data ?? Marker.data(nil), doing: "prepare the marker")
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
    if settings.marker { try await prepareMarker(for: channel, key) }
  }
}

extension PusherAdapter: EditingProvider, DeletingProvider {
  package func edit(
    _ id: MessageID, in channel: ChannelID, to message: OutgoingMessage
  ) async throws(FerryError) {
    let name = try checked(channel)
    let data = try writer.message(message, id: id)
    try await api.trigger(settings.events.edit[0], on: [name.text], data: data, doing: "edit the message")
  }

  package func delete(
    _ id: MessageID, in channel: ChannelID, as author: Author?, stamp: Stamp?
  ) async throws(FerryError) {
    let name = try checked(channel)
    let data = try writer.deletion(id, by: author, stamp)
    try await api.trigger(settings.events.delete[0], on: [name.text], data: data, doing: "delete the message")
  }
}

extension PusherAdapter: TypingProvider {
  package func setTyping(_ typing: Typing) async throws(FerryError) {
    let name = try checked(typing.channel)
    let event = typing.on ? settings.events.typing[0] : settings.events.typingStopped[0]
    try await api.trigger(event, on: [name.text], data: try writer.typing(typing), doing: "show typing")
  }
}

extension PusherAdapter: ReadingProvider, ReactingProvider {
  package func mark(_ mark: ReadMark, in channel: ChannelID) async throws(FerryError) {
    let name = try checked(channel)
    let event = mark.state == .read ? settings.events.read[0] : settings.events.delivered[0]
    try await api.trigger(event, on: [name.text], data: try writer.mark(mark), doing: "mark the message")
  }

  package func react(_ reaction: Reaction, in channel: ChannelID) async throws(FerryError) {
    let name = try checked(channel)
    try await api.trigger(
      settings.events.reaction[0], on: [name.text], data: try writer.reaction(reaction), doing: "send the reaction")
  }
}

extension PusherAdapter: MembershipProvider {
  /// Only presence channels know who is there. Ferry itself is not listed.
  package func members(of channel: ChannelID) async throws(FerryError) -> [Author] {
    let name = try checked(channel)
    guard name.isPresence else {
      throw FerryError(.unsupported, "Only presence channels know their members, and \"\(channel)\" is none.")
    }
    let answer = try await api.get("channels/\(name.text)/users", doing: "list the members")
    return (answer["users"]?.array ?? []).compactMap { user in
      user["id"]?.text.flatMap { $0 == Session.userID ? nil : Author(id: UserID($0), name: $0) }
    }
  }

  /// Announced as an event: nobody can be made to subscribe.
  package func setMember(
    _ membership: Membership, of channel: ChannelID, present: Bool
  ) async throws(FerryError) {
    let name = try checked(channel)
    let event = present ? settings.events.join[0] : settings.events.leave[0]
    try await api.trigger(event, on: [name.text], data: try writer.membership(membership), doing: "announce a member")
  }
}
