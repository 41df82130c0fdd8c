import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import BackendlessProvider

/// What others do to the table, and what the service does to the adapter, while nobody looks or everybody does.
@Suite(.timeLimit(.minutes(2))) struct AdapterAttackTests {
  /// So many rows, known to a first run; where that stood.
  private func known(_ count: Int, _ rig: AdapterRig) async throws -> Cursor? {
    try await rig.running(rig.adapter(), inbox: rig.inbox) { inbox in
      for start in stride(from: 0, to: count, by: 100) {
        let rows = (start..<min(start + 100, count)).map { number in
          JSONValue.object(["userName": "bob", "messageText": .string("m\(number)"), "channel": "lobby"])
        }
        try await rig.send("POST", "/data/bulk/ChatMessage", .array(rows))
      }
      _ = await inbox.story(count)
    }
  }

  @Test func `rows that are changed in bulk while nobody listens are all edits`() async throws {
    try await AdapterRig.serving { rig in
      let cursor = try await known(250, rig)
      try await rig.send("PUT", "/data/bulk/ChatMessage?where=channel%20%3D%20%27lobby%27", ["messageText": "changed"])
      try await rig.running(rig.adapter(), cursor: cursor, inbox: rig.inbox) { inbox in _ = await inbox.story(500) }
      #expect(rig.inbox.now.story.prefix(250) == (0..<250).map { "+m\($0)" }[...])
      #expect(rig.inbox.now.story.dropFirst(250) == Array(repeating: "~changed", count: 250)[...])
      #expect(rig.inbox.now.duplicates.isEmpty)
    }
  }

  @Test func `rows that are deleted in bulk while nobody listens are all deletions`() async throws {
    try await AdapterRig.serving { rig in
      let cursor = try await known(250, rig)
      try await rig.send("POST", "/data/bulk/ChatMessage/delete", ["where": "messageText <> 'm7'"])
      try await rig.running(rig.adapter(), cursor: cursor, inbox: rig.inbox) { inbox in _ = await inbox.story(499) }
      #expect(rig.inbox.now.story.dropFirst(250) == Array(repeating: "-", count: 249)[...])
    }
  }

  @Test(arguments: ["x' or '1'='1", "'; drop table ChatMessage --", "100%_", "комната 👩‍👩‍👧", "a\"b", "null", "[]"])
  func `no name of a channel or a person is more than a name`(name: String) async throws {
    try await AdapterRig.serving { rig in
      try await rig.say("of another channel")
      let adapter = rig.adapter()
      let channel = ChannelID(name)
      try await rig.running(adapter, channel: channel) { inbox in
        var message = AdapterRig.message("mine")
        message.author = Author(id: UserID(name), name: name)
        let id = try await adapter.post(message, to: channel)
        let heard = await inbox.message("mine")
        #expect(heard?.id == id && heard?.author == message.author)
        #expect(inbox.now.story == ["+mine"])
        #expect(try await adapter.find(message.key, in: channel) == .found(id))
        let history = try await adapter.history(of: channel, order: .newestFirst, after: nil, limit: 10)
        #expect(history.messages.map(\.text) == ["mine"])
        message.text = "changed"
        try await adapter.edit(id, in: channel, to: message)
        #expect(await inbox.story(2) == ["+mine", "~changed"])
        try await adapter.delete(id, in: channel, as: nil, stamp: nil)
        #expect(await inbox.story(3) == ["+mine", "~changed", "-"])
      }
      let rest = try await adapter.history(of: "lobby", order: .oldestFirst, after: nil, limit: 10)
      #expect(rest.messages.map(\.text) == ["of another channel"])
    }
  }

  @Test func `what is nested deep or strangely made holds up nothing behind it`() async throws {
    try await AdapterRig.serving { rig in
      try await rig.running(rig.adapter()) { inbox in
        for depth in [10, 100, 400] {
          let deep = (0..<depth).reduce(JSONValue.string("x")) { value, _ in .array([value]) }
          try? await rig.publish(["messageText": .string("deep \(depth)"), "extra": deep])
        }
        for strange: JSONValue in [.null, true, [], [[]], [:], ["messageText": [:]], ["objectId": 7], ["___class": 1]] {
          try? await rig.publish(strange)
        }
        try await rig.say("after it all")
        _ = await inbox.message("after it all")
        #expect(inbox.now.story.last == "+after it all")
        #expect(inbox.now.story.contains("+deep 10"))
      }
    }
  }

  @Test func `a person's post is published again only as long as it may have failed`() async throws {
    try await AdapterRig.serving { rig in
      let clock = ManualClock(now: SystemClock().now())
      let adapter = rig.adapter(clock: clock)
      let message = OutgoingMessage(key: "k", author: AdapterRig.ann, text: "once")
      let id = try await adapter.post(message, to: "lobby")
      try await rig.running(rig.adapter { $0.table = nil }) { inbox in
        #expect(try await rig.adapter(clock: clock).find("k", in: "lobby") == .found(id))
        _ = await inbox.message("once")
        clock.advance(by: .seconds(3600))
        #expect(try await rig.adapter(clock: clock).find("k", in: "lobby") == .found(id))
        try await rig.say("the end")
        _ = await inbox.message("the end")
        #expect(inbox.now.events.count + inbox.now.duplicates.count == 2)
      }
    }
  }

  @Test func `an edit leaves the author alone, and a person's what Ferry noted`() async throws {
    try await AdapterRig.serving { rig in
      let adapter = rig.adapter()
      var message = AdapterRig.message("one")
      message.author = Author(id: "7", name: "ann")
      let id = try await adapter.post(message, to: "lobby")
      let edit = OutgoingMessage(key: "e", author: Author(id: "root", name: "root"), text: "two")
      try await adapter.edit(id, in: "lobby", to: edit)
      let found = try await adapter.history(of: "lobby", order: .oldestFirst, after: nil, limit: 10).messages
      #expect(found.map(\.text) == ["two"])
      #expect(found.map(\.author) == [message.author])
      #expect(found.map(\.stamp) == [message.stamp])
    }
  }
}
