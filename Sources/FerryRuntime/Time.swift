package import FerryCore
import FoundationEssentials

/// What time it is and how to wait, passed in so that tests own both.
package protocol FerryClock: Sendable {
  func now() -> Timestamp
  /// Throws only when the task is cancelled.
  func sleep(for duration: Duration) async throws(CancellationError)
}

package struct SystemClock: FerryClock {
  package init() {}

  package func now() -> Timestamp { Timestamp(milliseconds: Int64((Date().timeIntervalSince1970 * 1000).rounded())) }

  package func sleep(for duration: Duration) async throws(CancellationError) {
    do { try await Task.sleep(for: duration) } catch { throw CancellationError() }
  }
}

extension Timestamp {
  /// `2026-11-30T08:00:00.123Z`
  package var iso8601: String {
    // Foundation rounds the fraction down from a binary number, which loses a millisecond at times.
    let part = ((milliseconds % 1000) + 1000) % 1000
    let seconds = Date(timeIntervalSince1970: Double((milliseconds - part) / 1000)).formatted(.iso8601)
    return "\(seconds.dropLast()).\(String(part + 1000).dropFirst())Z"
  }

  /// With or without fractional seconds; nil for anything else.
  package init?(iso8601 text: String) {
    for fraction in [true, false] {
      if let date = try? Date.ISO8601FormatStyle(includingFractionalSeconds: fraction).parse(text) {
        self.init(milliseconds: Int64((date.timeIntervalSince1970 * 1000).rounded()))
        return
      }
    }
    return nil
  }

  package func advanced(by duration: Duration) -> Timestamp {
    Timestamp(milliseconds: milliseconds + duration.milliseconds)
  }
}

/// Delays between attempts: each drawn evenly from zero to a limit that doubles (full jitter), so that clients that
/// failed together do not come back together.
package struct Backoff: Sendable {
  package let base: Duration
  package let limit: Duration
  private var attempt = 0

  package init(base: Duration = .milliseconds(500), limit: Duration = .seconds(60)) {
    self.base = base
    self.limit = limit
  }

  package mutating func next(using random: inout some RandomNumberGenerator) -> Duration {
    let ceiling = min(base * Double(1 << min(attempt, 20)), limit)
    attempt += 1
    return .milliseconds(Int64.random(in: 0...max(ceiling.milliseconds, 1), using: &random))
  }

  package mutating func next() -> Duration {
    var random = SystemRandomNumberGenerator()
    return next(using: &random)
  }

  /// After a stable period, never right after connecting.
  package mutating func reset() { attempt = 0 }
}
