import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import PusherProvider

@Suite(.timeLimit(.minutes(1))) struct AdapterEncryptionTests {
  private static let channel = "private-encrypted-room"
  /// In every text and name of what is sent; in nothing that the service may see.
  private static let secretWord = "Nachtigall"

  private static func message(_ text: String, id: String, revision: Int = 0) -> OutgoingMessage {
    let stamp = Stamp(
      bridge: "lobby", origin: Address(account: "here", channel: ChannelID(secretWord)), id: MessageID(id),
      revision: revision)
    return OutgoingMessage(
      key: stamp.key, author: Author(id: UserID("\(secretWord)-7"), name: "\(secretWord) Ann"), text: text, stamp: stamp
    )
  }

  @Test(arguments: [PusherAdapter.Settings.Long.split, .chunk])
  func `the service never sees what is said on an encrypted channel`(long: PusherAdapter.Settings.Long) async throws {
    try await Service.serving { service in
      let tap = Tap(service)
      try await ScriptedService.serving(tap.handle) { scripted in
        var settings = scripted.settings
        settings.secret = Secret("demo-secret")
        settings.encryption = try SecretBoxTests.masterKey()
        settings.long = long
        // What would be client events elsewhere.
        settings.profile.events.typing = ["client-typing"]
        try await scripted.running(settings, [Self.channel]) { adapter, inbox in
          await inbox.connected()
          let (word, channel) = (Self.secretWord, ChannelID(Self.channel))
          let ann = Author(id: UserID("\(word)-7"), name: "\(word) Ann")
          let first = Self.message("\(word) one", id: "1")
          let id = try await adapter.post(first, to: channel)
          let batch = (2...4).map { Self.message("\(word) \($0)", id: "\($0)") }
          let ids = try await adapter.post(batch, to: channel)
          try await adapter.edit(id, in: channel, to: Self.message("\(word) edited", id: "1", revision: 1))
          try await adapter.delete(ids[0], in: channel, as: ann, stamp: first.stamp)
          try await adapter.setTyping(Typing(channel: channel, by: ann, on: true, stamp: first.stamp))
          try await adapter.setTyping(Typing(channel: channel, by: ann, on: false, stamp: first.stamp))
          try await adapter.mark(ReadMark(upTo: id, by: ann, state: .read, stamp: first.stamp), in: channel)
          try await adapter.react(Reaction(message: id, by: ann, emoji: word, added: true), in: channel)
          try await adapter.setMember(Membership(member: ann, stamp: first.stamp), of: channel, present: true)
          var image = Self.message("\(word) look", id: "5")
          image.attachments = [
            OutgoingAttachment(
              name: "\(word).png", mediaType: "image/png", size: 1, sha256: "00",
              reference: .url("https://x.org/\(word)"))
          ]
          if long == .chunk { image.text = String(repeating: "\(word) \"long\" ", count: 2000) }
          _ = try await adapter.post(image, to: channel)

          // All of it arrives and is understood.
          let record = await inbox.wait { $0.events.count >= 10 && $0.typing.count == 2 ? $0 : nil }
          let texts = (record?.events ?? []).compactMap { event in
            if case .posted(let message) = event.kind { message.text } else { nil }
          }
          #expect(texts == ["\(word) one", "\(word) 2", "\(word) 3", "\(word) 4", image.text])
          #expect(record?.events.allSatisfy { $0.channel == channel } == true)
          #expect(record?.typing.first?.by == ann)
          // What was sent last is found by its marker, and nothing else is.
          #expect(try await adapter.find(image.key, in: channel) == .found(Marker.messageID(image.key)))
          #expect(try await adapter.find(Self.message("", id: "9").key, in: channel) == .absent)

          let seen = tap.seen.value
          #expect(seen.requests.count > 8 && seen.fromService.count > 8)
          #expect(seen.everything.allSatisfy { !$0.contains(word) })
          #expect(seen.requests.contains { $0.contains("ciphertext") })
          #expect(seen.fromClient.allSatisfy { !$0.contains("client-") })
        }
      }
    }
  }

  @Test func `a lost answer on an encrypted channel is settled`() async throws {
    try await Rig.running(adjust: { _ in }, settings: { $0.encryption = try? SecretBoxTests.masterKey() }) { rig in
      let (first, second) = (Rig.message("1"), Rig.message("2"))
      _ = try await rig.adapter.post(first, to: "private-encrypted-a")
      await rig.proxy.swallowAnswers(method: "POST")
      let error = await #expect(throws: FerryError.self) {
        try await rig.adapter.post(second, to: "private-encrypted-a")
      }
      #expect(error?.didNotAct == false)
      let id = Marker.messageID(second.key)
      #expect(try await rig.adapter.find(second.key, in: "private-encrypted-a") == .found(id))
      #expect(try await rig.adapter.find([first.key, second.key], in: "private-encrypted-a").last == .found(id))
    }
  }

  /// The channel's key may be exchanged before the send is looked for.
  @Test func `a send is found though the key was exchanged since`() async throws {
    try await Rig.running(settings: { $0.encryption = try? SecretBoxTests.masterKey() }) { rig in
      let message = Rig.message("1")
      let id = try await rig.adapter.post(message, to: "private-encrypted-a")
      var settings = rig.adapter.settings
      settings.encryption = try SecretBoxTests.masterKey().box(for: "another")
      let later = PusherAdapter(
        settings: settings, client: rig.service.client, clock: SystemClock(), logger: .silent)
      #expect(try await later.find(message.key, in: "private-encrypted-a") == .found(id))
      #expect(try await later.find(Rig.message("2").key, in: "private-encrypted-a") == .absent)
    }
  }

  @Test func `bodies that the capabilities allow fit when they are sealed`() async throws {
    try await Rig.running(settings: { $0.encryption = try? SecretBoxTests.masterKey() }) { rig in
      let limit = try unwrap(rig.adapter.capabilities.bodyBytes, "no limit")
      #expect(limit < 8000)
      let worst = (0..<9).map { Rig.message(String(repeating: "\"", count: limit / 2), id: "\($0)") }
      _ = try await rig.adapter.post(worst, to: "private-encrypted-a")
      _ = try await rig.adapter.post(Rig.message(String(repeating: "é", count: limit / 2)), to: "private-encrypted-a")
    }
  }

  @Test func `without any key an encrypted channel is refused`() async throws {
    try await Rig.running { rig in
      let error = await #expect(throws: FerryError.self) {
        try await rig.adapter.run([Subscription(channel: "private-encrypted-a")], into: rig.inbox)
      }
      #expect(error?.code == .unsupported)
      #expect(error?.message.contains("encryption_master_key") == true)
    }
  }

  /// The key is exchanged while the adapter listens: it asks the endpoint anew and loses nothing.
  @Test func `a new key is asked for when an event does not open`() async throws {
    let boxes = try ["old", "new"].map { try SecretBoxTests.masterKey().box(for: $0) }
    let asked = Observed(0)
    let metrics = Metrics()
    try await Service.serving { service in
      try await ScriptedService.serving { request in
        let form = PercentEncoding.pairs(
          String(decoding: (try? await request.body.collect(upTo: 10_000)) ?? [], as: UTF8.self))
        let count = asked.update { count in
          count += 1
          return count
        }
        let auth = service.appKey.channelAuth(socketID: form[0].value, channel: form[1].value)
        let box = boxes[min(count, boxes.count) - 1]
        return .json(["auth": auth, "shared_secret": box.sharedSecret])
      } _: { scripted in
        var settings = scripted.settings
        settings.api = service.server.url
        settings.socket = "ws" + service.server.url.dropFirst(4)
        settings.secret = Secret("demo-secret")
        settings.auth = Endpoint(url: scripted.server.url + "/auth")
        try await scripted.running(settings, [Self.channel], metrics: metrics) { adapter, inbox in
          await inbox.connected()
          for (number, box) in [(1, boxes[0]), (2, boxes[1]), (3, boxes[0]), (4, boxes[1])] {
            let data = box.seal(#"{"ID":\#(number),"text":"m\#(number)"}"#)
            try await service.trigger("new_message", on: Self.channel, data: data)
          }
          _ = await inbox.message("m4")
          let texts = inbox.now.events.compactMap { event in
            if case .posted(let message) = event.kind { message.text } else { nil }
          }
          // The third was sealed with the key that is no longer in force.
          #expect(texts == ["m1", "m2", "m4"])
          #expect(asked.value == 2)
          #expect(metrics.value("ferry_pusher_unreadable_total", ["channel": Self.channel]) == 1)
          let states = await inbox.wait { record in
            record.connections.last?.phase == .connected ? record.connections.map(\.phase) : nil
          }
          #expect(states?.contains(.degraded) == true)
          // And it publishes with the new key.
          _ = try await adapter.post(Rig.message("mine"), to: ChannelID(Self.channel))
          #expect(await inbox.message("mine") != nil)
        }
      }
    }
  }
}
