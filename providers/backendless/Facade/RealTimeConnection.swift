import FerryCore
import FerryRuntime
import FerryTransport

/// One client's Engine.IO session with what carries it: a WebSocket, polls, or the one after the other.
///
/// All decisions are `EngineServerSession`'s. Any task may call any method.
final class RealTimeConnection: Sendable {
  private struct State: Sendable {
    var session: EngineServerSession
    var socket: WebSocket?
    /// What a poll is to be answered with, until its task fetches it.
    var answer: [EnginePacket]?
    var waiter: CheckedContinuation<Void, Never>?
  }

  /// What is left to do once the lock is free.
  private struct Rest {
    var delivered: [EnginePacket.Body] = []
    var waiter: CheckedContinuation<Void, Never>?
    var closing: WebSocket?
  }

  /// Also what clients know as their connection id.
  let sid: String
  let version: EngineVersion
  /// What was asked for when connecting.
  let apiKey: String
  let userToken: String?
  /// Where the client finds files on this server, with a slash at the end.
  let files: String
  let opened: Timestamp
  private let state: Locked<State>

  init(_ session: EngineServerSession, apiKey: String, userToken: String?, files: String, now: Timestamp) {
    sid = session.handshake.sid
    version = session.version
    self.apiKey = apiKey
    self.userToken = userToken
    self.files = files
    opened = now
    state = Locked(State(session: session))
  }

  /// How much waits for the client to fetch it.
  var queuedBytes: Int { state.withLock { $0.session.queuedBytes } }

  var isEnded: Bool { state.withLock { $0.session.isEnded } }

  // MARK: Out

  /// The text of a Socket.IO packet. Dropped when the client is gone. Never waits.
  func send(_ text: String) { change { $0.send(EnginePacket(.message, text)) } }

  func begin() { change { $0.begin() } }

  func stop() { change { $0.stop() } }

  func tick(now: Timestamp) { change { $0.tick(now: now) } }

  /// Waits until there is something to say. Nil when there will never be, or the task was cancelled.
  func poll(now: Timestamp) async -> [EnginePacket]? {
    change { $0.poll(now: now) }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let goOn = state.withLock { state in
          if state.answer != nil || state.session.isEnded || state.waiter != nil || Task.isCancelled { return true }
          state.waiter = continuation
          return false
        }
        if goOn { continuation.resume() }
      }
    } onCancel: {
      let waiter = state.withLock { state in
        defer { state.waiter = nil }
        return state.waiter
      }
      waiter?.resume()
    }
    return state.withLock { state in
      defer { state.answer = nil }
      if state.answer == nil { state.session.pollLost() }
      return state.answer
    }
  }

  // MARK: In

  /// Takes packets of a body or a frame and returns the messages among them.
  func receive(
    _ packets: [EnginePacket], over transport: EngineServerSession.Transport, now: Timestamp
  ) -> [EnginePacket.Body] {
    packets.flatMap { packet in change { $0.receive(packet, over: transport, now: now) } }
  }

  func receivedRubbish() { change { $0.receivedRubbish() } }

  /// False when the session has a WebSocket already, or is over.
  func attach(_ socket: WebSocket) -> Bool {
    state.withLock { state in
      guard state.socket == nil, !state.session.isEnded else { return false }
      state.socket = socket
      return true
    }
  }

  func detach(_ socket: WebSocket) {
    let isOurs = state.withLock { state in
      guard state.socket === socket else { return false }
      state.socket = nil
      return true
    }
    if isOurs { change { $0.socketClosed() } }
  }

  // MARK: Acting

  @discardableResult
  private func change(
    _ input: (inout EngineServerSession) -> [EngineServerSession.Action]
  ) -> [EnginePacket.Body] {
    let rest = state.withLock { state in
      var rest = Rest()
      for action in input(&state.session) { Self.perform(action, &state, &rest) }
      return rest
    }
    rest.waiter?.resume()
    rest.closing?.close(code: 1000, reason: "")
    return rest.delivered
  }

  /// Sockets are written to with the lock held, so that everything goes out in the order in which it was decided.
  private static func perform(_ action: EngineServerSession.Action, _ state: inout State, _ rest: inout Rest) {
    switch action {
    case .write(let packet): state.socket?.send(packet.encoded(state.session.version))
    case .deliver(let body): rest.delivered.append(body)
    case .answer(let packets):
      state.answer = packets
      rest.waiter = state.waiter
      state.waiter = nil
    case .closeSocket:
      rest.closing = state.socket
      state.socket = nil
    case .end:
      rest.closing = state.socket
      rest.waiter = rest.waiter ?? state.waiter
      state.waiter = nil
    }
  }
}
