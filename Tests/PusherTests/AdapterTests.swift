import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import PusherProvider

@Suite(.timeLimit(.minutes(1))) struct AdapterTests {
  @Test func `a post is seen by an official client's eyes and comes back with its stamp`() async throws {
    try await Rig.running("chatroom") { rig in
      let client = try await rig.service.connect()
      try await client.subscribe("chatroom")
      let message = Rig.message("hello")
      let id = try await rig.adapter.post(message, to: "chatroom")
      let frame = try unwrap(Frame(text: try await client.next()), "no frame")
      #expect(frame.event == "new_message")
      #expect(frame.data?.parsed["sender"] == "Ann")
      #expect(frame.data?.parsed["text"] == "hello")
      #expect(frame.data?.parsed["ID"]?.string == id.rawValue)
      let echo = await rig.inbox.message("hello")
      #expect(echo?.id == id)
      #expect(echo?.stamp == message.stamp)
      #expect(echo?.author == Author(id: "ann", name: "Ann"))
    }
  }

  @Test func `what a person posts has no stamp`() async throws {
    try await Rig.running("chatroom") { rig in
      let message = OutgoingMessage(key: "k1", author: Author(id: "bob", name: "bob"), text: "by hand")
      let id = try await rig.adapter.post(message, to: "chatroom")
      let echo = await rig.inbox.message("by hand")
      #expect(echo?.id == id)
      #expect(echo?.stamp == nil)
      #expect(try await rig.adapter.find("k1", in: "chatroom") == .found(id))
    }
  }

  @Test(arguments: [true, false]) func `a batch arrives whole and in order`(marker: Bool) async throws {
    try await Rig.running("chatroom", marker: marker) { rig in
      let size = rig.adapter.capabilities.batch
      #expect(size == (marker ? 9 : 10))
      let messages = (0..<size).map { Rig.message("m\($0)") }
      let ids = try await rig.adapter.post(messages, to: "chatroom")
      #expect(ids == messages.map { Marker.messageID($0.key) })
      _ = await rig.inbox.message("m\(size - 1)")
      #expect(rig.texts == messages.map(\.text))
      let findings = try await rig.adapter.find(messages.map(\.key), in: "chatroom")
      if marker {
        #expect(findings == ids.map { .found($0) })
      } else {
        #expect(findings.count == size)
        #expect(rig.adapter.capabilities.certainty == .none)
      }
    }
  }

  @Test func `edits, deletes, typing, marks and reactions go there and back`() async throws {
    try await Rig.running("private-chat") { rig in
      let (adapter, channel) = (rig.adapter, ChannelID("private-chat"))
      let ann = Author(id: "ann", name: "Ann")
      let id = try await adapter.post(Rig.message("first"), to: channel)
      try await adapter.edit(id, in: channel, to: Rig.message("second", id: "1", revision: 1))
      try await adapter.delete(id, in: channel, as: ann, stamp: Rig.stamp)
      try await adapter.mark(ReadMark(upTo: id, by: ann, state: .delivered), in: channel)
      try await adapter.react(Reaction(message: id, by: ann, emoji: "+", added: true), in: channel)
      try await adapter.setTyping(Typing(channel: channel, by: ann, on: true, stamp: Rig.stamp))
      try await adapter.setTyping(Typing(channel: channel, by: ann, on: false, stamp: Rig.stamp))
      let record = await rig.inbox.wait { $0.events.count == 5 && $0.typing.count == 2 ? $0 : nil }
      let kinds = try unwrap(record, "not everything came").events.map(\.kind)
      guard case .edited(let edited) = kinds[1] else { throw FerryError(.badData, "no edit") }
      #expect(edited.text == "second")
      #expect(edited.id == id)
      #expect(edited.revision == 1)
      #expect(kinds[2] == .deleted(Deletion(id: id, by: Author(id: "Ann", name: "Ann"), stamp: Rig.stamp)))
      #expect(record?.typing.map(\.on) == [true, false])
      #expect(record?.typing.first?.by == ann)
    }
  }

  @Test func `people come and go on a presence channel, and Ferry is one of them`() async throws {
    try await Rig.running("presence-a") { rig in
      let client = try await rig.service.connect()
      #expect(try await client.subscribe("presence-a", as: "bob").contains(#"\"ferry\":{\"name\":\"Ferry\"}"#))
      client.close()
      let bob = Membership(member: Author(id: "bob", name: "bob!"))
      let events = await rig.inbox.wait { $0.events.count == 2 ? $0.events : nil }
      #expect(events?.map(\.kind) == [.joined(bob), .left(bob)])
    }
  }

  @Test func `members are listed without Ferry, and announced by events`() async throws {
    try await Rig.running("presence-a") { rig in
      let client = try await rig.service.connect()
      try await client.subscribe("presence-a", as: "bob")
      #expect(try await rig.adapter.members(of: "presence-a").map(\.id) == ["bob"])
      await #expect(throws: FerryError.self) { try await rig.adapter.members(of: "chatroom") }
      let ann = Membership(member: Author(id: "ann", name: "Ann"), stamp: Rig.stamp)
      try await rig.adapter.setMember(ann, of: "presence-a", present: true)
      try await rig.adapter.setMember(ann, of: "presence-a", present: false)
      let events = await rig.inbox.wait { $0.events.count == 3 ? $0.events : nil }
      #expect(events?.dropFirst().map(\.kind) == [.joined(ann), .left(ann)])
    }
  }

  @Test(arguments: [ErrorCode.overCapacity, .reconnect])
  func `after a close that asks for it the adapter comes back and tells the gap`(code: ErrorCode) async throws {
    try await Rig.running("chatroom", "private-a") { rig in
      let before = rig.inbox.now.connections.count { $0.phase == .connected }
      for connection in rig.service.facade.hub.withLock({ Array($0.connections.values) }) {
        PusherFacade.end(connection.socket, code, "again")
      }
      let record = await rig.inbox.wait { record in
        record.connections.count { $0.phase == .connected } > before && record.gaps.count == 2 ? record : nil
      }
      #expect(Set(record?.gaps.map(\.channel) ?? []) == ["chatroom", "private-a"])
      #expect(record?.gaps.allSatisfy { $0.start <= $0.end } == true)
      try await rig.service.trigger("new_message", on: "private-a", data: #"{"text":"after"}"#)
      #expect(await rig.inbox.message("after") != nil)
    }
  }

  @Test func `after the line is cut the adapter comes back and loses nothing that is said later`() async throws {
    try await Rig.running("chatroom") { rig in
      try await rig.service.trigger("new_message", on: "chatroom", data: #"{"text":"before"}"#)
      _ = await rig.inbox.message("before")
      await rig.proxy.cut()
      let gap = await rig.inbox.wait { $0.gaps.first }
      #expect(gap?.channel == "chatroom")
      try await rig.service.trigger("new_message", on: "chatroom", data: #"{"text":"after"}"#)
      #expect(await rig.inbox.message("after") != nil)
      #expect(rig.inbox.now.duplicates.isEmpty)
    }
  }

  @Test func `what was missed while no adapter ran is told as a gap, the first time nothing is`() async throws {
    try await Rig.running("chatroom") { rig in #expect(rig.inbox.now.gaps.isEmpty) }
    let start = Timestamp(milliseconds: 1_700_000_000_000)
    try await Rig.running("chatroom", lastSeen: start) { rig in
      let gap = await rig.inbox.wait { $0.gaps.first }
      #expect(gap?.start == start)
    }
  }

  @Test func `a key that the service does not know ends the run`() async throws {
    try await Service.serving { service in
      let settings = PusherAdapter.Settings(
        appID: "1001", key: "wrong", secret: Secret("x"), host: "127.0.0.1", port: service.server.port, tls: false)
      let adapter = PusherAdapter(
        settings: settings, client: service.client, clock: SystemClock(), logger: .silent)
      let inbox = RecordingInbox()
      let error = await #expect(throws: FerryError.self) {
        try await adapter.run([Subscription(channel: "a")], into: inbox)
      }
      #expect(error?.code == .badCredentials)
      #expect(error?.retry == .never)
      #expect(inbox.now.connections.last?.phase == .badCredentials)
      let post = await #expect(throws: FerryError.self) { try await adapter.post(Rig.message("x"), to: "a") }
      #expect(post?.code == .badCredentials)
      #expect(post?.didNotAct == true)
    }
  }

  @Test func `a wrong secret is told and the subscription repeated`() async throws {
    try await Rig.running("private-a", secret: "wrong") { rig in
      let state = await rig.inbox.wait { $0.connections.last { $0.phase == .degraded } }
      #expect(state?.reason?.contains("Invalid signature") == true)
    }
  }

  @Test func `events wait for the disk in their order`() async throws {
    let inbox = RecordingInbox()
    try await Rig.running("chatroom", inbox: inbox) { rig in
      inbox.failNext(2)
      for index in 0..<5 {
        try await rig.service.trigger("new_message", on: "chatroom", data: #"{"text":"m\#(index)"}"#)
      }
      _ = await inbox.message("m4")
      #expect(rig.texts == (0..<5).map { "m\($0)" })
    }
  }

  @Test func `more than a queue holds passes in order`() async throws {
    try await Rig.running("chatroom") { rig in
      for index in 0..<300 {
        let items = (0..<10).map { #"{"name":"new_message","channel":"chatroom","data":"m\#(index * 10 + $0)"}"# }
        _ = try await rig.service.send(
          "POST", "/apps/1001/batch_events", body: #"{"batch":[\#(items.joined(separator: ","))]}"#)
      }
      _ = await rig.inbox.message("m2999")
      #expect(rig.texts == (0..<3000).map { "m\($0)" })
    }
  }
}
