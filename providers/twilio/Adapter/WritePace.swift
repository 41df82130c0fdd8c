import FerryCore
import FerryRuntime

/// Keeps the writes to one conversation under Twilio's limit of so many a second, in the order in which they come.
///
/// Strict in every stretch of a second, so that no burst at the seam of two seconds is refused. Any task may wait.
final class WritePace: Sendable {
  private struct Window {
    /// When the last writes were due, oldest first, milliseconds.
    var due: [Int64] = []
  }

  private let limit: Int
  private let clock: any FerryClock
  private let windows = Locked<[ChannelID: Window]>([:])
  private static let second: Int64 = 1000
  private static let mostIdle = 1000

  init(perSecond limit: Int, clock: any FerryClock) {
    self.limit = max(limit, 1)
    self.clock = clock
  }

  /// Returns when the next write may be made.
  func wait(for channel: ChannelID) async throws(FerryError) {
    let now = clock.now().milliseconds
    let due = windows.withLock { windows in
      if windows.count > Self.mostIdle {
        windows = windows.filter { ($0.value.due.last ?? 0) > now - Self.second }
      }
      return Self.reserve(&windows[channel, default: Window()].due, limit, now)
    }
    guard due > now else { return }
    do { try await clock.sleep(for: .milliseconds(due - now)) } catch { throw .cancelled(didNotAct: true) }
  }

  private static func reserve(_ due: inout [Int64], _ limit: Int, _ now: Int64) -> Int64 {
    // A clock that was set back must not make everybody wait.
    if let last = due.last, last > now + second * 60 { due = [] }
    var next = max(now, due.last ?? now)
    if due.count >= limit { next = max(next, due[due.count - limit] + second) }
    due.append(next)
    if due.count > limit { due.removeFirst(due.count - limit) }
    return next
  }
}
