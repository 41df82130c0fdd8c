package import FerryCore
import FerryRuntime

extension BackendlessAdapter {
  /// Saves the row, then publishes it as saved. The row's id is made of the send's key, so a repeat changes nothing,
  /// and `find` is certain.
  package func post(_ message: OutgoingMessage, to channel: ChannelID) async throws(FerryError) -> MessageID {
    let name = try checked(channel)
    guard let table = settings.table else { return try await postUnsaved(message, to: channel, name) }
    let row = try writer.row(message, in: channel, now: clock.now())
    let id = ChatWriter.objectID(message.key, in: channel)
    try await pace.wait()
    let saved = try await api.upsert(row, in: table, doing: "save the message")
    // A service that answers with less has saved what it was sent.
    try await publish(saved["objectId"] == nil ? row : saved, id, table, to: channel, name)
    return MessageID(id)
  }

  /// The second half of a post. Whatever happens, the row is there: only when it has been taken back again did nothing
  /// happen.
  private func publish(
    _ row: JSONValue, _ id: String, _ table: String, to channel: ChannelID, _ name: String
  ) async throws(FerryError) {
    do throws(FerryError) {
      try await publish(
        writer.published(row), to: name, as: row[settings.fields.author[0]]?.text,
        FerryMark(row[settings.fields.ferry]), doing: "publish the message")
    } catch {
      var error = error
      let isFinal = error.didNotAct && error.retry == .never && error.code != .badCredentials
      error.didNotAct = false
      if isFinal {
        do throws(FerryError) {
          deletions.note(id, FerryMark(row[settings.fields.ferry])?.stamp)
          try await api.delete(id, of: table, doing: "take the message back")
          error.didNotAct = true
        } catch let failure { logger.warning("the row of a message that cannot be published stays: \(failure)") }
      }
      throw error
    }
  }

  private func postUnsaved(
    _ message: OutgoingMessage, to channel: ChannelID, _ name: String
  ) async throws(FerryError) -> MessageID {
    let (content, mark) = try writer.unsaved(message, in: channel)
    try await pace.wait()
    try await publish(content, to: name, as: message.author.name, mark, doing: "publish the message")
    return MessageID(ChatWriter.objectID(message.key, in: channel))
  }

  /// As the account is set up: with its headers, Ferry's mark among them, and under its subtopic.
  private func publish(
    _ content: JSONValue, to name: String, as publisher: String?, _ mark: FerryMark?, doing: String
  ) async throws(FerryError) {
    var headers = settings.headers
    headers[FerryMark.name] = mark?.text
    _ = try await api.publish(
      content, to: name, as: publisher, headers: headers, subtopic: settings.subtopic, doing: doing)
  }

  /// A row that was saved and perhaps not published is published again: whoever has it knows it by its id.
  ///
  /// Apps that do not look at ids show it twice then. So this is done for what the relay asks about, whose outcome is
  /// unknown, and for a person's post only as long as somebody may be repeating it because it failed.
  package func find(_ key: SendKey, in channel: ChannelID) async throws(FerryError) -> Finding {
    let name = try checked(channel)
    let id = ChatWriter.objectID(key, in: channel)
    guard let table = settings.table else {
      return echoes[id] == nil
        ? .unknown(reason: "The account keeps no table, and the message has not been heard.") : .found(MessageID(id))
    }
    guard let row = try await api.row(id, of: table, doing: "look for a message") else { return .absent }
    guard echoes[id] == nil, isPerhapsUnpublished(row) else { return .found(MessageID(id)) }
    do throws(FerryError) {
      try await publish(row, id, table, to: channel, name)
    } catch  where error.didNotAct {
      // It may not be published at all, and has been taken back.
      return .absent
    }
    echoes.note(id, true)
    return .found(MessageID(id))
  }

  private static let repeatTime = Duration.seconds(300)

  private func isPerhapsUnpublished(_ row: JSONValue) -> Bool {
    if FerryMark(row[settings.fields.ferry])?.stamp != nil { return true }
    guard let created = ChatReader.time(row["created"]) else { return true }
    return created.advanced(by: Self.repeatTime) > clock.now()
  }
}

extension BackendlessAdapter: EditingProvider, DeletingProvider {
  /// A change of the row, of which the service tells everybody who listens to the table.
  package func edit(_ id: MessageID, in channel: ChannelID, to message: OutgoingMessage) async throws(FerryError) {
    _ = try checked(channel)
    let table = try table(doing: "edit the message")
    try await pace.wait()
    try await api.update(
      id.rawValue, of: table, to: .object(try writer.changes(message)), doing: "edit the message")
  }

