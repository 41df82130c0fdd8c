import FerryCore
import FerryRuntime
import Testing

@testable import PusherProvider

@Suite struct EventReaderTests {
  static let now = Timestamp(milliseconds: 1_700_000_000_000)
  let reader = EventReader(Profile())

  private func read(_ name: String, _ data: String?, userID: String? = nil) throws -> EventReader.Reading? {
    var text = #"{"event":\#(JSONText.quoted(name)),"channel":"chatroom""#
    if let data { text += #","data":\#(JSONText.quoted(data))"# }
    if let userID { text += #","user_id":\#(JSONText.quoted(userID))"# }
    let frame = try #require(Frame(text: text + "}"))
    var memory = MessageMemory()
    return reader.read(frame, in: "chatroom", unique: "1.2#3", now: Self.now, memory: &memory).first
  }

  private func event(_ name: String, _ data: String?, userID: String? = nil) throws -> Event {
    guard case .event(let event) = try read(name, data, userID: userID) else {
      throw FerryError(.badData, "\(name) was not read as an event")
    }
    return event
  }

  private func message(_ name: String, _ data: String?, userID: String? = nil) throws -> Message {
    switch try event(name, data, userID: userID).kind {
    case .posted(let message), .edited(let message): return message
    default: throw FerryError(.badData, "\(name) was not read as a message")
    }
  }

  @Test func `the anonymous chat's message is understood, its number as an id`() throws {
    let event = try event("new_message", #"{"text":"hi","sender":"Ann","ID":7}"#)
    #expect(event.key == "m:7")
    #expect(event.time == Self.now)
    #expect(
      event.kind
        == .posted(Message(id: "7", author: Author(id: "Ann", name: "Ann"), text: "hi", time: Self.now)))
  }

  @Test func `what is nested too deep for the journal is left out, and the message kept`() throws {
    let deep = String(repeating: "[", count: 400) + String(repeating: "]", count: 400)
    let message = try message("new_message", #"{"text":"hi","sender":"Ann","deep":\#(deep),"flat":[[1]]}"#)
    #expect(message.text == "hi")
    #expect(message.attributes == .object(["flat": .array([.array([.integer(1)])])]))
  }

  @Test(arguments: [#""0001-01-01T00:00:00Z""#, "-240000000000000", "1e300"])
  func `a time at which nobody wrote is no time`(_ time: String) throws {
    #expect(try event("new_message", #"{"text":"hi","timestamp":\#(time)}"#).time == Self.now)
  }

  @Test func `an id too long for a stamp is none`() throws {
    let id = String(repeating: "i", count: 513)
    #expect(try event("new_message", #"{"text":"hi","id":"\#(id)"}"#).key == "m:1.2#3")
  }

  @Test func `a row of a messenger clone is understood, its sender an object`() throws {
    let message = try message(
      "messages:new",
      """
      {"id":"m1","body":"look","image":"https://example.org/a/cat.PNG?x=1","createdAt":"2026-11-30T08:00:00.123Z",
       "sender":{"id":"u1","name":"Ann","image":"https://example.org/ann.png"},"seen":[],"flavour":"sweet"}
      """)
    #expect(message.author == Author(id: "u1", name: "Ann", avatar: "https://example.org/ann.png"))
    #expect(message.text == "look")
    #expect(message.time.iso8601 == "2026-11-30T08:00:00.123Z")
    #expect(
      message.attachments == [
        Attachment(
          name: "cat.PNG", mediaType: "image/png", reference: .url("https://example.org/a/cat.PNG?x=1"))
      ])
    #expect(message.attributes?["flavour"] == "sweet")
    #expect(message.attributes?["body"] == nil)
  }

  @Test(arguments: [
    ("1700000001", Int64(1_700_000_001_000)), ("1700000001.5", 1_700_000_001_500), ("1700000001234", 1_700_000_001_234),
    (#""2023-11-14T22:13:21Z""#, 1_700_000_001_000), (#""1700000001""#, 1_700_000_001_000),
    (#""nan""#, now.milliseconds), ("1e300", now.milliseconds), (#""yesterday""#, now.milliseconds),
  ])
  func `time is read from every form`(time: String, milliseconds: Int64) throws {
    #expect(try message("new_message", #"{"text":"x","time":\#(time)}"#).time.milliseconds == milliseconds)
  }

  @Test func `a bare string is the text`() throws {
    #expect(try message("message", "hello").text == "hello")
    #expect(try message("message", #""quoted""#).text == "quoted")
  }

  @Test func `a message without an id gets one that no other message has`() throws {
    let event = try event("new_message", #"{"text":"x"}"#)
    #expect(event.key == "m:1.2#3")
    #expect(try message("new_message", #"{"text":"x"}"#).id == "1.2#3")
  }

  @Test func `a class name counts as its last part`() throws {
    #expect(try message(#"App\Events\MessageSent"#, #"{"message":"x","username":"bob"}"#).author.name == "bob")
  }

  @Test func `an edit with a revision is the same however often it comes`() throws {
    let event = try event("message_updated", #"{"ID":7,"text":"new","sender":"Ann","revision":3}"#)
    #expect(event.key == "e:7:3")
    guard case .edited(let message) = event.kind else { throw FerryError(.badData, "no edit") }
    #expect(message.revision == 3)
    #expect(message.text == "new")
  }

  @Test func `of two edits in one millisecond the later counts`() throws {
    var memory = MessageMemory()
    let revisions = try (1...3).map { number -> Int in
      let frame = try #require(
        Frame(text: #"{"event":"message_updated","channel":"chatroom","data":"{\"ID\":7,\"text\":\"\#(number)\"}"}"#))
      let reading = reader.read(frame, in: "chatroom", unique: "1.2#\(number)", now: Self.now, memory: &memory).first
      guard case .event(let event) = reading, case .edited(let message) = event.kind else { return 0 }
      return message.revision
    }
    #expect(revisions[0] > 0 && revisions[0] < revisions[1] && revisions[1] < revisions[2])
  }

  @Test func `an edit without a revision is an edit of its own`() throws {
    let event = try event("message:update", #"{"id":7,"text":"old again"}"#)
    #expect(event.key == "e:1.2#3")
    #expect(try message("message:update", #"{"id":7,"text":"x"}"#).revision > 1_000_000)
  }

  @Test func `one name for edits and reads is told apart by who has seen the message`() throws {
    let event = try event("message:update", #"{"id":"7","text":"x","seen":[{"id":"u1"}]}"#)
    guard case .read(let mark) = event.kind else { throw FerryError(.badData, "no read") }
    #expect(mark.upTo == "7")
    #expect(mark.state == .read)
  }

  @Test func `a delete names its message and may be the id alone`() throws {
    #expect(try event("message_deleted", #"{"ID":7}"#).kind == .deleted(Deletion(id: "7")))
    #expect(try event("message:remove", "7").kind == .deleted(Deletion(id: "7")))
    #expect(try event("message_deleted", #"{"ID":7}"#).key == "d:7")
  }

  @Test func `a receipt's id is a string where the message's was a number`() throws {
    let mark = ReadMark(upTo: "7", by: nil, state: .delivered)
    #expect(try event("message_delivered", #"{"ID":"7"}"#).kind == .read(mark))
  }

  @Test func `typing is read from objects, bare strings and client events`() throws {
    let ann = Author(id: "Ann", name: "Ann")
    let on = EventReader.Reading.typing(Typing(channel: "chatroom", by: ann, on: true))
    #expect(try read("user_typing", #"{"sender":"Ann","text":"Ann is typing..."}"#) == on)
    #expect(try read("user_typing", "Ann is typing...") == on)
    #expect(try read("user_typing", "Ann") == on)
    let off = EventReader.Reading.typing(Typing(channel: "chatroom", by: ann, on: false))
    #expect(try read("client-typing", #"{"from_id":"Ann","typing":false}"#) == off)
    #expect(try read("user_stopped_typing", #"{"sender":"Ann"}"#) == off)
    let vouched = try read("client-typing", #"{"sender":"Ann"}"#, userID: "u1")
    #expect(vouched == .typing(Typing(channel: "chatroom", by: Author(id: "u1", name: "Ann"), on: true)))
  }

  @Test func `an event of no meaning is passed over`() throws {
    #expect(try read("conversation:new", "{}") == nil)
    #expect(try read("message_updated", #"{"text":"which?"}"#) == nil)
    #expect(try read("message_reaction", #"{"ID":"7"}"#) == nil)
    #expect(try read("new_message", nil) != nil)
  }

  @Test(arguments: ["null", "[]", "7", "[[[[]]]]", #"{"sender":[]}"#, #"{"ferry":7}"#, #"{"ferry":{"images":[{}]}}"#])
  func `data of any shape is survived`(data: String) throws {
    for name in ["new_message", "message_updated", "message_deleted", "user_typing", "message_read"] {
      _ = try read(name, data)
    }
  }
}

@Suite struct EventWriterTests {
  let writer = EventWriter(profile: Profile(), channel: "c")
  let reader = EventReader(Profile())
  let stamp = Stamp(bridge: "lobby", origin: Address(account: "here", channel: "a:b"), id: "9", revision: 2, part: 1)

  private func message(_ text: String, stamp: Stamp? = nil) -> OutgoingMessage {
    OutgoingMessage(
      key: stamp?.key ?? "k1", author: Author(id: "u1", name: "Ann"), text: text,
      time: Timestamp(milliseconds: 1_700_000_000_123), replyTo: "5", stamp: stamp)
  }

  private func reading(_ event: String, _ data: String) throws -> Event {
    let frame = try #require(Frame(text: FrameText.event(event, channel: "c", data: data)))
    var memory = MessageMemory()
    let readings = reader.read(frame, in: "c", unique: "u", now: EventReaderTests.now, memory: &memory)
    guard case .event(let event)? = readings.first, readings.count == 1 else {
      throw FerryError(.badData, "not an event")
    }
    return event
  }

  @Test func `the simplest client finds id, sender, text and time`() throws {
    let data = try writer.message(message("hello"), id: "abc", now: EventReaderTests.now)
    let value = try #require(JSONText.decode(JSONValue.self, from: data))
    #expect(value["ID"] == "abc")
    #expect(value["sender"] == "Ann")
    #expect(value["text"] == "hello")
    #expect(value["timestamp"] == "2023-11-14T22:13:20.123Z")
    #expect(value["ferry"] == ["key": "k1", "sender_id": "u1"])
  }

  @Test func `what is written is read back whole`() throws {
    var original = message("h\u{e9}llo \u{1F469}\u{200D}\u{1F680}\n\"quoted\" \\", stamp: stamp)
    original.attachments = ["a", "b"].map { name in
      OutgoingAttachment(
        name: "\(name).png", mediaType: "image/png", size: 3, sha256: "00", reference: .url("https://x.org/\(name)"))
    }
    let event = try reading("new_message", try writer.message(original, id: "abc", now: EventReaderTests.now))
    guard case .posted(let read) = event.kind else { throw FerryError(.badData, "not a message") }
    #expect(event.key == "m:abc")
    #expect(read.id == "abc")
    #expect(read.author == original.author)
    #expect(read.text == original.text)
    #expect(read.time == original.time)
    #expect(read.replyTo == "5")
    #expect(read.stamp == stamp)
    #expect(read.revision == 2)
    #expect(read.attributes == nil)
    #expect(
      read.attachments
        == original.attachments.map {
          Attachment(
            name: $0.name, mediaType: $0.mediaType, size: $0.size, sha256: $0.sha256, reference: $0.reference)
        })
  }

  @Test func `a person's post is read without a stamp`() throws {
    let event = try reading("new_message", try writer.message(message("x"), id: "abc", now: EventReaderTests.now))
    #expect(event.stamp == nil)
  }

  @Test func `a delete, a mark and a reaction carry the stamp`() throws {
    #expect(try reading("message_deleted", try writer.deletion("7", by: nil, stamp)).stamp == stamp)
    let mark = ReadMark(upTo: "7", by: Author(id: "Ann", name: "Ann"), state: .read, stamp: stamp)
    #expect(try reading("message_read", try writer.mark(mark)).kind == .read(mark))
    let reaction = Reaction(
      message: "7", by: Author(id: "Ann", name: "Ann"), emoji: "\u{1F44D}", added: false, stamp: stamp)
    #expect(try reading("message_reaction", try writer.reaction(reaction)).kind == .reacted(reaction))
  }

  @Test func `what does not fit is refused before it is sent`() throws {
    _ = try writer.message(message(String(repeating: "\u{e9}", count: 4000)), id: "abc", now: EventReaderTests.now)
    let error = #expect(throws: FerryError.self) {
      try writer.message(message(String(repeating: "\"", count: 6000)), id: "abc", now: EventReaderTests.now)
    }
    #expect(error?.code == .tooLarge)
    #expect(error?.didNotAct == true)
  }

  /// Names and ids as long as anybody may make them, beside the longest text that the account says it takes.
  @Test(arguments: ["a", "\u{e9}", "\u{4f60}", "\u{1F469}\u{200D}\u{1F680}", "\"", "\\", "\u{1}", "\u{301}"])
  func `the longest text fits beside the longest names, in every script`(unit: String) throws {
    let limit = try #require(PusherAdapter.capabilities(marker: true).bodyBytes)
    let width = JSONText.width(of: unit)
    var stamp = stamp
    stamp.id = MessageID(String(repeating: unit, count: 512 / width))
    var message = message(String(repeating: unit, count: limit / width), stamp: stamp)
    message.replyTo = stamp.id
    message.author = Author(
      id: UserID(String(repeating: unit, count: 3000)), name: String(repeating: unit, count: 2999))
    let data = try writer.message(message, id: "abc", now: EventReaderTests.now)
    #expect(data.utf8.count <= Limits.dataBytes)
    guard case .posted(let read) = try reading("new_message", data).kind else {
      throw FerryError(.badData, "not a message")
    }
    #expect(read.text == message.text)
    #expect(read.stamp == stamp)
    _ = try writer.typing(Typing(channel: "c", by: message.author, on: true, stamp: stamp))
    _ = try writer.mark(ReadMark(upTo: stamp.id, by: message.author, state: .read, stamp: stamp))
    _ = try writer.membership(Membership(member: message.author, stamp: stamp))
  }

  @Test func `markers of bridges, sources and people are apart`() throws {
    let one = Marker.channel(for: "c", "lobby|here:a|1|0|0")
    #expect(one == Marker.channel(for: "c", "lobby|here:a|2|0|0"))
    #expect(one != Marker.channel(for: "c", "news|here:a|1|0|0"))
    #expect(one != Marker.channel(for: "d", "lobby|here:a|1|0|0"))
    // Another relay may have a bridge of the same name.
    #expect(one != Marker.channel(for: "c", "lobby|other:a|1|0|0"))
    #expect(Marker.channel(for: "c", "k1") != Marker.channel(for: "c", "k2"))
    #expect(ChannelName(one)?.isCache == true)
    #expect(ChannelName(one)?.isSigned == true)
    #expect(Marker.key(in: Marker.data("k\"1")) == "k\"1")
    let stamped = try writer.message(message("x", stamp: stamp), id: "abc", now: EventReaderTests.now)
    #expect(Marker.key(in: stamped) == stamp.key)
  }
}
