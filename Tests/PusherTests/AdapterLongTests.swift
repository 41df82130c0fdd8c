import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import PusherProvider

@Suite(.timeLimit(.minutes(1))) struct AdapterLongTests {
  private static let long = String(repeating: "A \"long\" story\nwith é and 🚢. ", count: 4000)

  private static func image(_ number: Int) -> OutgoingAttachment {
    OutgoingAttachment(
      name: "image \(number).png", mediaType: "image/png", size: 12_345, sha256: String(repeating: "0", count: 64),
      reference: .url("https://bridge.example.org/files/\(String(repeating: "t", count: 40))/\(number).png"))
  }

  @Test func `a long message goes in slices, in order, and arrives once`() async throws {
    try await Rig.running("chatroom", settings: { $0.long = .chunk }) { rig in
      #expect((rig.adapter.capabilities.bodyBytes ?? 0) >= Self.long.utf8.count)
      let client = try await rig.service.connect()
      try await client.subscribe("chatroom")
      let message = Rig.message(Self.long)
      let id = try await rig.adapter.post(message, to: "chatroom")
      var joined = ""
      for index in 0... {
        let frame = try unwrap(Frame(text: try await client.next()), "no frame")
        #expect(frame.event == "chunked-new_message")
        #expect((frame.data?.string.utf8.count ?? 0) <= Limits.dataBytes)
        let chunk = try unwrap(frame.data.flatMap { Chunk($0.parsed) }, "no slice")
        #expect(chunk.index == index && chunk.id == id.rawValue)
        joined += chunk.text
        if chunk.isFinal { break }
      }
      #expect(JSONText.decode(JSONValue.self, from: joined)?["text"]?.string == Self.long)
      let echo = await rig.inbox.message(Self.long)
      #expect(echo?.id == id && echo?.stamp == message.stamp)
      #expect(try await rig.adapter.find(message.key, in: "chatroom") == .found(id))
      try await rig.adapter.edit(id, in: "chatroom", to: Rig.message(Self.long + "!", id: "1", revision: 1))
      let edited = await rig.inbox.event { if case .edited = $0.kind { true } else { false } }
      guard case .edited(let edit)? = edited?.kind else { throw FerryError(.badData, "no edit") }
      #expect(edit.text == Self.long + "!")
    }
  }

  @Test func `a long message of which only a part arrived is sent again, and arrives once`() async throws {
    try await Rig.running("chatroom", settings: { $0.long = .chunk }) { rig in
      _ = try await rig.adapter.post(Rig.message("first"), to: "chatroom")
      let message = Rig.message(Self.long)
      await rig.proxy.swallowAnswers(method: "POST")
      let error = await #expect(throws: FerryError.self) { try await rig.adapter.post(message, to: "chatroom") }
      #expect(error?.didNotAct == false)
      #expect(try await rig.adapter.find(message.key, in: "chatroom") == .absent)
      let id = try await rig.adapter.post(message, to: "chatroom")
      _ = await rig.inbox.message(Self.long)
      _ = try await rig.adapter.post(Rig.message("last"), to: "chatroom")
      _ = await rig.inbox.message("last")
      #expect(rig.texts == ["first", Self.long, "last"])
      #expect(rig.inbox.now.duplicates.isEmpty)
      #expect(try await rig.adapter.find(Rig.message("x").key, in: "chatroom") == .absent)
      #expect(id == Marker.messageID(message.key))
    }
  }

  @Test func `a batch with a long message is refused whole, so that each may go by itself`() async throws {
    try await Rig.running("chatroom", settings: { $0.long = .chunk }) { rig in
      let error = await #expect(throws: FerryError.self) {
        try await rig.adapter.post([Rig.message("short"), Rig.message(Self.long)], to: "chatroom")
      }
      #expect(error?.code == .tooLarge && error?.didNotAct == true && error?.retry == .never)
      #expect(rig.texts.isEmpty)
    }
  }

  @Test func `a long message may be stored elsewhere, and a link to it sent`() async throws {
    let stored = Observed<[String]>([])
    let failures = Observed(1)
    try await ScriptedService.serving { request in
      let body = (try? await request.body.collect(upTo: 1 << 20)) ?? []
      guard
        failures.update({ count in
          defer { count -= 1 }
          return count <= 0
        })
      else { return .text("later", status: 503) }
      stored.update { $0.append("\(request.headers["X-Token"] ?? "") \(String(decoding: body, as: UTF8.self))") }
      return .json(["url": "https://app.example.org/long/1"], status: 201)
    } _: { scripted in
      let upload = Endpoint(url: scripted.server.url + "/long", headers: [("X-Token", Secret("t"))])
      try await Rig.running("chatroom", settings: { ($0.long, $0.upload) = (.link, upload) }) { rig in
        let message = Rig.message(Self.long)
        let error = await #expect(throws: FerryError.self) { try await rig.adapter.post(message, to: "chatroom") }
        #expect(error?.code == .unavailable && error?.didNotAct == true)
        _ = try await rig.adapter.post(message, to: "chatroom")
        let text = await rig.inbox.wait { record -> String? in
          for case .posted(let message) in record.events.map(\.kind) { return message.text }
          return nil
        }
        #expect(text?.hasPrefix("A \"long\" story\n") == true)
        #expect(text?.hasSuffix("\u{2026}\nhttps://app.example.org/long/1") == true)
        #expect((text?.utf8.count ?? .max) < 1100)
        #expect(stored.value == ["t \(Self.long)"])
        _ = try await rig.adapter.post(Rig.message("short"), to: "chatroom")
        #expect(stored.value.count == 1)
      }
    }
  }

  @Test func `more links than fit are never a reason to lose the message`() async throws {
    try await Rig.running("chatroom") { rig in
      // As long as the relay makes it, with links besides: these lose their description only.
      var few = Rig.message(String(repeating: "x", count: rig.adapter.capabilities.bodyBytes ?? 0))
      few.attachments = (0..<8).map(Self.image)
      _ = try await rig.adapter.post(few, to: "chatroom")
      #expect(await rig.inbox.message(few.text)?.attachments.count == 8)
      var many = Rig.message("look")
      many.attachments = (0..<500).map(Self.image)
      _ = try await rig.adapter.post(many, to: "chatroom")
      let text = await rig.inbox.wait { record -> Message? in
        for case .posted(let message) in record.events.map(\.kind) where message.text.hasPrefix("look\n") {
          return message
        }
        return nil
      }
      let shown = text?.attachments.count ?? 0
      #expect(shown > 20)
      #expect(text?.text == "look\n[\(500 - shown) of 500 images did not fit]")
    }
  }

  @Test func `Ferry's own events stay away from its socket where that is wanted`() async throws {
    try await Rig.running("chatroom", settings: { $0.echo = false }) { rig in
      let client = try await rig.service.connect()
      try await client.subscribe("chatroom")
      _ = try await rig.adapter.post(Rig.message("mine"), to: "chatroom")
      _ = try await rig.adapter.post([Rig.message("b1"), Rig.message("b2")], to: "chatroom")
      for text in ["mine", "b1", "b2"] {
        #expect(Frame(text: try await client.next())?.data?.parsed["text"]?.string == text)
      }
      try await rig.service.trigger("new_message", on: "chatroom", data: #"{"text":"theirs"}"#)
      _ = await rig.inbox.message("theirs")
      #expect(rig.texts == ["theirs"])
    }
  }
}
