import FerryCore
import FerryHistory
import FerryRuntime
import FerryTestKit
import Testing

@Suite struct RecordTests {
  private static let time = Timestamp(milliseconds: 1_706_860_800_123)
  private static let ada = Author(id: "U1", name: "ada", avatar: "https://a.example/a.png")
  private static let stamp = Stamp(
    bridge: "lobby", origin: Address(account: "here", channel: "a:b"), id: "m1", revision: 2)

  /// With every field filled.
  private static var message: MessageRecord {
    var stamp = stamp
    stamp.part = 1
    let attachments = [
      Attachment(
        name: "a.png", mediaType: "image/png", size: 5, sha256: String(repeating: "2c", count: 32),
        reference: .provider(""), pixels: .init(width: 3, height: 4)),
      Attachment(name: "b", mediaType: "text/plain", reference: .url("https://a.example/b")),
      Attachment(name: "c", mediaType: "text/plain", reference: .provider("ME1")),
    ]
    let message = Message(
      id: "1706860800.000200", author: ada, text: "see \"this\"\n\u{1} ü 🙂", format: .markdown, time: time, revision: 3,
      edited: time, attachments: attachments, replyTo: "m0", mentions: ["U2"], stamp: stamp,
      attributes: ["z": 1, "a": [.null, .bool(true), .number(1.5)]])
    return MessageRecord(
      channel: "C1", message: message, precision: .microseconds, timeRaw: "1706860800.123456", zone: "stated",
      textRaw: "*raw*", thread: "m0", isDeleted: true, system: "topic", isAction: true, isBroadcast: true,
      editedBy: "U2",
      reactions: [ReactionTally(key: "clap", tone: 3, users: ["U2"], count: 4, extra: ["new": "x"])],
      files: [FileState(id: "F1", status: .present), FileState(status: .tooLarge, extra: ["new": 1]), FileState()],
      parts: 3, isLossy: true,
      extra: ExtraFields(record: ["b": 1, "a": [:]], author: ["n": "x"], edited: ["m": .bool(true)], origin: ["o": 2]))
  }

  private static let records: [Record] = [
    .message(message), .edit(message),
    .message(MessageRecord(channel: "C1", message: Message(id: "m", author: ada, text: "", time: time))),
    // Files that travel apart are numbered by their content.
    .message(
      MessageRecord(
        channel: "C1",
        message: Message(
          id: "m", author: ada, text: "", time: time,
          stamp: Stamp(bridge: "b", origin: stamp.origin, id: "1", part: 1 << 32))
      )),
    .channel(
      ChannelRecord(
        id: "C1", name: "lobby", type: "public", topic: "t", members: ["U1"], created: time, attributes: ["a": 1],
        extra: ExtraFields(record: ["x": 1]))),
    .channel(ChannelRecord(id: "C2", name: "")),
    .person(PersonRecord(id: "U1", name: "ada", type: "person", avatar: "https://a.example/", attributes: ["b": 1])),
    .delete(
      DeleteRecord(
        channel: "C1", id: "m", by: ada, time: time, stamp: stamp,
        extra: ExtraFields(record: ["x": 1], author: ["y": 2], origin: ["z": 3]))),
    .delete(DeleteRecord(channel: "C1", id: "m")),
    .reaction(
      ReactionRecord(
        channel: "C1", reaction: Reaction(message: "m", by: ada, emoji: "🙂", added: false, stamp: stamp), tone: 2,
        time: time)),
    .join(MembershipRecord(channel: "C1", member: ada, time: time, timeRaw: "x", precision: .seconds, attributes: 1)),
    .leave(MembershipRecord(channel: "C1", member: Author(id: "", name: ""))),
    .read(ReadRecord(channel: "C1", mark: ReadMark(upTo: "m", by: nil, state: .delivered, stamp: stamp), time: time)),
    .gap(GapRecord(channel: "C1", from: time, to: time, reason: "not listened to")),
    .skipped(SkippedRecord(channel: "C1", reason: "no ts", count: 2, place: "lobby/2024-01-02.json: byte 7")),
    .skipped(SkippedRecord(reason: "canvas")),
    .end(EndRecord(channel: "C1", isComplete: true, messages: 7, extra: ExtraFields(record: ["x": .null]))),
    .unknown(kind: "poll", ["question": "?", "answers": ["a", "b"]]),
  ]

