import CMicroHTTPD
import FerryCore
import FerryRuntime
import Glibc

/// The way of a request: what libmicrohttpd calls, in the order in which it does.
extension ServerLoop {
  // MARK: Connections

  func admits(_ address: IPAddress?) -> Bool {
    guard !isStopping, openConnections < settings.connections else { return false }
    guard let address else { return true }
    return countByAddress[address.text, default: 0] < settings.connectionsPerAddress
  }

  func opened(_ handle: OpaquePointer) -> Connection {
    let address = IPAddress(cmhd_address(handle))?.text ?? ""
    let connection = Connection(descriptor: cmhd_descriptor(handle), address: address)
    connections[handle] = connection
    countByAddress[address, default: 0] += 1
    watchForHangUp(connection)
    return connection
  }

  func closed(_ handle: OpaquePointer) {
    guard let connection = connections.removeValue(forKey: handle) else { return }
    unwatch(connection)
    connection.isClosed = true
    if !connection.isUpgraded {
      uncount(connection.address)
    } else if isSecure {
      endingUpgrades -= 1
    }
  }

  func uncount(_ address: String) {
    let count = countByAddress[address, default: 1] - 1
    countByAddress[address] = count > 0 ? count : nil
  }

  func targetRead(_ handle: OpaquePointer, _ target: String) { connections[handle]?.target = target }

  // MARK: Requests

  /// How many bytes are read of who makes too many requests, before the connection is dropped.
  private static let heardOut = 1 << 20

  /// The head has arrived.
  func begin(_ handle: OpaquePointer, method: String) -> Exchange? {
    guard !isStopping, let connection = connections[handle] else { return nil }
    let headers = readHeaders(handle)
    let target = connection.target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    lastID += 1
    let id = lastID
    let declared = headers["Content-Length"].flatMap { Int64($0) }
    let hasBody = (declared ?? 0) > 0 || headers["Transfer-Encoding"] != nil
    // Bodies that are large, or that wait for our word, are asked for only once the handler wants them.
    let isHeldBack = hasBody && ((declared ?? .max) > 16 << 10 || headers["Expect"] != nil)
    let exchange = Exchange(
      id: id, handle: handle, connection: connection, isHead: method == "HEAD",
      upgrade: Upgrade(method: method, headers: headers),
      body: BytePipe(limit: 64 << 10, isStopped: isHeldBack, wake: attention(id)),
      phase: isHeldBack ? .head : .body)
    exchanges[id] = exchange
    connection.exchange = exchange
    // Whatever else is wrong with it, it counts.
    let refusal = refusalOfTooMany(from: connection.address, headers)
    if headers["Content-Length"] != nil, headers["Transfer-Encoding"] != nil {
      // Two lengths are how requests are smuggled past proxies (RFC 9112, 6.1).
      exchange.response = .text("A request has one length: Content-Length or Transfer-Encoding.\n", status: 400)
      exchange.response?.headers.set("Connection", "close")
      return exchange
    }
    if let refusal {
      exchange.response = refusal
      // Who does not wait for our word is heard out, or would not hear the answer.
      if headers["Expect"] == nil, (declared ?? 0) <= Self.heardOut {
        exchange.phase = .body
        exchange.isHeardOut = true
      }
      return exchange
    }
    if let declared, declared > settings.bodyBytes {
      exchange.isTooLarge = true
      exchange.response = tooLarge
      return exchange
    }
    let body = exchange.body
    let request = HTTPRequest(
      method: method, path: String(target[0]), rawQuery: target.count > 1 ? String(target[1]) : "", headers: headers,
      peer: connection.address, isSecure: isSecure,
      body: hasBody
        ? ByteStream(size: declared, mediaType: headers["Content-Type"]) { () async throws(FerryError) in
          try await body.next()
        } : .none)
    tasks[id] = Task(executorPreference: loop) { await self.serve(id, request) }
    return exchange
  }

  /// What a client is told that has made too many requests.
  private func refusalOfTooMany(from peer: String, _ headers: HTTPHeaders) -> HTTPResponse? {
    guard limit != nil, let client = RequestLimit.client(of: peer, headers) else { return nil }
    let now = ContinuousClock.now
    guard let wait = limit?.refuse(client, now: now) else { return nil }
    // Not a line each: that would be a way to fill the disk.
    if toldOfLimit.map({ $0.duration(to: now) >= .seconds(10) }) ?? true {
      toldOfLimit = now
      logger.warning(
        "\(client.text) makes more than \(settings.requestsPerClient) requests a second and is refused some")
    }
    return .error(
      FerryError(.rateLimited, "Too many requests from one client. Ask again later.", retry: .after(wait)))
  }

  /// Called with the head, with each piece of the body, and at the end; and again after each resumption. Returns how
  /// many bytes were taken, or nil to drop the connection.
  func go(on exchange: Exchange, with bytes: UnsafeRawBufferPointer) -> Int? {
    if isStopping && exchange.response == nil && tasks[exchange.id] == nil { return nil }
    if !bytes.isEmpty { return receive(bytes, for: exchange) }
    switch exchange.phase {
    case .head:
      if let response = exchange.response { return answer(exchange, response) }
      exchange.phase = .body
    case .body:
      exchange.phase = .complete
      exchange.body.finish()
      fallthrough
    case .complete:
      if let response = exchange.response { return answer(exchange, response) }
      suspend(exchange)
    case .answered: break
    case .over: return nil
    }
    return 0
  }

