import CMicroHTTPD
import FerryCore
import FerryRuntime
import Glibc

/// The server's state, on its loop: libmicrohttpd without a thread, whose epoll descriptor our loop watches.
///
/// Requests become exchanges, each with a task that runs the handler. Upgraded sockets leave libmicrohttpd at once (it
/// would keep 16 KB for each) and become WebSockets. Everything is counted here: connections of libmicrohttpd and
/// WebSockets alike.
actor ServerLoop {
  nonisolated let loop: LoopExecutor
  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  let settings: HTTPServer.Settings
  let logger: Logger
  let isSecure: Bool
  let handler: @Sendable (HTTPRequest) async -> HTTPResponse
  let pool = FramePool(isServer: true)
  let callbacks: ServerCallbacks
  private var watch: LoopExecutor.WatchID?
  private var hook: LoopExecutor.WatchID?
  private var sweepTimer: LoopExecutor.TimerID?
  /// Set when libmicrohttpd has something to do that its descriptor does not show yet.
  private var needsRun = false

  var connections: [OpaquePointer: Connection] = [:]
  var exchanges: [UInt64: Exchange] = [:]
  var tasks: [UInt64: Task<Void, Never>] = [:]
  var sockets: [UInt64: WebSocket] = [:]
  var countByAddress: [String: Int] = [:]
  /// Nil where clients ask as often as they like.
  var limit: RequestLimit?
  /// When it was last told that one asks too often.
  var toldOfLimit: ContinuousClock.Instant?
  var lastID: UInt64 = 0
  var isStopping = false
  /// Nothing is waited for any more.
  var isEnding = false
  /// Sockets under TLS that we have closed and libmicrohttpd not yet: it gets to that in a later turn, for which its
  /// descriptor does not ask.
  var endingUpgrades = 0

  private var stopWaiter: CheckedContinuation<Void, Never>?
  private var drainWaiter: CheckedContinuation<Void, Never>?

  init(
    _ settings: HTTPServer.Settings, listener: Listener, tls: TLSFiles?, loop: LoopExecutor, logger: Logger,
    handler: @escaping @Sendable (HTTPRequest) async -> HTTPResponse
  ) throws(FerryError) {
    let callbacks = ServerCallbacks()
    guard callbacks.startDaemon(settings, listener: listener, tls: tls) else {
      close(listener.descriptor)
      throw FerryError(
        .badConfiguration,
        tls == nil
          ? "The HTTP server could not be started. Raise the limit on open files."
          : "The HTTP server could not be started. Check that the certificate and key files hold PEM and belong together."
      )
    }
    self.loop = loop
    self.settings = settings
    self.logger = logger
    self.handler = handler
    self.callbacks = callbacks
    limit = settings.requestsPerClient > 0 ? RequestLimit(perSecond: settings.requestsPerClient) : nil
    isSecure = tls != nil
    callbacks.server = self
  }

  var openConnections: Int { connections.count + sockets.count }

  // MARK: Life

  func run() async {
    start()
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        if Task.isCancelled { continuation.resume() } else { stopWaiter = continuation }
      }
    } onCancel: {
      loop.submit { [self] in assumeIsolated { $0.stopRequested() } }
    }
    beginStop()
    await drain(within: settings.stopTimeout)
    for task in tasks.values { task.cancel() }
    for socket in sockets.values { socket.abandon() }
    for exchange in exchanges.values { shutdown(exchange.connection.descriptor, Int32(SHUT_RDWR)) }
    resumeAll()
    await drain(within: settings.stopTimeout)
    finish()
  }

  private func start() {
    watch = loop.watch(cmhd_epoll_descriptor(callbacks.daemon), for: .readable) { [unowned self] _ in runDaemon() }
    hook = loop.addHook { [unowned self] in beforeWait() }
    scheduleSweep()
  }

  private func stopRequested() {
    stopWaiter?.resume()
    stopWaiter = nil
  }

  private func beginStop() {
    isStopping = true
    let listener = MHD_quiesce_daemon(callbacks.daemon)
    if listener >= 0 { close(listener) }
    for connection in connections.values where connection.exchange == nil && !connection.isUpgraded {
      shutdown(connection.descriptor, Int32(SHUT_RDWR))
    }
    for socket in sockets.values { socket.close(code: socket.settings.stopCode, reason: socket.settings.stopReason) }
  }

  /// Until nothing is left, or the time is up.
  private func drain(within limit: Duration) async {
    guard !isDrained else { return }
    let timer = loop.schedule(after: limit) { [unowned self] in drained() }
    await withCheckedContinuation { drainWaiter = $0 }
    loop.cancel(timer)
  }

  private var isDrained: Bool { tasks.isEmpty && sockets.isEmpty && exchanges.isEmpty }

  func checkDrained() { if isStopping, isDrained { drained() } }

  private func drained() {
    drainWaiter?.resume()
    drainWaiter = nil
  }

  private func finish() {
    if let sweepTimer { loop.cancel(sweepTimer) }
    if let hook { loop.removeHook(hook) }
    if let watch { loop.unwatch(watch) }
    // Suspended connections would make libmicrohttpd abort the program: all are resumed, and none waits any more.
    isEnding = true
    resumeAll()
    runDaemon()
    callbacks.stopDaemon()
    if !tasks.isEmpty { logger.warning("\(tasks.count) handlers did not end when they were cancelled") }
  }

  // MARK: libmicrohttpd's turn

  private func runDaemon() {
    needsRun = false
    MHD_run(callbacks.daemon)
  }

  /// Asks for a turn of libmicrohttpd before the loop waits again.
  func requestRun() { needsRun = true }

  private func beforeWait() -> Duration? {
    if endingUpgrades > 0 {
      runDaemon()
      return endingUpgrades > 0 ? .milliseconds(20) : .zero
    }
    for _ in 0..<4 {
      var milliseconds: UInt64 = 0
      let hasLimit = MHD_get_timeout(callbacks.daemon, &milliseconds) == cmhd_yes
      guard needsRun || (hasLimit && milliseconds == 0) else {
        return hasLimit ? .milliseconds(Int64(clamping: milliseconds)) : nil
      }
      runDaemon()
    }
    return .zero
  }

  func suspend(_ exchange: Exchange) {
    guard !exchange.isSuspended, !isEnding else { return }
    exchange.isSuspended = true
    MHD_suspend_connection(exchange.handle)
  }

  func resume(_ exchange: Exchange) {
    guard exchange.isSuspended else { return }
    exchange.isSuspended = false
    MHD_resume_connection(exchange.handle)
    requestRun()
  }

  private func resumeAll() { for exchange in exchanges.values { resume(exchange) } }

  // MARK: Time

  /// Watches for the end of what a client sends, because libmicrohttpd misses it twice over: it does not look at a
  /// connection that waits for its handler, and it takes a short read for "nothing more yet" even when the end of the
  /// stream came with the same packet, of which its edge-triggered epoll then hears no more.
  func watchForHangUp(_ connection: Connection) {
    let connected = OnLoop(connection)
    connection.hangUpWatch = loop.watch(connection.descriptor, for: .finishedSending) { [weak self] _ in
      self?.assumeIsolated { $0.hungUp(connected.value) }
    }
  }

  func unwatch(_ connection: Connection) {
    if let watch = connection.hangUpWatch { loop.unwatch(watch) }
    connection.hangUpWatch = nil
  }

  private func hungUp(_ connection: Connection) {
    unwatch(connection)
    connection.isHalfClosed = true
    remindOfEnd(connection)
    // A client that only ended its side still gets answers that come soon; one that is gone ends its handler.
    let connected = OnLoop(connection)
    _ = loop.schedule(after: .milliseconds(250)) { [weak self] in
      self?.assumeIsolated { $0.giveUp(connected.value) }
    }
  }

  /// Lets libmicrohttpd hear again that a client has ended its stream: after each piece of it that was read. Changes
  /// nothing else; what has arrived can still be read.
  func remindOfEnd(_ connection: Connection) {
    guard connection.isHalfClosed else { return }
    let connected = OnLoop(connection)
    _ = loop.schedule(after: .zero) {
      if !connected.value.isClosed { shutdown(connected.value.descriptor, Int32(SHUT_RD)) }
    }
  }

  private func giveUp(_ connection: Connection) {
    guard let exchange = connection.exchange else { return }
    tasks[exchange.id]?.cancel()
    exchange.body.finish(.clientGone)
    exchange.outgoing?.finish(.clientGone)
    resume(exchange)
  }

  /// Closes connections that have not brought a whole request head in time, however slowly they trickle, and those
  /// whose body comes at less than ten bytes a second.
  private func sweep() {
    for connection in connections.values where !connection.isUpgraded {
      let isTooSlow: Bool
      if let exchange = connection.exchange {
        let time = exchange.begun.duration(to: .now)
        isTooSlow =
          exchange.phase == .body && !exchange.isSuspended && time > settings.idleTimeout
          && Double(exchange.received) < time.inSeconds * 10
      } else {
        isTooSlow = connection.waitingSince.duration(to: .now) > settings.idleTimeout
      }
      if isTooSlow { shutdown(connection.descriptor, Int32(SHUT_RDWR)) }
    }
    scheduleSweep()
  }

  private func scheduleSweep() {
    let interval = min(max(settings.idleTimeout / 4, .milliseconds(50)), .seconds(5))
    sweepTimer = loop.schedule(after: interval) { [unowned self] in sweep() }
  }
}

extension FerryError {
  static var clientGone: FerryError {
    FerryError(.cancelled, "The client closed the connection.", retry: .never, didNotAct: false)
  }
}

extension WebSocket {
  /// Ends the connection without another word.
  func abandon() {
    loop.submit { [self] in state.withLock { $0.driver }?.vanished() }
  }
}
