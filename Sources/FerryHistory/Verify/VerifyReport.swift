package import FerryCore
import FerryRuntime

/// What became of one record.
package enum VerifyOutcome: String, Hashable, Sendable, Codable, CaseIterable {
  /// Every field is equal, as exactly as FROM has it.
  case identical
  /// It is what TO can hold of it; what was lost is listed.
  case converted
  /// In FROM only.
  case missing
  /// In TO only.
  case extra
  /// In TO only, and TO has the same once more.
  case duplicate = "extra:duplicate"
  /// In both, in another order.
  case reordered
  /// In both, and neither equal nor what TO should hold.
  case altered

  /// Whether it proves that something is wrong.
  package var isFault: Bool { self != .identical && self != .converted }
}

/// One record's account: a line of the report.
package struct VerifyLine: Hashable, Sendable {
  /// Where a record is.
  package struct Place: Hashable, Sendable {
    package var channel: String
    package var id: String
    package var time: Timestamp
    /// The record's number among its side's messages, joins, leaves and reads, from 1.
    package var record: Int
  }

  package var outcome: VerifyOutcome
  /// `message`, `join`, `leave` or `read`.
  package var kind: String
  /// What TO cannot hold.
  package var losses: [String] = []
  /// What differs and should not.
  package var faults: [String] = []
  package var from: Place?
  package var to: [Place] = []

  /// JSON, on one line, without a line feed.
  package var json: String {
    var json = JSONWriter(capacity: 256)
    json.begin()
    json.name("outcome")
    json.value(outcome.rawValue)
    json.name("kind")
    json.value(kind)
    list("losses", losses, &json)
    list("faults", faults, &json)
    if let from {
      json.name("from")
      write(from, &json)
    }
    if !to.isEmpty {
      json.name("to")
      json.begin("[")
      for place in to { write(place, &json) }
      json.end("]")
    }
    json.end()
    return json.text
  }

  private func list(_ name: StaticString, _ words: [String], _ json: inout JSONWriter) {
    guard !words.isEmpty else { return }
    json.name(name)
    json.begin("[")
    for word in words { json.value(word) }
    json.end("]")
  }

  private func write(_ place: Place, _ json: inout JSONWriter) {
    json.begin()
    json.name("channel")
    json.value(place.channel)
    json.name("id")
    json.value(place.id)
    json.name("time")
    json.value(place.time.iso8601)
    json.name("record")
    json.value(Int64(place.record))
    json.end()
  }

  /// For people.
  package var readable: String {
    let reasons = (faults.isEmpty ? losses : faults).joined(separator: ", ")
    let place = from.map { "\($0.id) of \($0.time.iso8601) in \($0.channel) (record \($0.record))" }
    let other = to.map { "\($0.id) of \($0.time.iso8601)" }.joined(separator: ", ")
    let what = kind == "message" ? "" : "\(kind) "
    let text =
      switch (place, other.isEmpty) {
      case (.some(let place), true): what + place
      case (.some(let place), false): "\(what)\(place) -> \(other)"
      case (nil, _):
        what + (to.first.map { "\($0.id) of \($0.time.iso8601) in \($0.channel) (record \($0.record))" } ?? "")
      }
    return reasons.isEmpty ? text : "\(text): \(reasons)"
  }
}

/// The account of everything that both sides hold.
package struct VerifyReport: Hashable, Sendable {
  package var from: String
  package var to: String
  package var fromTallies: SideTallies
  package var toTallies: SideTallies
  package var outcomes: [VerifyOutcome: Int] = [:]
  /// How many records lost what.
  package var losses: [String: Int] = [:]
  package var faults: [String: Int] = [:]
  /// Those that are on one side only, by kind.
  package var missing: [String: Int] = [:]
  package var extra: [String: Int] = [:]
  /// The first of each outcome that is a fault.
  package var examples: [VerifyOutcome: [VerifyLine]] = [:]
  /// By how many milliseconds TO's times are ahead, where that is the same for all.
  package var zoneOffset: Int64 = 0

  package static let examplesKept = 20

  /// Every record of FROM is in TO as far as TO can hold it, and nothing else is.
  package var isFull: Bool { !outcomes.contains { $0.key.isFault && $0.value > 0 } }

  package subscript(outcome: VerifyOutcome) -> Int { outcomes[outcome] ?? 0 }

  mutating func count(_ line: VerifyLine) {
    outcomes[line.outcome, default: 0] += 1
    for loss in line.losses { losses[loss, default: 0] += 1 }
    for fault in line.faults { faults[fault, default: 0] += 1 }
    if line.outcome == .missing { missing[line.kind, default: 0] += 1 }
    if line.outcome == .extra { extra[line.kind, default: 0] += 1 }
    if line.outcome.isFault, examples[line.outcome, default: []].count < Self.examplesKept {
      examples[line.outcome, default: []].append(line)
    }
  }
}