  private func receive(_ bytes: UnsafeRawBufferPointer, for exchange: Exchange) -> Int? {
    remindOfEnd(exchange.connection)
    if exchange.received + bytes.count > settings.bodyBytes, !exchange.isTooLarge {
      exchange.isTooLarge = true
      exchange.body.finish(FerryError(.tooLarge, "The body is larger than \(settings.bodyBytes) bytes."))
    }
    if exchange.isTooLarge || exchange.response != nil {
      // libmicrohttpd can answer only at the end of the body, so a little more than allowed is read and dropped.
      exchange.received += bytes.count
      let most = exchange.isHeardOut ? Self.heardOut : settings.bodyBytes * 2 + 1 << 20
      return exchange.received > most ? nil : bytes.count
    }
    guard exchange.body.offer(bytes) else {
      suspend(exchange)
      return 0
    }
    exchange.received += bytes.count
    return bytes.count
  }

  /// What a pipe calls when its task wants the loop to look again.
  private func attention(_ id: UInt64) -> @Sendable () -> Void {
    { [weak self, loop] in
      loop.submit { [weak self] in
        self?.assumeIsolated { server in
          if let exchange = server.exchanges[id] { server.resume(exchange) }
        }
      }
    }
  }

  // MARK: The handler's task

  private func serve(_ id: UInt64, _ request: HTTPRequest) async {
    let response = await handler(request)
    if let exchange = exchanges[id] { await finish(exchange, with: response) }
    ended(id)
  }

  private func ended(_ task: UInt64) {
    tasks[task] = nil
    checkDrained()
  }

  private func finish(_ exchange: Exchange, with response: HTTPResponse) async {
    var response = response
    if exchange.isTooLarge { response = tooLarge }
    if case .webSocket = response.body, let refusal = refusal(of: exchange.upgrade) { response = refusal }
    if case .stream = response.body, !exchange.isHead {
      exchange.outgoing = BytePipe(limit: 64 << 10, wake: attention(exchange.id))
    }
    exchange.response = response
    exchange.body.finish(FerryError(.cancelled, "The request was answered before its body was read.", didNotAct: false))
    resume(exchange)
    switch response.body {
    case .empty, .bytes, .webSocket, .hangUp: break
    case .stream(let stream): if let pipe = exchange.outgoing { await pump(stream, into: pipe) }
    }
  }

  private func pump(_ stream: ByteStream, into pipe: BytePipe) async {
    do throws(FerryError) {
      while let piece = try await stream.next() {
        guard await pipe.write(piece) else { break }
      }
      pipe.finish()
    } catch {
      logger.notice("a response was cut short: \(error)")
      pipe.finish(error)
    }
  }

  private var tooLarge: HTTPResponse {
    .error(FerryError(.tooLarge, "The body is larger than the limit of \(settings.bodyBytes) bytes."))
  }

  private func refusal(of upgrade: Upgrade?) -> HTTPResponse? {
    switch upgrade {
    case .valid: return nil
    case .badVersion:
      var response = HTTPResponse.text("Only version 13 of the WebSocket protocol is spoken here.\n", status: 426)
      response.headers.set("Sec-WebSocket-Version", "13")
      return response
    case .malformed(let reason): return .text(reason + "\n", status: 400)
    case nil:
      var response = HTTPResponse.text("This is a WebSocket. Ask for an upgrade.\n", status: 426)
      response.headers.set("Upgrade", "websocket")
      return response
    }
  }

  // MARK: The end

  func completed(_ exchange: Exchange, isWhole: Bool) {
    exchange.phase = .over
    exchanges[exchange.id] = nil
    exchange.connection.exchange = nil
    exchange.connection.waitingSince = .now
    remindOfEnd(exchange.connection)
    if !isWhole, !exchange.connection.isUpgraded { tasks[exchange.id]?.cancel() }
    exchange.body.finish(.clientGone)
    exchange.outgoing?.finish(.clientGone)
    checkDrained()
  }

  /// The 101 has been sent. The socket leaves libmicrohttpd, which then frees what it keeps for a connection.
  func upgraded(_ exchange: Exchange, descriptor: Int32, early: [UInt8], upgrade: OpaquePointer) {
    guard case .webSocket(let subprotocol, let settings, let serve)? = exchange.response?.body
    else { return cmhd_end_upgrade(upgrade) }
    unwatch(exchange.connection)
    let wire: SocketWire
    if isSecure {
      // libmicrohttpd goes on to encrypt; our end of its pair is closed through it.
      let handle = OnLoop(upgrade)
      wire = SocketWire(descriptor) { cmhd_end_upgrade(handle.value) }
    } else {
      let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
      cmhd_end_upgrade(upgrade)
      requestRun()
      guard copy >= 0 else { return }
      wire = SocketWire(copy)
    }
    let connection = exchange.connection
    connection.isUpgraded = true
    let address = connection.address
    let socket = WebSocket(
      wire: wire, isServer: true, peer: address, subprotocol: subprotocol, settings: settings, loop: loop)
    sockets[socket.id] = socket
    let id = socket.id
    let driver = SocketDriver(socket, pool: pool) { [weak self] in
      self?.assumeIsolated { $0.socketGone(id, address) }
    }
    driver.start(early: early)
    // A task of its own rather than the handler's, so that nothing of the request is kept while the socket lives.
    lastID += 1
    let taskID = lastID
    tasks[taskID] = Task(executorPreference: loop) {
      await serve(socket)
      socket.close()
      await self.ended(taskID)
    }
    if isStopping { socket.close(code: settings.stopCode, reason: settings.stopReason) }
  }

  private func socketGone(_ id: UInt64, _ address: String) {
    sockets[id] = nil
    if isSecure { endingUpgrades += 1 }
    uncount(address)
    requestRun()
    checkDrained()
  }
}

/// A C handle in a closure that runs on the loop thread only.
struct OnLoop<Value>: @unchecked Sendable {
  // @unchecked because it is made and read on the loop thread.
  let value: Value
  init(_ value: Value) { self.value = value }
}
