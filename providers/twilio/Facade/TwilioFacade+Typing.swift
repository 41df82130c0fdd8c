import FerryChat
import FerryCore
import FerryRuntime
import FerryTransport

/// Typing, in both directions, and the requests that client SDKs send through the socket.
extension TwilioFacade {
  // MARK: Requests through the socket

  func tunnel(
    _ packet: TwilsockPacket, _ identity: String, _ service: String, _ socket: WebSocket, base: String
  ) async {
    let request = packet.header["http_request"]
    let path = request?["path"]?.string.map { String($0.prefix { $0 != "?" }) } ?? ""
    var status = 200
    var body: JSONValue
    do {
      switch (request?["method"]?.string?.uppercased(), path) {
      case ("POST", "/v1/typing"):
        body = try await type(Form(decoding: packet.payload), identity, service)
      case ("GET", "/Client/v2/Configuration"):
        body = Self.clientConfiguration(identity, service, base: base)
      default: throw TwilioError.notFound(path)
      }
    } catch {
      let refusal = (error as? TwilioError) ?? TwilioError(.wrap(error))
      status = refusal.status
      body = [
        "status": .integer(Int64(status)), "code": .integer(Int64(refusal.code)), "message": .string(refusal.message),
      ]
    }
    let header = Self.replyHeader(
      packet, 200, "OK",
      more: [
        "http_status": ["code": .integer(Int64(status)), "status": .string(status == 200 ? "OK" : "Error")],
        "http_headers": ["Content-Type": "application/json;charset=utf-8"],
      ])
    socket.send(TwilsockPacket(header: header, json: body).encoded())
  }

  /// The identity types in a conversation that it is in.
  private func type(_ form: Form, _ identity: String, _ service: String) async throws -> JSONValue {
    let key = form["ChannelSid"] ?? form["ConversationSid"] ?? ""
    let (room, name) = try await read { ledger in
      guard let conversation = try ledger.conversation(key, in: service) else { throw TwilioError.noConversation }
      guard try ledger.participantSID(ofIdentity: identity, in: conversation.sid) != nil else {
        throw TwilioError(403, 50430, "The identity is not a participant of the conversation")
      }
      let user = try ledger.user(identity, in: service)
      return (conversation.room, user.map { Ledger.author($0).name } ?? identity)
    }
    let typist = Author(id: UserID(identity), name: name)
    try chat.setTyping(Typing(channel: ChannelID(room), by: typist, on: true), by: .owner)
    return ["typing_timeout": .integer(Int64(settings.typingTimeout))]
  }

  private static func clientConfiguration(_ identity: String, _ service: String, base: String) -> JSONValue {
    [
      "identity": .string(identity),
      "links": [
        "my_conversations": .string("\(base)/Client/v2/Users/\(PercentEncoding.encode(identity))/Conversations"),
        "conversations": .string("\(base)/Client/v2/Conversations"),
        "users": .string("\(base)/Client/v2/Users"),
        "current_user": .string("\(base)/Client/v2/Users/\(PercentEncoding.encode(identity))"),
        "typing": .string("\(base)/v1/typing"),
        "media_service": .string("\(base)/v1/Services/\(service)/Media"),
        "media_set_service": .string("\(base)/v1/Services/\(service)/MediaSet"),
        "messages_receipts": .string("\(base)/Client/v2/Conversations/Messages/Receipts"),
      ],
      "options": [
        "media_attachments_count_limit": 1, "media_attachment_size_limit_in_mb": 150,
        "media_attachments_total_size_limit_in_mb": 150, "email_histories_allowed_mime_types": [],
        "email_bodies_allowed_mime_types": [], "user_infos_to_subscribe": 100, "reachability_enabled": false,
        "http_cache_interval": "PT5S", "consumption_report_interval": "PT5S",
      ],
      "sync_objects": ["my_user_info": "", "my_conversations": ""],
    ]
  }

  // MARK: Typing of everybody

  /// Tells connected clients who types, whoever does; until cancelled.
  func followTyping() async {
    while !Task.isCancelled {
      do throws(FerryError) {
        let reader = try await chat.reader(of: nil, after: nil)
        defer { reader.close() }
        while !Task.isCancelled {
          let items = try await reader.next()
          if items.isEmpty { break }
          for case .typing(let typing) in items where typing.on { await tell(typing) }
        }
      } catch {
        logger.error("typing is not followed: \(error)")
      }
      try? await clock.sleep(for: .seconds(1))
    }
  }

  private func tell(_ typing: Typing) async {
    if hub.withLock({ $0.connections.isEmpty }) { return }
    let typist = typing.by.id.rawValue
    let found = try? await read { ledger -> (sid: String, service: String, identities: [String])? in
      guard let conversation = try ledger.conversation(ofRoom: typing.channel) else { return nil }
      let listeners = self.hub.withLock { $0.listeners(except: typist, in: conversation.service).keys.sorted() }
      let inside = try listeners.filter { try ledger.participantSID(ofIdentity: $0, in: conversation.sid) != nil }
      return (conversation.sid, conversation.service, inside)
    }
    guard let found, !found.identities.isEmpty else { return }
    let (sid, service, identities) = found
    let header: JSONValue = ["id": Self.packetID, "method": "notification", "message_type": .string(Self.typing)]
    // A second more than the sender is told, for what is late on the way.
    let payload: JSONValue = [
      "channel_sid": .string(sid), "identity": .string(typist),
      "typing_timeout": .integer(Int64(settings.typingTimeout + 1)),
    ]
    let packet = TwilsockPacket(header: header, json: payload).encoded()
    let frame = EncodedFrame(binary: packet)
    let sockets = hub.withLock { $0.listeners(except: typist, in: service) }
    for identity in identities {
      for socket in sockets[identity] ?? [] { socket.send(frame) }
    }
  }
}
