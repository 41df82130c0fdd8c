import FerryRuntime

/// The loop's side of a WebSocket: reads, flushes what was queued, pings, and closes.
///
/// Made and used on the loop thread only. It lives from `start` until the socket is gone.
final class SocketDriver: @unchecked Sendable {
  // @unchecked because everything is touched on the loop thread only, which `start` checks and `submit` ensures.

  private enum Phase {
    case open
    /// A close frame was sent; its answer is awaited.
    case closing
    /// Both close frames have been exchanged, or the protocol was broken: what is queued goes out, then the stream
    /// ends, and whatever still arrives is thrown away.
    case leaving
    case gone
  }

  private let socket: WebSocket
  private let pool: FramePool
  private let loop: LoopExecutor
  private let onGone: @Sendable () -> Void
  private var phase = Phase.open
  private var watch: LoopExecutor.WatchID?
  private var watched: LoopExecutor.Events = []
  private var reader: FrameReader?
  private var isWritePending = false
  private var hasFinishedWriting = false
  private var isThrottled = false

  private var lastInbound = ContinuousClock.now
  private var isPinged = false
  private var silenceTimer: LoopExecutor.TimerID?
  private var endTimer: LoopExecutor.TimerID?
  private var throttleTimer: LoopExecutor.TimerID?
  private var allowance: Double
  private var allowanceTime = ContinuousClock.now

  /// `onGone` is called once, on the loop thread, when the connection has been closed.
  init(_ socket: WebSocket, pool: FramePool, onGone: @escaping @Sendable () -> Void) {
    self.socket = socket
    self.pool = pool
    self.onGone = onGone
    loop = socket.loop
    allowance = Double(socket.settings.messagesPerSecond ?? 0)
  }

  /// Begins to read. `early` is what arrived behind the handshake.
  func start(early: [UInt8]) {
    loop.checkIsolated()
    guard let wire = socket.state.withLock({ $0.wire }) else { return }
    socket.state.withLock { $0.driver = self }
    watched = .readable
    watch = loop.watch(wire.descriptor, for: .readable) { [self] events in ready(events) }
    if !early.isEmpty { early.withUnsafeBytes { feed($0) } }
    if wire.buffersInput { readAll() }
    flush()
    if let pingAfter = socket.settings.pingAfter { waitForSilence(pingAfter) }
  }

  // MARK: Readiness

  private func ready(_ events: LoopExecutor.Events) {
    if events.contains(.writable) { flush() }
    guard phase != .gone else { return }
    if events.contains(.readable) { return readAll() }
    // The descriptor is broken or shut both ways, and we were not reading.
    if !events.isDisjoint(with: .closed) { vanished() }
  }

  private func readAll() {
    // A few buffers at a time, so that one busy socket does not hold up the others.
    for _ in 0..<4 {
      guard phase != .gone, phase == .leaving || !isPaused, let wire = socket.state.withLock({ $0.wire }) else {
        return
      }
      switch wire.read(into: pool.buffer) {
      case .bytes(let count):
        feed(UnsafeRawBufferPointer(rebasing: pool.buffer[..<count]))
        if !wire.buffersInput, count < pool.buffer.count { return }
      case .wouldBlock: return
      case .ended: return vanished()
      }
    }
    if phase != .gone, socket.state.withLock({ $0.wire?.buffersInput ?? false }) {
      loop.submit { [self] in readAll() }
    }
  }

  private var isPaused: Bool { isThrottled || socket.state.withLock { $0.isReadingPaused } }

  private func feed(_ bytes: UnsafeRawBufferPointer) {
    lastInbound = .now
    isPinged = false
    guard phase == .open || phase == .closing else { return }
    let reader = reader ?? pool.take()
    let result = reader.read(bytes, messageBytes: socket.settings.messageBytes)
    if result.isBetweenMessages {
      self.reader = nil
      pool.giveBack(reader)
    } else {
      self.reader = reader
    }
    if !result.messages.isEmpty {
      socket.state.withLock { $0.receive(result.messages) }?.resume()
      throttle(result.messages.count)
    }
    if let closed = result.closed {
      end(closed: closed, answer: result.answer)
    } else if result.violation != nil {
      end(closed: nil, answer: result.answer)
    } else if !result.answer.isEmpty {
      socket.transmit(result.answer)
    }
    updateWatch()
  }

  /// The other side closed or broke the protocol. `answer` holds the last frames to be sent.
  private func end(closed: (code: UInt16, reason: String)?, answer: [UInt8]) {
    socket.state.withLock { state in
      state.closing = closed ?? state.closing ?? (1006, "")
      return state.endInbound()
    }?.resume()
    _ = socket.sendLast(answer)
    reader = nil
    phase = .leaving
    startEndTimer()
    flush()
  }

