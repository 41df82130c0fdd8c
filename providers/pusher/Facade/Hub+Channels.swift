import FerryCore
import FerryTransport

/// Coming to channels and going.
extension Hub {
  /// Seats a connection unless the channel or the connection is full. What is confirmed twice is announced once.
  mutating func admit(
    _ channel: ChannelName, _ id: UInt64, as member: PresenceList.Member?, now: Timestamp
  ) -> Refusal? {
    let name = channel.text
    if isSubscribed(id, to: name) {
      if settings.strict { return Refusal(400, "Existing subscription to channel \(name)") }
    } else {
      if let member, isFull(name, for: member.id) {
        return Refusal(
          4100, "Channel \(name) is full: it takes \(Limits.presenceMembers) members", type: .limitReached)
      }
      if connections[id]?.seats.count ?? 0 >= settings.channelsPerConnection {
        return Refusal(
          4100, "This connection has \(settings.channelsPerConnection) subscriptions already", type: .limitReached)
      }
    }
    join(channel, id, as: member, now: now)
    return nil
  }

  /// Seats a connection and confirms it, so that the confirmation precedes every event of the channel. To seat one
  /// that is there already only confirms again.
  private mutating func join(_ channel: ChannelName, _ id: UInt64, as member: PresenceList.Member?, now: Timestamp) {
    guard let socket = connections[id]?.socket else { return }
    let name = channel.text
    let isNew = !isSubscribed(id, to: name)
    var isFirst = false
    if isNew {
      let index = rooms[name, default: Room()].subscribers.count
      if index == 0 { notices.occupied(name) }
      connections[id]?.seats[name] = Seat(index: index, userID: member?.id)
      if let member { isFirst = rooms[name, default: Room()].presence.join(member) }
      rooms[name, default: Room()].subscribers.append(Subscriber(id: id, socket: socket))
    }
    let data = channel.isPresence ? rooms[name]?.presence.text ?? "{}" : "{}"
    socket.send(
      FrameText.event("pusher_internal:subscription_succeeded", channel: name, data: data))
    guard isNew else { return }
    if channel.isCache { sendCached(name, to: socket, now: now) }
    if isFirst, let member {
      let data = #"{"user_id":\#(JSONText.quoted(member.id)),"user_info":\#(member.info)}"#
      deliver(FrameText.event("pusher_internal:member_added", channel: name, data: data), to: name, except: id)
      notices.added(member.id, to: name)
      note(member, on: name, isThere: true)
    }
    countChanged(name, now: now)
  }

  /// False when the connection was not there.
  @discardableResult
  mutating func leave(_ channel: String, _ id: UInt64, now: Timestamp) -> Bool {
    guard let seat = connections[id]?.seats.removeValue(forKey: channel) else { return false }
    if let last = rooms[channel]?.subscribers.popLast(), last.id != id {
      rooms[channel]?.subscribers[seat.index] = last
      connections[last.id]?.seats[channel]?.index = seat.index
    }
    if let userID = seat.userID, rooms[channel]?.presence.leave(userID) == true {
      let data = #"{"user_id":\#(JSONText.quoted(userID))}"#
      deliver(FrameText.event("pusher_internal:member_removed", channel: channel, data: data), to: channel)
      notices.removed(userID, from: channel, now: now)
      note(PresenceList.Member(id: userID, info: "{}"), on: channel, isThere: false)
    }
    countChanged(channel, now: now)
    if rooms[channel]?.subscribers.isEmpty == true {
      rooms[channel] = nil
      notices.vacated(channel, now: now)
    }
    return true
  }

  private mutating func note(_ member: PresenceList.Member, on channel: String, isThere: Bool) {
    if notesComings { comings.append(Coming(channel: channel, member: member, isThere: isThere)) }
  }

  /// Whether one more user would be more than a presence channel takes.
  private func isFull(_ channel: String, for userID: String) -> Bool {
    guard let presence = rooms[channel]?.presence else { return false }
    return presence.count >= Limits.presenceMembers && !presence.contains(userID)
  }

  // MARK: Numbers of subscribers

  /// Tells everybody on the channel how many they are: at once while they are few, every few seconds when they are
  /// many. Members of a presence channel know already.
  mutating func countChanged(_ channel: String, now: Timestamp) {
    guard settings.subscriptionCount, Self.isCounted(channel), let room = rooms[channel] else { return }
    if room.subscribers.count > Limits.countedAtOnce {
      rooms[channel]?.hasCountChanged = room.isCountHeld
      guard !room.isCountHeld else { return }
      rooms[channel]?.isCountHeld = true
      notices.schedule.add(.count(channel), after: Notices.countDelay, now: now)
    } else {
      rooms[channel]?.hasCountChanged = false
    }
    tellCount(room.subscribers.count, on: channel)
  }

  /// The time in which the number was not told again is over.
  mutating func countReleased(_ channel: String, now: Timestamp) {
    guard let room = rooms[channel], room.isCountHeld else { return }
    rooms[channel]?.isCountHeld = false
    if room.hasCountChanged { countChanged(channel, now: now) }
  }

  private mutating func tellCount(_ count: Int, on channel: String) {
    deliver(
      FrameText.event(
        "pusher_internal:subscription_count", channel: channel, data: #"{"subscription_count":\#(count)}"#),
      to: channel)
    notices.note(.subscriptionCount(channel, count))
  }

  private static func isCounted(_ channel: String) -> Bool {
    !channel.hasPrefix("presence-") && !channel.hasPrefix(ChannelName.userPrefix)
  }
}
