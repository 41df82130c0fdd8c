import FerryCore
import FerryRuntime
import Glibc
import Testing

/// An actor that lives on a loop.
private actor Resident {
  let loop: LoopExecutor
  private(set) var count = 0
  init(_ loop: LoopExecutor) { self.loop = loop }
  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  func increment() -> Bool {
    count += 1
    return loop.isOnThread
  }

  /// For what must be called on the loop's thread.
  func run<Result: Sendable>(_ body: @Sendable (LoopExecutor) throws -> Result) rethrows -> Result { try body(loop) }
}

@Suite(.timeLimit(.minutes(1))) struct LoopExecutorTests {
  private func withLoop<Result>(_ body: (LoopExecutor) async throws -> Result) async throws -> Result {
    let loop = try LoopExecutor(name: "test")
    defer { loop.stop() }
    return try await body(loop)
  }

  @Test("an actor on a loop runs on its thread, one call after the other")
  func actorIsolation() async throws {
    try await withLoop { loop in
      let resident = Resident(loop)
      #expect(!loop.isOnThread)
      await withTaskGroup(of: Bool.self) { group in
        for _ in 0..<1000 { group.addTask { await resident.increment() } }
        for await onThread in group { #expect(onThread) }
      }
      #expect(await resident.count == 1000)
    }
  }

  @Test("a task that prefers the loop runs its code there")
  func taskPreference() async throws {
    try await withLoop { loop in
      let onThread = await Task(executorPreference: loop) { loop.isOnThread }.value
      #expect(onThread)
    }
  }

  @Test("jobs run in the order in which they came")
  func jobOrder() async throws {
    try await withLoop { loop in
      let seen = Locked<[Int]>([])
      let last = BoundedChannel<Void>(capacity: 1)
      await Resident(loop).run { loop in
        // Queued while the loop is busy with this very job, so the order is ours.
        for number in 0..<100 {
          Task(executorPreference: loop) {
            seen.withLock { $0.append(number) }
            if number == 99 { await last.send(()) }
          }
        }
      }
      // What is waited for may be moved ahead of the others, so none of them is.
      _ = await last.next()
      #expect(seen.withLock { $0 } == Array(0..<100))
    }
  }

  @Test("timers fire by due time, and those due together in the order of scheduling")
  func timerOrder() async throws {
    try await withLoop { loop in
      let seen = BoundedChannel<Int>(capacity: 100)
      await Resident(loop).run { loop in
        for delay in [30, 10, 20, 10, 0] {
          _ = loop.schedule(after: .milliseconds(delay)) { _ = seen.offer(delay) }
        }
      }
      var order: [Int] = []
      while order.count < 5, let next = await seen.next() { order.append(next) }
      #expect(order == [0, 10, 10, 20, 30])
    }
  }

  @Test("a timer that is cancelled does not fire, even when cancelled by one that was due with it")
  func timerCancellation() async throws {
    try await withLoop { loop in
      let seen = BoundedChannel<String>(capacity: 100)
      await Resident(loop).run { loop in
        let early = loop.schedule(after: .zero) { _ = seen.offer("cancelled before") }
        loop.cancel(early)
        let cancelled = Locked<LoopExecutor.TimerID?>(nil)
        _ = loop.schedule(after: .milliseconds(1)) {
          _ = seen.offer("first")
          cancelled.withLock { $0 }.map { loop.cancel($0) }
        }
        let victim = loop.schedule(after: .milliseconds(1)) { _ = seen.offer("cancelled by the first") }
        cancelled.withLock { $0 = victim }
        _ = loop.schedule(after: .milliseconds(2)) { _ = seen.offer("last") }
        // Both are overdue, and so handled in one round, by the time this job ends.
        usleep(5000)
      }
      #expect(await seen.next() == "first")
      #expect(await seen.next() == "last")
    }
  }

  @Test("a timer may renew itself, and many timers are renewed cheaply")
  func timerRenewal() async throws {
    try await withLoop { loop in
      let rounds = BoundedChannel<Int>(capacity: 100)
      await Resident(loop).run { loop in
        for _ in 0..<50_000 { loop.cancel(loop.schedule(after: .seconds(3600)) {}) }
        @Sendable func again(_ round: Int) {
          _ = loop.schedule(after: .zero) {
            _ = rounds.offer(round)
            if round < 10 { again(round + 1) }
          }
        }
        again(1)
      }
      for round in 1...10 { #expect(await rounds.next() == round) }
    }
  }

  @Test("a descriptor is reported readable until it has been read, and not after it is unwatched")
  func watching() async throws {
    try await withLoop { loop in
      let pipe = try Pipe()
      let seen = BoundedChannel<UInt8>(capacity: 100)
      await Resident(loop).run { loop in
        let id = Locked<LoopExecutor.WatchID?>(nil)
        let watch = loop.watch(pipe.readEnd, for: .readable) { events in
          #expect(events.contains(.readable))
          var byte: UInt8 = 0
          read(pipe.readEnd, &byte, 1)
          _ = seen.offer(byte)
          // Unwatched by its own handler, with one byte still to be read.
          if byte == 3 { id.withLock { $0 }.map { loop.unwatch($0) } }
        }
        id.withLock { $0 = watch }
        pipe.write([1, 2, 3, 4])
        _ = loop.schedule(after: .milliseconds(20)) { seen.finish() }
      }
      var bytes: [UInt8] = []
      while let byte = await seen.next() { bytes.append(byte) }
      #expect(bytes == [1, 2, 3])
    }
  }

  @Test("a handler may unwatch another that is ready in the same round, and its number may be in use again")
  func unwatchingAnother() async throws {
    try await withLoop { loop in
      let first = try Pipe()
      let second = try Pipe()
      let seen = BoundedChannel<String>(capacity: 100)
      await Resident(loop).run { loop in
        let ids = Locked<[String: LoopExecutor.WatchID]>([:])
        for (name, pipe, other) in [("first", first, "second"), ("second", second, "first")] {
          let id = loop.watch(pipe.readEnd, for: .readable) { _ in
            _ = seen.offer(name)
            for key in [name, other] { ids.withLock { $0[key] }.map { loop.unwatch($0) } }
          }
          ids.withLock { $0[name] = id }
        }
        first.write([1])
        second.write([1])
        _ = loop.schedule(after: .milliseconds(20)) { seen.finish() }
      }
      var names: [String] = []
      while let name = await seen.next() { names.append(name) }
      #expect(names.count == 1)
    }
  }

  @Test("what is watched for may change, and a far side that is gone is reported unasked")
  func changing() async throws {
    try await withLoop { loop in
      let pipe = try Pipe()
      let seen = BoundedChannel<Bool>(capacity: 100)
      await Resident(loop).run { loop in
        let id = Locked<LoopExecutor.WatchID?>(nil)
        let watch = loop.watch(pipe.writeEnd, for: .writable) { events in
          _ = seen.offer(events.contains(.closed))
          guard let id = id.withLock({ $0 }) else { return }
          if events.contains(.closed) { loop.unwatch(id) } else { loop.change(id, to: []) }
        }
        id.withLock { $0 = watch }
      }
      #expect(await seen.next() == false)
      pipe.closeReadEnd()
      #expect(await seen.next() == true)
    }
  }

  @Test("a hook is asked before every wait and bounds it")
  func hooks() async throws {
    try await withLoop { loop in
      let asked = BoundedChannel<Int>(capacity: 1000)
      let resident = Resident(loop)
      let hook = await resident.run { loop in
        let count = Locked(0)
        return loop.addHook {
          _ = asked.offer(
            count.withLock {
              $0 += 1; return $0
            })
          return .milliseconds(1)
        }
      }
      for number in 1...5 { #expect(await asked.next() == number) }
      await resident.run { $0.removeHook(hook) }
    }
  }

  @Test("a loop that is stopped finishes its jobs, ends its thread and is freed")
  func stopping() async throws {
    let (freed, last) = try await stoppedLoop()
    #expect(last)
    while freed.value != nil { await Task.yield() }
  }

  @Test("what handlers hold is freed with the loop's thread, even when it holds the loop")
  func cycles() async throws {
    let weak = try await {
      let loop = try LoopExecutor(name: "cyclic")
      await Resident(loop).run { loop in
        let pipe = try? Pipe()
        _ = loop.watch(pipe?.readEnd ?? -1, for: .readable) { _ in withExtendedLifetime((loop, pipe)) {} }
        _ = loop.schedule(after: .seconds(3600)) { withExtendedLifetime(loop) {} }
        _ = loop.addHook { withExtendedLifetime(loop) { nil } }
      }
      loop.stop()
      return Weak(value: loop)
    }()
    while weak.value != nil { await Task.yield() }
  }

  @Test("what is submitted after the end is still called, by the caller, one after the other")
  func submittingAfterTheEnd() async throws {
    let loop = try LoopExecutor(name: "ended")
    let calls = BoundedChannel<Int>(capacity: 10)
    loop.submit { _ = calls.offer(0) }
    loop.stop()
    #expect(await calls.next() == 0)
    // Whether the thread has ended by now or not, each is called once, in order, on what counts as the loop's thread.
    for number in 1...5 {
      loop.submit {
        loop.checkIsolated()
        _ = loop.schedule(after: .zero) {}
        loop.submit { _ = calls.offer(number) }
      }
    }
    for number in 1...5 { #expect(await calls.next() == number) }
  }

  private struct Weak: Sendable {
    weak let value: LoopExecutor?
  }

  private func stoppedLoop() async throws -> (Weak, Bool) {
    let loop = try LoopExecutor(name: "short-lived")
    let task = Task(executorPreference: loop) { true }
    let ran = await task.value
    loop.stop()
    return (Weak(value: loop), ran)
  }

  @Test("calling the loop's own functions from elsewhere is caught")
  func wrongThread() async {
    await #expect(processExitsWith: .failure) {
      let loop = try LoopExecutor(name: "test")
      _ = loop.schedule(after: .zero) {}
    }
  }
}

/// A pipe, closed with the last reference to it.
private final class Pipe: Sendable {
  let readEnd: Int32
  let writeEnd: Int32
  private let readEndIsOpen = Locked(true)

  init() throws {
    var ends: [Int32] = [0, 0]
    // Closed in the children that other tests start meanwhile: one that kept the end would keep the pipe open.
    try #require(pipe(&ends) == 0)
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    (readEnd, writeEnd) = (ends[0], ends[1])
    signal(SIGPIPE, SIG_IGN)
  }

  deinit {
    closeReadEnd()
    close(writeEnd)
  }

  func write(_ bytes: [UInt8]) { _ = Glibc.write(writeEnd, bytes, bytes.count) }

  func closeReadEnd() {
    let wasOpen = readEndIsOpen.withLock { isOpen in
      defer { isOpen = false }
      return isOpen
    }
    if wasOpen { close(readEnd) }
  }
}
