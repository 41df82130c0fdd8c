import FerryCore
import FerryHistory
import FerryRuntime
import FoundationEssentials
import Testing

/// Faults whose number is known are put into a copy, and exactly these must be found.
@Suite struct VerifyFaultTests {
  /// A copy of a story with faults in it, and what must be found.
  struct Copy {
    var from: [Record] = []
    var to: [Record] = []
    var expected: [String: Int] = [:]

    mutating func expect(_ outcome: VerifyOutcome, _ count: Int = 1) {
      expected[outcome.rawValue, default: 0] += count
    }
  }

  /// How many of a thousand messages suffer what.
  struct Rates {
    var dropped = 8
    var moved = 6
    var doubled = 5
    var foreign = 6
    var lostEdits = 4
    var otherFiles = 4
    /// Milliseconds in TO's finest time.
    var unit: Int64 = 1000
  }

  static func copy(_ count: Int, seed: UInt64, _ rates: Rates = Rates()) -> Copy {
    var story = Story(seed: seed)
    var copy = Copy()
    var to: [(record: MessageRecord, move: Int)] = []
    let splitter = TextSplitter(bytes: nil, characters: 1600)
    let messages = story.messages(count)
    var made = 0
    func arrived(_ record: MessageRecord, _ text: String) -> MessageRecord {
      var record = record
      made += 1
      record.message.id = MessageID("new\(made)")
      record.message.text = text
      let time = record.message.time.milliseconds
      record.message.time = Timestamp(milliseconds: time - time % rates.unit)
      record.precision = rates.unit == 1000 ? .seconds : .milliseconds
      return record
    }
    for var message in messages {
      let isPlain = message.message.text != "ok" && message.message.text.count < 1600
      let isRounded = message.message.time.milliseconds % rates.unit != 0
      let fate = Int.random(in: 0..<1000, using: &story.dice)
      let bounds = [rates.dropped, rates.moved, rates.doubled, rates.foreign, rates.lostEdits, rates.otherFiles]
      var limit = 0
      let kind = bounds.firstIndex { bound in
        limit += bound
        return fate < limit
      }
      switch kind {
      case 0:
        copy.from.append(.message(message))
        copy.expect(.missing)
        continue
      case 1 where isPlain:
        to.append((arrived(message, message.message.text), 40))
        copy.expect(.reordered)
      case 2 where isPlain:
        to.append((arrived(message, message.message.text), 0))
        to.append((arrived(message, message.message.text), 0))
        copy.expect(.duplicate)
        copy.expect(isRounded ? .converted : .identical)
      case 3:
        var stranger = arrived(message, "Something else entirely, number \(to.count)")
        stranger.message.author = Author(id: "stranger", name: "A stranger")
        to.append((stranger, 0))
        copy.expect(.extra)
        to.append(contentsOf: splitter.parts(of: message.message.text).map { (arrived(message, $0), 0) })
        copy.expect(isRounded || message.message.text.count > 1600 ? .converted : .identical)
      case 4 where isPlain:
        copy.from.append(.message(message))
        to.append((arrived(message, message.message.text), 0))
        message.message.text = "Now it reads in quite another way \(to.count)"
        message.message.revision = 1
        message.message.edited = message.message.time.advanced(by: .seconds(60))
        copy.from.append(.edit(message))
        copy.expect(.altered)
        continue
      case 5:
        message.message.attachments = [file("a.png", "aa")]
        var parts = splitter.parts(of: message.message.text).map { arrived(message, $0) }
        for index in parts.indices { parts[index].message.attachments = [] }
        parts[parts.count - 1].message.attachments = [file("a.png", "bb")]
        to.append(contentsOf: parts.map { ($0, 0) })
        copy.expect(.altered)
      default:
        let parts = splitter.parts(of: message.message.text)
        to.append(contentsOf: parts.map { (arrived(message, $0), 0) })
        copy.expect(isRounded || parts.count > 1 ? .converted : .identical)
      }
      copy.from.append(.message(message))
    }
    copy.to = Self.moved(to).map { .message($0) }
    return copy
  }

  /// Those that move go behind so many others that do not.
  private static func moved(_ records: [(record: MessageRecord, move: Int)]) -> [MessageRecord] {
    var waiting: [(record: MessageRecord, left: Int)] = []
    var result: [MessageRecord] = []
    for (record, move) in records {
      if move > 0 {
        waiting.append((record, move))
        continue
      }
      result.append(record)
      for index in waiting.indices { waiting[index].left -= 1 }
      while let first = waiting.first, first.left <= 0 {
        result.append(first.record)
        waiting.removeFirst()
      }
    }
    return result + waiting.map(\.record)
  }

  private static var seeds: ClosedRange<UInt64> {
    1...(ProcessInfo.processInfo.environment["FERRY_SEEDS"].flatMap { UInt64($0) } ?? 25)
  }

  @Test("exactly the faults that were made are found", arguments: seeds)
  func faults(seed: UInt64) async throws {
    var rates = Rates()
    rates.unit = seed % 2 == 0 ? 1000 : 1
    // The last may move behind nobody: what follows is calm.
    var copy = Self.copy(700, seed: seed, rates)
    let calm = Self.copy(
      60, seed: seed &+ 1_000_000,
      Rates(dropped: 0, moved: 0, doubled: 0, foreign: 0, lostEdits: 0, otherFiles: 0, unit: rates.unit))
    copy.append(calm)
    let (report, lines) = try await verify(copy.from, copy.to, narrow())
    #expect(report.counts == copy.expected, "seed \(seed): \(lines.filter { $0.outcome.isFault }.map(\.readable))")
    #expect(lines.count == copy.expected.values.reduce(0, +))
    #expect(report.isFull == copy.expected.keys.allSatisfy { ["identical", "converted"].contains($0) })
  }

  @Test("a copy without faults is accounted for in full")
  func clean() async throws {
    let rates = Rates(dropped: 0, moved: 0, doubled: 0, foreign: 0, lostEdits: 0, otherFiles: 0, unit: 1)
    let copy = Self.copy(500, seed: 7, rates)
    let (report, _) = try await verify(copy.from, copy.to, narrow())
    #expect(report.isFull)
    #expect(report.counts == copy.expected)
    #expect(report.fromTallies.messages == 500)
  }
}

extension VerifyFaultTests.Copy {
  /// What happened later, by other people.
  mutating func append(_ other: Self) {
    func later(_ record: Record, _ mark: String) -> Record {
      guard case .message(var message) = record else { return record }
      message.message.id = MessageID(mark + message.message.id.rawValue)
      message.message.author = Author(
        id: UserID(mark + message.message.author.id.rawValue), name: mark + message.message.author.name)
      message.message.time = message.message.time.advanced(by: .seconds(10_000_000))
      return .message(message)
    }
    from += other.from.map { later($0, "late") }
    to += other.to.map { later($0, "late") }
    for (outcome, count) in other.expected { expected[outcome, default: 0] += count }
  }
}
