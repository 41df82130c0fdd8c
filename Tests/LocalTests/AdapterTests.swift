import FerryChat
import FerryConfig
import FerryCore
import FerryRuntime
import FerryTransport
import LocalProvider
import Testing

/// An inbox that keeps what it is given, and fails when told to.
final class TestInbox: Inbox {
  struct State {
    var events: [Event] = []
    var cursors: [ChannelID: Cursor] = [:]
    var typing: [Typing] = []
    var gaps: [Gap] = []
    var states: [ConnectionState] = []
    var calls = 0
    var failures = 0
  }

  private let state = Locked(State())
  private let changed = BoundedChannel<Void>(capacity: 1)

  var now: State { state.withLock { $0 } }

  private func change(_ body: (inout State) -> Void) {
    state.withLock { body(&$0) }
    _ = changed.offer(())
  }

  func fail(_ times: Int) { change { $0.failures = times } }

  func accept(_ events: [Event]) async throws(FerryError) {
    let fails = state.withLock { state in
      state.calls += 1
      guard state.failures > 0 else { return false }
      state.failures -= 1
      return true
    }
    if fails { throw FerryError(.storage, "full", retry: .now) }
    change { state in
      state.events += events
      for event in events { state.cursors[event.channel] = event.cursor }
    }
  }

  func accept(cursor: Cursor, for channel: ChannelID) async throws(FerryError) {
    change { $0.cursors[channel] = cursor }
  }

  func recent(in channel: ChannelID, limit: Int) async throws(FerryError) -> [KnownMessage] { [] }
  func typing(_ typing: Typing) { change { $0.typing.append(typing) } }
  func gap(_ gap: Gap) async { change { $0.gaps.append(gap) } }
  func connection(_ state: ConnectionState) { change { $0.states.append(state) } }

  /// Returns once this is so.
  func wait(until isSo: (State) -> Bool) async {
    while !isSo(now), await changed.next() != nil {}
  }
}

