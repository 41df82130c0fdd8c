import FerryCore
import FerryRuntime
import FerryTransport

/// One connection to the real-time service, from the first packet to the last. Any task may send commands while `run`
/// runs, which is called once.
final class RealtimeLink: Sendable {
  private enum Reply: Sendable {
    case done
    case refused(ServiceFault)
  }

  let engine: EngineLink
  private let session: Locked<RealtimeSession>
  private let replies = Locked<[String: BoundedChannel<Reply>]>([:])
  private let ending = Locked<RealtimeSession.Ending?>(nil)
  private let clock: any FerryClock
  private let identity: ClientIdentity

  private static let answerTime = Duration.seconds(10)

  init(engine: EngineLink, session: RealtimeSession, identity: ClientIdentity, clock: any FerryClock) {
    self.engine = engine
    self.session = Locked(session)
    self.identity = identity
    self.clock = clock
  }

  /// By which the service calls this connection.
  var ownIDs: Set<String> { session.withLock { $0.ownIDs } }

  /// Until the connection is over or the task is cancelled. `handle` is called by one task, in order; while it waits,
  /// nothing more is read.
  func run(_ handle: @escaping @Sendable (RealtimeSession.Action) async -> Void) async -> RealtimeSession.Ending {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await self.engine.run() }
      group.addTask { await self.keepTime(handle) }
      await read(handle)
      group.cancelAll()
    }
    // Whoever waits for an answer learns that none will come.
    for reply in replies.withLock({ $0 }).values { reply.finish() }
    if Task.isCancelled, engine.transport == .polling {
      let (engine, goodbye) = (engine, session.withLock { $0.goodbye })
      // In a task of its own, because this one may not send any more.
      await Task { await engine.sayGoodbye(goodbye) }.value
    }
    return ending.withLock { $0 } ?? .closed(engine.reason)
  }

  private func read(_ handle: @Sendable (RealtimeSession.Action) async -> Void) async {
    while let item = await engine.inbound.next() {
      let now = clock.now()
      let actions =
        switch item {
        case .opened(let sid, let version): session.withLock { $0.opened(sid: sid, version, now: now) }
        case .message(let text): session.withLock { $0.receive(text, now: now) }
        }
      await carryOut(actions, handle)
      if ending.withLock({ $0 }) != nil { return }
    }
  }

  private func keepTime(_ handle: @Sendable (RealtimeSession.Action) async -> Void) async {
    while (try? await clock.sleep(for: .seconds(1))) != nil {
      let now = clock.now()
      await carryOut(session.withLock { $0.tick(now: now) }, handle)
    }
  }

  private func carryOut(
    _ actions: [RealtimeSession.Action], _ handle: (RealtimeSession.Action) async -> Void
  ) async {
    for action in actions {
      switch action {
      case .send(let text): await engine.send(text)
      case .answered(let id, let fault):
        let reply = replies.withLock { $0.removeValue(forKey: id) }
        _ = reply?.offer(fault.map { .refused($0) } ?? .done)
      case .end(let ending):
        self.ending.withLock { $0 = $0 ?? ending }
        engine.inbound.finish()
      case .connected, .ready, .heard, .refused: await handle(action)
      }
    }
  }

  // MARK: Commands

  /// Sends a command to a channel and waits until the service has taken it.
  func command(_ type: String, _ data: JSONValue, in channel: ChannelID, doing: String) async throws(FerryError) {
    let (id, joinID, now) = (identity.freshID(), identity.id(for: "join:\(channel)"), clock.now())
    try await ask(id, doing: doing) { $0.command(id, type, data, in: channel, joinID: joinID, now: now) }
  }

  /// Tells the service that another token is used from now on.
  func setUserToken(_ token: String?) async throws(FerryError) {
    let id = identity.freshID()
    try await ask(id, doing: "renew the user's token") { $0.setUserToken(id, token) }
  }

  private func ask(
    _ id: String, doing: String, _ input: (inout RealtimeSession) -> [RealtimeSession.Action]
  ) async throws(FerryError) {
    let reply = BoundedChannel<Reply>(capacity: 1)
    replies.withLock { $0[id] = reply }
    defer { replies.withLock { $0[id] = nil } }
    for case .send(let text) in session.withLock(input) { await engine.send(text) }
    switch await answer(reply) {
    case .done: return
    case .refused(let fault): throw fault.error(doing: doing)
    case nil:
      if Task.isCancelled { throw .cancelled() }
      let wasNotSent = session.withLock { $0.withdraw(id) }
      throw FerryError(
        .unavailable, "Could not \(doing): the real-time service does not answer.", retry: .now, didNotAct: wasNotSent)
    }
  }

  private func answer(_ reply: BoundedChannel<Reply>) async -> Reply? {
    await withTaskGroup(of: Reply?.self) { group in
      group.addTask { await reply.next() }
      group.addTask {
        try? await self.clock.sleep(for: Self.answerTime)
        return nil
      }
      defer { group.cancelAll() }
      return await group.next() ?? nil
    }
  }
}

/// By what the service knows this client again: the same for as long as the adapter lives.
struct ClientIdentity: Sendable {
  let clientID: String

  init() { clientID = Self.guid() }

  /// The same for the same purpose, so that a subscription keeps its id over all connections.
  func id(for purpose: String) -> String {
    Crypto.hex(Crypto.digest(.sha256, of: "\(clientID)/\(purpose)".utf8).prefix(12))
  }

  func freshID() -> String { Crypto.randomHex(bytes: 12) }

  static func guid() -> String {
    let hex = Array(Crypto.randomHex(bytes: 16).uppercased())
    let ends = [(0, 8), (8, 12), (12, 16), (16, 20), (20, 32)]
    return ends.map { String(hex[$0.0..<$0.1]) }.joined(separator: "-")
  }
}
