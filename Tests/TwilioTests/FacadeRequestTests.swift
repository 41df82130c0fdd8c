import FerryChat
import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import TwilioProvider

private let lobby: ChannelID = "lobby"

@Suite(.timeLimit(.minutes(5))) struct FacadeRequestTests {
  @Test func `a page token is bound to its place, not to a number`() async throws {
    let rig = try FacadeRig()
    defer { rig.close() }
    for n in 0..<5 { try await rig.post("Conversations/lobby/Messages", [("Body", "\(n)")]) }
    let first = try await rig.get("Conversations/lobby/Messages?PageSize=2")
    let next = try #require(first["meta"]?["next_page_url"]?.string)
    #expect(next.hasPrefix("http://twilio.test/v1/Conversations/lobby/Messages?"))
    let path = next.replacing("http://twilio.test", with: "")
    let second = try await rig.send("GET", path)
    #expect(second["messages"]?.array?.map { $0["body"]?.string } == ["2", "3"])
    #expect(second["meta"]?["page"] == 1)
    let back = try #require(second["meta"]?["previous_page_url"]?.string)
    let again = try await rig.send("GET", back.replacing("http://twilio.test", with: ""))
    #expect(again["messages"] == first["messages"])
    #expect(again["meta"]?["previous_page_url"] == .null)
  }

  @Test func `a configured address stands in all URLs`() async throws {
    let rig = try FacadeRig { $0.publicURL = "https://chat.example.org" }
    defer { rig.close() }
    let room = try await rig.get("Conversations/lobby")
    #expect(room["url"]?.string?.hasPrefix("https://chat.example.org/v1/Conversations/CH") == true)
    let list = try await rig.get("Conversations")
    #expect(list["meta"]?["url"]?.string?.hasPrefix("https://chat.example.org/v1/Conversations?") == true)
  }

  @Test func `a conversation that is deleted takes everything with it`() async throws {
    let rig = try FacadeRig()
    defer { rig.close() }
    let before = try #require(try await rig.get("Conversations/lobby")["sid"]?.string)
    try await rig.post(
      "Conversations/lobby/Participants",
      [("MessagingBinding.Address", "+15551230001"), ("MessagingBinding.ProxyAddress", "+15559990000")])
    try await rig.post("Conversations/lobby/Participants", [("Identity", "ada")])
    let media = try #require(try await rig.upload([1, 2, 3])["sid"]?.string)
    try await rig.post("Conversations/lobby/Messages", [("MediaSid", media)])
    try await rig.post("Conversations/lobby/Webhooks", [("Target", "studio")])
    #expect(try await rig.send("DELETE", "/v1/Conversations/lobby").status == 204)
    #expect(try await rig.get("Conversations/lobby").code == 50350)
    for prefix in ["participants/", "members/", "receipts/", "hooks/", "attached/", "of/", "at/"] {
      let left = try await rig.chat.read { try $0.collections(beginningWith: prefix) }
      #expect(left == [], "\(prefix)")
    }
    #expect(try await rig.chat.count(in: "media") == 0)
    #expect(try await rig.chat.rooms().isEmpty)
    // The name is free again, and what comes under it is new.
    try await rig.post("Conversations", [("UniqueName", "lobby")])
    let after = try await rig.get("Conversations/lobby")
    #expect(after["sid"]?.string != before)
    #expect(try await rig.get("Conversations/lobby/Messages")["messages"] == [])
    #expect(try await rig.chat.rooms().map(\.id) == [lobby])
  }

  @Test func `two with one name meet nowhere`() async throws {
    let rig = try FacadeRig()
    defer { rig.close() }
    // The room keeps its name when the conversation takes another.
    try await rig.post("Conversations/lobby", [("UniqueName", "hall")])
    try await rig.post("Conversations", [("UniqueName", "lobby")])
    try await rig.post("Conversations/lobby/Messages", [("Body", "new")])
    #expect(try await rig.get("Conversations/hall/Messages")["messages"] == [])
    #expect(try await rig.get("Conversations/lobby/Messages")["messages"]?.array?.count == 1)
    #expect(try await rig.chat.rooms().count == 2)
  }

  @Test func `concurrent updates of one participant lose nothing`() async throws {
    let rig = try FacadeRig()
    defer { rig.close() }
    try await rig.post("Conversations/lobby/Participants", [("Identity", "ada")])
    let role = try await rig.post(
      "Roles", [("FriendlyName", "r"), ("Type", "conversation"), ("Permission", "sendMessage")])
    let sid = try #require(role["sid"]?.string)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for n in 0..<20 {
        group.addTask {
          try await rig.post("Conversations/lobby/Participants/ada", [("Attributes", "{\"n\":\(n)}")])
        }
      }
      group.addTask { try await rig.post("Conversations/lobby/Participants/ada", [("RoleSid", sid)]) }
      group.addTask { try await rig.post("Conversations/lobby/Participants/ada", [("LastReadMessageIndex", "7")]) }
      try await group.waitForAll()
    }
    let participant = try await rig.get("Conversations/lobby/Participants/ada")
    #expect(participant["role_sid"]?.string == sid)
    #expect(participant["last_read_message_index"] == 7)
    #expect(participant["attributes"] != "{}")
  }

  @Test(
    "hostile input is refused and harms nothing",
    arguments: [
      "Body=%00%ff%fe&Author=%0a", "Body=x&Author=a%00b", "Body=x&Attributes=%7B%22a%22%3A", "%%%=%%&==&&&", "Body",
      "Body=x&DateCreated=99999-01-01T00:00:00Z", "Body=x&DateCreated=0001-01-01T00:00:00Z", "MediaSid=..%2F..%2Fx",
      "ContentSid=HX", "Body=x&Attributes=" + String(repeating: "%5B", count: 600),
    ])
  func hostile(form: String) async throws {
    let rig = try FacadeRig()
    defer { rig.close() }
    let answer = try await rig.send("POST", "/v1/Conversations/lobby/Messages", Form(decoding: Array(form.utf8)))
    #expect([201, 400, 404].contains(answer.status), "\(answer.status)")
    let list = try await rig.get("Conversations/lobby/Messages")
    #expect(list.status == 200)
    for index in ["-1", "9223372036854775807", "-9223372036854775808", "null", "x"] {
      try await rig.post("Conversations/lobby/Participants", [("Identity", "ada")])
      let read = try await rig.post("Conversations/lobby/Participants/ada", [("LastReadMessageIndex", index)])
      #expect([200, 400].contains(read.status))
      #expect(try await rig.get("Users/ada/Conversations").status == 200)
    }
  }

  @Test func `SIDs of messages are worked out both ways, and made-up ones are none`() {
    let sids = DerivedSID(accountSID: FacadeRig.account)
    for number: Int64 in [1, 255, 1_764_000_000_000_000, .max] {
      let id = MessageID(String(number))
      #expect(sids.messageID(sids.message(id)) == id)
      #expect(SID.isOne(sids.message(id), of: .message))
      let place = sids.mediaPlace(sids.media(id, 31))
      #expect(place?.id == id)
      #expect(place?.index == 31)
    }
    #expect(sids.messageID("IM" + String(repeating: "0", count: 32)) == nil)
    #expect(sids.messageID("IM0000000000000001" + String(repeating: "0", count: 16)) == nil)
    #expect(DerivedSID(accountSID: "AC2").messageID(sids.message("1")) == nil)
  }

  @Test(
    "paths name what they name",
    arguments: [
      ("Conversations", Route.conversations), ("Conversations/a/b", .conversation("a/b")),
      ("Conversations/a/b/Messages", .messages("a/b")), ("Conversations/Messages", .conversation("Messages")),
      ("Conversations/a/Messages/IM1/Receipts/DY1", .receipt("a", "IM1", "DY1")),
      ("Conversations/a/Participants/x/y", .participant("a", "x/y")),
      ("Users/x/y/Conversations/a/b", .userConversation("x/y", "a/b")), ("Users/x", .user("x")),
      ("Configuration/Webhooks", .webhookConfiguration), ("Services", .services),
    ])
  func routes(path: String, route: Route) {
    #expect(Route(path.split(separator: "/").map(String.init), inService: false) == route)
  }
}
