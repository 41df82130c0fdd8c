package import FerryCore
import FerryRuntime

extension MemoryProvider: ChatProvider {
  package func run(_ subscriptions: [Subscription], into inbox: any Inbox) async throws(FerryError) {
    try checkCredentials()
    state.update { $0.runs += 1 }
    var places: [ChannelID: Int] = [:]
    var typed = state.value.typing.count
    let resumes = capabilities.history == .events
    for subscription in subscriptions {
      let end = state.value.rooms[subscription.channel]?.events.count ?? 0
      if resumes, let cursor = subscription.cursor {
        places[subscription.channel] = Int(cursor.rawValue) ?? end
        continue
      }
      places[subscription.channel] = end
      if resumes { try? await inbox.accept(cursor: Cursor(String(end)), for: subscription.channel) }
      if !resumes, let start = subscription.lastSeen {
        await inbox.gap(Gap(channel: subscription.channel, start: start, end: clock.now()))
      }
    }
    inbox.connection(ConnectionState(.connected))
    while !Task.isCancelled {
      let seen = (places, typed)
      let news: ([Event], [Typing])? = await state.wait { Self.news(in: $0, after: seen.0, seen.1) }
      guard let (events, typing) = news else { break }
      typed += typing.count
      for typing in typing where places[typing.channel] != nil { inbox.typing(typing) }
      for event in events { places[event.channel, default: 0] += 1 }
      await handOver(scrambled(events.map { resumes ? $0 : $0.withoutCursor }), to: inbox)
    }
    inbox.connection(ConnectionState(.stopped))
  }

  private static func news(
    in state: State, after places: [ChannelID: Int], _ typed: Int
  ) -> ([Event], [Typing])? {
    let events = places.sorted { $0.key < $1.key }.flatMap { channel, place in
      state.rooms[channel]?.events.dropFirst(place) ?? []
    }
    let typing = Array(state.typing.dropFirst(typed))
    return events.isEmpty && typing.isEmpty ? nil : (events, typing)
  }

  /// An inbox that fails is offered the same again, once something else has had its turn.
  private func handOver(_ events: [Event], to inbox: any Inbox) async {
    while !events.isEmpty, !Task.isCancelled {
      if (try? await inbox.accept(events)) != nil { return }
      await Task.yield()
    }
  }

  package func post(_ message: OutgoingMessage, to channel: ChannelID) async throws(FerryError) -> MessageID {
    let now = clock.now()
    return try await perform(.post) { state in state.add(Self.message(message, at: now), key: message.key, to: channel)
    }
  }

  package func find(_ key: SendKey, in channel: ChannelID) async throws(FerryError) -> Finding {
    let certainty = capabilities.certainty
    return try await perform(.find) { state in
      if certainty == .none { return .unknown(reason: "This memory provider was told not to know.") }
      return state.rooms[channel]?.sends[key].map { .found($0) } ?? .absent
    }
  }

  package func attachment(_ reference: AttachmentReference) async throws(FerryError) -> ByteStream {
    let bytes = try await perform(.fetch) { state throws(FerryError) -> [UInt8] in
      guard case .provider(let name) = reference, let bytes = state.files[name] else {
        throw FerryError(.notFound, "There is no such file.")
      }
      return bytes
    }
    let pieces = Locked(
      stride(from: 0, to: bytes.count, by: 64 << 10).map { bytes[$0..<min($0 + 64 << 10, bytes.count)] })
    return ByteStream(size: Int64(bytes.count)) { () async throws(FerryError) -> [UInt8]? in
      pieces.withLock { $0.isEmpty ? nil : Array($0.removeFirst()) }
    }
  }

  package func channels() async throws(FerryError) -> [ChannelSummary] {
    try checkCredentials()
    return state.value.rooms.map { ChannelSummary(id: $0.key, name: $0.key.rawValue, members: $0.value.members.count) }
  }

  private static func message(_ message: OutgoingMessage, at now: Timestamp) -> Message {
    Message(
      id: "", author: message.author, text: message.text, format: message.format, time: message.time ?? now,
      attachments: message.attachments.map(attachment), replyTo: message.replyTo, stamp: message.stamp)
  }

  fileprivate static func attachment(_ attachment: OutgoingAttachment) -> Attachment {
    Attachment(
      name: attachment.name, mediaType: attachment.mediaType, size: attachment.size, sha256: attachment.sha256,
      reference: attachment.reference)
  }
}

