import FerryCore
import FerryHistory
import FerryTestKit
import Testing

@Suite(.timeLimit(.minutes(5))) struct JSONLinesSourceTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func records(
    _ lines: String, channel: ChannelID? = "lobby", fields: JSONLinesSource.Fields = .init()
  ) async throws -> [Record] {
    let path = folder.file("log.jsonl")
    try ArchiveFixture.write(Array(lines.utf8), to: path)
    return try await ArchiveFixture.all(try JSONLinesSource(path, channel: channel, fields: fields))
  }

  @Test("a log of messages, actions, joins and leaves")
  func log() async throws {
    let lines = """
      {"time": "2016-08-05T03:10:50Z", "kind": "leave", "author": "mio1"}
      {"time": "2016-08-05T07:49:50Z", "kind": "message", "author": "lin3", "text": "Does it?"}
      {"time": "2016-08-05T07:49:51Z", "kind": "action", "author": "lin3", "text": "waves"}

      {"time": "2016-08-05T07:49:52Z", "kind": "join", "author": "mio1"}
      """
    let records = try await records(lines)
    #expect(
      records.map(\.kind) == ["channel", "person", "leave", "person", "message", "message", "join", "end"])
    guard case .message(let first) = records[4], case .message(let action) = records[5] else { return }
    #expect(first.message.text == "Does it?")
    #expect(first.message.author == Author(id: "lin3", name: "lin3"))
    #expect(first.message.time == Timestamp(milliseconds: 1_470_383_390_000))
    #expect(first.precision == .seconds)
    #expect(first.message.attributes == nil)
    #expect(action.isAction && !first.isAction)
    #expect(records.last == .end(EndRecord(channel: "lobby", isComplete: true, messages: 2)))
    #expect(try await self.records(lines) == records)
  }

  @Test("equal lines are two messages")
  func equalLines() async throws {
    let line = "{\"time\":\"2016-08-05T03:10:50Z\",\"author\":\"a\",\"text\":\"ok\"}\n"
    let records = try await records(line + line)
    #expect(records.last == .end(EndRecord(channel: "lobby", isComplete: true, messages: 2)))
  }

  @Test("what Ferry itself prints")
  func ownLines() async throws {
    let records = try await records(
      """
      {"kind":"message","address":"here:hall","id":"7","author":{"id":"U1","name":"ada"},"text":"a",\
      "time":"2026-11-30T08:00:00.123Z","edited":"2026-11-30T08:00:01.000Z","attachments":\
      [{"name":"a.png","type":"image/png","size":5,"sha256":"ab","url":"https://a.example/a"}],"reply_to":"6",\
      "origin":{"address":"site:room","id":"3"}}
      {"kind":"reaction","address":"here:hall","id":"7","author":{"id":"U1","name":"ada"},"emoji":"x","on":false,\
      "time":"2026-11-30T08:00:02.000Z","text":null,"edited":null,"attachments":[],"reply_to":null,"origin":null}
      """, channel: nil)
    guard case .message(let record)? = records.first(where: { $0.kind == "message" }) else { return }
    #expect(record.channel == "hall")
    #expect(record.precision == .milliseconds)
    #expect(record.message.edited == Timestamp(milliseconds: 1_796_025_601_000))
    #expect(record.message.replyTo == "6")
    #expect(record.message.attachments.first?.reference == .url("https://a.example/a"))
    #expect(record.message.stamp?.origin == Address("site:room"))
    guard case .reaction(let reaction)? = records.first(where: { $0.kind == "reaction" }) else {
      Issue.record("no reaction")
      return
    }
    #expect(reaction.reaction == Reaction(message: "7", by: Author(id: "U1", name: "ada"), emoji: "x", added: false))
  }

  @Test("fields of any name, times of any form, and the rest verbatim")
  func fieldMap() async throws {
    let fields = try #require(
      JSONLinesSource.Fields("text=body, author=user.name,author_id=user.id,time=ts,channel=room"))
    let records = try await records(
      """
      {"body":"a","user":{"id":7,"name":"ada"},"ts":1706860800,"room":"r1","mood":"fine"}
      {"body":"b","user":{"id":7,"name":"ada"},"ts":1706860800123,"room":"r2"}
      {"body":"c","user":{"id":7,"name":"ada"},"ts":"1706860800.000200","room":"r2"}
      {"body":"d","user":{"id":7,"name":"ada"},"ts":"2024-02-02T09:00:00.5+01:00","room":"r2"}
      """, channel: nil, fields: fields)
    let all = records.compactMap { if case .message(let record) = $0 { record } else { nil } }
    #expect(
      all.map(\.message.time.milliseconds) == [
        1_706_860_800_000, 1_706_860_800_123, 1_706_860_800_000, 1_706_860_800_500,
      ])
    #expect(all.map(\.precision) == [.seconds, .milliseconds, .microseconds, .milliseconds])
    #expect(all.map(\.timeRaw) == [nil, nil, "1706860800.000200", "2024-02-02T09:00:00.5+01:00"])
    #expect(all.map(\.channel) == ["r1", "r2", "r2", "r2"])
    #expect(all.first?.message.author == Author(id: "7", name: "ada"))
    #expect(all.first?.message.attributes?["mood"] == "fine")
    for text in ["colour=x", "text", "text="] { #expect(JSONLinesSource.Fields(text) == nil) }
  }

  @Test("a line that is broken, too long, or of no known kind is skipped and named")
  func broken() async throws {
    let good = "{\"time\":\"2016-08-05T03:10:50Z\",\"author\":\"a\",\"text\":\"ok\"}"
    let long = "\"" + String(repeating: "x", count: 17 << 20) + "\""
    let records = try await records(
      [
        "{", good, "{\"kind\":\"odd\",\"time\":1,\"author\":\"a\"}", "{\"author\":\"a\"}", "{\"time\":1}", long, good,
        "{\"time\":-9223372036854775808,\"author\":\"a\"}",
      ].joined(separator: "\n"))
    let skipped = records.compactMap { if case .skipped(let record) = $0 { record } else { nil } }
    #expect(skipped.compactMap { $0.place?.split(separator: " ").last } == ["1", "3", "4", "5", "6", "8"])
    #expect(records.last == .end(EndRecord(channel: "lobby", isComplete: true, messages: 2)))
  }
}
