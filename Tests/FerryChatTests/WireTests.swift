import FerryChat
import FerryCore
import FerryRuntime
import FoundationEssentials
import Testing

@Suite struct WireTests {
  @Test func timesKeepTheirMillisecond() throws {
    var random = SystemRandomNumberGenerator()
    for _ in 0..<2000 {
      let time = Timestamp(milliseconds: Int64.random(in: -1_000_000_000_000...4_000_000_000_000, using: &random))
      #expect(Timestamp(iso8601: time.iso8601) == time)
    }
    #expect(Timestamp(milliseconds: 1_470_366_650_123).iso8601 == "2016-08-05T03:10:50.123Z")
    #expect(Timestamp(milliseconds: -1).iso8601 == "1969-12-31T23:59:59.999Z")
  }

  @Test func timesReadAsFoundationWritesThem() {
    var random = SystemRandomNumberGenerator()
    for _ in 0..<5000 {
      let seconds = Int64.random(in: -11_676_096_000...253_402_300_799, using: &random)
      let date = Date(timeIntervalSince1970: Double(seconds)).formatted(.iso8601)
      #expect(Timestamp(milliseconds: seconds * 1000).iso8601 == "\(date.dropLast()).000Z")
    }
    for (text, days) in [
      ("2000-02-29", 11016), ("1900-03-01", -25508), ("0001-01-01", -719162), ("9999-12-31", 2932896),
    ] {
      #expect(Timestamp(milliseconds: Int64(days) * 86_400_000).iso8601 == "\(text)T00:00:00.000Z")
    }
  }

  @Test func whatIsWrittenByHandIsWhatTheEncoderWrites() throws {
    let plain = Message(id: "1", author: ada, text: "hello", time: Timestamp(milliseconds: 1))
    var all = Message(
      id: "2", author: Author(id: "\u{1}\"\\", name: "Ä\n\t\u{7f}", avatar: "https://example.org/a?b=\"c\""),
      text: (0..<0x80).map { String(UnicodeScalar(UInt8($0))) }.joined() + "日本語 👩‍👩‍👧 \u{2028}", format: .markdown,
      time: Timestamp(milliseconds: -5), revision: 3, edited: Timestamp(milliseconds: 77),
      attachments: [Attachment(name: "a/b", mediaType: "x/y", size: 3, reference: .url("https://example.org/"))],
      replyTo: "1", mentions: ["bob"],
      stamp: Stamp(bridge: "b", origin: Address(account: "a", channel: "c"), id: "7"), attributes: ["x": [1, .null]])
    let stored = [
      ChatMessage(message: plain, room: lobby),
      ChatMessage(
        message: all, room: "a\"b", clientID: "k\\", deleted: Timestamp(milliseconds: 9),
        reactions: [ReactionSummary(emoji: "👍", users: [ada, bob])]),
    ]
    for message in stored.map(Wire.Message.init) {
      let byHand = try message.json()
      #expect(try Wire.value(Wire.Message.self, from: byHand.utf8) == message)
      let encoded = try Wire.value(JSONValue.self, from: Wire.json(message).utf8)
      #expect(try Wire.value(JSONValue.self, from: byHand.utf8) == encoded)
    }
    all.stamp = nil
    #expect(try Wire.Message(ChatMessage(message: all, room: lobby)).json().contains("stamp") == false)
  }

  @Test(arguments: ["\"yesterday\"", "\"\"", "true", "1e300", "99999999999999999", "[]"])
  func whatIsNoTimeIsRefused(_ json: String) {
    #expect(throws: FerryError.self) { try Wire.value(Wire.Time.self, from: json.utf8) }
  }

  @Test func timesMayBeMilliseconds() throws {
    #expect(
      try Wire.value([Wire.Time].self, from: "[1470366650123, \"2016-08-05T03:10:50Z\"]".utf8).map(\.timestamp)
        == [Timestamp(milliseconds: 1_470_366_650_123), Timestamp(milliseconds: 1_470_366_650_000)])
  }

  @Test(arguments: [
    "{\"kind\":\"message\",\"room\":\"r\",\"time\":0}", "{\"kind\":\"read\",\"room\":\"r\",\"time\":0,\"id\":\"1\"}",
    "{\"kind\":\"nonsense\",\"room\":\"r\",\"time\":0}", "{}", "[]", "", "{\"kind\":\"delete\",\"room\":1,\"time\":0}",
  ])
  func anEventThatLacksSomethingIsRefused(_ json: String) {
    #expect(throws: FerryError.self) { try Wire.value(Wire.Event.self, from: json.utf8).event(sequence: 1) }
  }
}
