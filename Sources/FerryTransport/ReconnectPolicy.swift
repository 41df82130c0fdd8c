import FerryRuntime

/// When to connect again: full jitter over a limit that doubles, begun anew only after a connection that lasted.
///
/// A value that knows no clock: the caller says how long the connection held.
package struct ReconnectPolicy: Sendable {
  package enum Failure: Hashable, Sendable {
    /// Nobody knows why: wait longer each time.
    case unknown
    /// The other side asks to come back at once, as when a server is replaced: a small jitter only, until it fails
    /// again without having been stable.
    case quick
    /// The other side named a time.
    case after(Duration)
    /// Trying again cannot help.
    case permanent
  }

  private let stableAfter: Duration
  private let quickJitter: Duration
  private var backoff: Backoff
  private var quickAttempts = 0

  package init(
    base: Duration = .milliseconds(500), limit: Duration = .seconds(60), stableAfter: Duration = .seconds(30),
    quickJitter: Duration = .milliseconds(250)
  ) {
    self.stableAfter = stableAfter
    self.quickJitter = quickJitter
    backoff = Backoff(base: base, limit: limit)
  }

  /// How long to wait before the next attempt, or nil to stop. `connectedFor` is nil when there was no connection.
  package mutating func delay(
    after failure: Failure, connectedFor: Duration?, using random: inout some RandomNumberGenerator
  ) -> Duration? {
    if let connectedFor, connectedFor >= stableAfter {
      backoff.reset()
      quickAttempts = 0
    }
    switch failure {
    case .permanent: return nil
    case .after(let wait): return wait + jitter(using: &random)
    case .quick where quickAttempts < 3:
      quickAttempts += 1
      return jitter(using: &random)
    case .quick, .unknown: return backoff.next(using: &random)
    }
  }

  package mutating func delay(after failure: Failure, connectedFor: Duration?) -> Duration? {
    var random = Chance()
    return delay(after: failure, connectedFor: connectedFor, using: &random)
  }

  private func jitter(using random: inout some RandomNumberGenerator) -> Duration {
    .milliseconds(Int64.random(in: 0...max(quickJitter.milliseconds, 1), using: &random))
  }
}
