import FerryCore
import FerryRuntime
import FerryTransport

/// The socket.
extension PusherFacade {
  private static let protocols = 5...7
  private static let subprotocols = "pusher-channels-protocol-"
  /// A client event of the largest size, each character escaped, fits in.
  private static let messageBytes = 100_000

  /// Who is not welcome is upgraded all the same: clients act on codes that only a socket can carry. Without a key,
  /// the path was wrong.
  func openSocket(_ request: HTTPRequest, key: String?) -> HTTPResponse {
    let version = request.query("protocol")
    var webSocket = WebSocketSettings()
    webSocket.messageBytes = Self.messageBytes
    webSocket.queueBytes = settings.queueBytes
    webSocket.slowCode = ErrorCode.overCapacity.rawValue
    webSocket.slowReason = "The client reads too slowly"
    // Frames, not events: there are clients that answer only these.
    webSocket.pingAfter = .seconds(settings.activityTimeout)
    webSocket.pongTimeout = .seconds(settings.pongTimeout)
    webSocket.deadCode = ErrorCode.noPong.rawValue
    webSocket.deadReason = "Pong reply not received in time"
    webSocket.stopCode = ErrorCode.reconnect.rawValue
    webSocket.stopReason = "The server is shutting down; please reconnect"
    webSocket.closeTimeout = settings.closeTimeout
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

  private func serve(_ socket: WebSocket, key: String?, version: String?) async {
    if let (code, message) = refusal(key: key, version: version) {
      Self.end(socket, code, message)
      return
    }
    let now = clock.now()
    let admission = change { hub in
      let admission = hub.open(socket, now: now)
      if case .socketID(let socketID) = admission {
        socket.send(FrameText.established(socketID: socketID, activityTimeout: settings.activityTimeout))
      }
      return admission
    }
    switch admission {
    case .refused(let code, let message):
      metrics?.add(to: "ferry_pusher_facade_refused_connections_total")
      Self.end(socket, code, message)
    case .socketID(let socketID):
      metrics?.add(to: "ferry_pusher_facade_connections_total")
      while let message = await socket.next() {
        switch message {
        case .text(let text): await received(text, from: socket, socketID)
        case .binary: socket.send(FrameText.error(nil, "Binary frames are not supported"))
        }
      }
      let now = clock.now()
      change { $0.close(socket.id, now: now) }
    }
  }

  private func refusal(key: String?, version: String?) -> (ErrorCode, String)? {
    guard let key else { return (.pathNotFound, "There is no socket at this path; it is /app/KEY") }
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
    case "pusher:signin": signIn(frame, socket, socketID)
    case let name where EventName.isFromClient(name): clientEvent(frame, socket)
    default:
      socket.send(FrameText.error(nil, "Event \"\(frame.event.prefix(64))\" is not one that clients may send"))
    }
  }

  /// Once in, a connection stays the same user's; whoever fails to prove who they are is let go.
  private func signIn(_ frame: Frame, _ socket: WebSocket, _ socketID: String) {
    let data = frame.data?.parsed
    let userData = data?["user_data"]?.string ?? ""
    do throws(Refusal) {
      try checkSignature(
        data?["auth"]?.string ?? "", of: AppKey.userString(socketID: socketID, userData: userData), what: "sign-in")
      let user = try SignedInUser(userData: userData)
      guard change({ $0.signIn(socket.id, as: user) }) else {
        throw Refusal(401, "This connection is signed in as another user; open a new one")
      }
    } catch {
      Self.end(socket, .unauthorized, error.text)
    }
  }

  /// Checks `KEY:SIGNATURE` over a text exactly as it arrived.
  func checkSignature(_ auth: String, of text: String, what: String) throws(Refusal) {
    guard let colon = auth.firstIndex(of: ":"), Crypto.areEqual(String(auth[..<colon]), settings.key) else {
      let key = auth.prefix { $0 != ":" }
      throw Refusal(401, "Invalid key in \(what) auth data: '\(key.prefix(64))'")
    }
    let signature = String(auth[auth.index(after: colon)...])
    guard Crypto.areEqual(signature, appKey.signature(of: text)) else {
      throw Refusal(
        401, "Invalid signature: Expected HMAC SHA256 hex digest of \(text), but got \(signature.prefix(64))")
    }
  }

  private func clientEvent(_ frame: Frame, _ socket: WebSocket) {
    guard settings.clientEvents else {
      socket.send(FrameText.error(nil, "To send client events, you must enable this feature in the Settings"))
      return
    }
    guard let channel = frame.channel.flatMap({ ChannelName($0) }), channel.isSigned, !channel.isEncrypted else {
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
    let echoes = echoesWrites
    let error = change { hub in
      hub.deliver(client: frame.event, data, to: channel.text, from: socket.id, echoes: echoes, now: now)
    }
    if let error {
      socket.send(error)
    } else if let view {
      let userID = hub.withLock { $0.connections[socket.id]?.seats[channel.text]?.userID }
      view.heard(frame.event, on: channel, data, userID: userID)
    }
  }
}