@Suite(.timeLimit(.minutes(10))) struct AdapterTests {
  private func outgoing(_ text: String, _ key: String, stamp: Stamp? = nil) -> OutgoingMessage {
    OutgoingMessage(key: SendKey(key), author: ada, text: text, stamp: stamp)
  }

  private let stamp = Stamp(bridge: "b", origin: Address(account: "site", channel: "c"), id: "1")

  @Test func asManyLongItemsAreImportedAsTheAdapterSendsAtOnce() async throws {
    var limits = ChatLimits()
    limits.textBytes = 1000
    try await withServer(limits: limits) { server async throws in
      let adapter = try server.adapter()
      let batch = try #require(adapter.capabilities.importing?.batch)
      let text = String(repeating: "x", count: limits.textBytes)
      let items = (0..<batch).map { number in
        PastItem(
          key: SendKey("k\(number)"), time: Timestamp(milliseconds: 1_600_000_000_000 + Int64(number)),
          kind: .message(PastMessage(author: ada, text: text)))
      }
      try await adapter.prepareImport(into: lobby, notify: false)
      #expect(try await adapter.write(items, into: lobby).count == batch)
    }
  }

  @Test func namesThatTheServerRefusesLoseNoMessage() async throws {
    try await withServer { server async throws in
      let adapter = try server.adapter()
      let long = String(repeating: "é", count: 2000)
      let authors = ["a\nb", "a_b", "", long, long + "!"].map { Author(id: UserID($0), name: $0, avatar: "http://a b") }
      var ids: [UserID] = []
      for (number, author) in authors.enumerated() {
        let message = OutgoingMessage(key: SendKey("\(long)\n\(number)"), author: author, text: "hi")
        let id = try await adapter.post(message, to: lobby)
        #expect(try await adapter.find(message.key, in: lobby) == .found(id))
        let membership = Membership(member: author, stamp: nil)
        try await adapter.setMember(membership, of: lobby, present: true)
        ids = try await adapter.members(of: lobby).map(\.id)
      }
      #expect(Set(ids).count == authors.count, "whoever differs there differs here")
      #expect(ids.contains("a_b"), "what is accepted stays as it is")
    }
  }

  @Test func whatOneAccountWritesAnotherReads() async throws {
    try await withServer { server async throws in
      let adapter = try server.adapter()
      let inbox = TestInbox()
      let running = Task { try await adapter.run([Subscription(channel: lobby)], into: inbox) }
      await inbox.wait { $0.states.last?.phase == .connected }
      #expect(inbox.now.cursors[lobby] != nil)

      var message = outgoing("hello 👋", "k1", stamp: stamp)
      message.time = Timestamp(milliseconds: 1_470_366_650_123)
      message.format = .markdown
      let bytes = Array("the bytes of a file".utf8)
      let reference = try await adapter.upload(.bytes(bytes), name: "ä b.txt", mediaType: "text/plain", to: lobby)
      let sha256 = Crypto.hex(Crypto.digest(.sha256, of: bytes))
      #expect(reference == .provider(sha256))
      message.attachments = [
        OutgoingAttachment(
          name: "ä b.txt", mediaType: "text/plain", size: Int64(bytes.count), sha256: sha256, reference: reference)
      ]
      let id = try await adapter.post(message, to: lobby)
      #expect(try await adapter.post(message, to: lobby) == id)
      #expect(try await adapter.find("k1", in: lobby) == .found(id))
      #expect(try await adapter.find("k2", in: lobby) == .absent)
      #expect(try await adapter.find(["k2", "k1"], in: lobby) == [.absent, .found(id)])
      #expect(try await adapter.find("k1", in: "nowhere") == .absent)
      #expect(try await adapter.attachment(reference).collect(upTo: 1000) == bytes)

      var reply = outgoing("a reply", "k2")
      reply.replyTo = id
      let replyID = try await adapter.post(reply, to: lobby)
      try await adapter.edit(id, in: lobby, to: outgoing("edited", "k1e", stamp: stamp))
      try await adapter.react(Reaction(message: id, by: bob, emoji: "🎉", added: true, stamp: stamp), in: lobby)
      try await adapter.react(Reaction(message: id, by: bob, emoji: "🎉", added: false, stamp: stamp), in: lobby)
      try await adapter.mark(ReadMark(upTo: id, by: bob, state: .read, stamp: stamp), in: lobby)
      try await adapter.mark(ReadMark(upTo: id, by: nil, state: .delivered, stamp: stamp), in: lobby)
      let membership = Membership(member: bob, stamp: stamp)
      try await adapter.setMember(membership, of: lobby, present: true)
      #expect(try await adapter.members(of: lobby) == [bob])
      try await adapter.setMember(membership, of: lobby, present: false)
      try await adapter.setMember(membership, of: "nowhere", present: false)
      try await adapter.setTyping(Typing(channel: lobby, by: bob, on: true, stamp: stamp))
      try await adapter.delete(replyID, in: lobby, as: bob, stamp: stamp)
      try await adapter.delete(replyID, in: lobby, as: bob, stamp: stamp)
      try await adapter.delete("12345", in: lobby, as: nil, stamp: nil)
      await #expect(throws: FerryError.self) { try await adapter.edit(replyID, in: lobby, to: outgoing("x", "x")) }

      await inbox.wait { $0.events.count == 10 && !$0.typing.isEmpty }
      let events = inbox.now.events
      guard case .posted(let posted) = events[0].kind, case .edited(let edited) = events[2].kind else {
        Issue.record("\(events)")
        return
      }
      #expect(posted.author == ada && posted.text == message.text && posted.format == .markdown)
      #expect(posted.time == message.time && posted.stamp == stamp)
      #expect(posted.attachments.map(\.reference) == [reference] && posted.attachments[0].sha256 == sha256)
      #expect(edited.text == "edited" && edited.revision == 1 && edited.attachments.isEmpty)
      #expect(
        events.dropFirst(3).map(\.kind) == [
          .reacted(Reaction(message: id, by: bob, emoji: "🎉", added: true, stamp: stamp)),
          .reacted(Reaction(message: id, by: bob, emoji: "🎉", added: false, stamp: stamp)),
          .read(ReadMark(upTo: id, by: bob, state: .read, stamp: stamp)),
          .read(ReadMark(upTo: id, by: Author(id: "somebody", name: "Somebody"), state: .delivered, stamp: stamp)),
          .joined(membership), .left(membership),
          .deleted(Deletion(id: replyID, by: bob, stamp: stamp)),
        ])
      for event in events { #expect(event.cursor.map { EventKey("s\($0)") } == event.key) }
      #expect(inbox.now.typing == [Typing(channel: lobby, by: bob, on: true, stamp: stamp)])
      #expect(try await adapter.channels() == [ChannelSummary(id: lobby, name: "lobby", members: 0)])

      let page = try await adapter.history(of: lobby, order: .oldestFirst, after: nil, limit: 10)
      #expect(page.messages.map(\.id) == [id] && page.next == nil, "what was deleted is left out")
      running.cancel()
      _ = try? await running.value
    }
  }

  @Test func batchesAreSettledAndRead() async throws {
    try await withServer { server async throws in
      let adapter = try server.adapter()
      let messages = (0..<256).map { outgoing("\($0)", "bridge|site:chatroom|\($0)|with a long key \($0)|0") }
      let ids = try await adapter.post(messages, to: lobby)
      #expect(try await adapter.post(messages, to: lobby) == ids)
      #expect(try await adapter.find(messages.map(\.key), in: lobby) == ids.map { .found($0) })
      var read: [Message] = []
      var cursor: Cursor?
      repeat {
        let page = try await adapter.history(of: lobby, order: .newestFirst, after: cursor, limit: 100)
        read += page.messages
        cursor = page.next
      } while cursor != nil
      #expect(read.map(\.id) == ids.reversed())
    }
  }

  @Test func nothingIsLostOrDoubledOverRestartsOfTheServer() async throws {
    try await withServer { server async throws in
      let adapter = try server.adapter()
      let inbox = TestInbox()
      let rooms: [ChannelID] = [lobby, "other", "quiet"]
      let running = Task { try await adapter.run(rooms.map { Subscription(channel: $0) }, into: inbox) }
      await inbox.wait { $0.states.last?.phase == .connected }
      var expected = 0
      for round in 0..<4 {
        for number in 0..<50 {
          // Now and then the inbox is full for a while.
          if number == 10 { inbox.fail(2) }
          let room = rooms[number % 2]
          _ = try await server.chat.post(Draft(author: ada, text: "\(round) \(number)"), to: room, by: .owner)
          expected += 1
        }
        await server.stop()
        try server.start()
        // Written before the adapter is back.
        _ = try await server.chat.post(Draft(author: ada, text: "\(round) meanwhile"), to: lobby, by: .owner)
        expected += 1
      }
      let total = expected
      await inbox.wait { $0.events.count >= total }
      let events = inbox.now.events
      #expect(events.count == total)
      #expect(Set(events.map(\.key)).count == total)
      for room in rooms {
        let log = try await server.chat.events(of: room, after: 0, limit: 500).map { try $0.event() }
        #expect(events.filter { $0.channel == room } == log)
      }
      #expect(inbox.now.gaps.isEmpty)
      running.cancel()
      _ = try? await running.value
      #expect(inbox.now.states.last?.phase == .stopped)

      // And from the cursor that the inbox knows, as after a restart of the relay.
      _ = try await server.chat.post(Draft(author: ada, text: "after"), to: lobby, by: .owner)
      let resumed = TestInbox()
      let cursor = inbox.now.cursors[lobby]
      let again = Task { try await adapter.run([Subscription(channel: lobby, cursor: cursor)], into: resumed) }
      await resumed.wait { !$0.events.isEmpty }
      #expect(resumed.now.events.count == 1)
      again.cancel()
      _ = try? await again.value
    }
  }

  @Test func manyEventsAreAcceptedInFewCalls() async throws {
    try await withServer { server async throws in
      let start = try await server.chat.head()
      for batch in 0..<8 {
        let drafts = (0..<256).map { Draft(author: ada, text: "\(batch) \($0)") }
        _ = try await server.chat.post(drafts, to: lobby, by: .owner)
      }
      let inbox = TestInbox()
      let adapter = try server.adapter()
      let subscription = Subscription(channel: lobby, cursor: Cursor(String(start)))
      let running = Task { try await adapter.run([subscription], into: inbox) }
      await inbox.wait { $0.events.count >= 2048 }
      #expect(inbox.now.events.count == 2048)
      #expect(inbox.now.calls <= 2048)
      running.cancel()
      _ = try? await running.value
    }
  }

  @Test func aBadTokenEndsTheAdapter() async throws {
    try await withServer { server async throws in
      let adapter = try server.adapter(token: "wrong")
      let inbox = TestInbox()
      let ended = await failure { try await adapter.run([Subscription(channel: lobby)], into: inbox) }
      #expect(ended?.code == .badCredentials)
      #expect(inbox.now.states.last?.phase == .badCredentials)
      let refused = await failure { _ = try await adapter.post(outgoing("x", "k"), to: lobby) }
      #expect(refused?.code == .badCredentials && refused?.didNotAct == true)
      #expect(refused?.description.contains("wrong") == false)
    }
  }

  @Test func aServerThatIsNotThereCertainlyDidNotAct() async throws {
    let server = try TestServer()
    defer { server.remove() }
    try server.start()
    let adapter = try server.adapter()
    await server.stop()
    let refused = await failure { _ = try await adapter.post(outgoing("x", "k"), to: lobby) }
    #expect(refused?.didNotAct == true && refused?.retry != .never, "\(String(describing: refused))")
  }

  @Test func aServerRestoredFromABackupIsReportedAsAGap() async throws {
    try await withServer { server async throws in
      let head = try await server.chat.head()
      let inbox = TestInbox()
      let adapter = try server.adapter()
      let seen = Timestamp(milliseconds: 1000)
      let subscription = Subscription(channel: lobby, cursor: Cursor(String(head + 100)), lastSeen: seen)
      let running = Task { try await adapter.run([subscription], into: inbox) }
      await inbox.wait { $0.states.last?.phase == .connected }
      #expect(inbox.now.gaps.map(\.start) == [seen])
      #expect(inbox.now.cursors[lobby] == Cursor(String(head)))
      running.cancel()
      _ = try? await running.value
    }
  }

  @Test(arguments: [
    ("local+http://demo-token@127.0.0.1:8080/lobby", "lobby"),
    ("local+http://to%40ken@127.0.0.1:8080/a%20b/c", "a b/c"), ("local://t@chat.example.org/r", "r"),
  ])
  func anAddressMayBeAURL(_ url: String, _ room: ChannelID) throws {
    #expect(try LocalAdapter.settings(fromURL: url).1 == room)
  }

  @Test(arguments: [
    "", "local+http://127.0.0.1:8080/lobby", "local+http://t@127.0.0.1:8080", "local+http://t@127.0.0.1:8080/",
    "local+http://@127.0.0.1/x", "http://t@127.0.0.1/x", "local+http://t@/x",
  ])
  func whatIsNoAddressIsRefused(_ url: String) {
    #expect(throws: FerryError.self) { try LocalAdapter.settings(fromURL: url) }
  }
}
