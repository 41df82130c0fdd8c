import FerryCore
import Testing

@testable import BackendlessProvider

@Suite struct AdapterReaderTests {
  private let now = Timestamp(milliseconds: 1_796_000_000_000)

  private func reader(fields: ChatFieldNames = ChatFieldNames(), notice: String? = "joined") -> ChatReader {
    ChatReader(
      fields: fields, messageClass: "ChatMessage", joinNotice: notice, isOwnFile: { $0.hasPrefix("http://own/") })
  }

  private func frame(_ message: JSONValue, headers: JSONValue = [:], publisher: JSONValue = .null) -> JSONValue {
    [
      "messageId": "message:1", "message": message, "headers": headers, "publisherId": publisher,
      "timestamp": 1_796_022_761_957,
    ]
  }

  private func message(_ reading: ChatReader.Reading?) -> Message? {
    if case .message(let said)? = reading { said.message } else { nil }
  }

  @Test func `the picture chat's message is read`() {
    let text: JSONValue = [
      "___class": "ChatMessage", "userName": "ann", "messageText": "hello", "pictureUrl": .null, "objectId": "66EB",
      "ownerId": "u1", "created": 1_796_022_761_000, "updated": .null,
    ]
    let read = message(reader().published(frame(text), now: now))
    #expect(read?.id == "66EB")
    #expect(read?.author == Author(id: "ann", name: "ann"))
    #expect(read?.text == "hello")
    #expect(read?.time == Timestamp(milliseconds: 1_796_022_761_000))
    #expect(read?.revision == 0)
    #expect(read?.attributes == ["created": 1_796_022_761_000, "ownerId": "u1"])
  }

