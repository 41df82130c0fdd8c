import FerryCore
import FerryRuntime
import FerryStorage

/// Keeps the journal bounded: removes what was settled longer ago than `age`, in steps that lanes do not notice.
struct Retention: Sendable {
  let age: Duration
  let journal: Journal
  let names: AuthorNames
  let clock: any FerryClock
  let logger: Logger
  let metrics: Metrics

  /// Between two passes; at least a minute.
  private var interval: Duration { max(min(age / 48, .seconds(3600)), .seconds(60)) }
  /// Between two steps: the journal is for the lanes, most of the time.
  private static let breath = Duration.milliseconds(50)

  /// Until cancelled.
  func run() async {
    var slice = 0
    while (try? await clock.sleep(for: interval)) != nil {
      do throws(FerryError) {
        try await pass(slice)
      } catch {
        guard error.code != .cancelled else { return }
        logger.warning("the journal was not pruned: \(error)")
      }
      slice = (slice + 1) & 255
    }
  }

  func pass(_ slice: Int) async throws(FerryError) {
    let cutoff = clock.now().advanced(by: .zero - age)
    // Names that are used are noted again.
    names.refresh()
    var start: Int64? = 0
    var pruned = 0
    while let from = start {
      let step = try await journal.prune(settledBefore: cutoff, from: from)
      start = step.next
      pruned += step.pruned
      if step.givenUp > 0 {
        logger.warning("\(step.givenUp) changes waited too long for their messages and are dead letters now")
        metrics.add(Double(step.givenUp), to: "ferry_dead_letters_total", ["lane": "any", "reason": "not_found"])
      }
      try await journal.shrink()
      if start != nil, (try? await clock.sleep(for: Self.breath)) == nil { throw .cancelled() }
    }
    try await journal.tidy(before: cutoff, slice: slice)
    metrics.add(Double(pruned), to: "ferry_pruned_total")
    if pruned > 0 { logger.info("\(pruned) events were older than \(age) and are forgotten") }
  }
}
