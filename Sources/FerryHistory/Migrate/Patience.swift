package import FerryCore
package import FerryRuntime

/// How long a transfer goes on trying what may be tried again.
package struct Patience: Sendable {
  let clock: any FerryClock
  /// For so long nothing may succeed before the run ends; it can be resumed.
  let limit: Duration
  /// Told of every wait, for people who are watching.
  let waiting: @Sendable (FerryError, Duration) -> Void

  package init(
    clock: any FerryClock = SystemClock(), limit: Duration = .seconds(900),
    waiting: @escaping @Sendable (FerryError, Duration) -> Void = { _, _ in }
  ) {
    self.clock = clock
    self.limit = limit
    self.waiting = waiting
  }

  /// One attempt after another at what only reads, or what may be repeated.
  package func repeating<Value: Sendable>(
    _ body: @Sendable () async throws(FerryError) -> Value
  ) async throws(FerryError) -> Value {
    var trouble = Trouble(at: clock.now())
    while true {
      switch await Self.outcome(body) {
      case .success(let value): return value
      case .failure(let error): try await pause(after: error, &trouble)
      }
    }
  }

  /// Since when nothing has succeeded.
  struct Trouble: Sendable {
    let start: Timestamp
    var backoff = Backoff(base: .milliseconds(250), limit: .seconds(30))

    init(at start: Timestamp) { self.start = start }
  }

  /// Waits as the error asks; throws it when waiting is of no use.
  func pause(after error: FerryError, _ trouble: inout Trouble) async throws(FerryError) {
    guard error.retry != .never, error.code != .cancelled, error.code != .badCredentials, !Task.isCancelled else {
      throw error
    }
    var wait = max(trouble.backoff.next(), .milliseconds(50))
    if case .after(let asked) = error.retry { wait = max(wait, asked) }
    let lasted = Duration.milliseconds(clock.now().milliseconds - trouble.start.milliseconds)
    guard lasted < limit else { throw error }
    waiting(error, wait)
    do { try await clock.sleep(for: wait) } catch { throw .cancelled(didNotAct: true) }
  }

  static func outcome<Value>(
    _ body: () async throws(FerryError) -> Value
  ) async -> Result<Value, FerryError> {
    do throws(FerryError) { return .success(try await body()) } catch { return .failure(error) }
  }
}
