/// What came of all runs, by the service that was written to and the fault.
struct GuaranteeTable: Sendable {
  struct Row: Hashable, Sendable {
    let kind: PlaceKind
    let fault: Fault
  }

  private(set) var tallies: [Row: Tally] = [:]
  private(set) var remarks: [String] = []

  mutating func add(_ outcome: Trial.Outcome, of trial: Trial) {
    for (kind, tally) in zip(trial.kinds, outcome.tallies) {
      tallies[Row(kind: kind, fault: trial.fault), default: Tally()] += tally
    }
    remarks += outcome.remarks.map { "\(trial): \($0)" }
  }

  var total: Tally { tallies.values.reduce(into: Tally()) { $0 += $1 } }

  /// Two services a run, of which each counts as one here.
  var markdown: String {
    let header = ["service", "fault", "runs", "faults", "messages"] + Tally.guarantees
    var lines = [Self.line(header), Self.line(header.map { _ in "---" })]
    for kind in PlaceKind.allCases {
      for fault in Fault.allCases {
        guard let tally = tallies[Row(kind: kind, fault: fault)] else { continue }
        lines.append(Self.line([kind.rawValue, fault.rawValue] + Self.numbers(tally)))
      }
    }
    lines.append(Self.line(["all", ""] + Self.numbers(total)))
    return lines.joined(separator: "\n") + "\n"
  }

  private static func line(_ cells: [String]) -> String { "| " + cells.joined(separator: " | ") + " |" }

  private static func numbers(_ tally: Tally) -> [String] {
    ([tally.runs, tally.faults, tally.messages] + tally.broken).map(String.init)
  }

  /// The rows of such a table as they stand in a document.
  static func rows(in document: String) -> [(service: String, fault: String, numbers: [Int])] {
    document.split(separator: "\n").compactMap { line in
      let cells = line.split(separator: "|", omittingEmptySubsequences: false).map { cell in
        String(cell.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
      }
      guard cells.count == Tally.guarantees.count + 7 else { return nil }
      let numbers = cells[3..<(cells.count - 1)].compactMap { Int($0) }
      guard numbers.count == Tally.guarantees.count + 3 else { return nil }
      return (cells[1], cells[2], numbers)
    }
  }
}
