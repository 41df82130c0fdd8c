import FerryCore
import FerryHistory
import FerryRuntime

/// The account as it is printed: as JSON, stable, or for people.
struct VerifySummary: Encodable {
  struct Side: Encodable {
    let name: String
    let holds: SideTallies
  }

  struct Example: Encodable {
    let outcome: String
    let kind: String
    let faults: [String]
    let from: Place?
    let to: [Place]
  }

  struct Place: Encodable {
    let channel: String
    let id: String
    let time: String
    let record: Int

    init(_ place: VerifyLine.Place) {
      channel = place.channel
      id = place.id
      time = place.time.iso8601
      record = place.record
    }
  }

  /// Whether everything is accounted for.
  let ok: Bool
  let from: Side
  let to: Side
  /// All seven, those that do not occur as 0.
  let outcomes: [String: Int]
  let losses: [String: Int]
  let faults: [String: Int]
  /// Milliseconds that all of TO's times are ahead.
  let zone_offset: Int64
  let examples: [Example]

  private let report: VerifyReport

  private enum CodingKeys: String, CodingKey { case ok, from, to, outcomes, losses, faults, zone_offset, examples }

  init(_ report: VerifyReport) {
    self.report = report
    ok = report.isFull
    from = Side(name: report.from, holds: report.fromTallies)
    to = Side(name: report.to, holds: report.toTallies)
    outcomes = Dictionary(
      uniqueKeysWithValues: VerifyOutcome.allCases.map { ($0.rawValue, report[$0]) })
    losses = report.losses
    faults = report.faults
    zone_offset = report.zoneOffset
    examples = VerifyOutcome.allCases.flatMap { report.examples[$0] ?? [] }.map { line in
      Example(
        outcome: line.outcome.rawValue, kind: line.kind, faults: line.faults, from: line.from.map { Place($0) },
        to: line.to.map { Place($0) })
    }
  }

  var readable: String {
    var lines = [describe("FROM", from), describe("TO", to), ""]
    let rows = VerifyOutcome.allCases.filter { report[$0] > 0 }.map { [$0.rawValue, String(report[$0])] }
    lines.append(rows.isEmpty ? "Neither side holds anything." : Terminal.table(rows))
    for (title, counts) in [("Converted", losses), ("Altered", faults)] where !counts.isEmpty {
      lines.append("")
      lines.append(title + ":")
      let sorted = counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
      lines.append(Terminal.table(sorted.map { ["  " + $0.key, String($0.value)] }))
    }
    for outcome in VerifyOutcome.allCases {
      guard let examples = report.examples[outcome] else { continue }
      lines.append("")
      let all = report[outcome]
      lines.append(
        all > examples.count ? "\(outcome.rawValue), the first \(examples.count) of \(all):" : "\(outcome.rawValue):")
      lines += examples.map { "  " + $0.readable }
    }
    lines.append("")
    lines.append(verdict)
    return lines.joined(separator: "\n")
  }

  private var verdict: String {
    guard ok else {
      return "NOT EQUAL: \(VerifyOutcome.allCases.filter(\.isFault).reduce(0) { $0 + report[$1] }) records differ."
    }
    return losses.isEmpty ? "Equal." : "Complete: everything is there, as far as \(report.to) can hold it."
  }

  private func describe(_ title: String, _ side: Side) -> String {
    let holds = side.holds
    var parts = ["\(holds.messages) messages"]
    for (count, name) in [
      (holds.edits, "edits"), (holds.deleted, "deleted"), (holds.joins + holds.leaves, "joins and leaves"),
      (holds.reads, "read marks"), (holds.skipped, "that the source could not give"), (holds.gaps, "gaps"),
    ] where count > 0 { parts.append("\(count) \(name)") }
    if holds.isIncomplete { parts.append("incomplete") }
    return "\(title)  \(side.name): \(parts.joined(separator: ", "))"
  }
}

/// What the check of one archive found.
struct ArchiveSummary: Encodable {
  let ok: Bool
  let fault: String?
  let complete: Bool
  let open: Bool
  let records: [String: Int]
  let messages: Int
  let segments: Int
  let blobs: Int
  let blob_bytes: Int64
  let chain_head: String?
  let notes: [String]

  init(_ report: ArchiveCheck.Report) {
    ok = report.exitCode == 0
    fault = report.fault
    complete = report.isComplete
    open = report.isOpen
    records = report.records
    messages = report.messages
    segments = report.segments
    blobs = report.blobs
    blob_bytes = report.blobBytes
    chain_head = report.chainHead
    notes = report.notes
  }

  func readable(_ path: String) -> String {
    var lines = ["\(path): \(messages) messages, \(segments) segments, \(blobs) files (\(blob_bytes) bytes)"]
    lines += records.sorted { $0.key < $1.key }.map { "  \($0.key): \($0.value)" }
    if let chain_head {
      lines.append("Chain head: \(chain_head)  (keep it elsewhere: it shows when the end was cut off)")
    }
    lines += notes.map { "Note: \($0)" }
    if open { lines.append("It is still being written.") }
    if let fault {
      lines.append("DAMAGED: \(fault)")
    } else {
      lines.append(complete ? "Whole." : "Sound as far as it goes, and incomplete.")
    }
    return lines.joined(separator: "\n")
  }
}
