package import FerryCore
import FerryRuntime

/// What is not a message: deletes, typing, marks, reactions and members.
extension PusherAdapter: DeletingProvider {
  package func delete(
    _ id: MessageID, in channel: ChannelID, as author: Author?, stamp: Stamp?
  ) async throws(FerryError) {
    let name = try checked(channel)
    let writer = writer(for: name)
    let data = try writer.deletion(id, by: author, stamp)
    try await send(
      .delete, named: writer.profile.events.delete, data, on: name, id: "\(id)-d", doing: "delete the message")
  }
}

extension PusherAdapter: TypingProvider {
  package func setTyping(_ typing: Typing) async throws(FerryError) {
    let name = try checked(typing.channel)
    let writer = writer(for: name)
    let events = writer.profile.events
    try await send(
      .typing, named: typing.on ? events.typing : events.typingStopped, try writer.typing(typing), on: name,
      id: Crypto.randomHex(bytes: 8), doing: "show typing")
  }
}

extension PusherAdapter: ReadingProvider, ReactingProvider {
  package func mark(_ mark: ReadMark, in channel: ChannelID) async throws(FerryError) {
    let name = try checked(channel)
    let writer = writer(for: name)
    if let data = try row(of: mark, in: channel, writer) {
      let outgoing = Outgoing(event: writer.profile.events.edit[0], data: data, id: Crypto.randomHex(bytes: 8))
      return try await publish(outgoing, on: name, doing: "mark the message")
    }
    let events = writer.profile.events
    let isRead = mark.state == .read
    try await send(
      isRead ? .read : .delivered, named: isRead ? events.read : events.delivered, try writer.mark(mark), on: name,
      id: Crypto.randomHex(bytes: 8), doing: "mark the message")
  }

  /// Where reads are told by writing a message's row again, which has to be known; nil otherwise.
  private func row(
    of mark: ReadMark, in channel: ChannelID, _ writer: EventWriter
  ) throws(FerryError) -> String? {
    guard writer.profile.preset == .nextjsMessenger, mark.state == .read, let reader = mark.by,
      let session = live.withLock({ $0.connection })?.session,
      let row = session.withLock({ $0.memory.messages.row(mark.upTo, in: channel)?.data })
    else { return nil }
    return try writer.row(row, readBy: reader, mark.stamp)
  }

  package func react(_ reaction: Reaction, in channel: ChannelID) async throws(FerryError) {
    let name = try checked(channel)
    let writer = writer(for: name)
    try await send(
      .reaction, named: writer.profile.events.reaction, try writer.reaction(reaction), on: name,
      id: Crypto.randomHex(bytes: 8), doing: "send the reaction")
  }
}

extension PusherAdapter: MembershipProvider {
  private static let mostAnnounced = 1000

  /// Only presence channels know who is there. Ferry itself is not listed; those that it announced are.
  package func members(of channel: ChannelID) async throws(FerryError) -> [Author] {
    let name = try checked(channel)
    guard name.isPresence else {
      throw FerryError(.unsupported, "Only presence channels know their members, and \"\(channel)\" is none.")
    }
    let answer = try await publisher().get("channels/\(name.text)/users", doing: "list the members")
    let own = (settings.user ?? .ferry).id
    let names = live.withLock { $0.connection }?.session.withLock { $0.memory.members[channel] } ?? [:]
    let present = (answer["users"]?.array ?? []).compactMap { user -> Author? in
      guard let id = user["id"]?.text, id != own else { return nil }
      let name = names[id] ?? ""
      return Author(id: UserID(id), name: name.isEmpty ? id : name)
    }
    let others = announced.withLock { $0[channel] ?? [:] }.values.filter { author in
      !present.contains { $0.id == author.id }
    }
    return present + others.sorted { $0.id < $1.id }
  }

  /// Announced as an event: nobody can be made to subscribe.
  package func setMember(
    _ membership: Membership, of channel: ChannelID, present: Bool
  ) async throws(FerryError) {
    let name = try checked(channel)
    let writer = writer(for: name)
    let event = present ? writer.profile.events.join[0] : writer.profile.events.leave[0]
    let outgoing = Outgoing(event: event, data: try writer.membership(membership), id: Crypto.randomHex(bytes: 8))
    try await publish(outgoing, on: name, doing: "announce a member")
    announced.withLock { announced in
      let member = membership.member
      guard present else {
        announced[channel]?[member.id] = nil
        return
      }
      guard announced[channel]?.count ?? 0 < Self.mostAnnounced else { return }
      announced[channel, default: [:]][member.id] = member
    }
  }
}
