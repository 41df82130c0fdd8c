import FerryCore
import FerryHistory
import FerryRuntime
import Glibc

/// What export, import and migrate share: a long piece of work that shows how far it has come, can be interrupted, and
/// ends with a summary.
struct TransferRun: Sendable {
  let arguments: Arguments
  let signals: BoundedChannel<Signals.Signal>
  /// `Exporting`, `Importing`: what the progress begins with.
  let doing: String
  let progress = TransferProgress()
  let report: TransferReport
  /// How to go on after an interruption, as a command line.
  let resume: String

  init(_ invocation: Invocation, doing: String, resume: String) throws(FerryError) {
    arguments = invocation.arguments
    signals = invocation.signals
    self.doing = doing
    self.resume = resume
    report = try TransferReport(path: invocation.arguments["report"])
  }

  static let options: [Command.Option] = [
    .init("report", "FILE", "write a line of JSON there for everything that could not be kept"),
    .init("give-up", "DURATION", "end when nothing succeeds for so long (15m)"),
    .init("quiet", nil, "show no progress"),
  ]

  static let notes = """
    Progress goes to standard error: a line on a terminal, otherwise one every few seconds. Ctrl-C ends cleanly; the
    same command goes on where it stopped, and run once more it takes only what is new. Exit codes: 0 done, 65 part of
    the input could not be understood, 75 the other side did not answer for too long, 77 not permitted, 130 interrupted.
    """

  func patience() throws -> Patience {
    let limit = Durations.parse(arguments["give-up"] ?? "15m")
    guard let limit else { throw arguments.fail("--give-up is a duration such as 90s, 15m or 2h") }
    let progress = progress
    return Patience(limit: limit) { progress.waits($0, $1) }
  }

  /// Runs `body` to its end, or until a signal; prints the summary. Returns the exit code.
  func run(_ body: @escaping @Sendable () async throws(FerryError) -> Void) async throws -> Int32 {
    let start = SystemClock().now()
    let end = await race(body)
    let seconds = Double(SystemClock().now().milliseconds - start.milliseconds) / 1000
    summarise(end, seconds)
    switch end {
    case .done:
      if let failure = report.failure { throw failure }
      return report.hasUnreadable ? ExitCode.badData : 0
    case .interrupted:
      Terminal.error("Interrupted. To go on: \(resume)")
      return ExitCode.interrupted
    case .failed(let error):
      Terminal.error("ferry: \(error.message)\(error.cause.map { "\n  (\($0))" } ?? "")")
      let canRetry = error.retry != .never && error.code != .storage
      Terminal.error("What was done is kept. To go on\(canRetry ? "" : ", once that is mended"): \(resume)")
      return canRetry ? ExitCode.tryAgain : ExitCode.of(error)
    }
  }

  private enum End: Sendable {
    case done
    case interrupted
    case failed(FerryError)

    var label: String {
      switch self {
      case .done: "done"
      case .interrupted: "interrupted"
      case .failed: "failed"
      }
    }
  }

  private func race(_ body: @escaping @Sendable () async throws(FerryError) -> Void) async -> End {
    await withTaskGroup(of: End?.self) { group in
      group.addTask {
        do throws(FerryError) {
          try await body()
          return .done
        } catch { return .failed(error) }
      }
      group.addTask {
        while let signal = await signals.next() {
          guard signal != .hangUp else { continue }
          // The next one ends at once: everything that counts is on disk.
          Signals.endAtOnce(with: ExitCode.interrupted)
          return .interrupted
        }
        return nil
      }
      group.addTask {
        if !arguments.has("quiet") { await show() }
        return nil
      }
      var end: End?
      while let next = await group.next() {
        guard let next else { continue }
        // An interruption makes the work fail a moment later.
        if end == nil { end = next }
        group.cancelAll()
      }
      return end ?? .done
    }
  }

  // MARK: Progress