  @Test func `a picture is an attachment, of the app's own files or from elsewhere`() {
    let own: JSONValue = ["userName": "ann", "pictureUrl": "http://own/tmpChatFiles/A.png"]
    let read = message(reader().published(frame(own), now: now))
    #expect(read?.text == "")
    #expect(
      read?.attachments == [
        Attachment(name: "A.png", mediaType: "image/png", reference: .provider("http://own/tmpChatFiles/A.png"))
      ])
    let other: JSONValue = ["userName": "ann", "imageUrl": "https://elsewhere/cat.jpg?x=1"]
    #expect(
      message(reader().published(frame(other), now: now))?.attachments.first?.reference
        == .url("https://elsewhere/cat.jpg?x=1"))
    #expect(reader().published(frame(["pictureUrl": "file:///etc/passwd"]), now: now) == nil)
  }

  @Test func `the other apps' messages are read`() {
    let dictionary = message(reader().published(frame(["text": "hi", "userEmail": "ann@example.org"]), now: now))
    #expect(dictionary?.text == "hi")
    #expect(dictionary?.author.name == "ann@example.org")
    #expect(dictionary?.id == "message:1")
    let bare = message(reader().published(frame("just text", publisher: "bob"), now: now))
    #expect(bare?.text == "just text")
    #expect(bare?.author.name == "bob")
    #expect(bare?.time == Timestamp(milliseconds: 1_796_022_761_957))
    #expect(message(reader().published(frame(20), now: now))?.text == "20")
    #expect(message(reader().published(frame("anonymous"), now: now))?.author.name == "unknown")
  }

  @Test(arguments: [
    "null", "true", "[]", "{}", #"{"___class":"Order","text":"x"}"#, #"{"text":null}"#, #"{"text":{"a":1}}"#,
  ])
  func `what is no chat is passed over`(json: String) {
    #expect(reader().published(frame(JSONText.value(json) ?? .null), now: now) == nil)
  }

  @Test func `a polled message has other names for the same`() {
    let polled: JSONValue = [
      "messageId": "message:2", "data": "hello", "publishedAt": 1_524_907_478_264, "publisherId": "ann",
      "headers": ["BL_APPLICATION_ID": "x"],
    ]
    let read = message(reader().published(polled, now: now))
    #expect(read?.text == "hello")
    #expect(read?.time == Timestamp(milliseconds: 1_524_907_478_264))
  }

  @Test func `stamps are read from the header and from the row, and are the same`() throws {
    let stamp = Stamp(
      bridge: "lobby", origin: Address(account: "here", channel: "a:b"), id: "4 2", revision: 3, part: 1)
    let outgoing = OutgoingMessage(
      key: stamp.key, author: Author(id: "a1", name: "Ann"), text: "hello", replyTo: "R", stamp: stamp)
    let writer = ChatWriter(fields: ChatFieldNames(), messageClass: "ChatMessage")
    guard case .object(var row) = try writer.row(outgoing, in: "lobby", now: now) else { return }
    row["created"] = 1_796_022_761_000
    guard case .message(let fromRow)? = reader().row(.object(row)) else { throw FerryError(.badData, "no row") }
    let header: JSONValue = [FerryMark.name: .string(writer.mark(outgoing).text)]
    let fromHeader = message(reader().published(frame(writer.published(.object(row)), headers: header), now: now))
    #expect(fromRow.message.stamp == stamp)
    #expect(fromRow.message.author == outgoing.author)
    #expect(fromRow.message.replyTo == "R")
    #expect(fromRow.message.time == now)
    #expect(fromHeader == fromRow.message)
    #expect(fromRow.isRow)
  }

  @Test func `a message without a row is known by the id that Ferry gave it`() throws {
    let outgoing = OutgoingMessage(key: "k", author: Author(id: "ann", name: "ann"), text: "hello")
    let writer = ChatWriter(fields: ChatFieldNames(), messageClass: "ChatMessage")
    let (content, mark) = try writer.unsaved(outgoing, in: "lobby")
    let read = message(reader().published(frame(content, headers: [FerryMark.name: .string(mark.text)]), now: now))
    #expect(read?.id.rawValue == ChatWriter.objectID("k", in: "lobby"))
    #expect(read?.stamp == nil)
    #expect(content["objectId"] == nil)
  }

  @Test func `the notice of coming is a notice, with a picture it is a message`() {
    let notice = reader().published(frame(["userName": "ann", "messageText": "joined"]), now: now)
    guard case .notice(.joined, let membership, let id, _)? = notice else {
      Issue.record("no notice: \(String(describing: notice))")
      return
    }
    #expect(membership.member.name == "ann")
    #expect(id == "message:1")
    let picture: JSONValue = ["userName": "ann", "messageText": "joined", "pictureUrl": "https://a/b.png"]
    #expect(message(reader().published(frame(picture), now: now))?.text == "joined")
    #expect(message(reader(notice: nil).published(frame(["text": "joined"]), now: now))?.text == "joined")
    // A copy of what somebody said elsewhere, and one of somebody's coming.
    let stamp: JSONValue = ["bridge": "b", "origin": "here:lobby", "id": "1"]
    #expect(
      message(reader().published(frame(["text": "joined"], headers: ["ferry": stamp]), now: now))?.text == "joined")
    let coming: JSONValue = ["bridge": "b", "origin": "here:lobby", "id": "1", "notice": "joined"]
    guard
      case .notice(.joined, _, _, _)? = reader().published(frame(["text": "hi"], headers: ["ferry": coming]), now: now)
    else {
      Issue.record("no notice by the mark")
      return
    }
    // People do write this.
    #expect(message(reader().published(frame(["text": "left"]), now: now))?.text == "left")
  }

  @Test func `an edited row says when and which edit it is`() {
    let row: JSONValue = [
      "objectId": "A", "created": 1_796_022_761_000, "updated": 1_796_022_799_123, "messageText": "two", "channel": "x",
    ]
    guard case .message(let said)? = reader().row(row) else {
      Issue.record("no message")
      return
    }
    #expect(said.message.revision == 1_796_022_799_123)
    #expect(said.message.edited == Timestamp(milliseconds: 1_796_022_799_123))
    #expect(reader().channel(of: row) == "x")
    #expect(reader().row(["objectId": "A", "messageText": "no time"]) == nil)
  }

  @Test func `anything at all is read or passed over, and never kept deeper than the journal keeps`() {
    var random = SystemRandomNumberGenerator()
    let names = [
      "message", "data", "objectId", "created", "updated", "messageText", "userName", "pictureUrl", "ferry", "channel",
      "ferryTime", "___class", "headers", "timestamp", "messageId", "publisherId", "bridge", "origin", "id", "revision",
    ]
    func value(_ depth: Int) -> JSONValue {
      switch Int.random(in: 0...(depth > 5 ? 5 : 8), using: &random) {
      case 0: .null
      case 1: .bool(.random())
      case 2: .integer([.min, .max, 0, 1_796_022_761_000].randomElement(using: &random) ?? 0)
      case 3: .number([.infinity, 1e300, -0.5].randomElement(using: &random) ?? 0)
      case 4: .string(["", "joined", "\u{0}", "a:b", "{\"bridge\":1}", "http://x"].randomElement(using: &random) ?? "")
      case 5: .string("x")
      case 6: .array((0..<3).map { _ in value(depth + 1) })
      default:
        .object(
          Dictionary((0..<8).map { _ in (names.randomElement(using: &random) ?? "", value(depth + 1)) }) { $1 })
      }
    }
    let commands = CommandReader(names: CommandNames(), fields: ChatFieldNames())
    for _ in 0..<4000 {
      let one = value(0)
      for reading in [reader().published(one, now: now), reader().row(one)] {
        if let read = message(reading) { #expect((read.attributes?.depth ?? 0) <= JSONValue.deepest) }
      }
      _ = commands.read(one)
      _ = FerryMark(one)
      var list = MemberList()
      _ = list.apply(one, own: [])
      _ = ServiceFault(one).error(doing: "try")
    }
  }
}

