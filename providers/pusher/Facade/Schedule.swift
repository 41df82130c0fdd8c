import FerryCore
import FerryRuntime

/// Jobs that wait, each for a delay of a few that there are. Adding one and taking those that are due cost the same
/// however many wait.
struct Schedule<Job: Sendable>: Sendable {
  /// Jobs of one delay, which come due in the order in which they were added.
  private struct Lane: Sendable {
    var jobs: [(added: Timestamp, job: Job)] = []
    var head = 0

    var first: Timestamp? { head < jobs.count ? jobs[head].added : nil }

    mutating func removeFirst() -> Job {
      defer {
        head += 1
        if head > 64, head > jobs.count / 2 {
          jobs.removeFirst(head)
          head = 0
        }
      }
      return jobs[head].job
    }
  }

  private var lanes: [Duration: Lane] = [:]

  /// When the next job is due; nil when none waits.
  var next: Timestamp? {
    lanes.lazy.compactMap { delay, lane in lane.first?.advanced(by: delay) }.min()
  }

  mutating func add(_ job: Job, after delay: Duration, now: Timestamp) {
    lanes[delay, default: Lane()].jobs.append((now, job))
  }

  /// The jobs that are due, oldest first. A clock that was set back makes due what it would otherwise hold up.
  mutating func take(at now: Timestamp) -> [Job] {
    var due: [(time: Timestamp, job: Job)] = []
    for delay in lanes.keys {
      while let added = lanes[delay]?.first, now >= added.advanced(by: delay) || now < added {
        if let job = lanes[delay]?.removeFirst() { due.append((added.advanced(by: delay), job)) }
      }
    }
    return due.enumerated().sorted { ($0.element.time, $0.offset) < ($1.element.time, $1.offset) }.map(\.element.job)
  }
}
