import FerryCore
import FerryHistory
import FerryTestKit
import Testing

@Suite(.timeLimit(.minutes(5))) struct SlackExportTests {
  private let folder: TemporaryFolder
  private let archive: String

  init() async throws {
    folder = try TemporaryFolder()
    archive = folder.file("lobby.ferry")
    let writer = try ArchiveWriter(folder: archive, header: ArchiveFixture.header)
    let (digest, _) = try await writer.addBlob(ArchiveFixture.stream(Array("hello".utf8)), limit: 5)
    let ada = Author(id: "ada@example.org", name: "Ada")
    func message(_ id: String, _ text: String, _ time: Int64, reply: MessageID? = nil) -> MessageRecord {
      MessageRecord(
        channel: "lobby",
        message: Message(
          id: MessageID(id), author: ada, text: text, time: Timestamp(milliseconds: time), replyTo: reply))
    }
    let start = ArchiveFixture.start.milliseconds
    var edited = message("a", "a <b> & c, edited", start)
    edited.message.edited = Timestamp(milliseconds: start + 60_000)
    edited.message.revision = 1
    let reaction = Reaction(message: "a", by: ada, emoji: "clap", added: true)
    var action = message("c", "waves", start)
    action.isAction = true
    try await writer.append([
      .channel(ChannelRecord(id: "lobby", name: "Lobby & Co")), .person(PersonRecord(id: ada.id, name: ada.name)),
      .join(MembershipRecord(channel: "lobby", member: ada, time: Timestamp(milliseconds: start - 1))),
      .message(message("a", "a", start)), .message(message("b", "gone", start)), .message(action), .edit(edited),
      .message(message("d", "reply of the next day", start + 86_400_000, reply: "a")),
      .delete(DeleteRecord(channel: "lobby", id: "b")),
      .reaction(ReactionRecord(channel: "lobby", reaction: reaction, tone: 3)),
      ArchiveTests.withFile(digest, size: 5),
      .read(ReadRecord(channel: "lobby", mark: ReadMark(upTo: "a", by: ada, state: .read))), ArchiveFixture.end(5),
    ])
    try await writer.finish()
  }

  @Test("what is written can be read again", arguments: ["export", "export.zip"])
  func roundTrip(name: String) async throws {
    let path = folder.file(name)
    let report = try await SlackExport.write(try await FoldedRecords(archive), to: path)
    #expect([report.channels, report.people, report.messages, report.files] == [1, 2, 4, 1])
    #expect(report.dropped == ["read": 1])
    #expect(!ArchiveFixture.exists(path + ".part"))
    let source = try SlackSource(path)
    let records = try await ArchiveFixture.all(source)
    let all = records.compactMap { if case .message(let record) = $0 { record } else { nil } }
    #expect(all.map(\.message.text) == ["a <b> & c, edited", "waves", "", "reply of the next day"])
    let start = ArchiveFixture.start.milliseconds
    #expect(all.map(\.message.time.milliseconds) == [start, start, start, start + 86_400_000])
    #expect(Set(all.map(\.message.id)).count == 4)
    #expect(all[0].message.author.name == "Ada")
    #expect(all[0].message.edited == Timestamp(milliseconds: start + 60_000))
    #expect(all[0].reactions.map(\.key) == ["clap"])
    #expect(all[0].reactions.map(\.tone) == [3])
    #expect(all[1].isAction)
    #expect(all[3].message.replyTo == all[0].message.id)
    let digest = try #require(all[2].message.attachments.first?.sha256)
    #expect(try await source.blob(digest)?.collect(upTo: 10) == Array("hello".utf8))
    let joins = records.filter { $0.kind == "join" }
    #expect(joins.count == 1)
    let channel = records.compactMap { if case .channel(let channel) = $0 { channel } else { nil } }.first
    #expect(channel?.name == "lobby-co")
    #expect(!records.contains { $0.kind == "skipped" })
    if name == "export" {
      await #expect(throws: FerryError.self) { try await SlackExport.write(try ArchiveReader(archive), to: path) }
    }
  }
}
