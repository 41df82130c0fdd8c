import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import Testing

@testable import PusherProvider

@Suite struct ProfileTests {
  static let now = EventReaderTests.now

  /// What one frame means to an app of a kind, with what was said before in `memory`.
  struct Ear {
    let reader: EventReader
    var memory = MessageMemory()
    private var count = 0

    init(_ profile: Profile) { reader = EventReader(profile) }

    mutating func hear(_ event: String, _ data: String) throws -> [EventReader.Reading] {
      count += 1
      let frame = try #require(Frame(text: FrameText.event(event, channel: "c.7", data: data)))
      return reader.read(frame, in: "c.7", unique: "u\(count)", now: ProfileTests.now, memory: &memory)
    }

    mutating func kinds(_ event: String, _ data: String) throws -> [Event.Kind] {
      try hear(event, data).compactMap { if case .event(let event) = $0 { event.kind } else { nil } }
    }

    mutating func message(_ event: String, _ data: String) throws -> Message {
      switch try kinds(event, data).first {
      case .posted(let message), .edited(let message): return message
      case let kind: throw FerryError(.badData, "\(event) was read as \(String(describing: kind))")
      }
    }
  }

  private let ann = Author(id: "7", name: "Ann")
  private let stamp = Stamp(bridge: "b", origin: Address(account: "x", channel: "y"), id: "9")

  private func outgoing(_ text: String) -> OutgoingMessage {
    OutgoingMessage(key: stamp.key, author: ann, text: text, stamp: stamp)
  }

