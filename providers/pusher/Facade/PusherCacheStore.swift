package import FerryCore
package import FerryRuntime

/// Where a facade keeps the last event of every cache channel, so that it outlives a restart.
package protocol PusherCacheStore: Sendable {
  /// Replaces what was kept for the channel. Returns once that is durable; only then is the publisher answered.
  func keep(_ event: String, for channel: String) async throws(FerryError)

  /// What was kept last, and how many seconds ago; nil when nothing was.
  func kept(_ channel: String) async throws(FerryError) -> (event: String, age: Double)?
}

/// Keeps events for as long as the process lives, the oldest given up first.
package final class MemoryCacheStore: PusherCacheStore {
  private struct Kept {
    let event: String
    let time: Timestamp
  }

  private let clock: any FerryClock
  private let capacity: Int
  private let kept = Locked<[String: Kept]>([:])

  package init(clock: any FerryClock = SystemClock(), capacity: Int = 10_000) {
    self.clock = clock
    self.capacity = capacity
  }

  package func keep(_ event: String, for channel: String) async throws(FerryError) {
    let now = clock.now()
    kept.withLock { kept in
      kept[channel] = Kept(event: event, time: now)
      guard kept.count > capacity else { return }
      // Half at once, so that sorting is rare.
      for (channel, _) in kept.sorted(by: { $0.value.time < $1.value.time }).prefix(capacity / 2) {
        kept[channel] = nil
      }
    }
  }

  package func kept(_ channel: String) async throws(FerryError) -> (event: String, age: Double)? {
    let now = clock.now()
    return kept.withLock { kept in
      kept[channel].map { ($0.event, Double(now.milliseconds - $0.time.milliseconds) / 1000) }
    }
  }
}
