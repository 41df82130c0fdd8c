import FerryCore
import FerryRuntime
import FerryTransport

/// The socket.
extension PusherFacade {
  private static let protocols = 5...7
  private static let subprotocols = "pusher-channels-protocol-"
  /// A client event of the largest size, each character escaped, fits in.
  private static let messageBytes = 100_000

  func openSocket(_ request: HTTPRequest, key: String) -> HTTPResponse {
    let version = request.query("protocol")
    var webSocket = WebSocketSettings()
    webSocket.messageBytes = Self.messageBytes
    webSocket.queueBytes = settings.queueBytes
    // Frames, not events: there are clients that answer only these.
    webSocket.pingAfter = .seconds(settings.activityTimeout)
    webSocket.pongTimeout = .seconds(settings.pongTimeout)
    webSocket.deadCode = ErrorCode.noPong.rawValue
    webSocket.deadReason = "Pong reply not received in time"
    webSocket.stopCode = ErrorCode.reconnect.rawValue
    webSocket.stopReason = "The server is shutting down; please reconnect"
    return HTTPResponse(
      status: 101,
      body: .webSocket(subprotocol: Self.subprotocol(offered: request.headers), settings: webSocket) { socket in
        await self.serve(socket, key: key, version: version)
      })
  }

  /// The newest of ours that was offered: a client that offers one gives up when none is chosen.
  private static func subprotocol(offered headers: HTTPHeaders) -> String? {
    protocols.reversed().map { "\(subprotocols)\($0)" }.first { headers.list("Sec-WebSocket-Protocol", contains: $0) }
  }

  private func serve(_ socket: WebSocket, key: String, version: String?) async {
    if let (code, message) = refusal(key: key, version: version) {
      Self.end(socket, code, message)
      return
    }
    let socketID = hub.withLock { hub in
      let socketID = hub.open(socket)
      socket.send(FrameText.established(socketID: socketID, activityTimeout: settings.activityTimeout))
      return socketID
    }
    metrics?.add(to: "ferry_pusher_facade_connections_total")
    while let message = await socket.next() {
      switch message {
      case .text(let text): await received(text, from: socket, socketID)
      case .binary: socket.send(FrameText.error(nil, "Binary frames are not supported"))
      }
    }
    hub.withLock { $0.close(socket.id) }
  }

  private func refusal(key: String, version: String?) -> (ErrorCode, String)? {
    guard Crypto.areEqual(key, settings.key) else {
      return (.unknownKey, "App key \(key.prefix(64)) does not exist here; check the key and the host")
    }
    guard let version else { return (.noProtocol, "No protocol version was given; add protocol=7") }
    guard let number = Int(version) else { return (.badVersion, "The protocol version is not a number") }
    guard Self.protocols.contains(number) else {
      return (.unsupportedProtocol, "Protocol version \(number) is not supported; use 5, 6 or 7")
    }
    return nil
  }

  // MARK: Frames from clients

  private func received(_ text: String, from socket: WebSocket, _ socketID: String) async {
    guard let frame = Frame(text: text) else {
      socket.send(FrameText.error(nil, "The frame is not a JSON object with an event"))
      return
    }
    switch frame.event {
    case "pusher:ping": socket.send(FrameText.pong)
    case "pusher:pong": break
    case "pusher:subscribe": await subscribe(frame, socket, socketID)
    case "pusher:unsubscribe": unsubscribe(frame, socket)
    case let name where EventName.isFromClient(name): clientEvent(frame, socket)
    default:
      socket.send(FrameText.error(nil, "Event \"\(frame.event.prefix(64))\" is not one that clients may send"))
    }
  }

  private func subscribe(_ frame: Frame, _ socket: WebSocket, _ socketID: String) async {
    let data = frame.data?.parsed
    let name = data?["channel"]?.string ?? ""
    do {
      let channel = try ChannelName.checked(name)
      let member = try authorize(channel, data, socketID)
      // What the store keeps has to be at hand before the seat is taken, so that nothing comes between.
      if channel.isCache { try await cached(channel) }
      let now = clock.now()
      let limit = settings.channelsPerConnection
      if let refusal = hub.withLock({ $0.admit(channel, socket.id, as: member, limit: limit, now: now) }) {
        refuse(name, refusal, socket)
      }
    } catch let refusal as Refusal {
      refuse(name, refusal, socket)
    } catch {
      logger.error("subscription failed: \(FerryError.wrap(error))")
      refuse(name, Refusal(503, "The subscription failed on the server; try again"), socket)
    }
  }

