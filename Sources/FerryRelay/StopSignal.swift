import FerryRuntime

/// Tells one lane to end, and wakes it from its pauses.
final class StopSignal: Sendable {
  private let channel = BoundedChannel<Void>(capacity: 1)
  private let stopped = Locked(false)

  var isStopping: Bool { stopped.withLock { $0 } }

  func stop() {
    stopped.withLock { $0 = true }
    channel.finish()
  }

  /// Until the time is over, `other` tells something, the lane is to end, or the task is cancelled. Called by one task
  /// at a time.
  func sleep(for duration: Duration, on clock: any FerryClock, or other: BoundedChannel<Void>? = nil) async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { try? await clock.sleep(for: duration) }
      group.addTask { _ = await self.channel.next() }
      if let other { group.addTask { _ = await other.next() } }
      await group.next()
      group.cancelAll()
    }
  }
}
