import FerryRuntime

/// One WebSocket, of a server or a client. Any thread may send; one task at a time receives.
///
/// Sending writes to the socket at once, under the socket's own lock; only what would block is queued. Receiving holds
/// back the other side when the receiver lags.
package final class WebSocket: Sendable {
  package enum Message: Sendable, Hashable {
    case text(String)
    case binary([UInt8])

    var size: Int {
      switch self {
      case .text(let text): text.utf8.count
      case .binary(let bytes): bytes.count
      }
    }
  }

  /// Unique in the process.
  package let id: UInt64
  /// The other side's IP address.
  package let peer: String
  package let subprotocol: String?

  let settings: WebSocketSettings
  let loop: LoopExecutor
  let isServer: Bool
  let state: Locked<State>

  /// A few kilobytes of small messages may wait for the receiver before the socket is no longer read.
  static let inboundBytes = 64 << 10
  static let inboundMessages = 64

  private static let lastID = Locked<UInt64>(0)

  init(
    wire: any Wire, isServer: Bool, peer: String, subprotocol: String?, settings: WebSocketSettings,
    loop: LoopExecutor
  ) {
    id = Self.lastID.withLock { last in
      last += 1
      return last
    }
    self.peer = peer
    self.subprotocol = subprotocol
    self.settings = settings
    self.loop = loop
    self.isServer = isServer
    state = Locked(State(wire: wire))
  }

  /// How the other side closed: its code and reason, 1005 when it gave none, 1006 when it vanished. Nil while it has
  /// not closed.
  package var closing: (code: UInt16, reason: String)? { state.withLock { $0.closing } }

  /// The next message, or nil once the socket is closed or the task cancelled.
  package func next() async -> Message? {
    while !Task.isCancelled {
      let (message, isEnded, isResumed) = state.withLock { state in
        let message = state.takeMessage()
        let isResumed =
          state.isReadingPaused && state.inboundBytes <= Self.inboundBytes / 2
          && state.inbound.count <= Self.inboundMessages / 2
        if isResumed { state.isReadingPaused = false }
        return (message, state.isInboundEnded, isResumed)
      }
      if isResumed { onDriver { $0.updateWatch() } }
      if let message { return message }
      if isEnded { return nil }
      await waitForMessage()
    }
    return nil
  }

  /// Sends at once, or queues where the socket would block. False when it is closed, or so far behind that it has now
  /// been dropped.
  @discardableResult
  package func send(_ text: String) -> Bool {
    transmit(FrameEncoding.encode(.text, Array(text.utf8), isMasked: !isServer))
  }

  @discardableResult
  package func send(_ bytes: [UInt8]) -> Bool {
    transmit(FrameEncoding.encode(.binary, bytes, isMasked: !isServer))
  }

  /// Of a server only: a client has to mask each frame anew.
  @discardableResult
  package func send(_ frame: EncodedFrame) -> Bool {
    precondition(isServer, "an encoded frame is for sockets of a server")
    return transmit(frame.bytes)
  }

  /// Waits for room instead of dropping. False when the socket is closed or the task cancelled.
  package func sendWaiting(_ text: String) async -> Bool {
    let bytes = FrameEncoding.encode(.text, Array(text.utf8), isMasked: !isServer)
    while !Task.isCancelled {
      switch enqueue(bytes, limit: settings.queueBytes / 2) {
      case .sent: return true
      case .closed: return false
      case .full: await waitForRoom(bytes.count)
      }
    }
    return false
  }

  package func ping() { transmit(FrameEncoding.encode(.ping, [], isMasked: !isServer)) }

  /// Says goodbye, after what is queued. Later sends fail; messages that still arrive are dropped. The socket is gone
  /// when the other side has answered, or after `closeTimeout`.
  package func close(code: UInt16 = 1000, reason: String = "") {
    let bytes = FrameEncoding.close(code: code, reason: reason, isMasked: !isServer)
    guard sendLast(bytes) else { return }
    onDriver { $0.closeSent() }
  }

  // MARK: Sending

  enum Transmission { case sent, closed, full }

  /// Sends or queues; a socket that is too far behind is dropped.
  @discardableResult
  func transmit(_ bytes: [UInt8]) -> Bool {
    switch enqueue(bytes, limit: settings.queueBytes) {
    case .sent: return true
    case .closed: return false
    case .full:
      let goodbye = settings.slowCode.map {
        FrameEncoding.close(code: $0, reason: settings.slowReason, isMasked: !isServer)
      }
      let isFirst = state.withLock { $0.giveUp(goodbye) }
      if isFirst { onDriver { if goodbye == nil { $0.vanished() } else { $0.gaveUp() } } }
      return false
    }
  }

  private func enqueue(_ bytes: [UInt8], limit: Int) -> Transmission {
    let (transmission, needsDriver) = state.withLock { state in
      state.hasSentClose ? (.closed, false) : state.send(bytes, limit: limit)
    }
    if needsDriver { onDriver { $0.flush() } }
    return transmission
  }

  /// Sends a close frame unless one was sent before; afterwards nothing else is.
  func sendLast(_ bytes: [UInt8]) -> Bool {
    let (isSent, needsDriver, reader) = state.withLock {
      state -> (Bool, Bool, UnsafeContinuation<Void, Never>?) in
      guard !state.hasSentClose, state.wire != nil else { return (false, false, nil) }
      let (_, needsDriver) = state.send(bytes, limit: .max)
      state.hasSentClose = true
      return (true, needsDriver, state.endInbound())
    }
    reader?.resume()
    if needsDriver { onDriver { $0.flush() } }
    return isSent
  }

  /// Calls `body` with the driver on the loop thread, if the socket still has one.
  private func onDriver(_ body: @escaping @Sendable (SocketDriver) -> Void) {
    loop.submit { [self] in
      if let driver = state.withLock({ $0.driver }) { body(driver) }
    }
  }

  // MARK: Waiting

  private func waitForMessage() async {
    await withTaskCancellationHandler {
      // Not a checked one, which would cost 200 bytes for each of ten thousand sockets that wait.
      await withUnsafeContinuation { continuation in
        let goOn = state.withLock { state in
          if !state.inbound.isEmpty || state.isInboundEnded || Task.isCancelled { return true }
          precondition(state.receiver == nil, "one task at a time receives from a WebSocket")
          state.receiver = continuation
          return false
        }
        if goOn { continuation.resume() }
      }
    } onCancel: {
      let receiver = state.withLock { state in
        defer { state.receiver = nil }
        return state.receiver
      }
      receiver?.resume()
    }
  }

  private func waitForRoom(_ count: Int) async {
    let number = state.withLock { state in
      state.lastSender += 1
      return state.lastSender
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let goOn = state.withLock { state in
          if state.hasSentClose || state.queuedBytes == 0 || Task.isCancelled { return true }
          state.senders.append((number, continuation))
          return false
        }
        if goOn { continuation.resume() }
      }
    } onCancel: {
      let sender = state.withLock { state in
        state.senders.firstIndex { $0.number == number }.map { state.senders.remove(at: $0).continuation }
      }
      sender?.resume()
    }
  }
}
