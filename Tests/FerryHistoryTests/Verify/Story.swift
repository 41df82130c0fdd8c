import FerryCore
import FerryHistory
import FerryRuntime
import FerryTestKit

/// Records from an array.
final class ListedRecords: RecordSource {
  private let rest: Locked<ArraySlice<Record>>

  init(_ records: [Record]) { rest = Locked(records[...]) }

  func next(limit: Int) async throws(FerryError) -> [Record] {
    rest.withLock { rest in
      let page = Array(rest.prefix(limit))
      rest = rest.dropFirst(page.count)
      return page
    }
  }

  func blob(_ sha256: String) async throws(FerryError) -> ByteStream? { nil }
}

extension SeededGenerator {
  mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &self) < percent }
}

/// A made-up history: what is said twice is said twice, some messages are long.
struct Story {
  var dice: SeededGenerator
  /// The same start every time: 2024-02-02.
  private var time: Int64 = 1_706_832_000_000
  private var made = 0

  init(seed: UInt64) { dice = SeededGenerator(seed: seed) }

  static let words =
    "tide harbour rope ferry quay lantern gull anchor deck crew bell chart wind keel mast oar ship sail wave pier"
    .split(separator: " ").map { String($0) }

  mutating func text(words count: Int) -> String {
    (0..<count).map { _ in Self.words.randomElement(using: &dice) ?? "" }.joined(separator: " ")
  }

  /// Of an author's own, in a text that nobody else writes, unless it is `common`.
  mutating func message(common: Bool = false, long: Bool = false, in channel: ChannelID = "lobby") -> MessageRecord {
    made += 1
    time += Int64.random(in: 300...30_000, using: &dice)
    let text = common ? "ok" : long ? text(words: 900) + " \(made)" : text(words: 3 + made % 9) + " \(made)"
    return record("m\(made)", by: "u\(Int.random(in: 0..<20, using: &dice))", text, at: time, in: channel)
  }

  mutating func messages(_ count: Int) -> [MessageRecord] {
    (0..<count).map { _ in
      let isLong = dice.chance(2)
      return message(common: !isLong && dice.chance(15), long: isLong)
    }
  }
}

func record(
  _ id: String, by author: String = "ada", _ text: String, at time: Int64, in channel: ChannelID = "lobby"
) -> MessageRecord {
  MessageRecord(
    channel: channel,
    message: Message(
      id: MessageID(id), author: Author(id: UserID(author), name: "Name of \(author)"), text: text,
      time: Timestamp(milliseconds: time)))
}

func file(_ name: String, _ sha256: String, size: Int64 = 5) -> Attachment {
  Attachment(name: name, mediaType: "image/png", size: size, sha256: sha256, reference: .provider("file/\(name)"))
}

/// The account of two lists, and every line of it.
func verify(
  _ from: [Record], _ to: [Record], _ capabilities: Capabilities? = nil,
  change: (inout VerifySide, inout VerifySide) -> Void = { _, _ in }
) async throws -> (report: VerifyReport, lines: [VerifyLine]) {
  var left = VerifySide("FROM", ListedRecords(from))
  var right = VerifySide("TO", ListedRecords(to), capabilities: capabilities)
  change(&left, &right)
  var lines: [VerifyLine] = []
  let report = try await Verification(from: left, to: right).run(line: { lines.append($0) })
  return (report, lines)
}

func verify(
  _ from: [MessageRecord], _ to: [MessageRecord], _ capabilities: Capabilities? = nil,
  change: (inout VerifySide, inout VerifySide) -> Void = { _, _ in }
) async throws -> (report: VerifyReport, lines: [VerifyLine]) {
  try await verify(from.map { .message($0) }, to.map { .message($0) }, capabilities, change: change)
}

/// What a service can hold that splits at 1,600 characters and has no reactions.
func narrow(_ change: (inout Capabilities) -> Void = { _ in }) -> Capabilities {
  var capabilities = Capabilities()
  capabilities.edits = true
  capabilities.deletes = true
  capabilities.attachments = .stored
  capabilities.history = .messages
  capabilities.bodyCharacters = 1600
  change(&capabilities)
  return capabilities
}

extension VerifyReport {
  /// Outcomes that occur, in words.
  var counts: [String: Int] {
    Dictionary(uniqueKeysWithValues: outcomes.filter { $0.value > 0 }.map { ($0.key.rawValue, $0.value) })
  }
}