  @Test("a record is the same after writing and reading", arguments: records)
  func roundTrip(record: Record) throws {
    let line = record.line(seq: 12)
    let read = try Record.read(line: line)
    #expect(read.record == record)
    #expect(read.seq == 12)
    #expect(read.record.line(seq: 12) == line)
    #expect(try Record(line: record.line()) == record)
  }

  @Test("the format's own sample is written byte for byte")
  func sample() throws {
    let line = """
      {"seq":4,"kind":"message","channel":"C1","id":"1706860800.000200","author":{"id":"U1","name":"ada"},\
      "text":"see *this*","format":"mrkdwn","time":"2024-02-02T08:00:00.000Z","precision":"us","edited":null,\
      "attachments":[{"id":"F1","name":"a.png","type":"image/png","size":5,"sha256":"2cf24d","status":"present"}],\
      "reply_to":null,"reactions":[{"key":"clap","tone":3,"users":["U2"],"count":1}],"origin":null}
      """
    let read = try Record.read(line: Array(line.utf8))
    #expect(String(decoding: read.record.line(seq: 4), as: UTF8.self) == line)
    guard case .message(let record) = read.record else { throw FerryError(.badData, "no message") }
    #expect(record.formatName == "mrkdwn")
    #expect(record.message.format == .plain)
    #expect(record.file(at: 0).status == .present)
    #expect(record.precision == .microseconds)
  }

  @Test("fields and words of a newer version survive at every level")
  func newerFields() throws {
    let line = """
      {"kind":"message","channel":"C1","id":"m","author":{"id":"U1","name":"a","pronouns":"x"},"text":"",\
      "format":"plain","time":"2024-02-02T08:00:00.000Z","precision":"ms",\
      "edited":{"time":"2024-02-02T08:00:00.000Z","revision":1,"why":"typo"},\
      "attachments":[{"name":"a","type":"b","alt":"c","status":"lost"}],"reply_to":null,\
      "reactions":[{"key":"k","users":[],"count":0,"new":1}],\
      "origin":{"address":"a:b","id":"m","revision":0,"bridge":"","hop":2},"poll":{"a":1,"b":[2]}}
      """
    #expect(String(decoding: try Record(line: Array(line.utf8)).line(), as: UTF8.self) == line)
  }

  @Test(
    "a broken record says what is wrong",
    arguments: [
      ("", "byte 0: the text ends"), ("[]", "not a JSON object"), ("{\"kind\":\"end\"", "byte 13: the text ends"),
      ("{}", "\"kind\" is missing"), ("{\"kind\":\"message\"}", "\"channel\" is missing"),
      ("{\"kind\":\"end\",\"channel\":\"C\",\"messages\":1.5}", "\"messages\" should be an integer"),
      ("{\"kind\":\"end\",\"channel\":\"C\",\"messages\":-1}", "\"messages\" should be a count"),
      ("{\"kind\":\"end\",\"channel\":\"C\",\"messages\":9007199254740992}", "\"messages\" should be an integer"),
      ("{\"kind\":\"end\",\"channel\":\"C\",\"messages\":-9223372036854775808}", "\"messages\" should be an integer"),
      ("{\"kind\":\"end\",\"kind\":\"end\"}", "byte 14: a member's name comes twice"),
      ("{\"kind\":\"gap\",\"channel\":\"C\",\"from\":\"yesterday\"}", "\"from\" should be a time"),
      ("{\"kind\":\"channel\",\"channel\":\"\"}", "\"channel\" should be an identifier"),
    ])
  func broken(line: String, reason: String) throws {
    let error = try #require(throws: FerryError.self) { try Record(line: Array(line.utf8)) }
    #expect(error.code == .badData)
    #expect(error.message.contains(reason), "\(error.message)")
  }

