import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import PusherProvider

@Suite(.timeLimit(.minutes(10))) struct FacadeFuzzTests {
  /// The same sequence every time, so that a failure can be had again.
  private struct Random: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return state ^ (state >> 29)
    }
    mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8.random(in: 0...255, using: &self) } }
    /// A frame with a few bytes changed, dropped or doubled.
    mutating func spoiled(_ text: String) -> String {
      var bytes = Array(text.utf8)
      for _ in 0..<Int.random(in: 1...4, using: &self) where !bytes.isEmpty {
        let index = Int.random(in: 0..<bytes.count, using: &self)
        switch Int.random(in: 0...2, using: &self) {
        case 0: bytes[index] = UInt8.random(in: 0...127, using: &self)
        case 1: bytes.remove(at: index)
        default: bytes.insert(bytes[index], at: index)
        }
      }
      return String(decoding: bytes, as: UTF8.self)
    }
  }

  @Test func `frames of any shape disturb nobody else`() async throws {
    try await Service.serving { service in
      let witness = try await service.connect()
      try await witness.subscribe("presence-a", as: "witness")
      let good = [
        #"{"event":"pusher:subscribe","data":{"channel":"presence-a","auth":"demo-key:00","channel_data":"{}"}}"#,
        #"{"event":"pusher:unsubscribe","data":{"channel":"presence-a"}}"#,
        #"{"event":"client-x","channel":"presence-a","data":{"a":[1,2,{"b":null}]}}"#,
        ##"{"event":"pusher:subscribe","data":{"channel":"#server-to-user-a","auth":""}}"##,
        String(repeating: "[", count: 5000),
        #"{"event":"client-x","channel":"private-a","data":\#(String(repeating: "[", count: 600))}"#,
        #"{"event":"pusher:subscribe","data":{"channel":["a"],"auth":{"a":1}}}"#,
      ]
      let other = try await service.connect()
      var random = Random(state: 7)
      let frames = good + (0..<400).map { _ in random.spoiled(good[Int.random(in: 0..<4, using: &random)]) }
      for frame in frames {
        // Whatever the answers, the facade still answers this client.
        other.send(frame)
        other.send(FrameText.ping)
        while try await other.next() != FrameText.pong {}
      }
      other.socket.send([1, 2, 3])
      #expect(try await other.next() == FrameText.error(nil, "Binary frames are not supported"))
      other.send(String(repeating: "x", count: 100_001))
      #expect(await other.socket.nextClose() == 1009)
      #expect(try await witness.isQuiet())
    }
  }

  @Test func `requests of any shape get a refusal each`() async throws {
    try await Service.serving { service in
      var random = Random(state: 11)
      let body = #"{"name":"e","channels":["a"],"data":"1","socket_id":"1.2","info":"user_count"}"#
      let path = "/apps/1001/events"
      for _ in 0..<200 {
        // Signed well: the body alone is at fault, and may even be good.
        let spoiled = random.spoiled(body)
        let answer = try await service.send("POST", path, body: spoiled)
        #expect([200, 400].contains(answer.status), "\(spoiled): \(answer.status) \(answer.text)")
        // Random bytes under a good signature.
        let garbage = random.bytes(Int.random(in: 1...200, using: &random))
        let query = service.appKey.signed(
          method: "POST", path: path, body: garbage, seconds: service.clock.now().milliseconds / 1000
        ).map { "\($0.name)=\($0.value)" }.joined(separator: "&")
        let refused = try await service.raw("POST", "\(path)?\(query)", body: garbage)
        #expect(refused.status == 400)
        // A query with something wrong in it.
        let changed = random.spoiled(query).filter { $0 > " " && $0 != "#" && $0.isASCII && $0 != "\u{7f}" }
        let unsigned = try await service.raw("POST", "\(path)?\(changed)", body: garbage)
        #expect([400, 401].contains(unsigned.status), "\(changed): \(unsigned.status)")
      }
      #expect(try await service.trigger("e", on: "a", data: "1").status == 200)
    }
  }

  /// Anybody may, without a key: what they can fill the log with is nothing.
  @Test func `who goes away in the middle of a request is not written about`() async throws {
    let lines = Observed<[String]>([])
    let logger = Logger(component: "test", level: .info, write: { line in lines.update { $0.append(line) } })
    let facade = PusherFacade(
      settings: PusherFacade.Settings(appID: "1001", key: "demo-key", secret: Secret("demo-secret")),
      store: MemoryCacheStore(), clock: SystemClock(), logger: logger, metrics: nil)
    let body = ByteStream { () throws(FerryError) in throw FerryError.cancelled() }
    let response = await facade.handle(HTTPRequest(method: "POST", path: "/apps/1001/events", body: body))
    #expect(response.status == 503)
    #expect(lines.value.isEmpty)
  }

  @Test func `sign-ins of any shape end the connection that sent them and no other`() async throws {
    try await Service.serving(adjust: { $0.watchlist = true }) { service in
      let witness = try await service.connect()
      try await witness.signIn(#"{"id":"witness","watchlist":["a"]}"#)
      _ = try await witness.next()
      var random = Random(state: 13)
      let good = #"{"id":"a","user_info":{"name":"Ann"},"watchlist":["b",{"c":1},7,null]}"#
      for _ in 0..<100 {
        // Signed well: what is signed may be anything.
        let client = try await service.connect()
        let answer = try await client.signIn(random.spoiled(good))
        if answer.contains("signin_success") {
          // Confirmed, and perhaps told about those it watches.
          client.send(FrameText.ping)
          while try await client.next() != FrameText.pong {}
          client.close()
        } else {
          #expect(answer.contains(#""code":4009"#), "\(answer)")
          #expect(await client.socket.nextClose() == 4009)
        }
        // A frame with something wrong in it.
        let other = try await service.connect()
        other.send(random.spoiled(#"{"event":"pusher:signin","data":{"auth":"demo-key:00","user_data":"{}"}}"#))
        let refusal = try await other.next()
        #expect(refusal.contains("pusher:error"), "\(refusal)")
      }
      let last = try await service.connect()
      #expect(try await last.signIn(good).contains("signin_success"))
      witness.send(FrameText.ping)
      while try await witness.next() != FrameText.pong {}
    }
  }

  @Test func `signatures of any shape are refused`() async throws {
    try await Service.serving { service in
      var random = Random(state: 17)
      let client = try await service.connect()
      let channelData = #"{"user_id":"ann"}"#
      let good = service.appKey.channelAuth(socketID: client.socketID, channel: "presence-a", channelData: channelData)
      for _ in 0..<200 {
        let auth = random.spoiled(good)
        guard auth != good else { continue }
        client.send(FrameText.subscribe(to: "presence-a", auth: auth, channelData: channelData))
        #expect(try await client.next().contains(#""code":null"#))
        #expect(try await client.next().contains("pusher:subscription_error"))
        let changed = random.spoiled(channelData)
        guard changed != channelData else { continue }
        client.send(FrameText.subscribe(to: "presence-a", auth: good, channelData: changed))
        #expect(try await client.next().contains(#""code":null"#))
        #expect(try await client.next().contains("pusher:subscription_error"))
      }
      client.send(FrameText.subscribe(to: "presence-a", auth: good, channelData: channelData))
      #expect(try await client.next().contains("subscription_succeeded"))
    }
  }

  @Test func `paths, queries and the tutorial's bodies of any shape get an answer each`() async throws {
    try await Service.serving(adjust: { $0.tutorial = .anonymousChat }) { service in
      var random = Random(state: 19)
      let paths = [
        "/apps/1001/channels/presence-a/users", "/apps/1001/channels/cache-a",
        "/apps/1001/users/a/terminate_connections",
        "/users/a/terminate_connections", "/apps/1001/connections", "/up", "/messages",
      ]
      let forms = ["sender=a&text=b%20c", #"{"sender":"a","text":"b"}"#, "ID=7"]
      for index in 0..<200 {
        let path = random.spoiled(paths[index % paths.count]).filter {
          $0 > " " && $0 != "#" && $0 != "?" && $0 != "\u{7f}"
        }
        let parameters = [
          ("info", random.spoiled("user_count,cache")), ("filter_by_prefix", random.spoiled("presence-")),
        ]
        .map { (name: $0.0, value: $0.1) }
        let answer = try await service.send(index % 2 == 0 ? "GET" : "POST", "/" + path, parameters)
        #expect([200, 202, 400, 401, 404].contains(answer.status), "\(path): \(answer.status)")
        let body = Array(random.spoiled(forms[index % forms.count]).utf8)
        let said = try await service.raw(
          "POST", ["/messages", "/typing", "/delivered"][index % 3],
          headers: ["Content-Type": index % 2 == 0 ? "application/json" : "text/plain"], body: body)
        #expect([200, 400].contains(said.status), "\(said.status)")
      }
      let good = try await service.raw("POST", "/typing", body: Array("sender=a".utf8))
      #expect(good.status == 200)
    }
  }
}
