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

@Suite(.timeLimit(.minutes(5))) struct FacadeTimeTests {
  private let png: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, 3]

  @Test func `media that no message takes is gone after five minutes`() async throws {
    let rig = try FacadeRig()
    defer { rig.close() }
    let early = try #require(try await rig.upload(png)["sid"]?.string)
    rig.clock.advance(by: .seconds(200))
    let taken = try #require(try await rig.upload(png)["sid"]?.string)
    let message = try await rig.post("Conversations/lobby/Messages", [("MediaSid", taken)])
    #expect(message.status == 201)
    rig.clock.advance(by: .seconds(99))
    let media = "/v1/Services/\(FacadeRig.service)/Media"
    #expect(try await rig.send("GET", "\(media)/\(early)").status == 200)
    rig.clock.advance(by: .seconds(1))
    #expect(try await rig.send("GET", "\(media)/\(early)").code == 50507)
    #expect(try await rig.post("Conversations/lobby/Messages", [("MediaSid", early)]).code == 50507)
    rig.clock.advance(by: .seconds(1000))
    #expect(try await rig.send("GET", "\(media)/\(taken)").status == 200)
    // Collected, not just hidden.
    _ = try await rig.facade.write { try $0.endWhatIsDue() }
    #expect(try await rig.chat.count(in: "media") == 1)
    #expect(try await rig.chat.count(in: "unattached") == 0)
  }

  @Test func `a link to media works for five minutes`() async throws {
    let rig = try FacadeRig()
    defer { rig.close() }
    let sid = try #require(try await rig.upload(png)["sid"]?.string)
    try await rig.post("Conversations/lobby/Messages", [("MediaSid", sid)])
    let record = try await rig.send("GET", "/v1/Services/\(FacadeRig.service)/Media/\(sid)")
    let link = try #require(record["links"]?["content_direct_temporary"]?.string)
    let path = link.replacing("http://twilio.test", with: "")
    #expect(try await rig.send("GET", path, credentials: nil).bytes == png)
    rig.clock.advance(by: .seconds(299))
    #expect(try await rig.send("GET", path, credentials: nil).status == 200)
    rig.clock.advance(by: .seconds(1))
    #expect(try await rig.send("GET", path, credentials: nil).status == 403)
  }

  @Test func `timers make a conversation inactive, a message wakes it, and in the end it closes`() async throws {
    let rig = try FacadeRig()
    defer { rig.close() }
    try await rig.post("Conversations/lobby", [("Timers.Inactive", "PT1M"), ("Timers.Closed", "PT10M")])
    let shown = try await rig.get("Conversations/lobby")["timers"]
    #expect(shown?["date_inactive"]?.string == TwilioDate.seconds(rig.clock.now().advanced(by: .seconds(60))))
    func state() async throws -> JSONValue? { try await rig.get("Conversations/lobby")["state"] }
    func pass(_ seconds: Int64) async throws {
      rig.clock.advance(by: .seconds(seconds))
      _ = try await rig.facade.write { try $0.endWhatIsDue() }
    }
    try await pass(59)
    #expect(try await state() == "active")
    try await pass(1)
    #expect(try await state() == "inactive")
    _ = try await rig.chat.post(Draft(author: ada, text: "wake"), to: lobby, by: .owner)
    #expect(try await state() == "active")
    try await pass(60)
    #expect(try await state() == "inactive")
    try await pass(540)
    #expect(try await state() == "closed")
    #expect(try await rig.post("Conversations/lobby/Messages", [("Body", "x")]).code == 50377)
  }
}
