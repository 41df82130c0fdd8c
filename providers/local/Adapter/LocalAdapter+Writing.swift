import FerryChat
package import FerryCore
import FerryRuntime
import FerryTransport

extension LocalAdapter: BatchingProvider, EditingProvider, DeletingProvider, TypingProvider, UploadingProvider,
  MembershipProvider, ReadingProvider, ReactingProvider
{
  package func post(_ message: OutgoingMessage, to channel: ChannelID) async throws(FerryError) -> MessageID {
    var json = JSONWriter()
    try Self.write(message, to: &json)
    let posted = try await call(
      "POST", Self.path(channel, "messages"), json: json.text, Answers.Posted.self, doing: "post a message")
    return MessageID(posted.id)
  }

  package func post(
    _ messages: [OutgoingMessage], to channel: ChannelID
  ) async throws(FerryError) -> [MessageID] {
    var json = JSONWriter(capacity: 256 * messages.count)
    json.begin()
    json.name("messages")
    json.begin("[")
    for message in messages { try Self.write(message, to: &json) }
    json.end("]")
    json.end()
    let posted = try await call(
      "POST", Self.path(channel, "messages"), json: json.text, Answers.PostedMessages.self, doing: "post messages")
    guard posted.messages.count == messages.count else {
      throw FerryError(
        .badData, "Could not post messages: the answer names another number of them.", retry: .now, didNotAct: false)
    }
    return posted.messages.map { MessageID($0.id) }
  }

  package func edit(
    _ id: MessageID, in channel: ChannelID, to message: OutgoingMessage
  ) async throws(FerryError) {
    let body = Bodies.Edit(
      text: message.text, format: message.format, attachments: message.attachments.map(Self.wire),
      stamp: message.stamp)
    try await call("PATCH", Self.path(channel, "messages", id.rawValue), body, doing: "edit a message")
  }

  package func delete(
    _ id: MessageID, in channel: ChannelID, as author: Author?, stamp: Stamp?
  ) async throws(FerryError) {
    let body = Bodies.Act(by: author.map { Wire.Author(Self.fitted($0)) }, stamp: stamp)
    do throws(FerryError) {
      try await call("DELETE", Self.path(channel, "messages", id.rawValue), body, doing: "delete a message")
    } catch  where error.code == .notFound {
      return
    }
  }

  package func setTyping(_ typing: Typing) async throws(FerryError) {
    let body = Bodies.Typing(by: Wire.Author(Self.fitted(typing.by)), on: typing.on, stamp: typing.stamp)
    try await call("POST", Self.path(typing.channel, "typing"), body, doing: "show who is typing")
  }

  package func upload(
    _ bytes: ByteStream, name: String, mediaType: String, to channel: ChannelID
  ) async throws(FerryError) -> AttachmentReference {
    let name = PercentEncoding.encode(Self.shortened(name))
    var request = ClientRequest(
      method: "POST", url: "\(settings.url)/v1/files?name=\(name)", headers: authorization,
      body: .stream(bytes), deadline: .seconds(600))
    // The type is in the query: a header could be rewritten, or refused, on the way.
    request.url += "&type=\(PercentEncoding.encode(mediaType))"
    request.headers.set("Content-Type", "application/octet-stream")
    let response = try await send(request, doing: "upload a file")
    let answer = try Wire.value(Answers.File.self, from: try await response.collect(upTo: 64 << 10))
    return .provider(answer.sha256)
  }

  package func members(of channel: ChannelID) async throws(FerryError) -> [Author] {
    let answer = try await get(Self.path(channel, "members"), Answers.Members.self, doing: "list the members")
    return answer.members.map(\.author)
  }

  package func setMember(
    _ membership: Membership, of channel: ChannelID, present: Bool
  ) async throws(FerryError) {
    let member = Self.fitted(membership.member)
    let path = Self.path(channel, "members", member.id.rawValue)
    if present {
      let body = Bodies.Member(name: member.name, avatar: member.avatar, stamp: membership.stamp)
      try await call("PUT", path, body, doing: "add a member")
      return
    }
    do throws(FerryError) {
      try await call("DELETE", path, Bodies.Member(stamp: membership.stamp), doing: "remove a member")
    } catch  where error.code == .notFound {
      return
    }
  }

  package func mark(_ mark: ReadMark, in channel: ChannelID) async throws(FerryError) {
    // A source that does not say who read still says that somebody did.
    let reader = Self.fitted(mark.by ?? Author(id: "somebody", name: "Somebody"))
    let body = Bodies.Read(
      id: mark.upTo.rawValue, state: mark.state, name: reader.name, avatar: reader.avatar, stamp: mark.stamp)
    try await call("PUT", Self.path(channel, "reads", reader.id.rawValue), body, doing: "mark messages as read")
  }

  package func react(_ reaction: Reaction, in channel: ChannelID) async throws(FerryError) {
    let path = Self.path(channel, "messages", reaction.message.rawValue, "reactions", reaction.emoji)
    let body = Bodies.Act(by: Wire.Author(Self.fitted(reaction.by)), stamp: reaction.stamp)
    try await call(reaction.added ? "PUT" : "DELETE", path, body, doing: "react to a message")
  }

  // MARK: Bodies

  /// A `Bodies.Post`, written directly: it is the relay's most frequent request.
  private static func write(_ message: OutgoingMessage, to json: inout JSONWriter) throws(FerryError) {
    json.begin()
    json.member("client_id", fitted(id: message.key.rawValue))
    json.name("author")
    Wire.Author(fitted(message.author)).write(to: &json)
    json.member("text", message.text)
    json.member("format", message.format.rawValue)
    json.member("time", message.time?.iso8601)
    if !message.attachments.isEmpty { try json.member("attachments", encoding: message.attachments.map(wire)) }
    json.member("reply_to", message.replyTo?.rawValue)
    json.member("stamp", message.stamp)
    json.end()
  }

  static func wire(_ attachment: OutgoingAttachment) -> Wire.Attachment {
    let attachment = fitted(attachment)
    return Wire.Attachment(
      Attachment(
        name: attachment.name, mediaType: attachment.mediaType, size: attachment.size, sha256: attachment.sha256,
        reference: attachment.reference))
  }
}

extension LocalAdapter: SetupProvider {
  package func setUp(_ channels: [ChannelID]) async throws(FerryError) -> [String] {
    let there = Set(try await self.channels().map(\.id))
    var made: [String] = []
    for channel in channels where !there.contains(channel) {
      try await call("PUT", Self.path(channel), [String: String](), doing: "make the room \(channel)")
      made.append("the room \(channel)")
    }
    return made
  }
}
