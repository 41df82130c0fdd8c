import FerryCore
import FerryRuntime
import FerryTransport

/// One open connection to the realtime socket, for as long as its listener runs.
final class RealtimeLink: Sendable {
  private let socket: WebSocket
  private let session: Locked<RealtimeSession>
  private let replies = Locked<[String: BoundedChannel<TwilsockPacket>]>([:])
  private let ready = BoundedChannel<Void>(capacity: 1)
  private let makeToken: @Sendable () -> String
  private let clock: any FerryClock

  static let answerTime = Duration.seconds(10)

  init(socket: WebSocket, clock: any FerryClock, makeToken: @escaping @Sendable () -> String) {
    self.socket = socket
    self.clock = clock
    self.makeToken = makeToken
    let salt = Crypto.randomHex(bytes: 10)
    // A UUID's form, its last part counting.
    let parts = [salt.prefix(8), salt.dropFirst(8).prefix(4), "4" + salt.dropFirst(12).prefix(3), "8" + salt.suffix(3)]
    session = Locked(RealtimeSession(salt: parts.joined(separator: "-")))
  }

  func close() { socket.close(code: 1000, reason: "") }

  /// Greets, and reads until the connection is over.
  func listen(
    onTyping: @Sendable (_ conversation: String, _ identity: String, _ seconds: Int64) -> Void
  ) async -> RealtimeSession.Ending {
    let token = makeToken()
    send(session.withLock { $0.begin(token: token) })
    while let message = await socket.next() {
      guard case .binary(let bytes) = message else { continue }
      for action in session.withLock({ $0.receive(bytes) }) {
        switch action {
        case .send(let packet): send(packet)
        case .ready: _ = ready.offer(())
        case .reply(let id, let packet): _ = replies.withLock { $0.removeValue(forKey: id) }?.offer(packet)
        case .typing(let conversation, let identity, let seconds): onTyping(conversation, identity, seconds)
        case .renew: renew()
        case .end(let ending): return ending
        }
      }
    }
    return RealtimeSession.Ending(
      reason: "the realtime socket was lost (\(socket.closing?.code ?? 1006))", advice: .reconnect)
  }

  /// Whether the service has let us in, in good time.
  func isReady() async -> Bool { await within(Self.answerTime) { await self.ready.next() } != nil }

  /// Shows the service a new token in place of one that ends.
  func renew() {
    let token = makeToken()
    send(session.withLock { $0.renew(token: token) })
  }

  /// A request to a service behind the socket, answered with its payload.
  func request(
    _ method: String, host: String, path: String, form: Form = [], doing: String
  ) async throws(FerryError) -> JSONValue {
    let (id, packet) = session.withLock { $0.request(method, host: host, path: path, form: form) }
    let answer = BoundedChannel<TwilsockPacket>(capacity: 1)
    replies.withLock { $0[id] = answer }
    defer { _ = replies.withLock { $0.removeValue(forKey: id) } }
    guard send(packet) else {
      throw FerryError(.unavailable, "Could not \(doing): the realtime socket is closed.", retry: .now)
    }
    guard let reply = await within(Self.answerTime, { await answer.next() }) else {
      if Task.isCancelled { throw .cancelled() }
      throw FerryError(
        .timedOut, "Could not \(doing): the realtime socket did not answer.", retry: .now, didNotAct: false)
    }
    let status = reply.header["http_status"]?["code"]?.integer ?? reply.header["status"]?["code"]?.integer ?? 0
    guard (200...299).contains(status) else {
      throw Refusal.error(
        status: Int(clamping: status), code: reply.json?["code"]?.text.flatMap { Int($0) }, retryAfter: nil,
        isWrite: true, doing: doing, delay: { .seconds(1) })
    }
    return reply.json ?? .null
  }

  @discardableResult
  private func send(_ packet: TwilsockPacket) -> Bool { socket.send(packet.encoded()) }

  /// Nil when it takes longer, or is cancelled.
  private func within<Result: Sendable>(
    _ limit: Duration, _ body: @escaping @Sendable () async -> Result?
  ) async -> Result? {
    let clock = clock
    return await withTaskGroup(of: Result?.self) { group in
      group.addTask { await body() }
      group.addTask {
        try? await clock.sleep(for: limit)
        return nil
      }
      defer { group.cancelAll() }
      return await group.next() ?? nil
    }
  }
}
