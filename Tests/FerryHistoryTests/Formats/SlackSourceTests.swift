import FerryCore
import FerryHistory
import FerryTestKit
import FoundationEssentials
import Testing

/// The cases of people's reports on readers of Slack's exports.
@Suite(.timeLimit(.minutes(5))) struct SlackSourceTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private static let users = """
    [{"id":"U1","name":"ada","profile":{"display_name":"","real_name":"Ada L."}},
     {"id":"W1","name":"wim","profile":{"display_name":"wim","email":"w@a.example"}}]
    """
  private static let channels = """
    [{"id":"C1","name":"lobby","created":"1500000000","creator":"U1","members":["U1","W1"],"topic":{"value":"all"}}]
    """

  /// An export with the messages of one day, written as a folder.
  private func export(_ day: String, more: [String: String] = [:]) throws -> String {
    let path = folder.file("export")
    let files = ["channels.json": Self.channels, "users.json": Self.users, "lobby/2024-02-02.json": day]
    for (name, text) in files.merging(more, uniquingKeysWith: { $1 }) {
      let file = path + "/" + name
      let end = file.lastIndex(of: "/") ?? file.startIndex
      try FileManager.default.createDirectory(atPath: String(file[..<end]), withIntermediateDirectories: true)
      try ArchiveFixture.write(Array(text.utf8), to: file)
    }
    return path
  }

  private func records(_ day: String, more: [String: String] = [:]) async throws -> [Record] {
    try await ArchiveFixture.all(try SlackSource(try export(day, more: more)))
  }

  private func messages(_ day: String, more: [String: String] = [:]) async throws -> [MessageRecord] {
    try await records(day, more: more).compactMap { if case .message(let message) = $0 { message } else { nil } }
  }

  private func message(_ fields: String) async throws -> MessageRecord {
    try #require(try await messages("[{\"type\":\"message\",\"ts\":\"1706860800.000200\",\(fields)}]").first)
  }

  @Test("people, channel, messages, end: the whole of a small export")
  func whole() async throws {
    let records = try await records(
      """
      [{"type":"message","user":"U1","text":"hello","ts":"1706860800.000200"},
       {"type":"message","subtype":"channel_join","user":"W1","text":"<@W1> joined","ts":"1706860801.000000"}]
      """)
    #expect(records.map(\.kind) == ["person", "person", "channel", "message", "join", "end"])
    #expect(records[0] == .person(PersonRecord(id: "U1", name: "Ada L.", type: "person")))
    #expect(
      records[2]
        == .channel(
          ChannelRecord(
            id: "C1", name: "lobby", type: "public", topic: "all", members: ["U1", "W1"],
            created: Timestamp(milliseconds: 1_500_000_000_000))))
    let message = Message(
      id: "1706860800.000200", author: Author(id: "U1", name: "Ada L."), text: "hello",
      time: Timestamp(milliseconds: 1_706_860_800_000))
    #expect(
      records[3]
        == .message(
          MessageRecord(channel: "C1", message: message, precision: .microseconds, timeRaw: "1706860800.000200")))
    #expect(records[5] == .end(EndRecord(channel: "C1", isComplete: true, messages: 1)))
  }

  @Test("several messages of one millisecond keep their order, and a day is sorted")
  func order() async throws {
    let ids = ["1706860800.000300", "1706860800.000100", "1706860800.000200", "1706860799.999999"]
    let day = "[" + ids.map { "{\"ts\":\"\($0)\",\"user\":\"U1\",\"text\":\"x\"}" }.joined(separator: ",") + "]"
    #expect(try await messages(day).map(\.message.id.rawValue) == ids.sorted())
  }

  @Test("equal times in two channels are two messages")
  func perChannel() async throws {
    let day = "[{\"ts\":\"1706860800.000200\",\"user\":\"U1\",\"text\":\"x\"}]"
    let all = try await messages(day, more: ["other/2024-02-02.json": day])
    #expect(Set(all.map(\.channel)) == ["C1", "other"])
  }

  @Test("a reply of the next day, one whose root is missing, and one shown to the whole channel")
  func threads() async throws {
    let root = "[{\"ts\":\"1.0\",\"thread_ts\":\"1.0\",\"user\":\"U1\",\"text\":\"root\"}]"
    let next = """
      [{"ts":"2.0","thread_ts":"1.0","user":"U1","text":"reply"},
       {"ts":"3.0","thread_ts":"0.5","user":"U1","text":"orphan"},
       {"ts":"4.0","thread_ts":"1.0","subtype":"thread_broadcast","user":"U1","text":"all","root":{"ts":"1.0"}}]
      """
    let records = try await records(root, more: ["lobby/2024-02-03.json": next])
    let all = records.compactMap { if case .message(let message) = $0 { message } else { nil } }
    #expect(all.map(\.message.text) == ["root", "reply", "orphan", "all"])
    #expect(all.map(\.message.replyTo) == [nil, "1.0", "0.5", "1.0"])
    #expect(all.map(\.isBroadcast) == [false, false, false, true])
    #expect(
      records.last
        == .skipped(
          SkippedRecord(
            reason: "the message that a reply answers is not in the export", count: 1, place: "lobby/2024-02-03.json")))
  }

  @Test("files: hidden, deleted, refused, without a mode, and old ones; their text stays, their token goes")
  func files() async throws {
    let message = try await message(
      """
      "user":"U1","text":"see <https://a.example/x?t=xoxe-1-2&b=1>","files":[{"id":"F1","mode":"hidden_by_limit"},
      {"id":"F2","mode":"tombstone"},{"id":"F3","name":"a.png","mimetype":"image/png","size":5,"original_w":3,
      "original_h":4,"url_private":"https://files.slack.com/a.png?t=xoxe-123-456-abc"},
      {"id":"F4","name":"b","file_access":"access_denied","mode":"hosted"}]
      """)
    #expect(message.message.text == "see https://a.example/x?b=1")
    #expect(message.files.map(\.status) == [.hidden, .deleted, .remote, .refused])
    let third = message.message.attachments[2]
    #expect(third.reference == .url("https://files.slack.com/a.png"))
    #expect(third.name == "a.png")
    #expect(third.size == 5)
    #expect(third.pixels == .init(width: 3, height: 4))
    let line = String(decoding: Record.message(message).line(), as: UTF8.self)
    #expect(!line.contains("xoxe"), "\(line)")
    let old = try await self.message(
      """
      "user":"U1","text":"","subtype":"file_share","file":{"id":"F9","name":"a"}
      """)
    #expect(old.message.attachments.map(\.name) == ["a"])
  }

  @Test("a comment on a file answers the message that shared it")
  func fileComment() async throws {
    let all = try await messages(
      """
      [{"ts":"1.0","user":"U1","text":"","subtype":"file_share","file":{"id":"F9","name":"a"}},
       {"ts":"2.0","subtype":"file_comment","text":"x commented","file":{"id":"F9"},
        "comment":{"user":"W1","comment":"nice"}}]
      """)
    #expect(all.last?.message.replyTo == "1.0")
    #expect(all.last?.message.author.id == "W1")
    #expect(all.last?.message.text == "nice")
  }

  @Test("authors whom no list describes: guests, Slackbot, bots by their name of the moment")
  func authors() async throws {
    let records = try await records(
      """
      [{"ts":"1.0","user":"U9","text":"x","user_profile":{"display_name":"","real_name":"Guest"}},
       {"ts":"2.0","user":"USLACKBOT","text":"x"},
       {"ts":"3.0","subtype":"bot_message","bot_id":"B7","username":"deploy","text":"x"},
       {"ts":"4.0","subtype":"bot_message","bot_id":"B7","username":"other","text":"x"},
       {"ts":"5.0","subtype":"bot_message","username":"nameless","text":"x"},
       {"ts":"6.0","text":"x"}]
      """)
    let names = records.compactMap { if case .message(let record) = $0 { record.message.author } else { nil } }
    #expect(names.map(\.name) == ["Guest", "Slackbot", "deploy", "other", "nameless", "unknown"])
    #expect(names.map(\.id.rawValue) == ["U9", "USLACKBOT", "B7", "B7", "nameless", "unknown"])
    let people = records.compactMap { if case .person(let person) = $0 { person } else { nil } }
    #expect(people.filter { $0.id == "B7" }.map(\.type) == ["bot"])
    #expect(people.contains { $0.id == "U9" && $0.type == "unknown" })
  }

  @Test(
    "text is resolved first and unescaped once",
    arguments: [
      ("&amp;lt; &lt;@U1&gt;", "&lt; <@U1>"), ("<@W1> <@U1|x> <@U9|guest> <@U8>", "@wim @Ada L. @guest @U8"),
      ("<#C1> <#C1|lobby> <#C9>", "#lobby #lobby #C9"), ("<!here> <!here|@here> <!channel>", "@here @here @channel"),
      ("<!subteam^S1|@ops>", "@ops"), ("<!date^1^{date}|Feb 2>", "Feb 2"),
      ("<https://a.example/?a=1&amp;b=2>", "https://a.example/?a=1&b=2"),
      ("<https://a.example|label>", "label (https://a.example)"), ("<mailto:a@b.example|a@b.example>", "a@b.example"),
      ("a < b > c & d", "a < b > c & d"), ("<<@U1>", "<@Ada L."), ("*bold* ~x~ :clap:", "*bold* ~x~ :clap:"),
    ])
  func text(raw: String, plain: String) async throws {
    let message = try await message("\"user\":\"U1\",\"text\":\"\(raw)\"")
    #expect(message.message.text == plain)
    #expect(message.textRaw == (raw == plain ? nil : raw))
  }

  @Test("who is mentioned is known")
  func mentions() async throws {
    #expect(try await message("\"user\":\"U1\",\"text\":\"<@W1> and <@U1>\"").message.mentions == ["W1", "U1"])
  }

  @Test("a message without text has that of its blocks, else of its attachments")
  func noText() async throws {
    let blocks = try await message(
      """
      "user":"U1","text":null,"blocks":[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":
      [{"type":"text","text":"a < b "},{"type":"user","user_id":"W1"},{"type":"emoji","name":"clap"}]}]},
      {"type":"section","text":{"type":"mrkdwn","text":"*more*"}}]
      """)
    #expect(blocks.message.text == "a < b @wim:clap:\n*more*")
    let attachments = try await message(
      "\"user\":\"U1\",\"attachments\":[{\"fallback\":\"f\",\"title\":\"t\",\"text\":\"x\"},{\"fallback\":\"only\"}]")
    #expect(attachments.message.text == "t\nx\nonly")
  }

  @Test("edits, actions, deletions, calls, topics")
  func subtypes() async throws {
    let edited = try await message(
      "\"user\":\"U1\",\"text\":\"x\",\"edited\":{\"user\":\"W1\",\"ts\":\"1706860900.5\"}")
    #expect(edited.message.edited == Timestamp(milliseconds: 1_706_860_900_500))
    #expect(edited.message.revision == 1)
    #expect(edited.editedBy == "W1")
    #expect(try await message("\"user\":\"U1\",\"text\":\"waves\",\"subtype\":\"me_message\"").isAction)
    let gone = try await message("\"user\":\"U1\",\"text\":\"This message was deleted.\",\"subtype\":\"tombstone\"")
    #expect(gone.isDeleted)
    #expect(gone.message.text == "")
    let call = try await message(
      "\"user\":\"USLACKBOT\",\"text\":\"\",\"subtype\":\"huddle_thread\",\"room\":{\"created_by\":\"W1\",\"date_start\":1}"
    )
    #expect(call.message.author.id == "W1")
    #expect(call.system == "call")
    #expect(call.message.attributes?["room"]?["date_start"] == 1)
    #expect(try await message("\"user\":\"U1\",\"text\":\"t\",\"subtype\":\"group_topic\"").system == "topic")
    let future = try await message("\"user\":\"U1\",\"text\":\"t\",\"subtype\":\"future_thing\",\"odd\":{\"a\":1}")
    #expect(future.message.text == "t")
    #expect(future.message.attributes?["odd"]?["a"] == 1)
    #expect(future.message.attributes?["subtype"] == "future_thing")
  }

  @Test("changes and deletions as events, where an export has them")
  func events() async throws {
    let records = try await records(
      """
      [{"ts":"1.0","user":"U1","text":"a"},
       {"ts":"2.0","subtype":"message_changed","message":{"ts":"1.0","user":"U1","text":"b"}},
       {"ts":"3.0","subtype":"message_deleted","deleted_ts":"1.0","user":"U1"}]
      """
    ).filter { ["edit", "delete"].contains($0.kind) }
    guard case .edit(let edit) = records.first, case .delete(let deletion) = records.last else {
      Issue.record("\(records)")
      return
    }
    #expect(edit.message.text == "b")
    #expect(edit.message.edited == Timestamp(milliseconds: 2000))
    #expect(deletion.id == "1.0")
  }

  @Test("skin tones make two reactions; fewer users than counted are kept as counted")
  func reactions() async throws {
    let message = try await message(
      """
      "user":"U1","text":"x","reactions":[{"name":"clap::skin-tone-2","users":["U1"],"count":1},
      {"name":"clap::skin-tone-3","users":["U1"],"count":1},{"name":"parrot","users":["U1"],"count":60}]
      """)
    #expect(
      message.reactions == [
        ReactionTally(key: "clap", tone: 2, users: ["U1"], count: 1),
        ReactionTally(key: "clap", tone: 3, users: ["U1"], count: 1),
        ReactionTally(key: "parrot", users: ["U1"], count: 60),
      ])
  }

  @Test("what is no message is skipped, counted and named; a broken day ends there and the rest is read")
  func broken() async throws {
    let day = """
      [{"ts":"1.0","user":"U1","text":"a"},{"mimetype":"application/vnd.slack-docs"},{"text":"no ts"},7,
       {"ts":"x","text":"b"},{"ts":"2.0","user":"U1","text":"c
      """
    let records = try await records(
      day, more: ["lobby/2024-02-03.json": "[{\"ts\":\"3.0\",\"user\":\"U1\",\"text\":\"d\"}]"])
    let skipped = records.compactMap { if case .skipped(let record) = $0 { record } else { nil } }
    #expect(
      skipped.map(\.reason) == [
        "a canvas, which is no message", "no \"ts\"", "no object", "a \"ts\" that is no time",
        "a broken file: byte \(day.utf8.count): the file ends within an element",
      ])
    #expect(skipped.first?.place == "lobby/2024-02-02.json: byte 37")
    #expect(records.last == .end(EndRecord(channel: "C1", isComplete: false, messages: 2)))
  }

  @Test("files' bytes that other tools put into the export are found by identifier")
  func uploads() async throws {
    let path = try export(
      "[{\"ts\":\"1.0\",\"user\":\"U1\",\"text\":\"\",\"files\":[{\"id\":\"F12345\",\"name\":\"a.txt\"}]}]",
      more: ["__uploads/F12345/a.txt": "hello"])
    let source = try SlackSource(path)
    let records = try await ArchiveFixture.all(source)
    guard case .message(let message)? = records.first(where: { $0.kind == "message" }) else { return }
    let digest = try #require(message.message.attachments.first?.sha256)
    #expect(message.files.first?.status == .present)
    #expect(try await source.blob(digest)?.collect(upTo: 10) == Array("hello".utf8))
  }

  @Test("a zip, with names flagged and not, in a folder of its own, with the droppings of a Mac")
  func zip() async throws {
    let day = "[{\"ts\":\"1.0\",\"user\":\"U1\",\"text\":\"a\"}]"
    let channels = "[{\"id\":\"C1\",\"name\":\"m\u{fc}ll\"},{\"id\":\"C2\",\"name\":\"caf\u{e9}\"}]"
    let path = folder.file("export.zip")
    try ArchiveFixture.write(
      ZipFixture.zip([
        .init("x/caf\u{e9}/2024-02-02.json", day, isFlagged: true), .init("x/m\u{fc}ll/2024-02-02.json", day),
        .init("x/channels.json", channels), .init("x/users.json", Self.users), .init("__MACOSX/x/._channels.json", "?"),
        .init("x/canvases.json", "[]"),
      ]), to: path)
    let records = try await ArchiveFixture.all(try SlackSource(path))
    let channelsSeen = records.compactMap { if case .message(let record) = $0 { record.channel } else { nil } }
    #expect(channelsSeen == ["C1", "C2"])
    #expect(records.last == .skipped(SkippedRecord(reason: "a file that is not read", place: "x/canvases.json")))
    let one = try await ArchiveFixture.all(try SlackSource(path, only: "caf\u{e9}"))
    #expect(one.compactMap(\.channel).allSatisfy { $0 == "C2" })
    #expect(throws: FerryError.self) { try SlackSource(path, only: "none") }
  }

  @Test("a channel without a folder is empty, a folder without a channel is one, a spoilt name is put right")
  func folders() async throws {
    let day = "[{\"ts\":\"1.0\",\"user\":\"U1\",\"text\":\"a\"}]"
    let records = try await records(
      "[]",
      more: [
        "mpims.json": "[{\"id\":\"G1\",\"members\":[\"U1\",\"W1\"],\"created\":1}]", "b'lobby'/2024-02-03.json": day,
        "stray/2024-02-03.json": day,
      ])
    let ends = records.compactMap { if case .end(let end) = $0 { "\(end.channel) \(end.messages)" } else { nil } }
    #expect(ends == ["C1 1", "G1 0", "stray 1"])
  }

  @Test("what is no export says so")
  func noExport() throws {
    try ArchiveFixture.write([1], to: folder.file("a.txt"))
    let error = #expect(throws: FerryError.self) { try SlackSource(folder.path) }
    #expect(error?.code == .unsupported)
    #expect(throws: FerryError.self) { try SlackSource(folder.file("a.txt")) }
    #expect(throws: FerryError.self) { try SlackSource(folder.file("none")) }
  }
}