  @Test("text that is not Unicode is replaced, and the message says so")
  func lossy() throws {
    var line = Array("{\"kind\":\"message\",\"channel\":\"C\",\"id\":\"m\",\"author\":{\"id\":\"U\"},".utf8)
    line += Array("\"time\":\"2024-02-02T08:00:00Z\",\"text\":\"a\\ud83dB".utf8) + [0xff] + Array("\"}".utf8)
    guard case .message(let record) = try Record(line: line) else { throw FerryError(.badData, "no message") }
    #expect(record.message.text == "a\u{FFFD}B\u{FFFD}")
    #expect(record.isLossy)
  }

  /// A field that this version does not know makes a line be read in the usual way.
  private func usual(_ line: [UInt8]) throws -> (seq: Int64?, record: Record) {
    guard line.last == UInt8(ascii: "}"), line.count > 2 else { return try Record.read(line: line) }
    var (seq, record) = try Record.read(line: line.dropLast() + Array(",\"zz\":1}".utf8))
    switch record {
    case .message(var message):
      message.extra.record["zz"] = nil
      record = .message(message)
    case .edit(var message):
      message.extra.record["zz"] = nil
      record = .edit(message)
    case .unknown(let kind, .object(var members)):
      members["zz"] = nil
      record = .unknown(kind: kind, .object(members))
    default: break
    }
    return (seq, record)
  }

  @Test("what is read quickly is what is read in the usual way, or refused by both")
  func quickly() throws {
    let lines = [
      """
      {"seq":12,"kind":"message","channel":"C1","id":"m1","author":{"id":"U1","name":"ada"},"text":"a \\"b\\" ü",\
      "format":"markdown","time":"2024-02-02T08:00:00.123Z","precision":"ms","edited":null,"attachments":[],\
      "reply_to":null,"reactions":[],"origin":null}
      """,
      """
      {"kind":"edit","channel":"C1","id":"m1","author":{"id":"U1","name":"ada","avatar":"https://a.example/a"},\
      "text":"b","time":"2024-02-02T08:00:00Z","edited":{"time":"2024-02-02T08:00:01.5+01:00","by":"U2","revision":3},\
      "reply_to":"m0","mentions":["U1","U2"],"origin":{"address":"a:b","bridge":"c","id":"d","revision":1}}
      """,
    ]
    let words = [
      "null", "\"\"", "\"x\"", "-1", "1.5", "9007199254740992", "true", "[]", "[1]", "{}", "{\"id\":\"x\"}",
      "\"\\ud83d\"",
      "{\"revision\":-1}", "{\"address\":\"x\",\"id\":\"d\"}", "{\"address\":\"a:b\"}", "\"\\u0041\"", "\"day\"",
    ]
    var random = SeededGenerator(seed: 7)
    var accepted = 0
    func compare(_ line: String) {
      let bytes = Array(line.utf8)
      let usual = try? usual(bytes)
      let read = try? Record.read(line: bytes)
      #expect(read?.record == usual?.record, "\(line)")
      #expect(read?.seq == usual?.seq, "\(line)")
      if read != nil { accepted += 1 }
    }
    for line in lines {
      let sample = try Record.read(line: Array(line.utf8))
      guard case .object(let members) = try JSONReader.read(line.utf8).value else { continue }
      for name in members.keys.sorted() {
        let others = members.filter { $0.key != name }.sorted { $0.key < $1.key }
        func object(_ more: String) -> String {
          var json = JSONWriter()
          json.sorted(.object(Dictionary(uniqueKeysWithValues: others)))
          return json.text.dropLast() + more + "}"
        }
        compare(object(""))
        for word in words {
          compare(object(",\"\(name)\":\(word)"))
          compare(line.dropLast() + ",\"\(name)\":\(word)}")
        }
      }
      for _ in 0..<5000 {
        var bytes = Array(line.utf8)
        for _ in 0..<Int.random(in: 1...2, using: &random) {
          let place = Int.random(in: 0..<bytes.count, using: &random)
          bytes[place] = Array("{}[]\",:\\x01n ".utf8).randomElement(using: &random) ?? 0x20
        }
        compare(String(decoding: bytes, as: UTF8.self))
      }
      compare(line)
      #expect(sample.record.kind == (line.contains("edit\"") ? "edit" : "message"))
    }
    #expect(accepted > 100)
  }
}