extension MemoryProvider: PreparingProvider {
  /// Always goes well, as at a service that answers and takes nothing.
  package func prepare(_ key: SendKey, in channel: ChannelID) async throws(FerryError) { try checkCredentials() }
}

extension MemoryProvider: BatchingProvider {
  package func post(_ messages: [OutgoingMessage], to channel: ChannelID) async throws(FerryError) -> [MessageID] {
    let now = clock.now()
    let limit = capabilities.batch
    try await perform(.batch) { _ in }
    return try await perform(.post) { state throws(FerryError) in
      guard messages.count <= limit else { throw FerryError(.badRequest, "The batch is too large.") }
      return messages.map { state.add(Self.message($0, at: now), key: $0.key, to: channel) }
    }
  }

  package func find(_ keys: [SendKey], in channel: ChannelID) async throws(FerryError) -> [Finding] {
    var findings: [Finding] = []
    for key in keys { findings.append(try await find(key, in: channel)) }
    return findings
  }
}

extension MemoryProvider: EditingProvider, DeletingProvider, TypingProvider {
  package func edit(_ id: MessageID, in channel: ChannelID, to message: OutgoingMessage) async throws(FerryError) {
    let now = clock.now()
    try await perform(.edit) { state throws(FerryError) in
      // The same edit again changes nothing, and so causes no event.
      if let old = state.rooms[channel]?.messages[id], old.text == message.text, old.stamp == message.stamp { return }
      let changed = state.change(id, in: channel, at: now) { changed in
        changed.text = message.text
        changed.format = message.format
        changed.attachments = message.attachments.map(Self.attachment)
        changed.stamp = message.stamp
      }
      guard changed else { throw FerryError(.notFound, "There is no such message.") }
    }
  }

  package func delete(
    _ id: MessageID, in channel: ChannelID, as author: Author?, stamp: Stamp?
  ) async throws(FerryError) {
    let now = clock.now()
    try await perform(.delete) { $0.remove(Deletion(id: id, by: author, stamp: stamp), in: channel, at: now) }
  }

  package func setTyping(_ typing: Typing) async throws(FerryError) {
    try await perform(.typing) { $0.typing.append(typing) }
  }
}

extension MemoryProvider: UploadingProvider, HistoryProvider {
  package func upload(
    _ bytes: ByteStream, name: String, mediaType: String, to channel: ChannelID
  ) async throws(FerryError) -> AttachmentReference {
    let bytes = try await bytes.collect(upTo: Int(capabilities.attachmentBytes ?? 1 << 30))
    let name = Crypto.hex(Crypto.digest(.sha256, of: bytes))
    try await perform(.upload) { $0.files[name] = bytes }
    return .provider(name)
  }

  package func history(
    of channel: ChannelID, order: HistoryOrder, after cursor: Cursor?, limit: Int
  ) async throws(FerryError) -> HistoryPage {
    try checkCredentials()
    let all = messages(in: channel)
    let ordered = order == .oldestFirst ? all : all.reversed()
    let start = cursor.flatMap { Int($0.rawValue) } ?? 0
    let page = Array(ordered.dropFirst(start).prefix(limit))
    let end = start + page.count
    return HistoryPage(messages: page, next: end < ordered.count ? Cursor(String(end)) : nil)
  }
}

extension MemoryProvider: MembershipProvider, ReadingProvider, ReactingProvider {
  package func members(of channel: ChannelID) async throws(FerryError) -> [Author] {
    try checkCredentials()
    return state.value.rooms[channel]?.members.values.sorted { $0.id < $1.id } ?? []
  }

  package func setMember(
    _ membership: Membership, of channel: ChannelID, present: Bool
  ) async throws(FerryError) {
    let now = clock.now()
    try await perform(.member) { $0.enter(membership, present, in: channel, at: now) }
  }

  package func mark(_ mark: ReadMark, in channel: ChannelID) async throws(FerryError) {
    let now = clock.now()
    try await perform(.mark) { $0.record(.read(mark), in: channel, at: now) }
  }

  package func react(_ reaction: Reaction, in channel: ChannelID) async throws(FerryError) {
    let now = clock.now()
    try await perform(.react) { $0.record(.reacted(reaction), in: channel, at: now) }
  }
}

extension Event {
  var withoutCursor: Event {
    var event = self
    event.cursor = nil
    return event
  }
}
