package import FerryCore
import FerryRuntime

extension TwilioAdapter: MembershipProvider, ReadingProvider {
  func participants(of conversation: String) async throws(FerryError) -> [ListedParticipant] {
    let url = api.url(
      "Conversations", conversation, "Participants", query: [("PageSize", String(AdapterLimits.pageSize))])
    return try await api.all(url, doing: "list the participants").compactMap { ListedParticipant(json: $0) }
  }

  func author(_ participant: ListedParticipant) async -> Author {
    var name = participant.ferry?.display
    if name == nil, let identity = participant.identity { name = await names.name(of: identity) }
    return Author(id: UserID(participant.id), name: name ?? participant.id)
  }

  /// Ferry itself is not listed.
  package func members(of channel: ChannelID) async throws(FerryError) -> [Author] {
    var members: [Author] = []
    for participant in try await participants(of: channel.rawValue)
    where !(capabilities.typing && participant.identity == settings.identity) {
      members.append(await author(participant))
    }
    return members
  }

  package func setMember(
    _ membership: Membership, of channel: ChannelID, present: Bool
  ) async throws(FerryError) {
    let identity = Self.identity(membership.member)
    if present { return try await add(identity, name: membership.member.name, membership.stamp, to: channel) }
    try await pace.wait(for: channel)
    let before = written.removing(identity, from: channel, membership.stamp)
    do throws(FerryError) {
      try await api.delete(participantURL(channel.rawValue, identity), doing: "remove a participant")
    } catch {
      guard error.code == .notFound else { throw error }
      // Nobody left now, so no later departure is to be taken for ours; that of an earlier try still is.
      written.removing(identity, from: channel, before)
    }
  }

  func add(
    _ identity: String, name: String, _ stamp: Stamp?, isOwn: Bool = false, to channel: ChannelID
  ) async throws(FerryError) {
    var attributes = FerryAttributes()
    attributes.stamp = stamp
    attributes.isOwn = isOwn
    attributes.display = name.isEmpty || name == identity ? nil : name
    let form: Form = [("Identity", identity), ("Attributes", attributes.text())]
    let url = api.url("Conversations", channel.rawValue, "Participants")
    do throws(FerryError) {
      _ = try await creating(channel) { () async throws(FerryError) in
        try await self.api.post(url, form, doing: "add a participant")
      }
    } catch {
      guard error.code == .conflict, error.retry == .never else { throw error }
    }
  }

  /// As Twilio takes it: the same for the same person always.
  static func identity(_ author: Author) -> String {
    let id = author.id.rawValue.isEmpty ? author.name : author.id.rawValue
    if id.isEmpty { return "unknown" }
    if id.utf8.count <= AdapterLimits.identityBytes, !SID.isOne(id, of: .user), !SID.isOne(id, of: .participant) {
      return id
    }
    let digest = Crypto.hex(Crypto.digest(.sha256, of: id.utf8).prefix(16))
    return shortened(id, to: AdapterLimits.identityBytes - digest.utf8.count - 1) + "~" + digest
  }

  /// Twilio knows up to where every participant has read, and of phones only what was delivered. Marks go forward only.
  package func mark(_ mark: ReadMark, in channel: ChannelID) async throws(FerryError) {
    guard mark.state == .read, let by = mark.by else {
      logger.debug("\(channel): a mark without a reader, or of a delivery, has no place at Twilio")
      return
    }
    guard let index = try await index(of: mark.upTo, in: channel) else { return }
    let identity = Self.identity(by)
    var participant: JSONValue = .null
    do throws(FerryError) {
      participant = try await api.get(participantURL(channel.rawValue, identity), doing: "mark a message as read")
    } catch {
      guard error.code == .notFound else { throw error }
      guard settings.addReaders else { return }
      try await add(identity, name: by.name, mark.stamp, to: channel)
      participant = try await api.get(participantURL(channel.rawValue, identity), doing: "mark a message as read")
    }
    guard let listed = ListedParticipant(json: participant), index > listed.horizon ?? -1 else { return }
    var form: Form = [("LastReadMessageIndex", String(index))]
    // Whose attributes are not ours, those are left alone: then this process remembers.
    if var ferry = listed.ferry, let stamp = mark.stamp {
      ferry.read = FerryAttributes.ReadStamp(index: index, stamp: stamp)
      var others = JSONText.value(listed.attributes)?.object ?? [:]
      others[FerryAttributes.name] = nil
      let text = ferry.text(beside: others)
      if text.utf8.count <= AdapterLimits.attributesBytes { form.add("Attributes", text) }
    }
    written.marking(index, by: identity, in: channel, mark.stamp)
    try await pace.wait(for: channel)
    try await api.post(participantURL(channel.rawValue, listed.sid), form, doing: "mark a message as read")
  }

  /// Nil when the message is gone: nobody can be told that it was read.
  private func index(of message: MessageID, in channel: ChannelID) async throws(FerryError) -> Int64? {
    do throws(FerryError) {
      let record = try await api.get(messageURL(channel.rawValue, message.rawValue), doing: "mark a message as read")
      return ListedMessage(json: record)?.index
    } catch {
      guard error.code == .notFound else { throw error }
      return nil
    }
  }
}