  private func value(_ text: String) throws -> JSONValue { try #require(JSONText.decode(JSONValue.self, from: text)) }

  @Test(arguments: Preset.allCases)
  func `what an app's language says comes back as it was`(preset: Preset) async throws {
    let profile = Profile(preset)
    let writer = EventWriter(profile: profile, channel: "c.7")
    var random = SeededGenerator(seed: 7)
    for number in 0..<50 {
      await Task.yield()
      var ear = Ear(profile)
      let id = Marker.messageID(SendKey("\(number)"), profile.ids)
      let text = Samples.text(using: &random)
      let message = try ear.message(
        profile.events.message[0], try writer.message(outgoing(text), id: id, now: Self.now))
      #expect(message.id == id)
      #expect(Array(message.text.utf8) == Array(text.utf8))
      #expect(message.author == ann)
      #expect(message.stamp == stamp)
      #expect(message.attributes?["text"] == nil && message.attributes?["message"] == nil)
    }
    var ear = Ear(profile)
    let deletion = try ear.kinds(profile.events.delete[0], try writer.deletion("5", by: ann, stamp))
    guard case .deleted(let deleted)? = deletion.first else { throw FerryError(.badData, "no deletion") }
    #expect(deleted.id == "5" && deleted.stamp == stamp)
    for on in [true, false] {
      let names = on ? profile.events.typing : profile.events.typingStopped
      let readings = try ear.hear(
        profile.via.plan(.typing, names).name, try writer.typing(Typing(channel: "c.7", by: ann, on: on, stamp: stamp)))
      #expect(readings == [.typing(Typing(channel: "c.7", by: ann, on: on, stamp: stamp))])
    }
    _ = try ear.message(profile.events.message[0], try writer.message(outgoing("x"), id: "5", now: Self.now))
    let mark = ReadMark(upTo: "5", by: ann, state: .read, stamp: stamp)
    guard case .read(let read)? = try ear.kinds(profile.events.read[0], try writer.mark(mark)).first else {
      throw FerryError(.badData, "no mark")
    }
    #expect(read.upTo == "5" && read.stamp == stamp && read.state == .read)
  }

  @Test func `the anonymous chat has numbers in messages and strings in receipts`() throws {
    let writer = EventWriter(profile: Profile(.anonymousChat), channel: "chatroom")
    let id = Marker.messageID("k", .integer)
    let message = try value(try writer.message(outgoing("hi"), id: id, now: Self.now))
    #expect(message["ID"]?.integer.map(String.init) == id.rawValue)
    #expect(message["ID"]?.integer.map { $0 < 1 << 53 } == true)
    #expect(message["sender"] == "Ann" && message["text"] == "hi")
    let receipt = try value(try writer.mark(ReadMark(upTo: id, by: nil, state: .delivered)))
    #expect(receipt["ID"] == .string(id.rawValue))
    let typing = try value(try writer.typing(Typing(channel: "c", by: ann, on: true)))
    #expect(typing["text"] == "Ann is typing...")
  }

  @Test func `a messenger's row is whole, and its list of readers tells edits from reads`() throws {
    let profile = Profile(.nextjsMessenger)
    let writer = EventWriter(profile: profile, channel: "conv1")
    let row = try value(try writer.message(outgoing("hi"), id: "m1", now: Self.now))
    #expect(row["body"] == "hi" && row["sender"] == ["id": "7", "name": "Ann"] && row["seen"] == [])
    #expect(row["conversationId"] == "conv1" && row["senderId"] == "7")
    #expect(row["createdAt"]?.string == Self.now.iso8601)

    var ear = Ear(profile)
    _ = try ear.hear(
      "messages:new", #"{"id":"m1","body":"hi","sender":{"id":"7","name":"Ann"},"seen":[{"id":"7","name":"Ann"}]}"#)
    func update(_ body: String, _ seen: String) -> String { #"{"id":"m1","body":"\#(body)","seen":[\#(seen)]}"# }
    let (annRow, bobRow) = (#"{"id":"7","name":"Ann"}"#, #"{"id":"8","name":"Bob"}"#)
    // Nobody new, nothing changed.
    #expect(try ear.hear("message:update", update("hi", annRow)).isEmpty)
    // The list has grown.
    let read = try ear.kinds("message:update", update("hi", "\(annRow),\(bobRow)"))
    #expect(read == [.read(ReadMark(upTo: "m1", by: Author(id: "8", name: "Bob"), state: .read))])
    // An edit, although there is a list.
    #expect(try ear.message("message:update", update("hi there", "\(annRow),\(bobRow)")).text == "hi there")
    // Both at once.
    let both = try ear.kinds("message:update", update("bye", #"\#(annRow),\#(bobRow),{"id":9}"#))
    #expect(both.count == 2)
    guard case .edited? = both.first, case .read(let mark)? = both.last else { throw FerryError(.badData, "not both") }
    #expect(mark.by?.id == "9")
  }

  @Test func `a messenger's read is its row again with one more reader`() throws {
    let profile = Profile(.nextjsMessenger)
    let writer = EventWriter(profile: profile, channel: "c.7")
    var ear = Ear(profile)
    _ = try ear.hear("messages:new", #"{"id":"m1","body":"hi","flavour":"sweet","seen":[{"id":"8"}]}"#)
    let row = try #require(ear.memory.row("m1", in: "c.7")?.data)
    let text = try writer.row(row, readBy: ann, stamp)
    let data = try value(text)
    #expect(data["body"] == "hi" && data["flavour"] == "sweet" && data["seen"]?.array?.count == 2)
    let kinds = try ear.kinds("message:update", text)
    #expect(kinds == [.read(ReadMark(upTo: "m1", by: ann, state: .read, stamp: stamp))])
    #expect(ear.memory.row("m1", in: "c.7")?.seen == ["7", "8"])
  }

  @Test func `the Laravel messenger's HTML is text, and text goes out escaped`() throws {
    let profile = Profile(.chatify)
    var ear = Ear(profile)
    let message = try ear.message(
      "messaging",
      #"{"from_id":4,"to_id":"7","message":"<div class=\"message-card\" data-id=\"99\"><div class=\"message\">a &lt;b&gt;<br/>c</div></div>"}"#
    )
    #expect(message.id == "99" && message.text == "a <b>\nc" && message.author.id == "4")
    let seen = try ear.kinds("client-seen", #"{"from_id":7,"to_id":4,"seen":true}"#)
    #expect(seen == [.read(ReadMark(upTo: "99", by: Author(id: "7", name: "7"), state: .read))])
    #expect(try ear.kinds("client-messageDelete", #"{"id":99}"#) == [.deleted(Deletion(id: "99"))])
    #expect(try ear.kinds("client-seen", #"{"from_id":7,"to_id":4,"seen":true}"#).isEmpty)

    let writer = EventWriter(profile: profile, channel: "private-chatify.7", user: AccountUser(id: "12", info: [:]))
    let data = try value(try writer.message(outgoing("<script>\"&"), id: "5", now: Self.now))
    #expect(data["from_id"] == 12 && data["to_id"] == 7)
    let html = try #require(data["message"]?.string)
    #expect(html.contains("&lt;script&gt;\"&amp;</div>") && !html.contains("<script"))
    #expect(html.contains(">Ann</b>"))
    #expect(HTMLText(html).text == "<script>\"&")
  }

  @Test(arguments: [
    #"App\Events\MessageSent"#, #"Modules\Chat\MessageSent"#, "MessageSent", "message.sent", ".message.sent",
  ])
  func `Laravel's events are known by class, by last part and by dotted name`(name: String) throws {
    var ear = Ear(Profile(.laravelEcho))
    let message = try ear.message(
      name,
      #"{"user":{"id":1,"name":"Ann"},"message":{"id":5,"message":"hi","user_id":1,"created_at":"2026-11-30T08:00:00.000000Z"}}"#
    )
    #expect(message.id == "5" && message.text == "hi" && message.author == Author(id: "1", name: "Ann"))
    #expect(message.time.iso8601 == "2026-11-30T08:00:00.000Z")
    #expect(message.attributes == nil || message.attributes?["message"]?["message"] == nil)
  }

  @Test func `a flat Laravel event is understood too`() throws {
    var ear = Ear(Profile(.laravelEcho))
    #expect(try ear.message("MessageSent", #"{"message":"hi","user":"bob"}"#).text == "hi")
    let typing = try ear.hear("client-typing", #"{"name":"Ann"}"#)
    #expect(typing == [.typing(Typing(channel: "c.7", by: Author(id: "Ann", name: "Ann"), on: true))])
  }

  @Test func `any client event about typing is typing, and no other is guessed`() throws {
    var ear = Ear(Profile())
    #expect(try ear.hear("client-userTyping", #"{"sender":"Ann"}"#).count == 1)
    #expect(
      try ear.hear("client-typing-stopped", #"{"sender":"Ann"}"#) == [
        .typing(Typing(channel: "c.7", by: Author(id: "Ann", name: "Ann"), on: false))
      ])
    #expect(try ear.hear("client-new_message", #"{"text":"let me in"}"#).isEmpty)
    #expect(try ear.hear("client-message_deleted", #"{"ID":"1"}"#).isEmpty)
  }

  @Test(arguments: [
    ("a", "a", true), ("a", "ab", false), ("private-chat.*", "private-chat.7", true),
    ("private-chat.*", "private-chat", false),
    ("*", "", true), ("*", "x", true), ("*-b-*", "a-b-c", true), ("*-b-*", "a-b", false), ("a*a", "a", false),
    ("a*a", "aa", true), ("a**b", "axb", true), ("*ab*ab", "abab", true), ("*ab*ab", "ab", false), ("", "", true),
  ])
  func `a star stands for anything`(pattern: String, channel: String, matches: Bool) {
    #expect(ChannelPattern(pattern).matches(channel) == matches)
  }

  @Test func `client events are planned by name or by setting`() throws {
    let mapping = try ConfigNode.parse("{typing: client, read: server}").mapping()
    let via = try Transports(mapping)
    let typing = via.plan(.typing, ["user_typing", "client-typing"])
    #expect(typing == (.client, "client-typing", "user_typing"))
    #expect(via.plan(.typing, ["user_typing"]) == (.client, "client-user_typing", "user_typing"))
    #expect(via.plan(.read, ["client-seen"]) == (.server, "client-seen", "client-seen"))
    #expect(via.plan(.delete, ["client-gone"]) == (.client, "client-gone", "gone"))
    #expect(via.plan(.edit, ["edited"]) == (.server, "edited", "edited"))
  }

  @Test func `paths lead into objects, going out and coming in`() throws {
    var data: [String: JSONValue] = [:]
    data.put("x", at: "a.b.c")
    data.put("y", at: "a.d")
    data.put(nil, at: "e")
    #expect(data == ["a": ["b": ["c": "x"], "d": "y"]])
    data.take(at: "a.b.c")
    #expect(data == ["a": ["d": "y"]])
    data.take(at: "a.d")
    #expect(data.isEmpty)
  }

  @Test func `only the last few hundred messages are remembered`() {
    var memory = MessageMemory()
    for number in 0..<1000 {
      memory.note(
        MessageID("\(number)"), in: "c", MessageMemory.Row(content: number, seen: [], data: nil), isNew: true)
      if number % 3 == 0 { memory.forget(MessageID("\(number)"), in: "c") }
    }
    #expect(memory.row("998", in: "c")?.content == 998)
    #expect(memory.row("999", in: "c") == nil)
    #expect(memory.row("700", in: "c") == nil)
    #expect(memory.newest(in: "c") == nil)
  }
}