  private func show() async {
    let isTerminal = isatty(STDERR_FILENO) == 1
    let clock = SystemClock()
    let start = clock.now()
    var last = TransferProgress.Counts()
    var lastTime = start
    var rate = 0.0
    while (try? await clock.sleep(for: isTerminal ? .milliseconds(250) : .seconds(5))) != nil {
      let counts = progress.now
      let now = clock.now()
      let seconds = max(Double(now.milliseconds - lastTime.milliseconds) / 1000, 0.001)
      let recent = Double(counts.read - last.read) / seconds
      rate = rate == 0 ? recent : rate * 0.7 + recent * 0.3
      (last, lastTime) = (counts, now)
      let line = Self.line(doing, counts, rate)
      if isTerminal { Terminal.status("\r\u{1b}[K" + line) } else { Terminal.error(line) }
    }
    if isTerminal { Terminal.status("\r\u{1b}[K") }
  }

  static func line(_ doing: String, _ counts: TransferProgress.Counts, _ rate: Double) -> String {
    var parts = ["\(counts.messages) messages"]
    if counts.edits > 0 { parts.append("\(counts.edits) edits") }
    if counts.deletes > 0 { parts.append("\(counts.deletes) deletions") }
    if counts.attachments > 0 { parts.append("\(counts.attachments) files") }
    if counts.unchanged > 0 { parts.append("\(counts.unchanged) there already") }
    if counts.lost > 0 { parts.append("\(counts.lost) not kept") }
    var line = "\(doing): " + parts.joined(separator: ", ")
    if let total = counts.expected, total > 0 {
      let share = min(Double(counts.read) / Double(total), 1)
      let filled = Int(share * 20)
      line += " [" + String(repeating: "#", count: filled) + String(repeating: ".", count: 20 - filled) + "]"
      line += " \(Int(share * 100)) %"
      if rate > 0.5, counts.read < total { line += ", \(Self.time(Double(total - counts.read) / rate)) left" }
    }
    line += ", \(Int(rate.rounded()))/s"
    if let place = counts.place { line += ", at \(place.iso8601.prefix(10))" }
    if let waiting = counts.waiting { line += "; waiting: \(waiting)" }
    return line
  }

  private static func time(_ seconds: Double) -> String {
    let seconds = Int(min(seconds, 1_000_000))
    return seconds < 90 ? "\(seconds) s" : seconds < 5400 ? "\(seconds / 60) min" : "\(seconds / 3600) h"
  }

  // MARK: Summary

  private func summarise(_ end: End, _ seconds: Double) {
    let counts = progress.now
    let lost = report.counts
    if arguments.has("json") {
      let summary = Summary(
        state: end.label, messages: counts.messages, edits: counts.edits, deletes: counts.deletes,
        others: counts.others, attachments: counts.attachments, attachment_bytes: counts.attachmentBytes,
        unchanged: counts.unchanged, lost: Dictionary(lost.map { ($0.reason, $0.count) }, uniquingKeysWith: +),
        seconds: (seconds * 1000).rounded() / 1000)
      if let text = try? Terminal.json(summary) { Terminal.output(text) }
      return
    }
    var text = "\(counts.messages) messages"
    for (count, name) in [
      (counts.edits, "edits"), (counts.deletes, "deletions"), (counts.others, "joins, leaves, reactions and reads"),
      (counts.attachments, "files"), (counts.unchanged, "were there already"),
    ] where count > 0 {
      text += ", \(count) \(name)"
    }
    Terminal.output("\(text), in \(Self.time(seconds))")
    for (reason, count) in lost { Terminal.output("  not kept: \(count) x \(reason)") }
    if !lost.isEmpty, let path = arguments["report"] { Terminal.output("  each of them is in \(path)") }
  }

  private struct Summary: Encodable {
    let state: String
    let messages: Int
    let edits: Int
    let deletes: Int
    let others: Int
    let attachments: Int
    let attachment_bytes: Int64
    let unchanged: Int
    let lost: [String: Int]
    let seconds: Double
  }
}

/// Durations as people write them: `90s`, `15m`, `2h`, `1d`.
enum Durations {
  static func parse(_ text: String) -> Duration? {
    guard let unit = text.last, let number = Int64(text.dropLast()), number >= 0, number < 100_000 else { return nil }
    switch unit {
    case "s": return .seconds(number)
    case "m": return .seconds(number * 60)
    case "h": return .seconds(number * 3600)
    case "d": return .seconds(number * 86_400)
    default: return nil
    }
  }
}
