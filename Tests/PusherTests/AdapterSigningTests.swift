import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import PusherProvider

/// Signing by an endpoint, and signing in, over real sockets.
@Suite(.timeLimit(.minutes(1))) struct AdapterSigningTests {
  /// What an endpoint was asked.
  private struct Asked: Sendable {
    var forms: [[String: String]] = []
    var headers: [String?] = []
  }

  /// An app's endpoint beside a facade: what it answers to the first questions, and then the truth.
  private static func beside(
    first answers: [HTTPResponse],
    _ body: @escaping @Sendable (Service, ScriptedService, Observed<Asked>) async throws -> Void
  ) async throws {
    let asked = Observed(Asked())
    try await Service.serving { service in
      try await ScriptedService.serving { request in
        let bytes = (try? await request.body.collect(upTo: 10_000)) ?? []
        let form = Dictionary(PercentEncoding.pairs(String(decoding: bytes, as: UTF8.self)).map { ($0.name, $0.value) })
        { $1 }
        let count = asked.update { asked in
          asked.forms.append(form)
          asked.headers.append(request.headers["Authorization"])
          return asked.forms.count
        }
        if count <= answers.count { return answers[count - 1] }
        let (socketID, channel) = (form["socket_id"] ?? "", form["channel_name"] ?? "")
        let data = channel.hasPrefix("presence-") ? #"{"user_id": 12, "user_info": {"name": "Bridge"}}"# : nil
        var answer = ["auth": service.appKey.channelAuth(socketID: socketID, channel: channel, channelData: data)]
        answer["channel_data"] = data
        return .json(answer)
      } _: { scripted in
        try await body(service, scripted, asked)
      }
    }
  }

  private static func settings(_ service: Service, _ scripted: ScriptedService) -> PusherAdapter.Settings {
    var settings = scripted.settings
    settings.api = service.server.url
    settings.socket = "ws" + service.server.url.dropFirst(4)
    settings.auth = Endpoint(
      url: scripted.server.url + "/pusher/auth", headers: [("Authorization", Secret("Bearer app-token"))])
    return settings
  }

  @Test func `an account without a secret listens by the endpoint's signatures, anew on every connection`() async throws
  {
    try await Self.beside(first: []) { service, scripted, asked in
      let channels = ["chatroom", "private-a", "presence-a"]
      try await scripted.running(Self.settings(service, scripted), channels) { adapter, inbox in
        await inbox.connected()
        #expect(Set(asked.value.forms.map { $0["channel_name"] }) == ["private-a", "presence-a"])
        #expect(asked.value.headers.allSatisfy { $0 == "Bearer app-token" })
        let before = Set(asked.value.forms.map { $0["socket_id"] })
        for channel in channels {
          try await service.trigger("new_message", on: channel, data: #"{"text":"on \#(channel)"}"#)
          #expect(await inbox.message("on \(channel)") != nil)
        }
        // It is who the endpoint says, and that is nobody's news.
        let client = try await service.connect()
        #expect(try await client.subscribe("presence-a", as: "bob").contains(#"\"12\":{\"name\":\"Bridge\"}"#))
        for connection in service.facade.hub.withLock({ Array($0.connections.values) }) {
          PusherFacade.end(connection.socket, .reconnect, "again")
        }
        _ = await inbox.wait { $0.gaps.count == 3 && $0.connections.last?.phase == .connected ? true : nil }
        #expect(asked.value.forms.count >= 4)
        #expect(asked.value.forms.suffix(2).allSatisfy { !before.contains($0["socket_id"]) })
        let joins = inbox.now.events.compactMap { event -> UserID? in
          if case .joined(let membership) = event.kind { membership.member.id } else { nil }
        }
        #expect(!joins.contains("12"))

        let error = await #expect(throws: FerryError.self) { try await adapter.post(Rig.message("x"), to: "chatroom") }
        #expect(error?.code == .unsupported && error?.didNotAct == true && error?.retry == .never)
        #expect(adapter.capabilities.absent["posts"] != nil && !adapter.capabilities.edits)
      }
    }
  }

  @Test func `an endpoint that refuses or talks nonsense is reported and asked again`() async throws {
    let answers: [HTTPResponse] = [
      .text("no", status: 403), .json(["auth": "k:s"], status: 201), .text("<html>"), .json(["auth": ""]),
    ]
    let clock = ManualClock()
    try await Self.beside(first: answers) { service, scripted, asked in
      let client = HTTPClient(loop: scripted.loop, guard: AddressGuard(allowedHosts: ["127.0.0.1"]), logger: .silent)
      let adapter = PusherAdapter(
        settings: Self.settings(service, scripted), client: client, clock: clock, logger: .silent)
      let inbox = RecordingInbox()
      await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await adapter.run([Subscription(channel: "private-a")], into: inbox) }
        for count in 1...answers.count {
          let reported = await inbox.wait { record in
            let reports = record.connections.filter { $0.phase == .degraded }
            return reports.count >= count ? reports : nil
          }
          #expect(reported?.allSatisfy { $0.reason?.hasPrefix("private-a: The auth endpoint") == true } == true)
          #expect(asked.value.forms.count == count)
          // The back-off and the watch over the line; only the former ends.
          await clock.waitForSleepers(2)
          clock.advance(by: .seconds(1 << count))
        }
        await inbox.connected()
        group.cancelAll()
      }
    }
  }

  // MARK: Sign-in

  @Test func `the account's user signs in before it joins, and joins as that user`() async throws {
    let said = Observed<[String]>([])
    try await ScriptedService.serving { _ in
      ScriptedService.socket { socket in
        socket.send(FrameText.established(socketID: "12.34", activityTimeout: 120))
        while case .text(let text) = await socket.next() {
          said.update { $0.append(text) }
          guard let frame = Frame(text: text) else { continue }
          switch frame.event {
          case "pusher:signin":
            let userData = frame.data?.parsed["user_data"] ?? .null
            socket.send(FrameText.object("pusher:signin_success", ["user_data": userData]))
          case "pusher:subscribe":
            let channel = frame.data?.parsed["channel"]?.string ?? ""
            let list = #"{"presence":{"ids":["bot"],"hash":{"bot":{"name":"The bridge"}},"count":1}}"#
            socket.send(FrameText.event("pusher_internal:subscription_succeeded", channel: channel, data: list))
          default: break
          }
        }
      }
    } _: { scripted in
      var settings = scripted.settings
      settings.secret = Secret("demo-secret")
      settings.user = AccountUser(id: "bot", info: ["name": "The bridge"])
      try await scripted.running(settings, ["presence-a"]) { _, inbox in
        await inbox.connected()
        let frames = said.value.compactMap { Frame(text: $0) }
        #expect(frames.map(\.event) == ["pusher:signin", "pusher:subscribe"])
        let userData = #"{"id":"bot","user_info":{"name":"The bridge"}}"#
        let appKey = AppKey(key: "demo-key", secret: Secret("demo-secret"))
        #expect(frames[0].data?.parsed["auth"]?.string == appKey.userAuth(socketID: "12.34", userData: userData))
        #expect(frames[0].data?.parsed["user_data"]?.string == userData)
        #expect(
          frames[1].data?.parsed["channel_data"]?.string == #"{"user_id":"bot","user_info":{"name":"The bridge"}}"#)
        #expect(inbox.now.events.isEmpty)
      }
    }
  }

  @Test func `the facade takes the sign-in, and the account joins as its user`() async throws {
    let bot = AccountUser(id: "bot", info: ["name": "The bridge"])
    try await Rig.running(
      "presence-a", "private-encrypted-a",
      settings: { settings in
        settings.user = bot
        settings.encryption = try? SecretBoxTests.masterKey()
      }
    ) { rig in
      // Connected, not degraded: the sign-in has succeeded.
      let client = try await rig.service.connect()
      #expect(try await client.subscribe("presence-a", as: "bob").contains(#"\"bot\":{\"name\":\"The bridge\"}"#))
      #expect(try await rig.adapter.members(of: "presence-a") == [Author(id: "bob", name: "bob!")])
    }
  }
}
