package import FerryCore
import FerryRuntime

/// Imports over the REST API, with dates of the past. `X-Twilio-Webhook-Enabled` is never sent, so no webhook fires.
extension TwilioAdapter: ImportingProvider {
  /// What a participant's phone would receive is sent at once, whatever date the message bears.
  package func prepareImport(into channel: ChannelID, notify: Bool) async throws(FerryError) {
    let url = api.url("Conversations", channel.rawValue)
    do throws(FerryError) { _ = try await api.get(url, doing: "find the conversation \(channel)") } catch {
      guard error.code == .notFound, !Self.isSID(channel) else { throw error }
      return try await createConversation(channel)
    }
    if notify { return }
    let phones = try await participants(of: channel.rawValue).count { $0.address != nil }
    guard phones == 0 else {
      throw FerryError(
        .forbidden,
        "\(channel) has \(phones) participants on SMS or WhatsApp, and every imported message would be sent to them. "
          + "Import into a conversation without them, or use --notify if that is what you want.")
    }
  }

  package func write(
    _ items: [PastItem], into channel: ChannelID
  ) async throws(FerryError) -> [MessageID?] {
    var ids: [MessageID?] = []
    for item in items { ids.append(try await write(item, into: channel)) }
    return ids
  }

  private func write(_ item: PastItem, into channel: ChannelID) async throws(FerryError) -> MessageID? {
    switch item.kind {
    case .message(let message): return try await post(message, item, to: channel)
    case .edit(let reference, let message):
      try await edit(try Self.id(of: reference), in: channel, to: message, at: item.time)
    case .delete(let reference, let author):
      try await delete(try Self.id(of: reference), in: channel, as: author, stamp: item.stamp)
    case .join(let member):
      try await setMember(Membership(member: member, stamp: item.stamp), of: channel, present: true)
    case .leave(let member):
      try await setMember(Membership(member: member, stamp: item.stamp), of: channel, present: false)
    case .read, .reaction: throw FerryError(.unsupported, "Twilio does not keep this of the past.")
    }
    return nil
  }

  private static func id(of reference: PastReference) throws(FerryError) -> MessageID {
    guard let id = reference.id else {
      throw FerryError(.badRequest, "Twilio knows a message by its SID alone.")
    }
    return id
  }

  private func post(
    _ past: PastMessage, _ item: PastItem, to channel: ChannelID
  ) async throws(FerryError) -> MessageID {
    let now = clock.now()
    var outgoing = OutgoingMessage(
      key: item.key, author: past.author, text: past.text, format: past.format, time: item.time,
      attachments: past.attachments, stamp: item.stamp)
    outgoing.replyTo = past.replyTo?.id
    let form = try Self.form(of: outgoing, now: now, as: past)
    written.tried(item.key, at: now)
    let url = messagesURL(channel.rawValue)
    let answer = try await creating(channel) { () async throws(FerryError) in
      try await self.api.post(url, form, doing: "import the message")
    }
    guard let sid = answer else {
      throw FerryError(
        .outcomeUnknown, "Could not read Twilio's answer to the message.", retry: .now, didNotAct: false)
    }
    return MessageID(sid)
  }

  /// As `edit(_:in:to:)`, with the time at which it was made.
  private func edit(
    _ id: MessageID, in channel: ChannelID, to past: PastMessage, at time: Timestamp
  ) async throws(FerryError) {
    try await change(id, in: channel, to: past.text, hasFiles: !past.attachments.isEmpty) { current, form in
      // An edit within the second of the post would not be seen as one.
      let created = current["date_created"]?.string.flatMap { TwilioDate.parse($0) }
      let shown = created.map { max($0.advanced(by: .seconds(1)), time) } ?? time
      form.add("DateUpdated", TwilioDate.seconds(shown))
      guard case .object(var others)? = JSONText.value(current["attributes"]?.string ?? "{}"),
        var ferry = FerryAttributes(.object(others))
      else { return }
      ferry.edited = time
      others[FerryAttributes.name] = nil
      let text = ferry.text(beside: others)
      if text.utf8.count <= AdapterLimits.attributesBytes { form.add("Attributes", text) }
    }
  }
}
