import FerryCore
import FerryRuntime
import FerryTestKit
import Testing

private let ann = Author(id: "ann", name: "Ann")
private let down = FerryError(.unavailable, "The service is down.", retry: .now)

/// Pictures and other files arrive, or it is said that they do not (G7).
@Suite(.timeLimit(.minutes(2))) struct AttachmentFaultTests {
  @Test func anAttachmentThatCannotBeHadLeavesTheTextWithANote() async throws {
    let rig = try Rig.pair()
    let lost = Attachment(name: "cat.png", mediaType: "image/png", reference: .provider("gone"))
    let reference = rig["here"].store([1, 2, 3])
    let good = Attachment(name: "ok.bin", mediaType: "application/octet-stream", reference: reference)
    try await rig.relaying { _ in
      rig["here"].say("look", by: ann, in: Rig.room, attachments: [lost])
      rig["here"].say("and this", by: ann, in: Rig.room, attachments: [good])
      await rig.wait(for: 2, at: "there")
    }
    let messages = rig["there"].messages(in: Rig.room)
    #expect(messages[0].text.hasPrefix("look\n[cat.png could not be copied: "))
    #expect(messages[0].attachments.isEmpty)
    #expect(messages[1].text == "and this")
    #expect(messages[1].attachments.map(\.sha256) == [Crypto.hex(Crypto.digest(.sha256, of: [1, 2, 3]))])
  }

  /// A note in its place would stay for good, and tell of an outage that is over.
  @Test func anAttachmentWaitsForADestinationThatIsAwayForLong() async throws {
    let rig = try Rig.pair()
    let image = Attachment(name: "a.png", mediaType: "image/png", reference: rig["here"].store([7]))
    rig["there"].failNext(12, .upload, with: down)
    try await rig.relaying { _ in
      rig["here"].say("look", by: ann, in: Rig.room, attachments: [image])
      await rig.wait(for: ["look"], at: "there")
    }
    #expect(rig["there"].messages(in: Rig.room).first?.attachments.count == 1)
  }

  @Test func anAttachmentIsFetchedOnceHoweverOftenItsMessageFails() async throws {
    let rig = try Rig.pair()
    let image = Attachment(name: "a.png", mediaType: "image/png", reference: rig["here"].store([7]))
    rig["here"].failNext(3, .fetch, with: down)
    rig["there"].failNext(12, .post, with: down)
    try await rig.relaying { _ in
      rig["here"].say("look", by: ann, in: Rig.room, attachments: [image])
      await rig.wait(for: ["look"], at: "there")
    }
    #expect(rig["there"].messages(in: Rig.room).first?.attachments.count == 1)
    #expect(rig["here"].calls(.fetch) == 4)
  }

  @Test func anAttachmentThatFailsForLongLeavesTheTextWithANote() async throws {
    let rig = try Rig.pair()
    let image = Attachment(name: "cat.png", mediaType: "image/png", reference: rig["here"].store([7]))
    rig["here"].failNext(10_000, .fetch, with: down)
    try await rig.relaying { _ in
      rig["here"].say("look", by: ann, in: Rig.room, attachments: [image])
      await rig.wait(for: 1, at: "there")
    }
    #expect(rig["there"].messages(in: Rig.room)[0].text.hasPrefix("look\n[cat.png could not be copied: "))
    #expect(rig["here"].calls(.fetch) > 6)
  }

  /// What the message went through before uses up nothing of what its picture may still need.
  @Test func anAttachmentIsWaitedForThoughItsMessageFailedOften() async throws {
    let rig = try Rig.pair()
    let image = Attachment(name: "a.png", mediaType: "image/png", reference: rig["here"].store([7]))
    rig["there"].failNext(10_000, .post, with: down)
    try await rig.relaying { _ in
      rig["here"].say("look", by: ann, in: Rig.room, attachments: [image])
      while rig["there"].calls(.post) < 12 { try await SystemClock().sleep(for: .milliseconds(5)) }
    }
    rig["there"].failNoMore()
    rig["here"].failNext(3, .fetch, with: down)
    try await rig.relaying { _ in await rig.wait(for: ["look"], at: "there") }
    #expect(rig["there"].messages(in: Rig.room).first?.attachments.count == 1)
  }

  /// The text is there already, so it cannot say what became of the picture.
  @Test func anAttachmentThatIsLostAfterItsTextWasSentIsToldOf() async throws {
    let rig = try Rig.pair(there: MemoryProvider { $0.captions = false })
    let image = Attachment(name: "cat.png", mediaType: "image/png", reference: rig["here"].store([7]))
    rig["there"].failNext(1000, .post, with: down, after: 1)
    try await rig.relaying { _ in
      rig["here"].say("look", by: ann, in: Rig.room, attachments: [image])
      await rig.wait(for: 1, at: "there")
    }
    rig["there"].failNoMore()
    rig["here"].failNext(1, .fetch, with: FerryError(.notFound, "It is gone."))
    try await rig.relaying { _ in
      rig["here"].say("next", by: ann, in: Rig.room)
      await rig.wait(for: 3, at: "there")
    }
    let texts = rig["there"].messages(in: Rig.room).map(\.text)
    #expect(texts == ["look", "[cat.png could not be copied: It is gone.]", "next"])
  }

  @Test func anEditLeavesPicturesThatAreGoneAtTheSource() async throws {
    let rig = try Rig.pair(there: MemoryProvider { $0.captions = false })
    let image = Attachment(name: "cat.png", mediaType: "image/png", reference: rig["here"].store([7]))
    try await rig.relaying { _ in
      let id = rig["here"].say("look", by: ann, in: Rig.room, attachments: [image])
      await rig.wait(for: ["look", ""], at: "there")
      rig["here"].failNext(1, .fetch, with: FerryError(.notFound, "It is gone."))
      rig["here"].change(id, to: "look here", in: Rig.room)
      await rig.wait(for: ["look here", ""], at: "there")
    }
    #expect(rig["there"].messages(in: Rig.room).map { $0.attachments.count } == [0, 1])
  }

  @Test func whatCannotTravelWithTheTextTravelsApartAndStaysWhereItIs() async throws {
    let rig = try Rig.pair(
      there: MemoryProvider {
        $0.attachmentsPerMessage = 1
        $0.captions = false
      })
    let images: [FerryCore.Attachment] = ([[1], [2], [2]] as [[UInt8]]).enumerated().map { index, bytes in
      Attachment(name: "\(index).bin", mediaType: "image/png", reference: rig["here"].store(bytes))
    }
    try await rig.relaying { _ in
      let id = rig["here"].say("look", by: ann, in: Rig.room, attachments: images)
      await rig.wait(for: ["look", "", "", ""], at: "there")
      let sent = rig["there"].messages(in: Rig.room)
      #expect(sent.map { $0.attachments.count } == [0, 1, 1, 1])
      #expect(Set(sent.compactMap { $0.stamp?.part }).count == 4)
      rig["here"].change(id, to: "look here", in: Rig.room)
      await rig.wait(for: ["look here", "", "", ""], at: "there")
      // An edit of the text neither uploads nor touches the pictures.
      #expect(rig["there"].calls(.upload) == 3)
      #expect(rig["there"].messages(in: Rig.room).dropFirst().allSatisfy { $0.revision == 0 })
      rig["here"].remove(id, in: Rig.room, by: ann)
      await rig.wait(for: [], at: "there")
    }
  }

  @Test func aPictureWithoutTextIsOneMessageWhereverItGoes() async throws {
    let rig = try Rig.pair(
      there: MemoryProvider {
        $0.attachmentsPerMessage = 1
        $0.captions = false
      })
    let image = Attachment(name: "a.png", mediaType: "image/png", reference: rig["here"].store([7]))
    try await rig.relaying { _ in
      rig["here"].say("", by: ann, in: Rig.room, attachments: [image])
      rig["here"].say("next", by: ann, in: Rig.room)
      await rig.wait(for: ["", "next"], at: "there")
    }
  }
}