@Suite struct AdapterCommandTests {
  private func reader(_ adjust: (inout CommandNames) -> Void = { _ in }) -> CommandReader {
    var names = CommandNames()
    adjust(&names)
    return CommandReader(names: names, fields: ChatFieldNames())
  }

  @Test(arguments: [
    ("USER_TYPING", true), ("user_typing", true), ("Typing", true), ("USER_STOP_TYPING", false), ("stop_typing", false),
  ])
  func `typing is understood in any case, with no data at all`(type: String, on: Bool) {
    let command = reader().read(["type": .string(type), "connectionId": "c1", "userId": .null])
    #expect(command?.content == .typing(on: on))
    #expect(command?.by == nil)
    #expect(command?.userID == nil)
    #expect(command?.connectionID == "c1")
  }

  @Test func `who is typing is in the data, or the user of the connection`() {
    let named = reader().read(["type": "TYPING", "data": ["user": "ann", "on": false], "userId": "u1"])
    #expect(named?.content == .typing(on: false))
    #expect(named?.by?.name == "ann")
    #expect(named?.userID == "u1")
    let nested = reader().read(["type": "TYPING", "userInfo": ["userId": "u2", "connectionId": "c"]])
    #expect(nested?.userID == "u2")
    #expect(reader().read(["type": "DANCING"]) == nil)
    #expect(reader().read(["data": 1]) == nil)
  }

  @Test func `what Ferry sends it understands`() {
    let stamp = Stamp(bridge: "b", origin: Address(account: "a", channel: "c"), id: "")
    let writer = ChatWriter(fields: ChatFieldNames(), messageClass: "ChatMessage")
    let ann = Author(id: "a1", name: "Ann")
    let typing = writer.typing(Typing(channel: "x", by: ann, on: true, stamp: stamp))
    let read = reader().read(["type": "USER_TYPING", "data": typing])
    #expect(read?.by == ann)
    #expect(read?.stamp == stamp)
    let mark = ReadMark(upTo: "M", by: ann, state: .delivered, stamp: stamp)
    let marked = reader { $0.read = "MESSAGE_READ" }.read(["type": "message_read", "data": writer.read(mark)])
    #expect(marked?.content == .mark("M", .delivered))
    #expect(marked?.by == ann)
    #expect(reader().read(["type": "MESSAGE_READ", "data": writer.read(mark)]) == nil)
  }
}

@Suite struct AdapterMemberTests {
  private func frame(_ status: String, _ people: [(String, String?)]) -> JSONValue {
    let data = people.map {
      JSONValue.object(["connectionId": .string($0.0), "userId": $0.1.map(JSONValue.string) ?? .null])
    }
    return ["status": .string(status), "data": .array(data)]
  }

  @Test func `the first listing is no news, a later one is compared`() {
    var list = MemberList()
    #expect(list.apply(frame("LISTING", [("c1", "ann"), ("me", "ferry"), ("c2", nil)]), own: ["me"]).isEmpty)
    #expect(list.users == ["ann"])
    let change = list.apply(frame("LISTING", [("c9", "bob")]), own: [])
    #expect(change == MemberList.Change(joined: ["bob"], left: ["ann"]))
  }

  @Test func `several connections of a user are one member`() {
    var list = MemberList()
    _ = list.apply(frame("LISTING", []), own: [])
    #expect(list.apply(frame("CONNECTED", [("c1", "ann")]), own: []).joined == ["ann"])
    #expect(list.apply(frame("CONNECTED", [("c2", "ann")]), own: []).isEmpty)
    #expect(list.apply(frame("DISCONNECTED", [("c1", "ann")]), own: []).isEmpty)
    #expect(list.apply(frame("DISCONNECTED", [("c2", nil)]), own: []).left == ["ann"])
  }

  @Test func `nobody without a login is announced, and a login on a live connection is`() {
    var list = MemberList()
    _ = list.apply(frame("LISTING", []), own: [])
    #expect(list.apply(frame("CONNECTED", [("c1", nil)]), own: []).isEmpty)
    #expect(list.apply(frame("USERUPDATE", [("c1", "ann")]), own: []).joined == ["ann"])
    #expect(list.apply(frame("USERUPDATE", [("c1", nil)]), own: []).left == ["ann"])
    #expect(list.apply(["status": "DANCING"], own: []).isEmpty)
  }
}