  /// Checks the signature over the strings exactly as they arrived, and says who joins a presence channel.
  private func authorize(
    _ channel: ChannelName, _ data: JSONValue?, _ socketID: String
  ) throws(Refusal) -> PresenceList.Member? {
    guard channel.access != .everybody else { return nil }
    let auth = data?["auth"]?.string ?? ""
    guard let colon = auth.firstIndex(of: ":") else {
      throw Refusal(401, "Invalid key in subscription auth data: '\(auth.prefix(64))'")
    }
    guard Crypto.areEqual(String(auth[..<colon]), settings.key) else {
      throw Refusal(401, "Invalid key in subscription auth data: '\(auth[..<colon].prefix(64))'")
    }
    let channelData = channel.isPresence ? data?["channel_data"]?.string ?? "" : nil
    let text = AppKey.channelString(socketID: socketID, channel: channel.text, channelData: channelData)
    let signature = String(auth[auth.index(after: colon)...])
    guard Crypto.areEqual(signature, appKey.signature(of: text)) else {
      throw Refusal(
        401, "Invalid signature: Expected HMAC SHA256 hex digest of \(text), but got \(signature.prefix(64))")
    }
    return try channelData.map { text throws(Refusal) in try PresenceList.Member(channelData: text) }
  }

  /// The socket stays open. Clients look for one or the other of the two events.
  private func refuse(_ channel: String, _ refusal: Refusal, _ socket: WebSocket) {
    socket.send(FrameText.error(nil, refusal.text))
    guard !channel.isEmpty else { return }
    let type = refusal.status == 401 ? "AuthError" : "SubscriptionError"
    let data =
      #"{"type":"\#(type)","error":\#(JSONText.quoted(refusal.text)),"status":\#(refusal.status)}"#
    socket.send(
      FrameText.event(
        "pusher:subscription_error", channel: String(channel.prefix(ChannelName.longestAccepted)), data: data))
  }

  private func unsubscribe(_ frame: Frame, _ socket: WebSocket) {
    let name = frame.data?.parsed["channel"]?.string ?? ""
    guard !hub.withLock({ $0.leave(name, socket.id) }) else { return }
    socket.send(
      FrameText.error(
        nil,
        "No current subscription to channel \(name.prefix(ChannelName.longestAccepted)), or subscription in progress"))
  }

  private func clientEvent(_ frame: Frame, _ socket: WebSocket) {
    guard settings.clientEvents else {
      socket.send(FrameText.error(nil, "To send client events, you must enable this feature in the Settings"))
      return
    }
    guard let channel = frame.channel.flatMap({ ChannelName($0) }), channel.access != .everybody, !channel.isEncrypted
    else {
      socket.send(
        FrameText.error(nil, "Client event rejected - only supported on private and presence channels"))
      return
    }
    // No data becomes an empty object: there are clients that die of an event without.
    let data = frame.data?.string ?? "{}"
    guard data.utf8.count <= Limits.dataBytes, frame.event.unicodeScalars.count <= EventName.longest else {
      socket.send(
        FrameText.error(
          nil, "Client event rejected - its data may be \(Limits.dataBytes) bytes, its name 200 characters"))
      return
    }
    let now = clock.now()
    let error = hub.withLock { hub -> String? in
      guard let seat = hub.connections[socket.id]?.seats[channel.text] else {
        return FrameText.error(nil, "Client event rejected - you are not subscribed to \(channel.text)")
      }
      guard hub.admitClientEvent(from: socket.id, now: now, limit: settings.clientEventsPerSecond) else {
        return FrameText.error(
          .rateLimited, "Client event rejected - the limit is \(settings.clientEventsPerSecond) a second")
      }
      let text = FrameText.event(frame.event, channel: channel.text, data: data, userID: seat.userID)
      hub.deliver(text, to: channel.text, except: socket.id)
      return nil
    }
    if let error { socket.send(error) }
  }
}
