import CLinux
package import FerryCore
import Glibc

/// One thread that alternates between running Swift jobs and waiting on descriptors and timers: the home of
/// single-threaded C libraries.
///
/// An actor whose executor is a loop has its C state isolated by the compiler; a task that prefers the loop runs its
/// nonisolated code there too, so that a request is read, handled and answered without changing threads.
///
/// `enqueue`, `submit` and `stop` may be called from anywhere. Everything else is called on the loop's thread
/// (checked), and handlers are called there too. Handlers must not block.
package final class LoopExecutor: SerialExecutor, TaskExecutor, @unchecked Sendable {
  // @unchecked because `jobs` is behind its lock and everything marked "loop thread" is touched by that thread only.

  package struct Events: OptionSet, Sendable {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }
    package static let readable = Events(rawValue: EPOLLIN.rawValue)
    package static let writable = Events(rawValue: EPOLLOUT.rawValue)
    /// Reported whether asked for or not: the other side is gone, or the descriptor is broken.
    package static let closed = Events(rawValue: EPOLLHUP.rawValue | EPOLLERR.rawValue)
    /// The other side has finished sending, which may leave us unread bytes.
    package static let finishedSending = Events(rawValue: EPOLLRDHUP.rawValue)

    /// Either of the two flags of `closed` stands for both, or `contains(.closed)` would miss one alone.
    fileprivate init(reported: UInt32) {
      self.init(rawValue: reported)
      if !isDisjoint(with: .closed) { insert(.closed) }
    }
  }

  /// Names a watched descriptor. Never reused, unlike the descriptor's number.
  package struct WatchID: Hashable, Sendable { fileprivate let number: UInt64 }
  package struct TimerID: Hashable, Sendable { fileprivate let number: UInt64 }

  private struct Watch {
    let descriptor: Int32
    let handler: (Events) -> Void
  }

  private struct Inbox {
    var jobs: [UnownedJob] = []
    var calls: [@Sendable () -> Void] = []
    var stopping = false
    /// The thread has ended. From then on whoever submits runs the calls, one after the other.
    var ended = false
    var draining = false
  }

  private let name: String
  private let inbox = Locked(Inbox())
  private let epoll: Int32
  private let wakeUp: Int32
  private let threadID = Locked<UInt>(0)
  private let clock = ContinuousClock()

  // Loop thread.
  private var watches: [UInt64: Watch] = [:]
  private var timers = TimerQueue()
  private var nextNumber: UInt64 = 1
  private var beforeWait: [UInt64: () -> Duration?] = [:]

  private static let wakeUpTag: UInt64 = 0

  /// Starts the thread. It runs until `stop`.
  package init(name: String) throws(FerryError) {
    self.name = name
    epoll = ferry_epoll_create()
    wakeUp = ferry_eventfd()
    guard epoll >= 0, wakeUp >= 0 else {
      throw FerryError(
        .internal, "The event loop could not be made. Raise the limit on open files.", retry: .now,
        cause: String(cString: strerror(errno)))
    }
    control(EPOLL_CTL_ADD, wakeUp, .readable, Self.wakeUpTag)
    var thread = pthread_t()
    let status = pthread_create(
      &thread, nil,
      { context in
        // Called once, by the new thread, with the reference retained below.
        if let context { Unmanaged<LoopExecutor>.fromOpaque(context).takeRetainedValue().run() }
        return nil
      }, Unmanaged.passRetained(self).toOpaque())
    precondition(status == 0, "the event loop's thread could not be started: \(status)")
    pthread_detach(thread)
  }

  deinit {
    close(epoll)
    close(wakeUp)
  }

  // MARK: From anywhere

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let isFirst = inbox.withLock { inbox in
      inbox.jobs.append(job)
      return inbox.jobs.count + inbox.calls.count == 1
    }
    if isFirst { wake() }
  }

  /// Calls `body` on the loop thread soon, in the order of submission: how synchronous code of another thread reaches
  /// what the loop owns. Never calls it before returning, except after the loop has ended: then the caller's thread
  /// stands in for the loop's, so that C libraries are still let go.
  package func submit(_ body: @escaping @Sendable () -> Void) {
    let (isFirst, mustDrain) = inbox.withLock { inbox in
      inbox.calls.append(body)
      if inbox.ended {
        defer { inbox.draining = true }
        return (false, !inbox.draining)
      }
      return (inbox.jobs.count + inbox.calls.count == 1, false)
    }
    if isFirst { wake() }
    if mustDrain { drain() }
  }

  private func drain() {
    threadID.withLock { $0 = UInt(pthread_self()) }
    while true {
      let calls = inbox.withLock { inbox in
        defer { inbox.calls = [] }
        if inbox.calls.isEmpty {
          threadID.withLock { $0 = 0 }
          inbox.draining = false
        }
        return inbox.calls
      }
      if calls.isEmpty { return }
      for call in calls { call() }
      letGo()
    }
  }

  /// Ends the thread once no jobs are left. The last act of whoever made the loop.
  package func stop() {
    inbox.withLock { $0.stopping = true }
    wake()
  }

  package func checkIsolated() {
    precondition(isOnThread, "this must be called on the loop thread \"\(name)\"")
  }

  package func isIsolatingCurrentContext() -> Bool? { isOnThread }

  package var isOnThread: Bool { threadID.withLock { $0 } == UInt(pthread_self()) }

  // MARK: On the loop thread

  /// Calls `handler` whenever the descriptor is in one of the states asked for (level-triggered).
  package func watch(
    _ descriptor: Int32, for events: Events, handler: @escaping (Events) -> Void
  ) -> WatchID {
    checkIsolated()
    let number = takeNumber()
    watches[number] = Watch(descriptor: descriptor, handler: handler)
    control(EPOLL_CTL_ADD, descriptor, events, number)
    return WatchID(number: number)
  }

  package func change(_ watch: WatchID, to events: Events) {
    checkIsolated()
    guard let descriptor = watches[watch.number]?.descriptor else { return }
    control(EPOLL_CTL_MOD, descriptor, events, watch.number)
  }

  /// Before the descriptor is closed. The handler is not called again.
  package func unwatch(_ watch: WatchID) {
    checkIsolated()
    guard let descriptor = watches.removeValue(forKey: watch.number)?.descriptor else { return }
    control(EPOLL_CTL_DEL, descriptor, [], watch.number)
  }

  package func schedule(after delay: Duration, handler: @escaping () -> Void) -> TimerID {
    checkIsolated()
    let number = takeNumber()
    timers.insert(number, at: clock.now.advanced(by: delay), handler)
    return TimerID(number: number)
  }

  package func cancel(_ timer: TimerID) {
    checkIsolated()
    timers.remove(timer.number)
  }

  /// Calls `hook` before every wait; it returns how long the wait may last at most, or nil for no matter. For C
  /// libraries that keep timers of their own.
  package func addHook(_ hook: @escaping () -> Duration?) -> WatchID {
    checkIsolated()
    let number = takeNumber()
    beforeWait[number] = hook
    return WatchID(number: number)
  }

  package func removeHook(_ hook: WatchID) {
    checkIsolated()
    beforeWait[hook.number] = nil
  }

  // MARK: The thread

  private func run() {
    threadID.withLock { $0 = UInt(pthread_self()) }
    ferry_name_thread(name)
    var ready = [epoll_event](repeating: epoll_event(), count: 256)
    while true {
      let (jobs, calls, stopping) = inbox.withLock { inbox in
        let jobs = inbox.jobs
        let calls = inbox.calls
        inbox.jobs.removeAll(keepingCapacity: true)
        inbox.calls.removeAll(keepingCapacity: true)
        return (jobs, calls, inbox.stopping)
      }
      for call in calls { call() }
      for job in jobs {
        job.runSynchronously(isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
      }
      let now = clock.now
      // One by one, because a handler may cancel another that is due as well.
      while let handler = timers.takeDue(at: now) { handler() }
      if stopping, jobs.isEmpty, calls.isEmpty {
        letGo()
        if end() { return }
      }

      let count = epoll_wait(epoll, &ready, Int32(ready.count), waitMilliseconds(hasJobs: !jobs.isEmpty))
      for index in 0..<Int(max(count, 0)) {
        let tag = ferry_epoll_tag(&ready[index])
        if tag == Self.wakeUpTag {
          var drained: UInt64 = 0
          _ = read(wakeUp, &drained, 8)
        } else {
          // Looked up by our own number: an earlier handler of this round may have removed it.
          watches[tag]?.handler(Events(reported: ready[index].events))
        }
      }
    }
  }

  /// Handlers hold what made them, which holds the loop: none would ever be freed.
  private func letGo() {
    let handlers = (watches, timers, beforeWait)
    watches = [:]
    timers = TimerQueue()
    beforeWait = [:]
    // Freed here, after the three are whole again: what is freed may call the loop.
    withExtendedLifetime(handlers) {}
  }

  /// False when something came in meanwhile.
  private func end() -> Bool {
    inbox.withLock { inbox in
      guard inbox.jobs.isEmpty, inbox.calls.isEmpty else { return false }
      threadID.withLock { $0 = 0 }
      inbox.ended = true
      return true
    }
  }

  private func waitMilliseconds(hasJobs: Bool) -> Int32 {
    var wait: Duration? = timers.first.map { clock.now.duration(to: $0) }
    for hook in beforeWait.values {
      if let limit = hook() { wait = min(limit, wait ?? limit) }
    }
    if hasJobs { return 0 }
    guard let wait else { return -1 }
    guard wait > .zero else { return 0 }
    return Int32(clamping: wait.milliseconds + 1)
  }

  private func wake() {
    var one: UInt64 = 1
    _ = write(wakeUp, &one, 8)
  }

  private func takeNumber() -> UInt64 {
    defer { nextNumber += 1 }
    return nextNumber
  }

  private func control(_ operation: Int32, _ descriptor: Int32, _ events: Events, _ tag: UInt64) {
    ferry_epoll_ctl(epoll, operation, descriptor, events.rawValue, tag)
  }
}

