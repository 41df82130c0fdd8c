import FerryRuntime

/// A value that tests wait on: every update lets the waiters look again.
package final class Observed<State: Sendable>: Sendable {
  private struct Inner {
    var state: State
    var version: UInt64 = 0
    var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
    var nextWaiter: UInt64 = 0
  }

  private let inner: Locked<Inner>

  package init(_ state: State) { inner = Locked(Inner(state: state)) }

  package var value: State { inner.withLock { $0.state } }

  @discardableResult
  package func update<Result, Failure: Error>(
    _ body: (inout State) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    var waiters: [CheckedContinuation<Void, Never>] = []
    // Resumed outside the lock, and whether or not `body` throws.
    defer { for waiter in waiters { waiter.resume() } }
    return try inner.withLock { inner throws(Failure) -> Result in
      defer {
        inner.version += 1
        waiters = Array(inner.waiters.values)
        inner.waiters = [:]
      }
      return try body(&inner.state)
    }
  }

  /// The first answer of `find` that is not nil; nil only when the task is cancelled.
  package func wait<Result>(for find: (State) -> Result?) async -> Result? {
    while !Task.isCancelled {
      let (state, version) = inner.withLock { ($0.state, $0.version) }
      if let result = find(state) { return result }
      await waitForUpdate(after: version)
    }
    return nil
  }

  private func waitForUpdate(after version: UInt64) async {
    let id = inner.withLock { inner in
      inner.nextWaiter += 1
      return inner.nextWaiter
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let goOn = inner.withLock { inner in
          if inner.version != version || Task.isCancelled { return true }
          inner.waiters[id] = continuation
          return false
        }
        if goOn { continuation.resume() }
      }
    } onCancel: {
      inner.withLock { $0.waiters.removeValue(forKey: id) }?.resume()
    }
  }
}
