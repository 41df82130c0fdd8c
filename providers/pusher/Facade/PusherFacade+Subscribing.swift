import FerryCore
import FerryRuntime
import FerryTransport

/// Subscriptions.
extension PusherFacade {
  func subscribe(_ frame: Frame, _ socket: WebSocket, _ socketID: String) async {
    let data = frame.data?.parsed
    let name = data?["channel"]?.string ?? ""
    do {
      let channel = try ChannelName.checked(name)
      let member = try authorize(channel, data, socket.id, socketID)
      // What the store keeps has to be at hand before the seat is taken, so that nothing comes between.
      if channel.isCache { try await cached(channel) }
      let now = clock.now()
      if let refusal = change({ $0.admit(channel, socket.id, as: member, now: now) }) {
        refuse(name, refusal, socket)
      }
    } catch let refusal as Refusal {
      refuse(name, refusal, socket)
    } catch {
      logger.error("subscription failed: \(FerryError.wrap(error))")
      refuse(name, Refusal(503, "The subscription failed on the server; try again"), socket)
    }
  }

  /// Checks the signature over the strings exactly as they arrived, and says who joins a presence channel. A user's
  /// own channel needs no signature, but a connection that has signed in as that user.
  private func authorize(
    _ channel: ChannelName, _ data: JSONValue?, _ id: UInt64, _ socketID: String
  ) throws(Refusal) -> PresenceList.Member? {
    guard channel.access != .everybody else { return nil }
    let user = hub.withLock { $0.connections[id]?.user }
    if let owner = channel.userID {
      guard let user, Crypto.areEqual(user.id, owner) else {
        throw Refusal(401, "Channel \(channel.text) is only for a connection that has signed in as that user")
      }
      return nil
    }
    let channelData = channel.isPresence ? data?["channel_data"]?.string : nil
    try checkSignature(
      data?["auth"]?.string ?? "",
      of: AppKey.channelString(socketID: socketID, channel: channel.text, channelData: channelData),
      what: "subscription")
    guard channel.isPresence else { return nil }
    if let channelData { return try PresenceList.Member(channelData: channelData) }
    guard let user else {
      throw Refusal(401, "Missing channel_data: a presence channel needs it from a connection that has not signed in")
    }
    return user.member
  }

  /// The socket stays open. Clients look for one or the other of the two events.
  private func refuse(_ channel: String, _ refusal: Refusal, _ socket: WebSocket) {
    socket.send(FrameText.error(nil, refusal.text))
    guard !channel.isEmpty else { return }
    let data =
      #"{"type":"\#(refusal.type.rawValue)","error":\#(JSONText.quoted(refusal.text)),"status":\#(refusal.status)}"#
    socket.send(
      FrameText.event(
        "pusher:subscription_error", channel: String(channel.prefix(ChannelName.longestAccepted)), data: data))
  }

  func unsubscribe(_ frame: Frame, _ socket: WebSocket) {
    let name = frame.data?.parsed["channel"]?.string ?? ""
    let now = clock.now()
    guard !change({ $0.leave(name, socket.id, now: now) }) else { return }
    socket.send(
      FrameText.error(
        nil,
        "No current subscription to channel \(name.prefix(ChannelName.longestAccepted)), or subscription in progress"))
  }
}
