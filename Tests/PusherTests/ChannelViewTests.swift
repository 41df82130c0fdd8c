import FerryChat
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import FoundationEssentials
import Testing

@testable import PusherProvider

/// Channels as rooms, for people who look at them.
@Suite(.timeLimit(.minutes(2))) struct ChannelViewTests {
  struct Scene: Sendable {
    let service: Service
    let chat: ChatService
    let reader: FeedReader
    var view: ChannelView { get throws { try unwrap(service.facade.view, "there is no view") } }

    private let waiting = Locked<[FeedItem]>([])

    init(service: Service, chat: ChatService, reader: FeedReader) {
      self.service = service
      self.chat = chat
      self.reader = reader
    }

    private func nextItem() async throws -> FeedItem {
      while true {
        if let item = waiting.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { return item }
        let items = try await reader.next()
        guard !items.isEmpty else { throw FerryError(.unavailable, "nothing more is told") }
        waiting.withLock { $0 += items }
      }
    }

    /// What the room is told next.
    func next() async throws -> Event {
      while true {
        if case .event(let logged) = try await nextItem() { return try logged.event() }
      }
    }

    func nextTyping() async throws -> Typing {
      while true {
        if case .typing(let typing) = try await nextItem() { return typing }
      }
    }

    func posted(_ text: String, as id: String) async throws -> Message {
      try await service.trigger(
        "new_message", on: "chatroom", data: #"{"ID":"\#(id)","sender":"pete","text":"\#(text)"}"#)
      guard case .posted(let message) = try await next().kind else { throw FerryError(.internal, "nothing posted") }
      return message
    }
  }

  private static func playing(
    adjust: @escaping @Sendable (inout PusherFacade.Settings) -> Void = { _ in },
    before: (ChatService) async throws -> Void = { _ in },
    _ body: @escaping @Sendable (Scene) async throws -> Void
  ) async throws {
    let folder = FileManager.default.temporaryDirectory.path + "/ferry-view-\(Crypto.randomHex(bytes: 8))"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let chat = try ChatService(path: folder + "/chat.db", files: folder + "/files", logger: .silent)
    defer { chat.close() }
    try await before(chat)
    let reader = try await chat.reader(of: nil, after: nil)
    defer { reader.close() }
    try await Service.serving(chat: chat, adjust: adjust) { service in
      let scene = Scene(service: service, chat: chat, reader: reader)
      try scene.view.watch("chatroom")
      _ = try await scene.view.isFollowing.next()
      try await body(scene)
    }
  }

  private static let bob = Author(id: "bob", name: "Bob")

  @Test func `what is published is kept, changed and removed in the room, and is not published again`() async throws {
    try await Self.playing { scene in
      let client = try await scene.service.connect()
      try await client.subscribe("chatroom")
      let message = try await scene.posted("hello", as: "1")
      #expect(message.author.name == "pete" && message.text == "hello")
      try await scene.service.trigger(
        "message_updated", on: "chatroom", data: #"{"ID":"1","sender":"pete","text":"hello!"}"#)
      guard case .edited(let edited) = try await scene.next().kind else { throw FerryError(.internal, "no edit") }
      #expect(edited.id == message.id && edited.text == "hello!")
      try await scene.service.trigger(
        "message_reaction", on: "chatroom", data: #"{"ID":"1","sender":"ann","emoji":"👍","added":true}"#)
      guard case .reacted(let reaction) = try await scene.next().kind else {
        throw FerryError(.internal, "no reaction")
      }
      #expect(reaction.message == message.id && reaction.emoji == "👍")
      try await scene.service.trigger("message_read", on: "chatroom", data: #"{"ID":"1","sender":"ann"}"#)
      guard case .read(let mark) = try await scene.next().kind else { throw FerryError(.internal, "no mark") }
      #expect(mark.upTo == message.id && mark.by?.name == "ann")
      try await scene.service.trigger("message_deleted", on: "chatroom", data: #"{"ID":"1"}"#)
      guard case .deleted(let deletion) = try await scene.next().kind else {
        throw FerryError(.internal, "no deletion")
      }
      #expect(deletion.id == message.id)
      for _ in 0..<5 { #expect(!(try await client.next()).contains("pusher-view")) }
      #expect(try await client.isQuiet())
    }
  }

  @Test func `what is written in the room is published as the adapter would, and understood by it`() async throws {
    try await Self.playing { scene in
      let client = try await scene.service.connect()
      try await client.subscribe("chatroom")
      func published() async throws -> (event: String, data: JSONValue) {
        let frame = try unwrap(Frame(text: try await client.next()), "no frame")
        return (frame.event, try unwrap(frame.data?.parsed, "no data"))
      }
      let chat = scene.chat
      let posted = try await chat.post(Draft(author: Self.bob, text: "hi"), to: "chatroom", by: .owner).message
      let first = try await published()
      #expect(first.event == "new_message")
      #expect(first.data["text"] == "hi" && first.data["sender"] == "Bob")
      let id = try unwrap(first.data["ID"]?.string, "no id")
      _ = try await chat.edit(posted.message.id, in: "chatroom", to: Change(text: "hi!"), by: .owner)
      let second = try await published()
      #expect(second.event == "message_updated" && second.data["ID"] == .string(id) && second.data["text"] == "hi!")
      try await chat.react(
        Reaction(message: posted.message.id, by: Self.bob, emoji: "🚢", added: true), in: "chatroom", by: .owner)
      let third = try await published()
      #expect(third.event == "message_reaction" && third.data["ID"] == .string(id) && third.data["emoji"] == "🚢")
      try chat.setTyping(Typing(channel: "chatroom", by: Self.bob, on: true), by: .owner)
      #expect(try await published().event == "user_typing")
      try await chat.delete(posted.message.id, in: "chatroom", by: .owner, as: Self.bob)
      let last = try await published()
      #expect(last.event == "message_deleted" && last.data["ID"] == .string(id))
    }
  }

  @Test func `a mark on somebody else's message names it as the channel does`() async throws {
    try await Self.playing { scene in
      let client = try await scene.service.connect()
      try await client.subscribe("chatroom")
      let message = try await scene.posted("hello", as: "from the app")
      _ = try await client.next()
      try await scene.chat.mark(
        ReadMark(upTo: message.id, by: Self.bob, state: .delivered), in: "chatroom", by: .owner)
      let frame = try unwrap(Frame(text: try await client.next()), "no frame")
      #expect(frame.event == "message_delivered" && frame.data?.parsed["ID"] == "from the app")
    }
  }

  @Test func `typing comes and goes`() async throws {
    try await Self.playing { scene in
      // A reader is told of typing once it has caught up.
      _ = try await scene.posted("hello", as: "1")
      try await scene.service.trigger("user_typing", on: "chatroom", data: #"{"sender":"pete"}"#)
      let typing = try await scene.nextTyping()
      #expect(typing.on && typing.by.name == "pete")
      try await scene.service.trigger("user_stopped_typing", on: "chatroom", data: #"{"sender":"pete"}"#)
      #expect(try await scene.nextTyping().on == false)
    }
  }

  @Test func `client events are seen too, and as the user whom the service vouches for`() async throws {
    try await Self.playing { scene in
      try scene.view.watch("presence-room")
      // A reader is told of typing once it has caught up.
      _ = try await scene.posted("hello", as: "1")
      let client = try await scene.service.connect()
      try await client.subscribe("presence-room", as: "u1")
      client.send(#"{"event":"client-typing","channel":"presence-room","data":{"name":"somebody"}}"#)
      let typing = try await scene.nextTyping()
      #expect(typing.channel == "presence-room" && typing.by.id == "u1")
    }
  }

  @Test func `a message in slices is one message`() async throws {
    try await Self.playing { scene in
      let data = #"{"ID":"long","sender":"pete","text":"\#(String(repeating: "long ", count: 900))"}"#
      let parts = [data.prefix(2000), data.dropFirst(2000)]
      for (index, part) in parts.enumerated().reversed() {
        let slice =
          #"{"id":"s","index":\#(index),"chunk":\#(JSONText.quoted(String(part))),"final":\#(index == 1)}"#
        try await scene.service.trigger("chunked-new_message", on: "chatroom", data: slice)
      }
      guard case .posted(let message) = try await scene.next().kind else { throw FerryError(.internal, "nothing") }
      #expect(message.text == String(repeating: "long ", count: 900) && message.author.name == "pete")
    }
  }

  @Test func `who is on a presence channel is in the room`() async throws {
    try await Self.playing { scene in
      let early = try await scene.service.connect()
      try await early.subscribe("presence-room", as: "u1")
      try scene.view.watch("presence-room")
      guard case .joined(let first) = try await scene.next().kind else { throw FerryError(.internal, "no join") }
      #expect(first.member.id == "u1")
      let late = try await scene.service.connect()
      try await late.subscribe("presence-room", as: "u2")
      guard case .joined(let second) = try await scene.next().kind else { throw FerryError(.internal, "no join") }
      #expect(second.member.id == "u2")
      late.send(#"{"event":"pusher:unsubscribe","data":{"channel":"presence-room"}}"#)
      guard case .left(let gone) = try await scene.next().kind else { throw FerryError(.internal, "nobody left") }
      #expect(gone.member.id == "u2")
      #expect(try await scene.chat.members(of: "presence-room").map(\.id) == ["u1"])
      // None of it is published: clients of the service have been told by the service itself.
      _ = try await scene.posted("done", as: "1")
      while true {
        let frame = try unwrap(Frame(text: try await early.next()), "no frame")
        #expect(!frame.event.hasPrefix("user_"))
        if frame.event == "pusher_internal:member_removed" { break }
      }
    }
  }

  @Test func `who left a presence channel while the facade was down is not in the room any more`() async throws {
    let before = { (chat: ChatService) async throws in
      for room: ChannelID in ["presence-room", "chatroom"] { try await chat.join(Self.bob, room, by: .owner) }
    }
    try await Self.playing(before: before) { scene in
      #expect(try await scene.chat.members(of: "presence-room").isEmpty)
      // Of other channels nobody knows who is on them.
      #expect(try await scene.chat.members(of: "chatroom") == [Self.bob])
      let back = try await scene.service.connect()
      try await back.subscribe("presence-room", as: "bob")
      while true {
        if case .joined(let membership) = try await scene.next().kind, membership.member.id == "bob" { break }
      }
      #expect(try await scene.chat.members(of: "presence-room").map(\.id) == ["bob"])
    }
  }

  @Test func `a channel that nobody looks at is not kept`() async throws {
    try await Self.playing { scene in
      try await scene.service.trigger("new_message", on: "other", data: #"{"ID":"1","sender":"a","text":"x"}"#)
      _ = try await scene.posted("seen", as: "2")
      await #expect(throws: FerryError.self) { try await scene.chat.room("other") }
      let request = HTTPRequest(method: "GET", path: "/v1/rooms/other/messages", headers: ["Host": "127.0.0.1:1"])
      try scene.view.asked(request, answered: 401)
      #expect(try !scene.view.isWatched("other"))
      try scene.view.asked(request, answered: 404)
      #expect(try scene.view.isWatched("other"))
      try scene.view.watch("private-encrypted-x")
      #expect(try !scene.view.isWatched("private-encrypted-x"))
    }
  }

  @Test func `only so many channels are looked at, and rubbish harms nothing`() async throws {
    try await Self.playing { scene in
      for number in 0..<200 { try scene.view.watch("room-\(number)") }
      #expect(try scene.view.isWatched("room-10") && !scene.view.isWatched("room-150"))
      for data in ["", "null", "[]", "7", #"{"ID":{}}"#, #"{"ID":"","sender":"","text":""}"#, "{\"ID\":\"\\u0000\"}"] {
        for event in ["new_message", "message_updated", "message_deleted", "message_read", "message_reaction"] {
          try await scene.service.trigger(event, on: "chatroom", data: data)
        }
      }
      try await scene.service.trigger(
        "new_message", on: "chatroom", data: #"{"ID":"last","sender":"pete","text":"still here"}"#)
      while try await scene.next().stamp?.id != "last" {}
    }
  }

  @Test func `pictures are copied, and those of the room are served to whoever was told of them`() async throws {
    try await Self.playing { scene in
      let picture: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + Array(repeating: 7, count: 500)
      let rest = Locked<[UInt8]?>(picture)
      let stored = try await scene.chat.store(
        ByteStream {
          rest.withLock { rest in
            defer { rest = nil }
            return rest
          }
        }, name: "a b.png", mediaType: "image/png")
      try scene.view.asked(
        HTTPRequest(
          method: "GET", path: "/v1/rooms", headers: ["Host": "127.0.0.1:\(scene.service.server.port)"]), answered: 200)
      let client = try await scene.service.connect()
      try await client.subscribe("chatroom")
      let attachment = Attachment(name: "a b.png", mediaType: "image/png", reference: .provider(stored.sha256))
      _ = try await scene.chat.post(
        Draft(author: Self.bob, text: "", attachments: [attachment]), to: "chatroom", by: .owner)
      _ = try await scene.next()
      let frame = try unwrap(Frame(text: try await client.next()), "no frame")
      let link = try unwrap(frame.data?.parsed["image"]?.string, "no link")
      let answer = try await scene.service.client.send(ClientRequest(url: link))
      #expect(answer.headers["Content-Type"] == "image/png" && answer.headers["Content-Security-Policy"] != nil)
      #expect(try await answer.collect(upTo: 1000) == picture)
      try await scene.service.trigger(
        "new_message", on: "chatroom", data: #"{"ID":"p","sender":"pete","text":"","image":"\#(link)"}"#)
      guard case .posted(let message) = try await scene.next().kind else { throw FerryError(.internal, "nothing") }
      #expect(message.attachments.first?.reference == .provider(stored.sha256))
      try await scene.service.trigger(
        "new_message", on: "chatroom",
        data: #"{"ID":"q","sender":"pete","text":"","image":"http://127.0.0.1:1/gone.png"}"#)
      guard case .posted(let lost) = try await scene.next().kind else { throw FerryError(.internal, "nothing") }
      #expect(lost.attachments.first?.reference == .url("http://127.0.0.1:1/gone.png"))
      #expect(try await scene.service.raw("GET", "/files/\(String(repeating: "0", count: 64))/x").status == 404)
    }
  }

  @Test func `pictures are kept while there is room, and the same one takes its room once`() async throws {
    try await Self.playing { scene in
      let pictures = try HTTPServer(HTTPServer.Settings(), loop: scene.service.loop, logger: .silent) { request in
        let letter = request.path.utf8.dropLast("/p.png".utf8.count).last ?? 0
        let bytes = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + Array(repeating: letter, count: 1492)
        return HTTPResponse(status: 200, headers: ["Content-Type": "image/png"], body: .bytes(bytes))
      }
      func isKept(_ path: String, as id: String) async throws -> Bool {
        try await scene.service.trigger(
          "new_message", on: "chatroom",
          data: #"{"ID":"\#(id)","sender":"pete","text":"","image":"\#(pictures.url)/\#(path)/p.png"}"#)
        guard case .posted(let message) = try await scene.next().kind else { throw FerryError(.internal, "nothing") }
        if case .provider? = message.attachments.first?.reference { return true }
        return false
      }
      try await withThrowingTaskGroup(of: Void.self) { group async throws in
        group.addTask { await pictures.run() }
        defer { group.cancelAll() }
        #expect(try await isKept("a", as: "1"))
        for number in 2..<5 { #expect(try await isKept("again/a", as: "\(number)")) }
        #expect(try await isKept("b", as: "5"))
        #expect(try await !isKept("c", as: "6"))
        #expect(try await isKept("b", as: "7"))
      }
      // What was there before, others' files among it, counts.
      #expect(try await scene.chat.fileBytes() == 3000)
    }
  }

  @Test func `a text that is too long for an event is cut and says so`() async throws {
    try await Self.playing { scene in
      let client = try await scene.service.connect()
      try await client.subscribe("chatroom")
      _ = try await scene.chat.post(
        Draft(author: Self.bob, text: String(repeating: "\u{1}", count: 9000)), to: "chatroom", by: .owner)
      let frame = try unwrap(Frame(text: try await client.next()), "no frame")
      #expect(frame.data?.parsed["text"]?.string?.hasSuffix("[\u{2026}]") == true)
    }
  }

  @Test func `ids are numbers where an app's ids are`() async throws {
    try await Self.playing(adjust: { $0.tutorial = .anonymousChat }) { scene in
      let client = try await scene.service.connect()
      try await client.subscribe("chatroom")
      _ = try await scene.chat.post(Draft(author: Self.bob, text: "hi"), to: "chatroom", by: .owner)
      let frame = try unwrap(Frame(text: try await client.next()), "no frame")
      #expect(frame.data?.parsed["ID"]?.integer != nil)
    }
  }

  @Test func `the oldest go when there are too many`() async throws {
    try await Self.playing { scene in
      let most = Service.mostMessages
      for number in 0..<(2 * most) { _ = try await scene.posted("\(number)", as: "\(number)") }
      let kept = try await scene.chat.history(of: "chatroom", order: .oldestFirst, limit: 500).messages
      #expect((most...(most + most / 4)).contains(kept.count))
      #expect(kept.last?.message.text == "\(2 * most - 1)")
    }
  }
}
