import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import TwilioProvider

@Suite(.timeLimit(.minutes(3))) struct TwilioReadingTests {
  private static func place(_ index: Int64) -> Cursor {
    Place(index: index, message: "IMx", conversation: ScriptedTwilio.conversation).cursor
  }

  @Test func `the first time begins with what is new from then on`() async throws {
    let twilio = ScriptedTwilio()
    twilio.add(ScriptedTwilio.message(0, "before"), ScriptedTwilio.message(4, "just before"))
    try await AdapterRig.listening(twilio: twilio) { rig in
      #expect(rig.inbox.now.cursors["lobby"].flatMap { Place($0) }?.index == 4)
      twilio.add(ScriptedTwilio.message(7, "after"))
      _ = await rig.inbox.message("after")
      #expect(rig.inbox.now.texts == ["after"])
      let cursor = try #require(rig.inbox.now.cursors["lobby"].flatMap { Place($0) })
      #expect(
        cursor == Place(index: 7, message: ScriptedTwilio.sid("IM", 7), conversation: ScriptedTwilio.conversation))
      #expect(rig.inbox.now.events.first?.key.rawValue == ScriptedTwilio.sid("IM", 7))
    }
  }

  @Test func `an empty conversation begins before its first message`() async throws {
    try await AdapterRig.listening { rig in
      #expect(rig.inbox.now.cursors["lobby"].flatMap { Place($0) }?.index == -1)
      rig.twilio.add(ScriptedTwilio.message(0, "first"))
      _ = await rig.inbox.message("first")
    }
  }

  @Test func `what happened meanwhile is read from the cursor on, in order`() async throws {
    let twilio = ScriptedTwilio()
    for index in 0..<350 { twilio.add(ScriptedTwilio.message(Int64(index) * 2, "\(index)")) }
    try await AdapterRig.listening(twilio: twilio, cursor: Self.place(19)) { rig in
      #expect(rig.inbox.now.texts == (10..<350).map { "\($0)" })
    }
  }

  @Test func `a name that was given to another conversation is read from that one's beginning`() async throws {
    let twilio = ScriptedTwilio()
    twilio.add(ScriptedTwilio.message(0, "hello again"))
    let old = Place(index: 99, message: "IM1", conversation: "CH" + String(repeating: "0", count: 32))
    try await AdapterRig.listening(twilio: twilio, cursor: old.cursor) { rig in
      #expect(rig.inbox.now.texts == ["hello again"])
    }
  }

  @Test func `edits and deletions that nobody announced are found by comparing`() async throws {
    try await AdapterRig.listening { rig in
      for index in 0..<5 { rig.twilio.add(ScriptedTwilio.message(Int64(index), "text \(index)")) }
      _ = await rig.inbox.message("text 4")
      rig.twilio.state.update { state in
        state.messages[1].body = "edited"
        state.messages[1].updated = "2026-01-02T03:05:00Z"
        state.messages.remove(at: 3)
      }
      let edit = await rig.inbox.wait { $0.edits.first }
      #expect(edit?.text == "edited")
      #expect(edit?.revision == Int(TwilioDate.parse("2026-01-02T03:05:00Z")?.milliseconds ?? 0))
      let deletion = await rig.inbox.wait { $0.deletions.first }
      #expect(deletion?.id.rawValue == ScriptedTwilio.sid("IM", 3))
      // In the same second again.
      rig.twilio.state.update { $0.messages[1].body = "edited again" }
      let again = await rig.inbox.wait { $0.edits.count == 2 ? $0.edits.last : nil }
      #expect(again?.text == "edited again")
      #expect(again?.revision == (edit?.revision ?? 0) + 1)
      // Another round finds no more.
      rig.twilio.add(ScriptedTwilio.message(9, "last"))
      _ = await rig.inbox.message("last")
      #expect(rig.inbox.now.edits.count == 2)
      #expect(rig.inbox.now.deletions.count == 1)
      #expect(rig.inbox.now.duplicates.isEmpty)
    }
  }

  @Test func `what a list lacks is looked for before it is called deleted`() async throws {
    try await AdapterRig.listening { rig in
      rig.twilio.add(ScriptedTwilio.message(0, "zero"), ScriptedTwilio.message(1, "one"))
      _ = await rig.inbox.message("one")
      let partial: JSONValue = [
        "meta": ["key": "messages", "next_page_url": .null], "messages": [ScriptedTwilio.message(1, "one").json],
      ]
      rig.twilio.answer("GET Conversations/\(ScriptedTwilio.conversation)/Messages", 200, partial)
      rig.twilio.add(ScriptedTwilio.message(2, "two"))
      _ = await rig.inbox.message("two")
      #expect(rig.inbox.now.deletions.isEmpty)
      #expect(
        !rig.twilio.requests("GET Conversations/\(ScriptedTwilio.conversation)/Messages/\(ScriptedTwilio.sid("IM", 0))")
          .isEmpty)
    }
  }

  @Test func `edits of old messages are found within the window only`() async throws {
    let twilio = ScriptedTwilio()
    try await AdapterRig.listening(twilio: twilio, adjust: { $0.pollWindow = 2 }) { rig in
      for index in 0..<5 { rig.twilio.add(ScriptedTwilio.message(Int64(index), "text \(index)")) }
      _ = await rig.inbox.message("text 4")
      rig.twilio.state.update { state in
        state.messages[0].body = "too old"
        state.messages[4].body = "new enough"
        for index in [0, 4] { state.messages[index].updated = "2026-01-02T03:05:00Z" }
      }
      _ = await rig.inbox.wait { $0.edits.first }
      #expect(rig.inbox.now.edits.map(\.text) == ["new enough"])
      #expect(rig.inbox.now.deletions.isEmpty)
    }
  }

  @Test func `what Ferry wrote bears its mark, even when the mark on it was lost`() async throws {
    try await AdapterRig.listening { rig in
      let id = try await rig.adapter.post(AdapterRig.outgoing("ours"), to: "lobby")
      rig.twilio.state.update { $0.messages[0].attributes = "{}" }
      rig.twilio.add(ScriptedTwilio.message(5, "theirs"))
      _ = await rig.inbox.message("theirs")
      let events = rig.inbox.now.events
      #expect(events.first { $0.key.rawValue == id.rawValue }?.stamp == AdapterRig.stamp)
      #expect(events.last?.stamp == nil)
      try await rig.adapter.delete(id, in: "lobby", as: nil, stamp: AdapterRig.stamp)
      let deletion = await rig.inbox.wait { $0.deletions.first }
      #expect(deletion?.stamp == AdapterRig.stamp)
    }
  }

  @Test func `participants have the names of their profiles, and others the name they wrote`() async throws {
    let twilio = ScriptedTwilio()
    twilio.state.update { $0.users = ["alice@example.org": "Alice"] }
    try await AdapterRig.listening(twilio: twilio) { rig in
      var known = ScriptedTwilio.message(0, "a", author: "alice@example.org")
      known.participant = "MB1"
      var bare = ScriptedTwilio.message(1, "b", author: "carol")
      bare.participant = "MB2"
      rig.twilio.add(known, bare, ScriptedTwilio.message(2, "c", author: "Mr. Nobody"))
      #expect(await rig.inbox.message("a")?.author == Author(id: "alice@example.org", name: "Alice"))
      #expect(await rig.inbox.message("b")?.author == Author(id: "carol", name: "carol"))
      #expect(await rig.inbox.message("c")?.author == Author(id: "Mr. Nobody", name: "Mr. Nobody"))
      #expect(rig.twilio.requests("GET Users/").map(\.path) == ["Users/alice@example.org", "Users/carol"])
    }
  }

  // MARK: People

  @Test func `who comes, goes and reads is told`() async throws {
    let twilio = ScriptedTwilio()
    twilio.add(ScriptedTwilio.message(0, "zero"), ScriptedTwilio.message(5, "five"))
    twilio.state.update { $0.participants = [ScriptedTwilio.participant(1, "ann")] }
    try await AdapterRig.listening(twilio: twilio) { rig in
      twilio.state.update { $0.participants.append(ScriptedTwilio.participant(2, "bob")) }
      let joined = await rig.inbox.event { if case .joined = $0.kind { true } else { false } }
      #expect(joined?.key.rawValue == "joined:" + ScriptedTwilio.sid("MB", 2))
      // Up to an index whose message is gone: the one before it counts.
      twilio.state.update { $0.participants[0] = ScriptedTwilio.participant(1, "ann", read: 3) }
      let mark = await rig.inbox.wait { $0.marks.first }
      #expect(mark?.upTo.rawValue == ScriptedTwilio.sid("IM", 0))
      #expect(mark?.by?.id == "ann")
      #expect(mark?.state == .read)
      twilio.state.update { $0.participants.removeLast() }
      let left = await rig.inbox.event { if case .left = $0.kind { true } else { false } }
      #expect(left?.key.rawValue == "left:" + ScriptedTwilio.sid("MB", 2))
    }
  }

  @Test func `members whom Ferry adds and removes bear its mark both times`() async throws {
    try await AdapterRig.listening { rig in
      let bob = Membership(member: Author(id: "bob", name: "Bob"), stamp: AdapterRig.stamp)
      try await rig.adapter.setMember(bob, of: "lobby", present: true)
      let joined = await rig.inbox.event { if case .joined = $0.kind { true } else { false } }
      #expect(joined?.stamp == AdapterRig.stamp)
      if case .joined(let membership)? = joined?.kind { #expect(membership.member.name == "Bob") }
      let members = try await rig.adapter.members(of: "lobby")
      #expect(members == [Author(id: "bob", name: "Bob")])
      for _ in 0..<2 { try await rig.adapter.setMember(bob, of: "lobby", present: false) }
      let left = await rig.inbox.event { if case .left = $0.kind { true } else { false } }
      #expect(left?.stamp == AdapterRig.stamp)
    }
  }

  @Test func `a member who is there already is a success, a limit is not`() async throws {
    try await AdapterRig.with { rig in
      let bob = Membership(member: Author(id: "bob", name: "bob"))
      rig.twilio.refuse("POST Conversations/lobby/Participants", 409, code: 50433)
      try await rig.adapter.setMember(bob, of: "lobby", present: true)
      rig.twilio.refuse("POST Conversations/lobby/Participants", 400, code: 50417)
      let error = await #expect(throws: FerryError.self) {
        try await rig.adapter.setMember(bob, of: "lobby", present: true)
      }
      #expect(error?.code == .forbidden)
    }
  }

  @Test func `a read mark goes forward only, and bears Ferry's mark`() async throws {
    let twilio = ScriptedTwilio()
    twilio.state.update { state in
      for index in 0..<4 { state.messages.append(ScriptedTwilio.message(Int64(index), "\(index)")) }
      state.participants = [ScriptedTwilio.participant(1, "bob", read: 1)]
    }
    try await AdapterRig.listening(twilio: twilio) { rig in
      func mark(_ index: Int64, _ identity: String) async throws {
        let by = Author(id: UserID(identity), name: identity)
        let mark = ReadMark(
          upTo: MessageID(ScriptedTwilio.sid("IM", index)), by: by, state: .read, stamp: AdapterRig.stamp)
        try await rig.adapter.mark(mark, in: "lobby")
      }
      try await mark(0, "bob")
      #expect(twilio.requests("POST").isEmpty)
      try await mark(2, "bob")
      // Bob's attributes are not ours, so they are left alone.
      #expect(twilio.requests("POST").last?.form["Attributes"] == nil)
      #expect(twilio.requests("POST").last?.form["LastReadMessageIndex"] == "2")
      // Whoever is not there is added, and then it is written on what is ours.
      try await mark(3, "dora")
      #expect(FerryAttributes(twilio.requests("POST").last?.form["Attributes"] ?? "")?.read?.index == 3)
      let marks = await rig.inbox.wait { $0.marks.count >= 2 ? $0.marks : nil } ?? []
      #expect(marks.allSatisfy { $0.stamp == AdapterRig.stamp })
      // A message that is gone, a delivery, and a reader without a name have no place.
      let requests = twilio.requests("POST").count
      try await mark(99, "bob")
      try await rig.adapter.mark(ReadMark(upTo: "IM1", by: nil, state: .read), in: "lobby")
      try await rig.adapter.mark(
        ReadMark(upTo: "IM1", by: Author(id: "bob", name: "bob"), state: .delivered), in: "lobby")
      #expect(twilio.requests("POST").count == requests)
    }
  }

  @Test func `readers are not added where that is not wanted`() async throws {
    let twilio = ScriptedTwilio()
    twilio.add(ScriptedTwilio.message(0, "x"))
    try await AdapterRig.with(twilio: twilio, adjust: { $0.addReaders = false }) { rig in
      let mark = ReadMark(upTo: MessageID(ScriptedTwilio.sid("IM", 0)), by: Author(id: "b", name: "b"), state: .read)
      try await rig.adapter.mark(mark, in: "lobby")
      #expect(twilio.requests("POST").isEmpty)
    }
  }

  @Test func `receipts of phones are marks`() async throws {
    try await AdapterRig.listening { rig in
      rig.twilio.add(ScriptedTwilio.message(0, "to a phone"))
      _ = await rig.inbox.message("to a phone")
      let sid = ScriptedTwilio.sid("IM", 0)
      rig.twilio.state.update { state in
        state.messages[0].delivery = ["total": 1, "delivered": "all", "read": "none"]
        state.receipts[sid] = [
          ["sid": "DY1", "message_sid": .string(sid), "status": "delivered", "participant_sid": "MB1"],
          ["sid": "DY2", "message_sid": .string(sid), "status": "failed", "participant_sid": "MB2"],
        ]
      }
      let event = await rig.inbox.event { if case .read = $0.kind { true } else { false } }
      #expect(event?.key.rawValue == "receipt:DY1:delivered")
      #expect(rig.inbox.now.marks.first?.state == .delivered)
      rig.twilio.state.update { state in
        state.messages[0].delivery = ["total": 1, "delivered": "all", "read": "all"]
        state.receipts[sid]?[0] = [
          "sid": "DY1", "message_sid": .string(sid), "status": "read", "participant_sid": "MB1",
        ]
      }
      let marks = await rig.inbox.wait { $0.marks.count == 2 ? $0.marks : nil }
      #expect(marks?.last?.state == .read)
      #expect(rig.inbox.now.duplicates.isEmpty)
    }
  }

  // MARK: Failures

  @Test func `what the inbox does not take is offered until it does`() async throws {
    try await AdapterRig.listening { rig in
      rig.inbox.failNext(2)
      rig.twilio.add(ScriptedTwilio.message(0, "kept"), ScriptedTwilio.message(1, "and this"))
      _ = await rig.inbox.message("and this")
      #expect(rig.inbox.now.texts == ["kept", "and this"])
    }
  }

  @Test func `a service that fails is asked again, and the state says so`() async throws {
    try await AdapterRig.listening { rig in
      rig.twilio.answer("GET Conversations/\(ScriptedTwilio.conversation)/Messages", 503)
      let states = await rig.inbox.wait { record in
        record.connections.contains { $0.phase == .connecting && $0.reason != nil }
          && record.connections.last?.phase == .connected ? record.connections : nil
      }
      #expect(states?.contains { $0.phase == .connecting && $0.reason?.contains("lobby") == true } == true)
      rig.twilio.add(ScriptedTwilio.message(0, "after all"))
      _ = await rig.inbox.message("after all")
    }
  }

  @Test func `a failure between two looks at the members loses nobody's news`() async throws {
    let twilio = ScriptedTwilio()
    twilio.add(ScriptedTwilio.message(7, "x"))
    twilio.state.update { $0.participants = [ScriptedTwilio.participant(1, "ann")] }
    try await AdapterRig.listening(twilio: twilio, adjust: { $0.pollWindow = 50 }) { rig in
      // The list of members is read, and the message that was read cannot be looked up.
      let lookup = "GET Conversations/\(ScriptedTwilio.conversation)/Messages?Order=desc&PageSize=100"
      twilio.answer(lookup, 503)
      twilio.state.update { state in
        state.participants = [ScriptedTwilio.participant(1, "ann", read: 8), ScriptedTwilio.participant(2, "bob")]
      }
      let joined = await rig.inbox.event { if case .joined = $0.kind { true } else { false } }
      #expect(joined != nil)
      let mark = await rig.inbox.wait { $0.marks.first }
      #expect(mark?.upTo.rawValue == ScriptedTwilio.sid("IM", 7))
      #expect(twilio.state.value.canned.isEmpty)
    }
  }

  @Test func `a missing conversation among others is reported, and the others go on`() async throws {
    let twilio = ScriptedTwilio()
    try await AdapterRig.with(twilio: twilio) { rig in
      await withThrowingTaskGroup(of: Void.self) { group in
        defer { group.cancelAll() }
        group.addTask {
          try await rig.adapter.run([Subscription(channel: "lobby"), Subscription(channel: "none")], into: rig.inbox)
        }
        let state = await rig.inbox.wait { $0.connections.first { $0.phase == .degraded } }
        #expect(state?.reason?.contains("none") == true)
        #expect(state?.reason?.contains("create: true") == true)
        twilio.add(ScriptedTwilio.message(0, "still here"))
        _ = await rig.inbox.message("still here")
      }
    }
  }

  @Test func `where nothing can be read, running ends with the reason`() async throws {
    try await AdapterRig.with { rig in
      rig.twilio.state.update { $0.exists = false }
      let missing = await #expect(throws: FerryError.self) {
        try await rig.adapter.run([Subscription(channel: "lobby")], into: rig.inbox)
      }
      #expect(missing?.code == .notFound)
      rig.twilio.refuse("GET", 401, code: 20003)
      let refused = await #expect(throws: FerryError.self) {
        try await rig.adapter.run([Subscription(channel: "lobby")], into: rig.inbox)
      }
      #expect(refused?.code == .badCredentials)
      #expect(rig.inbox.now.connections.last?.phase == .badCredentials)
    }
  }

  @Test func `a conversation to listen to is created where that is wanted`() async throws {
    let twilio = ScriptedTwilio()
    twilio.state.update { $0.exists = false }
    try await AdapterRig.listening(twilio: twilio, adjust: { $0.create = true }) { rig in
      #expect(rig.twilio.requests("POST Conversations").count == 1)
    }
  }

  @Test func `history is read by pages in either order`() async throws {
    try await AdapterRig.with { rig in
      for index in 0..<25 { rig.twilio.add(ScriptedTwilio.message(Int64(index) * 3, "\(index)")) }
      for (order, expected) in [
        (HistoryOrder.oldestFirst, (0..<25).map { "\($0)" }), (.newestFirst, (0..<25).reversed().map { "\($0)" }),
      ] {
        var texts: [String] = []
        var cursor: Cursor?
        repeat {
          let page = try await rig.adapter.history(of: "lobby", order: order, after: cursor, limit: 10)
          #expect(page.messages.count <= 10)
          texts += page.messages.map(\.text)
          cursor = page.next
        } while cursor != nil
        #expect(texts == expected)
      }
      let error = await #expect(throws: FerryError.self) {
        try await rig.adapter.history(of: "lobby", order: .oldestFirst, after: "http://evil.example/", limit: 1)
      }
      #expect(error?.code == .badRequest)
    }
  }
}
