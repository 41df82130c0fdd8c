import FerryChat
import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import TwilioProvider

private let ada = Author(id: "ada", name: "Ada Lovelace")
private let lobby: ChannelID = "lobby"

/// What happens in the chat itself, as the chat page does it.
@Suite(.timeLimit(.minutes(5))) struct FacadeChatTests {
  @Test func `a room that anybody makes is a conversation, and its people and messages are there at once`() async throws
  {
    let rig = try FacadeRig()
    defer { rig.close() }
    try await rig.facade.setUp()
    try await rig.chat.join(ada, "kitchen", by: .owner)
    let posted = try await rig.chat.post(Draft(author: ada, text: "hi"), to: "kitchen", by: .owner)
    let room = try await rig.get("Conversations/kitchen")
    #expect(room.status == 200)
    #expect(room["unique_name"] == "kitchen")
    let participant = try await rig.get("Conversations/kitchen/Participants/ada")
    #expect(participant["sid"]?.string?.hasPrefix("MB") == true)
    #expect(try await rig.get("Users/ada")["friendly_name"] == "Ada Lovelace")
    let messages = try await rig.get("Conversations/kitchen/Messages")["messages"]?.array
    #expect(messages?.count == 1)
    #expect(messages?.first?["body"] == "hi")
    #expect(messages?.first?["author"] == "ada")
    #expect(messages?.first?["participant_sid"] == participant["sid"])
    #expect(messages?.first?["attributes"] == "{}")
    let sid = try #require(messages?.first?["sid"]?.string)
    #expect(try await rig.get("Conversations/kitchen/Messages/\(sid)")["body"] == "hi")
    // And the other way round.
    try await rig.post("Conversations/kitchen/Messages/\(sid)", [("Body", "better")])
    #expect(try await rig.chat.message(posted.message.message.id, in: "kitchen").message.text == "better")
    try await rig.chat.leave("ada", "kitchen", by: .owner)
    #expect(try await rig.get("Conversations/kitchen/Participants/ada").code == 50432)
    try await rig.post("Conversations/kitchen/Participants", [("Identity", "bob")])
    #expect(try await rig.chat.members(of: "kitchen").map(\.id) == ["bob"])
    // Whom a relay adds under an id goes by the name that the relay tells.
    try await rig.post(
      "Conversations/kitchen/Participants",
      [("Identity", "app:kay"), ("Attributes", #"{"ferry":{"bridge":"lobby","name":"Kay"}}"#)])
    #expect(try await rig.chat.members(of: "kitchen").map(\.name).contains("Kay"))
  }

  @Test func `marks move both ways`() async throws {
    let rig = try FacadeRig()
    defer { rig.close() }
    try await rig.facade.setUp()
    try await rig.chat.join(ada, lobby, by: .owner)
    var ids: [MessageID] = []
    for n in 0..<3 {
      ids.append(try await rig.chat.post(Draft(author: ada, text: "\(n)"), to: lobby, by: .owner).message.message.id)
    }
    try await rig.chat.mark(ReadMark(upTo: ids[1], by: ada, state: .read), in: lobby, by: .owner)
    #expect(try await rig.get("Conversations/lobby/Participants/ada")["last_read_message_index"] == 1)
    try await rig.post("Conversations/lobby/Participants/ada", [("LastReadMessageIndex", "2")])
    #expect(try await rig.chat.marks(in: lobby).map(\.upTo) == [ids[2]])
  }

  @Test func `what others attach is media that can be fetched`() async throws {
    let rig = try FacadeRig()
    defer { rig.close() }
    try await rig.facade.setUp()
    let bytes = Array("some text".utf8)
    let file = try await rig.chat.store(.bytes(bytes), name: "a.txt", mediaType: "text/plain")
    let attachment = Attachment(name: "a.txt", mediaType: "text/plain", reference: .provider(file.sha256))
    _ = try await rig.chat.post(Draft(author: ada, text: "", attachments: [attachment]), to: lobby, by: .owner)
    let message = try await rig.get("Conversations/lobby/Messages")["messages"]?.array?.first
    #expect(message?["body"] == .null)
    let media = try #require(message?["media"]?.array?.first)
    #expect(media["filename"] == "a.txt")
    let sid = try #require(media["sid"]?.string)
    let record = try await rig.send("GET", "/v1/Services/\(FacadeRig.service)/Media/\(sid)")
    #expect(record["message_sid"] == message?["sid"])
    let link = try #require(record["links"]?["content_direct_temporary"]?.string)
    let content = try await rig.send("GET", link.replacing("http://twilio.test", with: ""), credentials: nil)
    #expect(content.bytes == bytes)
    #expect(content.headers["Content-Security-Policy"] != nil)
  }

  @Test func `nobody writes to a closed conversation, the page neither`() async throws {
    let rig = try FacadeRig()
    defer { rig.close() }
    try await rig.post("Conversations/lobby", [("State", "closed")])
    let error = await #expect(throws: FerryError.self) {
      _ = try await rig.chat.post(Draft(author: ada, text: "late"), to: lobby, by: .owner)
    }
    #expect(error?.code == .forbidden)
    #expect(try await rig.get("Conversations/lobby/Messages")["messages"] == [])
  }

  @Test func `a facade that was away learns what happened meanwhile, once`() async throws {
    let rig = try FacadeRig()
    try await rig.post("Conversations/lobby/Messages", [("Body", "first")])
    rig.close()
    // Somebody else has the chat for a while.
    let other = try ChatService(
      path: rig.folder.file("chat.db"), files: rig.folder.file("files"), clock: rig.clock, logger: .silent,
      limits: rig.settings.chatLimits)
    try await other.join(ada, "new", by: .owner)
    _ = try await other.post(Draft(author: ada, text: "alone"), to: "new", by: .owner)
    try await other.leave("ada", "new", by: .owner)
    try await other.join(ada, lobby, by: .owner)
    other.close()
    let again = try FacadeRig(folder: rig.folder, clock: rig.clock)
    defer { again.close() }
    #expect(try await again.get("Conversations/new/Participants")["participants"] == [])
    #expect(try await again.get("Conversations/lobby/Participants")["participants"]?.array?.count == 1)
    #expect(try await again.get("Conversations/new/Messages")["messages"]?.array?.count == 1)
    #expect(try await again.get("Conversations")["conversations"]?.array?.count == 2)
  }
}