  /// `close` was called: the answer is awaited for a while.
  func closeSent() {
    guard phase == .open else { return }
    phase = .closing
    startEndTimer()
    updateWatch()
  }

  /// The other side reads too slowly, and a close frame has taken the place of what waited for it.
  func gaveUp() {
    socket.state.withLock { $0.endInbound() }?.resume()
    closeSent()
    flush()
  }

  private func startEndTimer() {
    guard endTimer == nil else { return }
    endTimer = loop.schedule(after: socket.settings.closeTimeout) { [self] in
      endTimer = nil
      vanished()
    }
  }

  // MARK: Writing

  /// Writes what waits, and waits for the socket to take more when some is left.
  func flush() {
    guard phase != .gone else { return }
    let (flushed, senders) = socket.state.withLock { state in
      let flushed = state.flush()
      guard state.queuedBytes == 0 || flushed == .ended else {
        return (flushed, [] as [CheckedContinuation<Void, Never>])
      }
      defer { state.senders = [] }
      return (flushed, state.senders.map(\.continuation))
    }
    for sender in senders { sender.resume() }
    if flushed == .ended { return vanished() }
    isWritePending = flushed == .some
    if phase == .leaving, !isWritePending, !hasFinishedWriting { finishWriting() }
    updateWatch()
  }

  /// The last frame is out: the stream ends, and the other side is given time to read to its end.
  private func finishWriting() {
    hasFinishedWriting = true
    guard let wire = socket.state.withLock({ $0.wire }) else { return }
    if !wire.finishWriting() { vanished() }
  }

  /// Asks epoll for what is of interest now.
  func updateWatch() {
    guard phase != .gone, let watch else { return }
    var events: LoopExecutor.Events = []
    if phase != .open || !isPaused { events.insert(.readable) }
    if isWritePending { events.insert(.writable) }
    guard events != watched else { return }
    let wasReading = watched.contains(.readable)
    watched = events
    loop.change(watch, to: events)
    // What the TLS layer holds already makes no descriptor ready.
    if !wasReading, events.contains(.readable), socket.state.withLock({ $0.wire?.buffersInput ?? false }) { readAll() }
  }

  // MARK: Timers

  private func waitForSilence(_ delay: Duration) {
    silenceTimer = loop.schedule(after: delay) { [self] in checkSilence() }
  }

  private func checkSilence() {
    guard phase == .open, let pingAfter = socket.settings.pingAfter else { return }
    let silence = lastInbound.duration(to: .now)
    if isPinged {
      socket.state.withLock { state in
        state.closing = (1006, "")
        return state.endInbound()
      }?.resume()
      return socket.close(code: socket.settings.deadCode, reason: socket.settings.deadReason)
    }
    // While we do not read, silence is ours.
    if isPaused { return waitForSilence(pingAfter) }
    guard silence >= pingAfter else { return waitForSilence(pingAfter - silence) }
    socket.ping()
    isPinged = true
    waitForSilence(socket.settings.pongTimeout)
  }

  /// A bucket that holds one second's worth: a socket that sends more is not read until it has filled again.
  private func throttle(_ count: Int) {
    guard let rate = socket.settings.messagesPerSecond.map(Double.init), rate > 0 else { return }
    let now = ContinuousClock.now
    allowance = min(rate, allowance + rate * allowanceTime.duration(to: now).inSeconds) - Double(count)
    allowanceTime = now
    guard allowance < 0, !isThrottled else { return }
    isThrottled = true
    throttleTimer = loop.schedule(after: .seconds(-allowance / rate)) { [self] in
      isThrottled = false
      updateWatch()
    }
  }

  // MARK: The end

  /// The connection is gone, or is to go without another word.
  func vanished() {
    guard phase != .gone else { return }
    phase = .gone
    for timer in [silenceTimer, endTimer, throttleTimer] {
      if let timer { loop.cancel(timer) }
    }
    if let watch { loop.unwatch(watch) }
    watch = nil
    reader = nil
    let (wire, receiver, senders) = socket.state.withLock { state in
      let wire = state.wire
      let receiver = state.endInbound()
      let senders = state.senders.map(\.continuation)
      state.wire = nil
      state.driver = nil
      state.hasSentClose = true
      state.closing = state.closing ?? (1006, "")
      state.queue = []
      state.queuedBytes = 0
      state.senders = []
      return (wire, receiver, senders)
    }
    wire?.close()
    receiver?.resume()
    for sender in senders { sender.resume() }
    onGone()
  }
}
