import FerryRuntime

/// A piece of work in the relay's task group that can be ended by itself.
final class Running: Sendable {
  private let cancellation = BoundedChannel<Void>(capacity: 1)
  private let end = BoundedChannel<Void>(capacity: 1)

  /// Does the work until it is done, or cancelled by `cancel` or with the task. Called at most once.
  func run(_ work: @escaping @Sendable () async -> Void) async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await work() }
      group.addTask { _ = await self.cancellation.next() }
      await group.next()
      group.cancelAll()
    }
    end.finish()
  }

  func cancel() { cancellation.finish() }

  /// There is nothing to do, so it counts as ended.
  func neverStarts() { end.finish() }

  /// Returns when the work has ended, or the task is cancelled. Called by one task at a time.
  func waitUntilEnded() async { _ = await end.next() }

  /// Waits, and cancels what takes longer than `patience`.
  func waitUntilEnded(patience: Duration, on clock: any FerryClock) async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask {
        if (try? await clock.sleep(for: patience)) != nil { self.cancel() }
      }
      await waitUntilEnded()
      group.cancelAll()
    }
  }
}
