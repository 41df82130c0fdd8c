package import FerryCore
import FerryRuntime

/// A clock that stands still until a test moves it.
package final class ManualClock: FerryClock {
  private struct State {
    var now: Timestamp
    var sleepers: [UInt64: Timestamp] = [:]
    var nextSleeper: UInt64 = 0
  }

  private let state: Observed<State>

  package init(now: Timestamp = Timestamp(milliseconds: 1_800_000_000_000)) { state = Observed(State(now: now)) }

  package func now() -> Timestamp { state.value.now }

  package func sleep(for duration: Duration) async throws(CancellationError) {
    guard duration > .zero else { return }
    let (id, due) = state.update { state in
      state.nextSleeper += 1
      let due = state.now.advanced(by: duration)
      state.sleepers[state.nextSleeper] = due
      return (state.nextSleeper, due)
    }
    let slept: Bool? = await state.wait { $0.now >= due ? true : nil }
    state.update { $0.sleepers[id] = nil }
    if slept == nil { throw CancellationError() }
  }

  /// Moves time on and wakes those whose time has come.
  package func advance(by duration: Duration) {
    state.update { $0.now = $0.now.advanced(by: duration) }
  }

  /// How many sleep past the present.
  package var sleepers: Int { state.value.sleepers.values.count { $0 > state.value.now } }

  /// Returns once at least so many sleep past the present: before moving time on, so that nobody is missed.
  package func waitForSleepers(_ count: Int = 1) async {
    _ = await state.wait { state in state.sleepers.values.count { $0 > state.now } >= count ? true : nil }
  }

  /// Returns once at least so many sleep for just so long from now.
  package func waitForSleepers(_ count: Int, for duration: Duration) async {
    _ = await state.wait { state in
      let due = state.now.advanced(by: duration)
      return state.sleepers.values.count { $0 == due } >= count ? true : nil
    }
  }
}
