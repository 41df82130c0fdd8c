import FerryCore
import FerryRuntime

/// A clock that can be put forward and back, and on which waiting takes a part of the time.
final class ShiftingClock: FerryClock {
  private let system = SystemClock()
  private let haste: Int
  private let offset = Locked(Duration.zero)

  init(haste: Int) { self.haste = haste }

  func now() -> Timestamp { system.now().advanced(by: offset.withLock { $0 }) }

  func sleep(for duration: Duration) async throws(CancellationError) {
    try await system.sleep(for: duration / haste)
  }

  func shift(by duration: Duration) { offset.withLock { $0 += duration } }
}
