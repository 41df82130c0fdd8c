import FerryRuntime
import Glibc

/// A thread that takes jobs in groups: whatever has gathered while it was
/// busy with the last group.
final class WorkerThread: @unchecked Sendable {
  // @unchecked because `work` is called by the one thread alone, and `semaphore` is thread-safe.
  private struct State {
    var jobs: [Database.Job] = []
    var stopped = false
  }

  private let state = Locked(State())
  private let semaphore: UnsafeMutablePointer<sem_t>
  private let work: ([Database.Job]) -> Void

  /// `work` is called on the new thread, with at least one job. The thread keeps itself alive until `stop`.
  init(name: String, work: @escaping ([Database.Job]) -> Void) {
    semaphore = .allocate(capacity: 1)
    sem_init(semaphore, 0, 0)
    self.work = work
    var thread = pthread_t()
    let status = pthread_create(
      &thread, nil,
      { context in
        // Called once, by the new thread, with the reference retained below.
        if let context { Unmanaged<WorkerThread>.fromOpaque(context).takeRetainedValue().run() }
        return nil
      }, Unmanaged.passRetained(self).toOpaque())
    precondition(status == 0, "the thread \(name) could not be started: \(status)")
    pthread_detach(thread)
  }

  deinit {
    sem_destroy(semaphore)
    semaphore.deallocate()
  }

  private func run() {
    while true {
      sem_wait(semaphore)
      let (jobs, stopped) = state.withLock { state in
        let taken = (state.jobs, state.stopped)
        state.jobs = []
        return taken
      }
      if !jobs.isEmpty { work(jobs) }
      if stopped { return }
    }
  }

  /// False once stopped: the job will not be done.
  func submit(_ job: Database.Job) -> Bool {
    state.withLock { state in
      guard !state.stopped else { return false }
      state.jobs.append(job)
      if state.jobs.count == 1 { sem_post(semaphore) }
      return true
    }
  }

  /// The thread ends after the jobs submitted before.
  func stop() {
    state.withLock { state in
      guard !state.stopped else { return }
      state.stopped = true
      sem_post(semaphore)
    }
  }
}
