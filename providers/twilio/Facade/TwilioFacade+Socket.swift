import FerryChat
import FerryCore
import FerryRuntime
import FerryTransport
import FoundationEssentials

/// The realtime socket: what client SDKs use besides REST, as far as typing needs it.
extension TwilioFacade {
  static let typing = "twilio.ipmsg.typing_indicator"
  private static let packetBytes = 256 << 10

  func openSocket(_ request: HTTPRequest) -> HTTPResponse {
    let base = base(request)
    let settings = WebSocketSettings(
      messageBytes: Self.packetBytes, pingAfter: .seconds(45), messagesPerSecond: 100)
    return HTTPResponse(
      status: 101,
      body: .webSocket(subprotocol: nil, settings: settings) { socket in await self.serve(socket, base: base) })
  }

  private func serve(_ socket: WebSocket, base: String) async {
    let now = clock.now()
    hub.withLock { $0.open(socket, at: now) }
    _ = tokenNews.offer(())
    while let message = await socket.next() {
      guard case .binary(let bytes) = message, let packet = try? TwilsockPacket(bytes) else {
        Self.close(socket, 406, "the packet cannot be read")
        break
      }
      await received(packet, from: socket, base: base)
    }
    hub.withLock { $0.close(socket.id) }
  }

  private func received(_ packet: TwilsockPacket, from socket: WebSocket, base: String) async {
    switch packet.method {
    case "init": await begin(packet, socket)
    case "reply": return
    case "close":
      Self.reply(to: packet, socket)
      socket.close()
    case "ping", "telemetry.v1": Self.reply(to: packet, socket)
    case let method?:
      guard let connection = hub.withLock({ $0.connections[socket.id] }), let identity = connection.identity else {
        Self.close(socket, 401, "present a token first")
        return
      }
      switch method {
      case "update": renew(packet, identity, socket)
      case "put_notification_ctx":
        let types = packet.json?["message_types"]?.array?.compactMap(\.string) ?? []
        hub.withLock { $0.setTakesTyping(types.contains(Self.typing), socket.id) }
        Self.reply(to: packet, socket)
      case "delete_notification_ctx":
        hub.withLock { $0.setTakesTyping(false, socket.id) }
        Self.reply(to: packet, socket)
      case "message": await tunnel(packet, identity, connection.service, socket, base: base)
      default: Self.reply(to: packet, socket, status: 400, "BAD_REQUEST")
      }
    case nil: Self.close(socket, 406, "the packet has no method")
    }
  }

  // MARK: Tokens

  private func begin(_ packet: TwilsockPacket, _ socket: WebSocket) async {
    let token: AccessToken
    do throws(FerryError) {
      var presented = try verified(packet.header["token"]?.string ?? "")
      presented.serviceSID = Ledger.sid(presented.serviceSID)
      token = presented
    } catch {
      Self.refuse(packet, error, socket)
      socket.close()
      return
    }
    let registrations = packet.header["registrations"]?.array ?? []
    let takesTyping = registrations.contains { registration in
      registration["message_types"]?.array?.contains(.string(Self.typing)) == true
    }
    do {
      try await write { ledger in
        guard try ledger.service(token.serviceSID) != nil else {
          throw TwilioError(403, 20403, "The token's service does not exist")
        }
        let (user, isNew) = try ledger.user(makingIdentity: token.identity, in: token.serviceSID)
        if isNew { try ledger.announceNew(user, in: token.serviceSID, .sdk(token.identity)) }
      }
    } catch {
      let refusal = (error as? TwilioError) ?? TwilioError(.wrap(error))
      let reason = FerryError(.forbidden, refusal.message, cause: String(refusal.code))
      Self.refuse(packet, reason, socket, status: refusal.status)
      if refusal.status < 500 { socket.close() }
      return
    }
    // The answer goes first: nothing else may come before it.
    Self.reply(
      to: packet, socket,
      more: [
        "continuation_token": .string(Crypto.randomHex(bytes: 16)),
        "continuation_token_status": ["reissued": false, "reissue_message": ""],
        "offline_storage": ["ip_messaging": [:]], "init_registrations": [], "debug_info": [:],
        "capabilities": ["client_update"],
      ])
    hub.withLock { $0.admit(socket.id, token, takesTyping: takesTyping) }
    _ = tokenNews.offer(())
  }

  private func renew(_ packet: TwilsockPacket, _ identity: String, _ socket: WebSocket) {
    do throws(FerryError) {
      let token = try verified(packet.header["token"]?.string ?? "")
      guard token.identity == identity else {
        throw FerryError(.forbidden, "The new token is for another identity.", cause: "20103")
      }
      Self.reply(to: packet, socket)
      hub.withLock { $0.renew(socket.id, until: token.expires) }
      _ = tokenNews.offer(())
    } catch {
      Self.refuse(packet, error, socket)
    }
  }

  /// Warns of tokens that are about to end, and ends with them; until cancelled.
  func watchTokens() async {
    while !Task.isCancelled {
      let now = clock.now()
      let (due, next) = hub.withLock { $0.takeDue(at: now) }
      for item in due {
        switch item {
        case .warn(let socket):
          let header: JSONValue = [
            "id": Self.packetID, "method": "client_update", "client_update_type": "token_about_to_expire",
          ]
          socket.send(TwilsockPacket(header: header).encoded())
        case .end(let socket, let hadToken):
          if hadToken { Self.close(socket, 410, "token expired") } else { Self.close(socket, 401, "no token") }
        }
      }
      await wait(until: next?.milliseconds, orTold: tokenNews)
    }
  }

  // MARK: Packets

  static var packetID: JSONValue { .string("TM\(UUID().uuidString.lowercased())") }

  static func replyHeader(
    _ packet: TwilsockPacket, _ code: Int, _ status: String, more: [String: JSONValue] = [:]
  ) -> JSONValue {
    var header = more
    header["id"] = .string(packet.id ?? "")
    header["method"] = "reply"
    var words = header["status"]?.object ?? [:]
    words["code"] = .integer(Int64(code))
    words["status"] = .string(status)
    header["status"] = .object(words)
    return .object(header)
  }

  private static func reply(
    to packet: TwilsockPacket, _ socket: WebSocket, status code: Int = 200, _ words: String = "OK",
    more: [String: JSONValue] = [:]
  ) {
    socket.send(TwilsockPacket(header: replyHeader(packet, code, words, more: more)).encoded())
  }

  private static func refuse(
    _ packet: TwilsockPacket, _ error: FerryError, _ socket: WebSocket, status: Int = 401
  ) {
    var words: [String: JSONValue] = ["description": .string(error.message)]
    if let number = error.cause.flatMap({ Int64($0) }) { words["errorCode"] = .integer(number) }
    reply(
      to: packet, socket, status: status, status == 401 ? "UNAUTHORIZED" : "ERROR", more: ["status": .object(words)])
  }

  /// Says why, then closes the socket.
  static func close(_ socket: WebSocket, _ code: Int, _ status: String) {
    let header: JSONValue = [
      "id": packetID, "method": "close", "status": ["code": .integer(Int64(code)), "status": .string(status)],
    ]
    // Whoever is sent away for a while is told how long to wait before they come back.
    let policy: JSONValue = ["backoff_policy": ["reconnect_min_ms": 1000, "reconnect_max_ms": 10_000]]
    let packet = code == 308 ? TwilsockPacket(header: header, json: policy) : TwilsockPacket(header: header)
    socket.send(packet.encoded())
    socket.close(reason: status)
  }
}
