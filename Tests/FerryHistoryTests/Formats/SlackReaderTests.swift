import FerryCore
import FerryRuntime
import FerryTestKit
import FoundationEssentials
import Testing

@testable import FerryHistory

/// What the importers of Mattermost, Rocket.Chat and Zulip look for in an export, each by its own way through the files.
///
/// Source: the page "Who reads an export in Slack's shape" in FerryHistory's catalog.
@Suite(.timeLimit(.minutes(2))) struct SlackReaderTests {
  private let folder: TemporaryFolder
  private let export: String
  private let report: SlackExport.Report

  private static let ada = Author(id: "ada@example.org", name: "Ada")
  /// Of the same name.
  private static let other = Author(id: "UADA2", name: "ada")
  private static let bot = Author(id: "bot-7", name: "all")
  private static let start = ArchiveFixture.start.milliseconds

  private static func message(
    _ id: String, _ minute: Int64, by author: Author = ada, in channel: ChannelID = "lobby",
    change: (inout MessageRecord) -> Void = { _ in }
  ) -> Record {
    let time = Timestamp(milliseconds: start + minute * 60_000)
    var record = MessageRecord(
      channel: channel, message: Message(id: MessageID(id), author: author, text: "said \(id)", time: time))
    change(&record)
    return .message(record)
  }

  private static var story: [Record] {
    let day: Int64 = 24 * 60
    return [
      .channel(ChannelRecord(id: "lobby", name: "Lobby", type: "public", members: [ada.id, "silent"])),
      .channel(ChannelRecord(id: "quiet", name: "Quiet", created: Timestamp(milliseconds: start))),
      .channel(ChannelRecord(id: "D1", name: "two of us", type: "direct", members: [ada.id, other.id])),
      .channel(ChannelRecord(id: "D2", name: "note to self", type: "direct", members: [ada.id])),
      .channel(ChannelRecord(id: "G1", name: "three", type: "group", members: [ada.id, other.id, bot.id])),
      .channel(
        ChannelRecord(id: "G2", name: "many", type: "group", members: (0..<9).map { UserID("U000\($0)") })),
      .person(PersonRecord(id: bot.id, name: bot.name, type: "bot")),
      message("first", 0),
      message("answer", 1, by: other) { $0.message.replyTo = "first" },
      message("answer to the answer", day, by: bot) { $0.message.replyTo = "answer" },
      message("told to all", day + 1, by: other) {
        $0.thread = "first"
        $0.isBroadcast = true
      },
      message("orphan", day + 2) { $0.message.replyTo = "nowhere" },
      // Of one millisecond.
      message("twin 1", day + 3), message("twin 2", day + 3),
      message("new topic", day + 4) { $0.system = "topic" },
      message("file", day + 5) { record in
        record.message.attachments = [
          FerryCore.Attachment(
            name: "a.png", mediaType: "image/png", size: 5, reference: .url("https://example.org/a.png"))
        ]
        record.files = [FileState(status: .remote)]
      },
      message("private", 3, in: "D1"), message("alone", 4, in: "D2"), message("three", 5, in: "G1"),
      .reaction(
        ReactionRecord(
          channel: "lobby",
          reaction: Reaction(message: "first", by: Author(id: "liker", name: "liker"), emoji: "clap", added: true))),
    ]
  }

  init() async throws {
    folder = try TemporaryFolder()
    export = folder.file("export")
    let archive = folder.file("story.ferry")
    let writer = try ArchiveWriter(folder: archive, header: ArchiveFixture.header)
    try await writer.append(Self.story)
    try await writer.finish()
    report = try await SlackExport.write(try await FoldedRecords(archive), to: export)
  }

  private func list(_ name: String) throws -> [JSONValue] {
    let data = try #require(FileManager.default.contents(atPath: "\(export)/\(name)"), "there is no \(name)")
    return try #require(try JSON.decode(JSONValue.self, from: data).array)
  }

  private func days(_ folder: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: "\(export)/\(folder)").sorted()
  }

  /// Of a folder, by their texts.
  private func messages(_ folder: String) throws -> [String: JSONValue] {
    let all = try days(folder).flatMap { try list("\(folder)/\($0)") }
    return Dictionary(uniqueKeysWithValues: all.map { ($0["text"]?.string ?? "", $0) })
  }

  private func user(named real: String) throws -> JSONValue {
    try #require(try list("users.json").first { $0["profile"]?["real_name"]?.string == real })
  }

  // MARK: Files

  @Test("the lists that are asked for are there, and every channel has its folder with days in it")
  func files() throws {
    for name in ["channels", "groups", "dms", "mpims", "users", "integration_logs"] { _ = try list("\(name).json") }
    for name in ["channels", "groups", "mpims"] {
      for channel in try list("\(name).json") {
        let days = try days(try #require(channel["name"]?.string))
        #expect(!days.isEmpty)
        for day in days { #expect(day.count == 15 && day.hasSuffix(".json")) }
      }
    }
    #expect(try list("quiet/\(Timestamp(milliseconds: Self.start).iso8601.prefix(10)).json").isEmpty)
    #expect(try days("lobby").count == 2)
  }

  @Test("a channel has a creator, a time, a purpose and members who are all in the list of people")
  func channels() throws {
    let people = Set(try list("users.json").compactMap { $0["id"]?.string })
    for name in ["channels", "groups", "mpims", "dms"] {
      for channel in try list("\(name).json") {
        let creator = try #require(channel["creator"]?.string)
        #expect(people.contains(creator))
        #expect(channel["created"]?.integer != nil && channel["id"]?.string != nil)
        #expect(channel["is_archived"]?.bool == false && channel["is_general"]?.bool == false)
        #expect(channel["purpose"]?["value"]?.string != nil && channel["topic"]?["value"]?.string != nil)
        let members = try #require(channel["members"]?.array).compactMap(\.string)
        #expect(people.isSuperset(of: members))
      }
    }
  }

  @Test("conversations of two lie under their identifier and bear no name; others are groups that can be taken")
  func direct() throws {
    let direct = try list("dms.json")
    #expect(direct.map { $0["members"]?.array?.count } == [2])
    #expect(direct.allSatisfy { $0["name"] == nil })
    let id = try #require(direct.first?["id"]?.string)
    #expect(try messages(id).keys.sorted() == ["said private"])
    let groups = try list("mpims.json")
    #expect(groups.compactMap { $0["name"]?.string } == ["three"])
    #expect(try list("groups.json").compactMap { $0["name"]?.string }.sorted() == ["many", "note-to-self"])
    #expect(try messages("note-to-self").count == 1)
  }

  // MARK: People

  @Test("everybody who is named anywhere is there, under a name of their own, with an address")
  func people() throws {
    let people = try list("users.json")
    let ids = Set(people.compactMap { $0["id"]?.string })
    let names = people.compactMap { $0["name"]?.string }
    #expect(Set(names).count == people.count)
    #expect(Set(names).isDisjoint(with: ["all", "channel", "matterbot", "system"]))
    for name in names {
      #expect(
        name.utf8.count <= 64 && name.allSatisfy { $0.isASCII && ($0.isLowercase || $0.isNumber || "-_.".contains($0)) }
      )
    }
    #expect(Set(people.compactMap { $0["profile"]?["email"]?.string }).count == people.count)
    for real in ["silent", "liker", "Ada", "ada"] { _ = try user(named: real) }
    let first = try #require(try messages("lobby")["said first"])
    #expect(ids.isSuperset(of: first["reactions"]?.array?.first?["users"]?.array?.compactMap(\.string) ?? ["nobody"]))
  }

  @Test("a bot is known by the identifier that its messages bear")
  func bots() throws {
    let bot = try user(named: "all")
    #expect(bot["is_bot"]?.bool == true)
    let answer = try #require(try messages("lobby")["said answer to the answer"])
    #expect(bot["profile"]?["bot_id"]?.string == answer["user"]?.string)
    #expect(try user(named: "Ada")["profile"]?["bot_id"] == nil)
  }

  // MARK: Messages

  @Test("times are strings with six digits, once in a channel, in the order of what was said")
  func times() throws {
    let all = try days("lobby").flatMap { try list("lobby/\($0)") }
    let times = all.compactMap { $0["ts"]?.string }
    #expect(times.count == all.count && Set(times).count == all.count && times == times.sorted())
    #expect(times.allSatisfy { $0.split(separator: ".").map(\.utf8.count) == [10, 6] })
    #expect(all.allSatisfy { $0["type"]?.string == "message" && $0["user"]?.string != nil })
  }

  @Test("a thread is one deep, and its first message and its answers name one another")
  func threads() throws {
    let all = try messages("lobby")
    let first = try #require(all["said first"])
    let ts = try #require(first["ts"]?.string)
    #expect(first["thread_ts"]?.string == ts)
    let answers = ["said answer", "said answer to the answer", "said told to all"].compactMap { all[$0] }
    #expect(answers.count == 3)
    for answer in answers {
      #expect(answer["thread_ts"]?.string == ts)
      #expect(answer["parent_user_id"] == first["user"])
    }
    #expect(first["reply_count"] == 3 && first["latest_reply"] == answers[2]["ts"])
    #expect(first["replies"]?.array?.compactMap { $0["ts"] } == answers.compactMap { $0["ts"] })
    #expect(first["replies"]?.array?.compactMap { $0["user"] } == answers.compactMap { $0["user"] })
    #expect(Set(first["reply_users"]?.array ?? []) == Set(answers.compactMap { $0["user"] }))
    #expect(answers[2]["subtype"] == "thread_broadcast")
    #expect(answers[2]["root"]?["user"] == first["user"] && answers[2]["root"]?["ts"]?.string == ts)
    // The first message comes before its answers, in days of any order of reading by name.
    #expect(answers.allSatisfy { ($0["ts"]?.string ?? "") > ts })
    let orphan = try #require(all["said orphan"])
    #expect(orphan["thread_ts"] == nil)
    #expect(report.dropped["reply"] == 1)
    for plain in ["said twin 1", "said file"] { #expect(all[plain]?["thread_ts"] == nil) }
  }

  @Test("a change of topic says what is new in a field of its own")
  func subtypes() throws {
    let topic = try #require(try messages("lobby")["said new topic"])
    #expect(topic["subtype"] == "channel_topic" && topic["topic"] == "said new topic")
  }

  @Test("a file has its address twice, its times and its size")
  func attachments() throws {
    let file = try #require(try messages("lobby")["said file"]?["files"]?.array?.first)
    for name in ["url_private", "url_private_download"] { #expect(file[name] == "https://example.org/a.png") }
    #expect(file["timestamp"]?.integer == file["created"]?.integer && file["created"]?.integer != nil)
    #expect(file["size"] == 5 && file["mode"] == "hosted" && file["is_external"] == false)
    #expect(file["id"]?.string?.first == "F" && file["name"] == "a.png" && file["mimetype"] == "image/png")
  }

  @Test("a zip without files has nothing in it but lists and days, and one with them has them in one place")
  func zip() async throws {
    let path = folder.file("export.zip")
    _ = try await SlackExport.write(try await FoldedRecords(folder.file("story.ferry")), to: path)
    for name in try Container(path).entries.map(\.name) {
      let parts = name.split(separator: "/", omittingEmptySubsequences: false)
      #expect(parts.count <= 2 && name.hasSuffix(".json"), "\(name)")
    }
  }
}
