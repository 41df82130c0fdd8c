import FerryChat
import FerryCore
import FerryRuntime
import FerryTransport

/// From the room to the channel.
extension ChannelView {
  typealias Publish = @Sendable (PublishedEvent) async throws(FerryError) -> Void

  /// Publishes what people write in rooms, until cancelled.
  func tell(_ publish: Publish) async {
    while !Task.isCancelled {
      do throws(FerryError) {
        let reader = try await chat.reader(of: nil, after: nil)
        defer { reader.close() }
        _ = isFollowing.offer(())
        while true {
          let items = try await reader.next()
          if items.isEmpty { break }
          for item in items { await tell(item, publish) }
        }
        // Closed, and not by us.
        return
      } catch {
        logger.warning("what is written in rooms cannot be read: \(error)")
        do { try await clock.sleep(for: .seconds(1)) } catch { return }
      }
    }
  }

  private func tell(_ item: FeedItem, _ publish: Publish) async {
    do {
      guard let event = try await published(item) else { return }
      try await publish(event)
    } catch {
      logger.warning("something that was written in a room is not published: \(FerryError.wrap(error))")
    }
  }

  private func published(_ item: FeedItem) async throws -> PublishedEvent? {
    switch item {
    case .typing(let typing):
      guard !Self.isFromChannel(typing.stamp), let writer = writer(for: typing.channel) else { return nil }
      let names = typing.on ? profile.events.typing : profile.events.typingStopped
      return try event(names, in: typing.channel, try writer.typing(typing))
    case .event(let logged):
      let event = try logged.event()
      guard !Self.isFromChannel(event.stamp), let writer = writer(for: event.channel) else { return nil }
      return try await published(event.kind, in: event.channel, writer)
    }
  }

  private func published(
    _ kind: Event.Kind, in channel: ChannelID, _ writer: EventWriter
  ) async throws -> PublishedEvent? {
    let names = profile.events
    switch kind {
    case .posted(let message):
      return try event(names.message, in: channel, try await data(of: message, in: channel, writer))
    case .edited(let message):
      return try event(names.edit, in: channel, try await data(of: message, in: channel, writer))
    case .deleted(let deletion):
      let id = try await channelID(of: deletion.id, in: channel)
      return try event(names.delete, in: channel, try writer.deletion(id, by: deletion.by, nil))
    case .reacted(var reaction):
      reaction.message = try await channelID(of: reaction.message, in: channel)
      return try event(names.reaction, in: channel, try writer.reaction(reaction))
    case .read(var mark):
      mark.upTo = try await channelID(of: mark.upTo, in: channel)
      return try event(mark.state == .read ? names.read : names.delivered, in: channel, try writer.mark(mark))
    case .joined(let membership): return try event(names.join, in: channel, try writer.membership(membership))
    case .left(let membership): return try event(names.leave, in: channel, try writer.membership(membership))
    }
  }

  // MARK: Pieces

  /// Nil for rooms that no channel belongs to.
  private func writer(for channel: ChannelID) -> EventWriter? {
    guard let name = ChannelName(service: channel.rawValue), !name.isEncrypted else { return nil }
    return EventWriter(profile: profile, channel: name.text)
  }

  private func event(_ names: [String], in channel: ChannelID, _ data: String) throws -> PublishedEvent {
    try PublishedEvent(name: names[0], channels: [channel.rawValue], data: data)
  }

  /// A message as the app's clients read it. One that is longer than an event may be is cut, and says so.
  private func data(of message: Message, in channel: ChannelID, _ writer: EventWriter) async throws -> String {
    let id = try await channelID(of: message.id, in: channel)
    var outgoing = OutgoingMessage(
      key: SendKey("page:\(message.id)"), author: message.author, text: message.text, time: message.time,
      attachments: message.attachments.compactMap(link))
    if let replyTo = message.replyTo { outgoing.replyTo = try? await channelID(of: replyTo, in: channel) }
    var length = message.text.count
    while true {
      do throws(FerryError) {
        return try writer.message(outgoing, id: id, now: clock.now())
      } catch {
        guard error.code == .tooLarge, length > 16 else { throw error }
        length = length * 3 / 4
        outgoing.text = message.text.prefix(length) + " [\u{2026}]"
      }
    }
  }

  private func link(_ attachment: Attachment) -> OutgoingAttachment? {
    let url: String?
    switch attachment.reference {
    case .url(let given): url = given
    case .provider(let sha256): url = self.url(ofFile: sha256, name: attachment.name)
    }
    return url.map {
      OutgoingAttachment(
        name: attachment.name, mediaType: attachment.mediaType, size: attachment.size ?? 0,
        sha256: attachment.sha256 ?? "", reference: .url($0))
    }
  }

  // MARK: Files

  /// The bytes of a file that was sent from a room: whoever was told of it knows its sum, and nobody else does.
  func file(_ sha256: String, name: String) async throws -> HTTPResponse {
    let file: StoredFile
    do {
      file = try await chat.file(sha256)
    } catch {
      throw Refusal(404, "Not found: there is no such file")
    }
    let mayShow = ["image/png", "image/jpeg", "image/gif", "image/webp"].contains(file.mediaType)
    // Strangers' bytes: nothing in them may run, wherever they are shown.
    return HTTPResponse(
      status: 200,
      headers: [
        "Content-Type": file.mediaType, "ETag": "\"\(file.sha256)\"",
        "Content-Disposition":
          "\(mayShow ? "inline" : "attachment"); filename*=UTF-8''\(PercentEncoding.encode(name))",
        "X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cross-Origin-Resource-Policy": "cross-origin", "Cache-Control": "private, max-age=31536000, immutable",
      ], body: .stream(try await chat.bytes(of: file)))
  }
}