  package func delete(
    _ id: MessageID, in channel: ChannelID, as author: Author?, stamp: Stamp?
  ) async throws(FerryError) {
    _ = try checked(channel)
    let table = try table(doing: "delete the message")
    // The service tells of a deletion no more than the id.
    deletions.note(id.rawValue, stamp)
    try await pace.wait()
    try await api.delete(id.rawValue, of: table, doing: "delete the message")
  }
}

extension BackendlessAdapter: TypingProvider {
  package func setTyping(_ typing: Typing) async throws(FerryError) {
    _ = try checked(typing.channel)
    let type = typing.on ? settings.commands.typing[0] : settings.commands.typingStopped[0]
    let data = writer.typing(typing)
    try await command(type, data, in: typing.channel, power: "typing", doing: "show typing")
  }

  private func command(
    _ type: String, _ data: JSONValue, in channel: ChannelID, power: String, doing: String
  ) async throws(FerryError) {
    if let reason = capabilities.absent[power] { throw FerryError(.unsupported, "Could not \(doing): \(reason)") }
    try await withLink { link throws(FerryError) in
      try await link.command(type, data, in: channel, doing: doing)
    }
  }
}

extension BackendlessAdapter: ReadingProvider {
  package func mark(_ mark: ReadMark, in channel: ChannelID) async throws(FerryError) {
    _ = try checked(channel)
    let type = mark.state == .delivered ? settings.commands.delivered ?? settings.commands.read : settings.commands.read
    try await command(type ?? "", writer.read(mark), in: channel, power: "reads", doing: "mark the message")
  }
}

extension BackendlessAdapter: UploadingProvider {
  /// Under a name of its own, like the apps do it.
  package func upload(
    _ bytes: ByteStream, name: String, mediaType: String, to channel: ChannelID
  ) async throws(FerryError) -> AttachmentReference {
    let ending = PictureName.ending(of: name, mediaType)
    let file = "\(ClientIdentity.guid()).\(ending)"
    let url = try await api.upload(
      bytes, to: "\(settings.filesFolder)/\(file)", name: file, mediaType: mediaType, as: settings.uploads,
      doing: "upload a picture")
    return .provider(url)
  }
}

extension BackendlessAdapter: MembershipProvider {
  /// Those who are connected and logged in, and those who have announced themselves since this adapter listens.
  package func members(of channel: ChannelID) async throws(FerryError) -> [Author] {
    _ = try checked(channel)
    if live.withLock({ $0 }) != nil, let heard = present.withLock({ $0[channel] }) {
      return await people.everybody(heard)
    }
    guard settings.receive == .realtime else {
      if let heard = present.withLock({ $0[channel] }) { return await people.everybody(heard) }
      throw FerryError(.unsupported, "Who is there is told by the real-time service, and the account polls.")
    }
    let listing = BoundedChannel<JSONValue>(capacity: 4)
    let (frame, own) = try await withLink(
      listening: [channel], roles: [.join, .users],
      hearing: { action in
        if case .heard(let subscription, let frame) = action, subscription.role == .users { _ = listing.offer(frame) }
      }
    ) { link throws(FerryError) in
      guard let frame = await Self.first(of: listing, within: .seconds(10), self.clock) else {
        throw FerryError(.timedOut, "The service does not say who is in \(channel).", retry: .now)
      }
      return (frame, link.ownIDs)
    }
    var list = MemberList()
    _ = list.apply(frame, own: own)
    var presence = present.withLock { $0[channel] } ?? Presence()
    presence.users = list.users
    return await people.everybody(presence)
  }

  private static func first(
    of listing: BoundedChannel<JSONValue>, within limit: Duration, _ clock: any FerryClock
  ) async -> JSONValue? {
    await withTaskGroup(of: JSONValue?.self) { group in
      group.addTask { await listing.next() }
      group.addTask {
        try? await clock.sleep(for: limit)
        return nil
      }
      defer { group.cancelAll() }
      return await group.next() ?? nil
    }
  }

  /// Announced by the app's own notice: nobody can be made to connect.
  package func setMember(
    _ membership: Membership, of channel: ChannelID, present: Bool
  ) async throws(FerryError) {
    let name = try checked(channel)
    if let reason = capabilities.absent["members"] {
      throw FerryError(.unsupported, "Could not announce a member: \(reason)")
    }
    // An app may have a notice for coming and none for going.
    guard let text = present ? settings.joinNotice : settings.leaveNotice else { return }
    let (content, mark) = writer.notice(text, present ? .joined : .left, membership)
    try await publish(content, to: name, as: membership.member.name, mark, doing: "announce a member")
  }
}
