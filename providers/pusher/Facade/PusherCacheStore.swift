package import FerryCore
package import FerryRuntime

/// Where a facade keeps the last event of every cache channel, and the few numbers it counts, so that they outlive a
/// restart.
package protocol PusherCacheStore: Sendable {
  /// Replaces what was kept for the channel. Returns once that is durable; only then is the publisher answered.
  func keep(_ event: String, for channel: String) async throws(FerryError)

  /// What was kept last, and how many seconds ago; nil when nothing was.
  func kept(_ channel: String) async throws(FerryError) -> (event: String, age: Double)?

  /// Removes events kept for longer than so many seconds. True when others are left.
  func prune(olderThan seconds: Double) async throws(FerryError) -> Bool

  /// The next number of that name, from 1. Returns once it is durable; no two calls get the same.
  func nextNumber(_ name: String) async throws(FerryError) -> Int64
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
  private let numbers = Locked<[String: Int64]>([:])

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

  package func prune(olderThan seconds: Double) async throws(FerryError) -> Bool {
    let now = clock.now()
    return kept.withLock { kept in
      kept = kept.filter { Double(now.milliseconds - $0.value.time.milliseconds) / 1000 <= seconds }
      return !kept.isEmpty
    }
  }

  package func nextNumber(_ name: String) async throws(FerryError) -> Int64 {
    numbers.withLock { numbers in
      numbers[name, default: 0] += 1
      return numbers[name] ?? 0
    }
  }
}
