import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import BackendlessProvider

/// What is made of what is heard and of what the table says, without a connection.
@Suite(.timeLimit(.minutes(2))) struct AdapterFeedTests {
  private func feed(
    _ rig: AdapterRig, _ clock: ManualClock = ManualClock(), cursor: Cursor? = nil, inbox: RecordingInbox? = nil
  ) async throws -> ChannelFeed {
    var feed = ChannelFeed(adapter: rig.adapter(clock: clock), inbox: inbox ?? rig.inbox, connection: Locked(1))
    try await feed.begin([FerryCore.Subscription(channel: "lobby", cursor: cursor)])
    return feed
  }

  private static let ready = ChannelFeed.Item.ready("lobby", connection: 1)

  private func published(_ row: JSONValue) -> ChannelFeed.Item {
    .published("lobby", ["messageId": "message:1", "message": row, "timestamp": 1_796_022_761_957])
  }

  @Test func `what nobody tells of is found in the table, in its order, and what is told of late is no news`()
    async throws
  {
    try await AdapterRig.serving { rig in
      let clock = ManualClock()
      var feed = try await feed(rig, clock)
      try await feed.take([Self.ready])
      let told = try await rig.save("told of late")
      try await rig.save("never told of")
      clock.advance(by: .seconds(60))
      try await feed.take([.tick])
      #expect(rig.inbox.now.story == ["+told of late", "+never told of"])
      try await feed.take([.row("lobby", .created, told), published(told)])
      clock.advance(by: .seconds(60))
      try await feed.take([.tick])
      #expect(rig.inbox.now.story.count == 2)
      #expect(rig.inbox.now.duplicates.isEmpty)
    }
  }

  @Test func `what is heard before the table was read waits for it`() async throws {
    try await AdapterRig.serving { rig in
      var first = try await feed(rig)
      try await first.take([Self.ready])
      let cursor = rig.inbox.now.cursors["lobby"]
      try await rig.save("missed")
      let heard = try await rig.save("heard")
      var feed = try await feed(rig, cursor: cursor)
      try await feed.take([published(heard)])
      #expect(rig.inbox.now.story.isEmpty)
      try await feed.take([Self.ready])
      #expect(rig.inbox.now.story == ["+missed", "+heard"])
      #expect(rig.inbox.now.connections.last?.phase == .connected)
      // A connection that is gone already is none.
      try await feed.take([.lost(since: Timestamp(milliseconds: 1)), .ready("lobby", connection: 0)])
      #expect(rig.inbox.now.connections.count { $0.phase == .connected } == 2)
    }
  }

  @Test func `a long absence is read whole and in order`() async throws {
    try await AdapterRig.serving { rig in
      var first = try await feed(rig)
      try await first.take([Self.ready])
      let cursor = rig.inbox.now.cursors["lobby"]
      for start in stride(from: 0, to: 400, by: 100) {
        let rows = (start..<start + 100).map { number in
          JSONValue.object(["userName": "bob", "messageText": .string("m\(number)"), "channel": "lobby"])
        }
        try await rig.send("POST", "/data/bulk/ChatMessage", .array(rows))
      }
      var feed = try await feed(rig, cursor: cursor)
      try await feed.take([Self.ready])
      #expect(rig.inbox.now.story == (0..<400).map { "+m\($0)" })
      #expect(rig.inbox.now.duplicates.isEmpty)
      // Where it stands now, nothing is new.
      let again = RecordingInbox()
      var later = try await self.feed(rig, cursor: rig.inbox.now.cursors["lobby"], inbox: again)
      try await later.take([Self.ready])
      #expect(again.now.events.count <= 400)
      #expect(Set(again.now.events.map(\.key)).isSubset(of: Set(rig.inbox.now.events.map(\.key))))
    }
  }

  @Test(arguments: [HistoryOrder.oldestFirst, .newestFirst])
  func `hundreds of rows of one second are read whole, in their order, a few at a time`(order: HistoryOrder)
    async throws
  {
    try await AdapterRig.serving { rig in
      let names = (0..<330).map { "m\($0)" }
      for start in stride(from: 0, to: 330, by: 66) {
        let rows = names[start..<start + 66].map { name in
          JSONValue.object(["userName": "bob", "messageText": .string(name), "channel": "lobby"])
        }
        try await rig.send("POST", "/data/bulk/ChatMessage", .array(rows))
      }
      var read: [String] = []
      var cursor: Cursor?
      repeat {
        let page = try await rig.adapter().history(of: "lobby", order: order, after: cursor, limit: 70)
        read += page.messages.map(\.text)
        cursor = page.next
      } while cursor != nil && read.count <= names.count
      #expect(read == (order == .oldestFirst ? names : names.reversed()))
    }
  }

  @Test func `a list that is not the same each time hides no row of a crowded second`() async throws {
    let finds = Locked<Int?>(nil)
    // Of the second the service lists a page, and then says that there is no more.
    let filter: AdapterRig.Filter = { request in
      guard request.path.hasSuffix("/find") else { return nil }
      let count = finds.withLock { finds in
        finds = finds.map { $0 + 1 }
        return finds
      }
      return count == 3 ? .json([] as JSONValue) : nil
    }
    try await AdapterRig.serving(filter: filter) { rig in
      for part in ["a", "b"] {
        let rows = (0..<100).map { JSONValue.object(["messageText": .string("\(part)\($0)"), "channel": "lobby"]) }
        try await rig.send("POST", "/data/bulk/ChatMessage", .array(rows))
      }
      finds.withLock { $0 = 0 }
      let page = try await rig.adapter().history(of: "lobby", order: .oldestFirst, after: nil, limit: 500)
      #expect(Set(page.messages.map(\.text)).count == 200)
    }
  }

  @Test func `the keys are the same after a restart, and what is known is not told again`() async throws {
    try await AdapterRig.serving { rig in
      var first = try await feed(rig)
      try await first.take([Self.ready])
      let row = try await rig.save("one")
      try await first.take([.row("lobby", .created, row)])
      let id = row["objectId"]?.string ?? ""
      let edited = try await rig.send("PUT", "/data/ChatMessage/\(id)", ["messageText": "two"])
      try await first.take([.row("lobby", .updated, edited)])
      var second = try await feed(rig, cursor: rig.inbox.now.cursors["lobby"])
      try await second.take([Self.ready, published(row), .row("lobby", .updated, edited)])
      #expect(rig.inbox.now.story == ["+one", "~two"])
      #expect(rig.inbox.now.duplicates.isEmpty)
    }
  }

  @Test func `deletions are found by comparing, in bulk too`() async throws {
    try await AdapterRig.serving { rig in
      let clock = ManualClock()
      var feed = try await feed(rig, clock)
      try await feed.take([Self.ready])
      for number in 0..<5 {
        let row = try await rig.save("m\(number)")
        try await feed.take([.row("lobby", .created, row)])
      }
      try await rig.send("POST", "/data/bulk/ChatMessage/delete", ["where": "messageText in ('m1', 'm3')"])
      try await feed.take([.bulk, .tick])
      #expect(rig.inbox.now.story.suffix(2) == ["-", "-"])
      #expect(rig.inbox.now.events.count == 7)
      try await feed.take([.bulk, .tick])
      #expect(rig.inbox.now.events.count == 7)
    }
  }

  @Test func `a table that is gone as a whole deletes nothing`() async throws {
    let isGone = Locked(false)
    let filter: AdapterRig.Filter = { request in
      guard request.path.contains("/data/ChatMessage"), isGone.withLock({ $0 }) else { return nil }
      return .json(["code": 1009, "message": "Table not found by name 'ChatMessage'"] as JSONValue, status: 404)
    }
    try await AdapterRig.serving(filter: filter) { rig in
      var feed = try await feed(rig)
      try await feed.take([Self.ready])
      let row = try await rig.save("stays")
      try await feed.take([.row("lobby", .created, row)])
      isGone.withLock { $0 = true }
      try await feed.take([.bulk, .tick, .lost(since: Timestamp(milliseconds: 1)), Self.ready])
      #expect(rig.inbox.now.story == ["+stays"])
      #expect(rig.inbox.now.gaps.isEmpty)
    }
  }

  @Test func `a table that may not be read is done without, and the gap is told`() async throws {
    let isForbidden = Locked(false)
    let filter: AdapterRig.Filter = { request in
      guard request.path.hasSuffix("/find"), isForbidden.withLock({ $0 }) else { return nil }
      return .json(["code": 4000, "message": "no permission"] as JSONValue, status: 403)
    }
    try await AdapterRig.serving(filter: filter) { rig in
      var first = try await feed(rig)
      try await first.take([Self.ready])
      isForbidden.withLock { $0 = true }
      let start = Timestamp(milliseconds: 1_700_000_000_000)
      try await first.take([.lost(since: start), Self.ready])
      #expect(rig.inbox.now.gaps.map(\.start) == [start])
      let row = try await rig.save("goes on")
      try await first.take([published(row), .tick])
      #expect(rig.inbox.now.story == ["+goes on"])
    }
  }

  @Test func `a table that cannot be read for the moment is waited for`() async throws {
    try await AdapterRig.serving { rig in
      let clock = ManualClock()
      var first = try await feed(rig, clock)
      try await first.take([Self.ready])
      try await rig.save("missed")
      await rig.proxy.answer(2, status: 503, method: "POST")
      let feed = first
      async let done: Void = {
        var feed = feed
        try await feed.take([.lost(since: clock.now()), Self.ready])
      }()
      for _ in 0..<2 {
        await clock.waitForSleepers()
        #expect(rig.inbox.now.story.isEmpty)
        #expect(rig.inbox.now.connections.last?.phase == .degraded)
        clock.advance(by: .seconds(15))
      }
      try await done
      #expect(rig.inbox.now.story == ["+missed"])
      #expect(rig.inbox.now.connections.last?.phase == .connected)
    }
  }

  @Test func `the cursor does not move before the news are stored`() async throws {
    try await AdapterRig.serving { rig in
      let clock = ManualClock()
      var first = try await feed(rig, clock)
      try await first.take([Self.ready])
      let cursor = rig.inbox.now.cursors["lobby"]
      try await rig.save("kept")
      rig.inbox.failNext(1)
      let feed = first
      async let done: Void = {
        var feed = feed
        try await feed.take([.lost(since: clock.now()), Self.ready])
      }()
      await clock.waitForSleepers()
      #expect(rig.inbox.now.cursors["lobby"] == cursor)
      clock.advance(by: .seconds(1))
      try await done
      #expect(rig.inbox.now.story == ["+kept"])
      #expect(rig.inbox.now.cursors["lobby"] != cursor)
    }
  }
}
