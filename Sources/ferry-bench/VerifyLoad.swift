import FerryCore
import FerryHistory
import FerryRuntime
import Glibc

/// `ferry verify` of a million messages against a copy with faults in it, whose numbers are known: made while they are
/// read, so that all the memory is the verification's.
enum VerifyLoad {
  static func run(messages: Int) async throws {
    let story = Story(count: messages)
    let start = ContinuousClock.now
    var capabilities = Capabilities()
    capabilities.bodyCharacters = 1600
    let report = try await Verification(
      from: VerifySide("FROM", StorySource(story, isCopy: false)),
      to: VerifySide("TO", StorySource(story, isCopy: true), capabilities: capabilities)
    ).run()
    let seconds = start.duration(to: .now).inSeconds
    var expected: [VerifyOutcome: Int] = [:]
    for index in 0..<messages { story.expect(index, &expected) }
    let isExact = VerifyOutcome.allCases.allSatisfy { report[$0] == expected[$0] ?? 0 }
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    Report(
      benchmark: "verify, \(messages) messages on either side",
      values: [
        "seconds": seconds, "peak_mb": Double(usage.ru_maxrss) / 1024, "exact": isExact ? 1 : 0,
        "missing": Double(report[.missing]), "extra": Double(report[.extra]),
        "duplicates": Double(report[.duplicate]), "reordered": Double(report[.reordered]),
        "split": Double(report.losses.filter { $0.key.hasPrefix("split") }.values.reduce(0, +)),
      ]
    ).print()
  }

  /// What is said and what befalls it, each message computed from its number.
  struct Story: Sendable {
    enum Fate { case plain, split, lost, doubled, moved, joinedByStranger }

    let count: Int
    private static let words =
      "tide harbour rope ferry quay lantern gull anchor deck crew bell chart wind keel mast oar ship sail wave pier"
      .split(separator: " ").map { String($0) }

    /// SplitMix64 of the number.
    private func random(_ index: Int, _ salt: UInt64) -> UInt64 {
      var value = UInt64(index) &* 0x9e37_79b9_7f4a_7c15 &+ salt &* 0xd1b5_4a32_d192_ed03
      value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
      value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
      return value ^ (value >> 31)
    }

    func fate(_ index: Int) -> Fate {
      switch random(index, 1) % 100_000 {
      case 0..<1000: .split
      case 1000..<1100: .lost
      case 1100..<1150: .doubled
      // The last ones could move behind nobody.
      case 1150..<1245: index < count - 1000 && !isCommon(index) ? .moved : .plain
      case 1245..<1312: .joinedByStranger
      default: .plain
      }
    }

    private func isCommon(_ index: Int) -> Bool { random(index, 2) % 10 == 0 }

    private func text(_ index: Int, _ fate: Fate) -> String {
      if fate != .split, fate != .doubled, fate != .moved, isCommon(index) { return "ok" }
      var text = "\(index)"
      let words = fate == .split ? 700 : Int(3 + random(index, 3) % 12)
      for word in 0..<words { text += " " + Self.words[Int(random(index, 100 + UInt64(word)) % 20)] }
      return text
    }

    func message(_ index: Int, isCopy: Bool) -> MessageRecord {
      let author = random(index, 4) % 200
      // Three seconds apart, milliseconds at random.
      let time = 1_600_000_000_000 + Int64(index) * 3000 + Int64(random(index, 5) % 1000)
      var record = MessageRecord(
        channel: "lobby",
        message: Message(
          id: MessageID("\(isCopy ? "n" : "m")\(index)"),
          author: Author(id: UserID("u\(author)"), name: "User \(author)"),
          text: text(index, fate(index)), time: Timestamp(milliseconds: isCopy ? time - time % 1000 : time)))
      if isCopy { record.precision = .seconds }
      return record
    }

    func stranger(_ index: Int) -> MessageRecord {
      var record = message(index, isCopy: true)
      record.message.id = MessageID("s\(index)")
      record.message.author = Author(id: "stranger", name: "A stranger")
      record.message.text = "something else \(index)"
      return record
    }

    func expect(_ index: Int, _ expected: inout [VerifyOutcome: Int]) {
      let fate = fate(index)
      if fate == .joinedByStranger { expected[.extra, default: 0] += 1 }
      if fate == .doubled { expected[.duplicate, default: 0] += 1 }
      let isWhole = random(index, 5) % 1000 == 0
      let outcome: VerifyOutcome =
        fate == .lost ? .missing : fate == .moved ? .reordered : isWhole && fate != .split ? .identical : .converted
      expected[outcome, default: 0] += 1
    }
  }

  actor StorySource: RecordSource {
    private let story: Story
    private let isCopy: Bool
    private let splitter = TextSplitter(bytes: nil, characters: 1600)
    private var index = 0
    private var waiting: [(record: MessageRecord, until: Int)] = []

    init(_ story: Story, isCopy: Bool) {
      self.story = story
      self.isCopy = isCopy
    }

    func next(limit: Int) -> [Record] {
      var records: [Record] = []
      while records.count < limit, index < story.count {
        add(index, &records)
        index += 1
      }
      return records
    }

    func blob(_ sha256: String) -> ByteStream? { nil }

    private func add(_ index: Int, _ records: inout [Record]) {
      let message = story.message(index, isCopy: isCopy)
      guard isCopy else {
        records.append(.message(message))
        return
      }
      switch story.fate(index) {
      case .plain: records.append(.message(message))
      case .lost: break
      case .doubled:
        records.append(.message(message))
        var again = message
        again.message.id = MessageID("again\(index)")
        records.append(.message(again))
      case .moved: waiting.append((message, index + 60))
      case .joinedByStranger:
        records.append(.message(story.stranger(index)))
        records.append(.message(message))
      case .split:
        for (number, part) in splitter.parts(of: message.message.text).enumerated() {
          var piece = message
          piece.message.id = MessageID("p\(index).\(number)")
          piece.message.text = part
          records.append(.message(piece))
        }
      }
      while let first = waiting.first, first.until <= index {
        records.append(.message(first.record))
        waiting.removeFirst()
      }
    }
  }
}
