import FerryCore
import FerryRuntime
import FerryTransport

/// Engine.IO at `/{appId}/`: polling, WebSocket, and from the one to the other.
extension BackendlessFacade {
  /// The transport's own refusals. Source: the error codes of Engine.IO.
  private enum EngineFault: Int {
    case unknownTransport = 0
    case unknownSession, badMethod, badRequest, forbidden, badVersion

    var message: String {
      switch self {
      case .unknownTransport: "Transport unknown"
      case .unknownSession: "Session ID unknown"
      case .badMethod: "Bad handshake method"
      case .badRequest: "Bad request"
      case .forbidden: "Forbidden"
      case .badVersion: "Unsupported protocol version"
      }
    }

    var response: HTTPResponse {
      .text(#"{"code":\#(rawValue),"message":"\#(message)"}"#, status: 400, type: "application/json")
    }
  }

  func engine(_ request: HTTPRequest) async -> HTTPResponse {
    guard let version = request.query("EIO").flatMap({ Int($0) }).flatMap(EngineVersion.init) else {
      return EngineFault.badVersion.response
    }
    let transport = request.query("transport")
    guard transport == "polling" || transport == "websocket" else { return EngineFault.unknownTransport.response }
    if let sid = request.query("sid") {
      guard let connection = hub.withLock({ $0.clients[sid]?.connection }), !connection.isEnded else {
        forget(sid)
        return EngineFault.unknownSession.response
      }
      guard connection.version == version else { return EngineFault.badRequest.response }
      if transport == "websocket" { return webSocket(connection, isNew: false) }
      return await poll(request, connection)
    }
    guard request.method == "GET" else { return EngineFault.badMethod.response }
    guard transport == "polling" || request.headers["Upgrade"] != nil else { return EngineFault.badRequest.response }
    guard let connection = open(request, version, isWebSocket: transport == "websocket") else {
      return EngineFault.forbidden.response
    }
    if transport == "websocket" { return webSocket(connection, isNew: true) }
    connection.begin()
    return await answer(connection)
  }

  /// Nil when there are too many sessions.
  private func open(_ request: HTTPRequest, _ version: EngineVersion, isWebSocket: Bool) -> RealTimeConnection? {
    let now = clock.now()
    let session = EngineServerSession(
      version: version, transport: isWebSocket ? .webSocket : .polling, sid: Crypto.randomHex(bytes: 16),
      settings: settings.engine, now: now)
    let connection = RealTimeConnection(
      session, apiKey: request.query("apiKey") ?? "", userToken: UserToken.given(request.query("userToken")),
      files: filesURL(for: request), now: now)
    let isAdmitted = hub.withLock { $0.open(connection, limit: settings.sessions) }
    if isAdmitted { wake() }
    return isAdmitted ? connection : nil
  }

  // MARK: Polling

  private func poll(_ request: HTTPRequest, _ connection: RealTimeConnection) async -> HTTPResponse {
    if request.method == "GET" { return await answer(connection) }
    guard request.method == "POST" else { return EngineFault.badMethod.response }
    let limit = settings.engine.payloadBytes
    do throws(FerryError) {
      let body = try await request.body.collect(upTo: limit)
      let packets = try EnginePayload.decode(
        body, version: connection.version, limits: EnginePayload.Limits(bytes: limit, packets: 1000))
      await take(connection.receive(packets, over: .polling, now: clock.now()), from: connection)
      if connection.isEnded { forget(connection.sid) }
      return .text("ok", type: "text/html")
    } catch {
      connection.receivedRubbish()
      forget(connection.sid)
      return error.code == .tooLarge ? .text("", status: 413) : EngineFault.badRequest.response
    }
  }

  private func answer(_ connection: RealTimeConnection) async -> HTTPResponse {
    guard var packets = await connection.poll(now: clock.now()) else {
      if connection.isEnded { forget(connection.sid) }
      return EngineFault.badRequest.response
    }
    if connection.isEnded { forget(connection.sid) }
    if connection.version == .three {
      // Some clients take the length for one in characters.
      for index in packets.indices {
        packets[index] = EnginePacket(packets[index].kind, JSONText.escapingAstral(packets[index].text))
      }
    }
    return .text(EnginePayload.encode(packets, version: connection.version), type: "text/plain; charset=UTF-8")
  }

  // MARK: WebSocket

  private func webSocket(_ connection: RealTimeConnection, isNew: Bool) -> HTTPResponse {
    var webSocket = WebSocketSettings()
    webSocket.messageBytes = settings.engine.payloadBytes
    webSocket.queueBytes = settings.engine.queueBytes
    // The protocol's own packets find out who is gone.
    webSocket.pingAfter = nil
    return HTTPResponse(
      status: 101,
      body: .webSocket(subprotocol: nil, settings: webSocket) { socket in
        guard connection.attach(socket) else { return }
        if isNew { connection.begin() }
        await self.serve(socket, connection)
        connection.detach(socket)
        if connection.isEnded { self.forget(connection.sid) }
      })
  }

  private func serve(_ socket: WebSocket, _ connection: RealTimeConnection) async {
    while let message = await socket.next() {
      let packet: EnginePacket
      do throws(FerryError) {
        packet = try Self.packet(message, connection.version)
      } catch {
        connection.receivedRubbish()
        return
      }
      await take(connection.receive([packet], over: .webSocket, now: clock.now()), from: connection)
    }
  }

  private static func packet(
    _ message: WebSocket.Message, _ version: EngineVersion
  ) throws(FerryError) -> EnginePacket {
    switch message {
    case .text(let text): try EnginePacket(text: text, version: version)
    case .binary(let bytes): try EnginePacket(frame: bytes, version: version)
    }
  }

  // MARK: Ends

  /// Takes a session that is over out of all lists, and tells the others.
  func forget(_ sid: String) {
    hub.withLock { $0.close(sid) }
  }

  /// Lets go who is silent, who connected and never joined, and who is furthest behind of too many. Every second while there are sessions.
  func tickSessions(now: Timestamp) {
    let clients = hub.withLock { $0.clients.values.map { ($0.connection, $0.isJoined) } }
    var waiting = 0
    for (connection, isJoined) in clients {
      connection.tick(now: now)
      waiting += connection.queuedBytes
      if !isJoined, now >= connection.opened.advanced(by: .seconds(45)) { connection.stop() }
      if connection.isEnded { forget(connection.sid) }
    }
    guard waiting > settings.queuedBytes else { return }
    let behind = clients.map { (connection: $0.0, bytes: $0.0.queuedBytes) }.sorted { $0.bytes > $1.bytes }
    for (connection, bytes) in behind where waiting > settings.queuedBytes {
      waiting -= bytes
      connection.stop()
      forget(connection.sid)
    }
  }
}