/// Timers by due time; removal is by number and lazy, so that a timer that is renewed often stays cheap.
private struct TimerQueue {
  private typealias Item = (due: ContinuousClock.Instant, number: UInt64)

  private var heap: [Item] = []
  private var handlers: [UInt64: () -> Void] = [:]

  var first: ContinuousClock.Instant? {
    mutating get {
      while let top = heap.first, handlers[top.number] == nil { removeTop() }
      return heap.first?.due
    }
  }

  mutating func insert(_ number: UInt64, at due: ContinuousClock.Instant, _ handler: @escaping () -> Void) {
    handlers[number] = handler
    heap.append((due, number))
    var child = heap.count - 1
    while child > 0, Self.isBefore(heap[child], heap[(child - 1) / 2]) {
      heap.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  mutating func remove(_ number: UInt64) {
    handlers[number] = nil
    if heap.count > 64, heap.count > 2 * handlers.count { compact() }
  }

  mutating func takeDue(at now: ContinuousClock.Instant) -> (() -> Void)? {
    guard let next = first, next <= now else { return nil }
    let handler = handlers.removeValue(forKey: heap[0].number)
    removeTop()
    return handler
  }

  /// Of timers due at the same instant the one scheduled first comes first.
  private static func isBefore(_ left: Item, _ right: Item) -> Bool {
    (left.due, left.number) < (right.due, right.number)
  }

  private mutating func compact() {
    heap.removeAll { handlers[$0.number] == nil }
    heap.sort(by: Self.isBefore)
  }

  private mutating func removeTop() {
    heap.swapAt(0, heap.count - 1)
    heap.removeLast()
    var parent = 0
    while true {
      var least = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && Self.isBefore(heap[child], heap[least])
      {
        least = child
      }
      if least == parent { return }
      heap.swapAt(parent, least)
      parent = least
    }
  }
}

extension Duration {
  /// Whole milliseconds, rounded down.
  package var milliseconds: Int64 {
    let (seconds, attoseconds) = components
    return seconds * 1000 + attoseconds / 1_000_000_000_000_000
  }

  package var inSeconds: Double {
    let (seconds, attoseconds) = components
    return Double(seconds) + Double(attoseconds) / 1e18
  }
}
