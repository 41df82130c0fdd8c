import FerryCore
import FerryRuntime
import FerryTransport

/// A connection while it lasts: what the rest of the adapter sends through it and asks of it.
final class LiveConnection: Sendable {
  let socket: WebSocket
  let session: Locked<Session>
  private let clock: any FerryClock
  private let state = Locked(State())

  /// The service takes ten events a second from a connection. A little slower, because the network bunches what was
  /// sent apart.
  private static let eventsInWindow = 10
  private static let window = Duration.milliseconds(1100)

  private struct State: Sendable {
    /// When the last events were sent, oldest first.
    var sent: [Timestamp] = []
    var pings = 0
    var pongs = 0
    /// Client events that are being delivered, and why the service did not take them.
    var underWay: [Int: FerryError?] = [:]
    var isOver = false
    /// What was last told about the connection.
    var reported: ConnectionState?
    var waiters: [Int: Waiter] = [:]
    var nextNumber = 0
  }

  private struct Waiter: Sendable {
    let ping: Int
    let continuation: CheckedContinuation<Void, Never>
  }

  init(socket: WebSocket, session: Session, clock: any FerryClock) {
    self.socket = socket
    self.session = Locked(session)
    self.clock = clock
  }

  /// The connection's id, once the service has greeted.
  var socketID: String? { session.withLock { $0.socketID } }

  /// Tells the inbox how the connection is, when that has changed or always.
  func report(_ connection: ConnectionState, to inbox: any Inbox, always: Bool) {
    let isNew = state.withLock { state in
      defer { state.reported = connection }
      return state.reported != connection
    }
    if isNew || always { inbox.connection(connection) }
  }

  // MARK: Pings

  /// Every ping goes through here, so that pongs can be told apart: they come in the order of the pings.
  @discardableResult
  func ping() async -> Int {
    let number = state.withLock { state in
      state.pings += 1
      return state.pings
    }
    _ = await socket.sendWaiting(FrameText.ping)
    return number
  }

  func pong() {
    let waiters = state.withLock { state in
      state.pongs += 1
      return Self.ready(&state)
    }
    for waiter in waiters { waiter.resume() }
  }

  /// The service has said that it does not take a client event. It does not say which, so all under way are meant;
  /// it says so before it answers the ping behind the event.
  func reject(_ error: FerryError) {
    state.withLock { state in for number in state.underWay.keys { state.underWay[number] = .some(error) } }
  }

  func end() {
    let waiters = state.withLock { state in
      state.isOver = true
      return Self.ready(&state)
    }
    for waiter in waiters { waiter.resume() }
  }

  private static func ready(_ state: inout State) -> [CheckedContinuation<Void, Never>] {
    let ready = state.waiters.filter { state.isOver || $0.value.ping <= state.pongs }
    for number in ready.keys { state.waiters[number] = nil }
    return ready.values.map(\.continuation)
  }

  // MARK: Client events

  /// Sends what may as well be lost. Throws when the service would not take it now.
  func send(_ frame: String) async throws(FerryError) {
    guard takeTurn() == nil else {
      throw FerryError(.rateLimited, "Pusher takes ten client events a second from a connection.", retry: .now)
    }
    guard await socket.sendWaiting(frame) else { throw Self.lost(didNotAct: true) }
  }

  /// Sends what must not be lost: waits for its turn, and until the service has certainly read it. The service reads
  /// in order, so a pong to a ping sent behind the event tells that.
  func deliver(_ frame: String) async throws(FerryError) {
    while let wait = takeTurn() {
      do { try await clock.sleep(for: wait) } catch { throw .cancelled(didNotAct: true) }
    }
    let number = state.withLock { state in
      state.nextNumber += 1
      state.underWay.updateValue(nil, forKey: state.nextNumber)
      return state.nextNumber
    }
    let isSent = await socket.sendWaiting(frame)
    let ping = isSent ? await ping() : 0
    if isSent { await waitForPong(ping) }
    let (isRead, rejection) = state.withLock { state in
      (state.pongs >= ping, state.underWay.removeValue(forKey: number) ?? nil)
    }
    guard isSent else { throw Self.lost(didNotAct: true) }
    if let rejection { throw rejection }
    guard isRead else { throw Task.isCancelled ? .cancelled() : Self.lost(didNotAct: false) }
  }

  /// Nil when an event may be sent now, which counts it; otherwise how long to wait before asking again.
  private func takeTurn() -> Duration? {
    let now = clock.now()
    return state.withLock { state in
      state.sent.removeAll { $0.advanced(by: Self.window) <= now || $0 > now }
      guard state.sent.count >= Self.eventsInWindow, let first = state.sent.first else {
        state.sent.append(now)
        return nil
      }
      return .milliseconds(max(first.advanced(by: Self.window).milliseconds - now.milliseconds, 1))
    }
  }

  private static func lost(didNotAct: Bool) -> FerryError {
    FerryError(
      .unavailable, "The connection to Pusher was lost while an event was sent.", retry: .now, didNotAct: didNotAct)
  }

  private func waitForPong(_ ping: Int) async {
    let id = state.withLock { state in
      state.nextNumber += 1
      return state.nextNumber
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let goOn = state.withLock { state in
          if state.isOver || state.pongs >= ping || Task.isCancelled { return true }
          state.waiters[id] = Waiter(ping: ping, continuation: continuation)
          return false
        }
        if goOn { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.waiters.removeValue(forKey: id) }?.continuation.resume()
    }
  }
}
