import FerryCore
import FerryRuntime

/// Bytes between a C callback on the loop thread and a task, bounded: the piece that turns "stop reading" into waiting
/// and back. One side never waits (the callback), the other does (the task), in either direction:
///
/// - callback to task: `offer`, then `next`;
/// - task to callback: `write`, then `take`.
///
/// When the callback side was told "full" or "empty" it stops; `wake` is called (on any thread) when it should look
/// again.
final class BytePipe: Sendable {
  private struct State {
    var pieces: [[UInt8]] = []
    /// How far into the first piece `take` has come.
    var offset = 0
    var count = 0
    var isFinished = false
    var failure: FerryError?
    /// The callback side has stopped and waits for `wake`.
    var isStopped: Bool
    var waiter: CheckedContinuation<Void, Never>?
  }

  enum Taken: Equatable { case bytes(Int), empty, finished, failed }

  private let limit: Int
  private let wake: @Sendable () -> Void
  private let state: Locked<State>

  /// `isStopped`: the callback side waits for the first `next` or `write`.
  init(limit: Int, isStopped: Bool = false, wake: @escaping @Sendable () -> Void) {
    self.limit = limit
    self.wake = wake
    state = Locked(State(isStopped: isStopped))
  }

  /// Nothing more comes. After a failure what is in the pipe is dropped and both sides fail.
  func finish(_ failure: FerryError? = nil) {
    let (waiter, isWoken) = state.withLock { state -> (CheckedContinuation<Void, Never>?, Bool) in
      guard !state.isFinished else { return (nil, false) }
      state.isFinished = true
      state.failure = failure
      if failure != nil {
        state.pieces = []
        state.count = 0
      }
      defer {
        state.waiter = nil
        state.isStopped = false
      }
      return (state.waiter, state.isStopped)
    }
    waiter?.resume()
    if isWoken { wake() }
  }

  var failure: FerryError? { state.withLock { $0.failure } }

  // MARK: The callback side

  /// False when there is no room: nothing was taken, and `wake` will be called. True also once finished.
  func offer(_ bytes: UnsafeRawBufferPointer) -> Bool {
    let (taken, waiter) = state.withLock { state -> (Bool, CheckedContinuation<Void, Never>?) in
      if state.isFinished { return (true, nil) }
      if state.count >= limit {
        state.isStopped = true
        return (false, nil)
      }
      state.pieces.append(Array(bytes))
      state.count += bytes.count
      defer { state.waiter = nil }
      return (true, state.waiter)
    }
    waiter?.resume()
    return taken
  }

  /// Fills as much of `buffer` as there is; after `empty`, `wake` will be called.
  func take(into buffer: UnsafeMutableRawBufferPointer) -> Taken {
    let (taken, waiter) = state.withLock { state -> (Taken, CheckedContinuation<Void, Never>?) in
      var filled = 0
      while filled < buffer.count, let piece = state.pieces.first {
        let length = min(piece.count - state.offset, buffer.count - filled)
        piece.withUnsafeBytes { source in
          UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: source[state.offset..<state.offset + length]))
        }
        filled += length
        state.offset += length
        if state.offset == piece.count {
          state.pieces.removeFirst()
          state.offset = 0
        }
      }
      state.count -= filled
      if filled > 0 {
        defer { state.waiter = nil }
        return (.bytes(filled), state.waiter)
      }
      if state.isFinished { return (state.failure == nil ? .finished : .failed, nil) }
      state.isStopped = true
      return (.empty, nil)
    }
    waiter?.resume()
    return taken
  }

  // MARK: The task's side

  private enum Step { case piece([UInt8]), end(FerryError?), wait }

  /// The next piece, or nil at the end.
  func next() async throws(FerryError) -> [UInt8]? {
    while true {
      if Task.isCancelled { throw .cancelled() }
      let (step, isWoken) = state.withLock { state -> (Step, Bool) in
        let step: Step
        if !state.pieces.isEmpty {
          let piece = state.pieces.removeFirst()
          state.count -= piece.count
          step = .piece(piece)
        } else {
          step = state.isFinished ? .end(state.failure) : .wait
        }
        let isWoken = state.isStopped && !state.isFinished && state.count <= limit / 2
        if isWoken { state.isStopped = false }
        return (step, isWoken)
      }
      if isWoken { wake() }
      switch step {
      case .piece(let piece): return piece
      case .end(let failure?): throw failure
      case .end(nil): return nil
      case .wait: await wait { $0.pieces.isEmpty && !$0.isFinished }
      }
    }
  }

  /// Waits for room. False once the other side is gone or the task is cancelled.
  func write(_ bytes: [UInt8]) async -> Bool {
    while !Task.isCancelled {
      let (isDone, isWoken) = state.withLock { state -> (Bool?, Bool) in
        if state.isFinished { return (false, false) }
        guard state.count < limit else { return (nil, false) }
        state.pieces.append(bytes)
        state.count += bytes.count
        defer { state.isStopped = false }
        return (true, state.isStopped)
      }
      if isWoken { wake() }
      if let isDone { return isDone }
      await wait { $0.count >= limit && !$0.isFinished }
    }
    return false
  }

  /// Until the other side has changed something, or the task is cancelled.
  private func wait(while condition: @Sendable (State) -> Bool) async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let goOn = state.withLock { state in
          guard condition(state), !Task.isCancelled else { return true }
          precondition(state.waiter == nil, "one task at a time uses a pipe")
          state.waiter = continuation
          return false
        }
        if goOn { continuation.resume() }
      }
    } onCancel: {
      let waiter = state.withLock { state in
        defer { state.waiter = nil }
        return state.waiter
      }
      waiter?.resume()
    }
  }
}
