import FerryChat
import FerryCore
import FerryRuntime
import FerryTransport

/// From the channel to the room.
extension ChannelView {
  /// What bears it came from the channel, and does not go back.
  private static let bridge: BridgeName = "pusher-view"

  static func isFromChannel(_ stamp: Stamp?) -> Bool { stamp?.bridge == bridge }

  static func stamp(_ id: MessageID, in channel: ChannelID) -> Stamp {
    Stamp(bridge: bridge, origin: Address(account: "pusher", channel: channel), id: id)
  }

  func keep(_ reading: EventReader.Reading, in channel: ChannelID) async {
    do throws(FerryError) {
      switch reading {
      case .typing(var typing):
        typing.stamp = Self.stamp("", in: channel)
        try chat.setTyping(typing, by: .owner)
      case .event(let event): try await keep(event.kind, in: channel)
      }
    } catch {
      // Anybody may publish anything: of what no room takes there is nothing to show.
      logger.debug("an event of \(channel) is not shown: \(error)")
    }
  }

  private func keep(_ kind: Event.Kind, in channel: ChannelID) async throws(FerryError) {
    switch kind {
    case .posted(let message):
      let draft = Draft(
        clientID: Self.key(of: message.id), author: message.author, text: message.text, time: message.time,
        attachments: await stored(message.attachments), replyTo: try await known(message.replyTo, in: channel),
        stamp: Self.stamp(message.id, in: channel))
      _ = try await chat.post(draft, to: channel, by: .owner)
    case .edited(let message):
      guard let id = try await known(message.id, in: channel) else { return }
      var change = Change(text: message.text, stamp: Self.stamp(message.id, in: channel))
      if !message.attachments.isEmpty { change.attachments = await stored(message.attachments) }
      _ = try await chat.edit(id, in: channel, to: change, by: .owner)
    case .deleted(let deletion):
      guard let id = try await known(deletion.id, in: channel) else { return }
      try await chat.delete(
        id, in: channel, by: .owner, as: deletion.by, stamp: Self.stamp(deletion.id, in: channel))
    case .reacted(var reaction):
      guard let id = try await known(reaction.message, in: channel) else { return }
      reaction.stamp = Self.stamp(reaction.message, in: channel)
      reaction.message = id
      try await chat.react(reaction, in: channel, by: .owner)
    case .read(var mark):
      guard mark.by != nil, let id = try await known(mark.upTo, in: channel) else { return }
      mark.stamp = Self.stamp(mark.upTo, in: channel)
      mark.upTo = id
      try await chat.mark(mark, in: channel, by: .owner)
    case .joined(let membership):
      try await chat.join(membership.member, channel, by: .owner, stamp: Self.stamp("", in: channel))
    case .left(let membership):
      try await chat.leave(membership.member.id, channel, by: .owner, stamp: Self.stamp("", in: channel))
    }
  }

  // MARK: Ids

  /// The key under which the room knows a message of the channel.
  private static func key(of id: MessageID) -> SendKey {
    let plain = "pusher:\(id)"
    let isShort = plain.utf8.count <= 200 && plain.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f }
    return SendKey(isShort ? plain : "pusher:#\(Crypto.hex(Crypto.digest(.sha256, of: id.rawValue.utf8)))")
  }

  /// The room's id of a message of the channel; nil when it is not in the room.
  private func known(_ id: MessageID?, in channel: ChannelID) async throws(FerryError) -> MessageID? {
    guard let id else { return nil }
    if let message = try await chat.message(byClientID: Self.key(of: id), in: channel) { return message.message.id }
    // What was written in the room has the room's id on the channel too.
    let own = try await chat.read { try $0.message(id, in: channel) }
    return own.flatMap { Self.isFromChannel($0.message.stamp) ? nil : $0.message.id }
  }

  /// The channel's id of a message of the room.
  func channelID(of id: MessageID, in channel: ChannelID) async throws(FerryError) -> MessageID {
    let message = try await chat.message(id, in: channel).message
    guard let stamp = message.stamp, Self.isFromChannel(stamp) else { return id }
    return stamp.id
  }

  // MARK: Pictures

  /// Attachments with a copy of those that are pictures, which the page shows; of all others, and of those that cannot
  /// be had, the link.
  private func stored(_ attachments: [Attachment]) async -> [Attachment] {
    var stored: [Attachment] = []
    for attachment in attachments.prefix(chat.limits.attachments) {
      guard case .url(let url) = attachment.reference, attachment.mediaType.hasPrefix("image/"),
        let file = await fetch(url, attachment)
      else {
        stored.append(attachment)
        continue
      }
      var copy = attachment
      copy.reference = .provider(file.sha256)
      stored.append(copy)
    }
    return stored
  }

  /// Whoever names an address must not reach what only this machine can: the client's guard sees to it.
  private func fetch(_ url: String, _ attachment: Attachment) async -> StoredFile? {
    do throws(FerryError) {
      // A file of this service is here already.
      if let sha256 = attachment.sha256, let file = try? await chat.file(sha256) { return file }
      let response = try await client.send(
        ClientRequest(url: url, deadline: .seconds(10), redirects: 3, isTrusted: false))
      guard response.isSuccess else { return nil }
      let bytes = try await response.collect(upTo: Self.mostFileBytes)
      // The same picture again takes no more room. One event is heard at a time, so nobody else takes what is left.
      if let file = try? await chat.file(Crypto.hex(Crypto.digest(.sha256, of: bytes))) { return file }
      guard try await chat.fileBytes() + Int64(bytes.count) <= mostFileBytesInAll else { return nil }
      let rest = Locked<[UInt8]?>(bytes)
      let stream = ByteStream(size: Int64(bytes.count), mediaType: attachment.mediaType) {
        rest.withLock { rest in
          defer { rest = nil }
          return rest
        }
      }
      return try await chat.store(stream, name: attachment.name, mediaType: attachment.mediaType)
    } catch {
      logger.debug("a picture stays a link: \(error)")
      return nil
    }
  }
}
