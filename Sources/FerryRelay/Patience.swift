import FerryCore
import FerryRuntime

/// How long a lane has waited for the attachments of its message that fail.
///
/// Measured in the lane's own pauses: neither a clock that is set nor failures of anything else shorten it. After a
/// restart a message has its time again.
final class Patience: Sendable {
  private struct State {
    var waited = Duration.zero
    var message: MessageID?
    /// By the attachment's place in the message: what had been waited when it failed first.
    var failed: [Int: Duration] = [:]
  }

  private let state = Locked(State())

  /// The lane pauses for so long.
  func waits(_ pause: Duration) { state.withLock { $0.waited += pause } }

  /// Whether an attachment, which has just failed, has been waited for as long as `limit` since it failed first.
  func isOver(after limit: Duration, _ attachment: Int, of message: MessageID) -> Bool {
    state.withLock { state in
      if state.message != message {
        state.message = message
        state.failed = [:]
      }
      let first = state.failed[attachment] ?? state.waited
      state.failed[attachment] = first
      return state.waited - first >= limit
    }
  }
}
