import FerryCore
import FerryRelay
import FerryRuntime
import FerryStorage
import FerryTestKit
import FerryTransport
import FoundationEssentials
import Glibc
import Testing

private let ann = Author(id: "ann", name: "Ann")

/// What the best known bridge was measured to lose, done to Ferry: the same work, and nothing lost.
@Suite(.timeLimit(.minutes(10))) struct FieldTests {
  /// The relay that is to be measured, between two services.
  private struct Bench {
    let stage: Stage
    let loop: LoopExecutor

    init(_ kinds: [PlaceKind]) async throws {
      loop = try LoopExecutor(name: "field")
      let client = HTTPClient(loop: loop, guard: AddressGuard(allowedHosts: ["127.0.0.1"]), logger: .silent)
      var places: [any Place] = []
      for kind in kinds { places.append(try await kind.open()) }
      stage = Stage(
        folder: try TemporaryFolder(), places: places, gate: try HookGate(loop: loop, client: client),
        clock: ShiftingClock(haste: 1), haste: 1)
      self.client = client
    }

    let client: HTTPClient

    func begin(inProcess: Bool = true) async throws -> any RelayLife {
      let life = try await stage.begin(inProcess: inProcess)
      while (try? await client.send(ClientRequest(method: "GET", url: life.url + "/readyz")).status) != 200 {
        try await SystemClock().sleep(for: .milliseconds(10))
      }
      return life
    }

    /// The texts at the far side, once there are as many.
    func texts(_ count: Int) async throws -> [String] {
      while true {
        let shown = try await stage.places[1].shown()
        if shown.count >= count {
          // Whatever would be repeated has its chance.
          try await SystemClock().sleep(for: .milliseconds(200))
          return try await stage.places[1].shown().map(\.text)
        }
        try await SystemClock().sleep(for: .milliseconds(20))
      }
    }

    func close(_ life: any RelayLife) async {
      await stage.end(life)
      for place in stage.places { await place.close() }
      await stage.gate.close()
      loop.stop()
    }
  }

  @Test("peer 1: of 100 messages at once none is lost (there: 69)", arguments: [PlaceKind.pusher, .backendless])
  func burst(_ kind: PlaceKind) async throws {
    let bench = try await Bench([.local, kind])
    let life = try await bench.begin()
    let expected = (0..<100).map { "number \($0)" }
    for text in expected { _ = try await bench.stage.places[0].say(text, picture: nil) }
    #expect(try await bench.texts(100) == expected)
    await bench.close(life)
  }

  @Test("peer 2: with the service down for 3 s while 10 messages a second are posted, none is lost (there: 81 of 100)")
  func outage() async throws {
    let bench = try await Bench([.local, .pusher])
    let life = try await bench.begin()
    let expected = (0..<60).map { "number \($0)" }
    for (number, text) in expected.enumerated() {
      if number == 10 { await bench.stage.places[1].proxy?.refuse() }
      if number == 40 { try await bench.stage.places[1].proxy?.accept() }
      _ = try await bench.stage.places[0].say(text, picture: nil)
      try await SystemClock().sleep(for: .milliseconds(100))
    }
    #expect(try await bench.texts(60) == expected)
    await bench.close(life)
  }

  @Test("peer 3: after 429 with Retry-After, or 503, three times, all arrive (there: 3 of 6)", arguments: [429, 503])
  func refusals(_ status: Int) async throws {
    let bench = try await Bench([.local, .pusher])
    let life = try await bench.begin()
    await bench.stage.places[1].proxy?.answer(3, status: status, retryAfter: status == 429 ? 1 : nil, method: "POST")
    let expected = (0..<6).map { "number \($0)" }
    for text in expected { _ = try await bench.stage.places[0].say(text, picture: nil) }
    #expect(try await bench.texts(6) == expected)
    await bench.close(life)
  }

  @Test("peer 4: kill -9 with undelivered messages loses none (there: all)")
  func killed() async throws {
    let bench = try await Bench([.local, .backendless])
    let first = try await bench.begin(inProcess: false)
    await bench.stage.places[1].proxy?.refuse()
    let expected = (0..<30).map { "number \($0)" }
    for text in expected { _ = try await bench.stage.places[0].say(text, picture: nil) }
    await bench.stage.end(first)
    try await bench.stage.places[1].proxy?.accept()
    let second = try await bench.begin(inProcess: false)
    #expect(try await bench.texts(30) == expected)
    await bench.close(second)
  }

  /// Compared with the slow leg, because the machine may be busy: the peer's fast leg waits for the slow one.
  @Test("peer 5: beside a leg that takes 1 s a send, the other leg is not slower (there: 5.2 s each)")
  func slowLeg() async throws {
    let accounts: [AccountName] = ["here", "slow", "fast"]
    let rig = try Rig(
      Dictionary(uniqueKeysWithValues: accounts.map { ($0, MemoryProvider()) }), bridges: [("all", accounts)])
    rig["slow"].slow(by: .seconds(1))
    try await rig.relaying { _ in
      for number in 0..<10 { rig.say("\(number)", at: "here") }
      await rig.wait(for: 10, at: "fast")
      #expect(rig.texts(at: "slow").count < 5)
    }
    #expect(rig.texts(at: "fast") == (0..<10).map(String.init))
  }

  /// The address sanitizer holds back what was freed.
  private static var kilobytesForAnImage: Int { dlsym(nil, "__asan_init") == nil ? 96 << 10 : 1 << 20 }

  @Test("peer 6: a 50 MiB image passes in little memory (there: 636 MB)")
  func largeImage() async throws {
    let bridge = try await ServedBridge()
    let account = #"{ provider: local, url: "\#(bridge.local)", token: \#(ServedBridge.token) }"#
    let config = """
      accounts: { here: \(account), there: \(account) }
      bridges: { b: { between: ["here:big", "there:copy"], mirror: [messages, images] } }
      relay: { listen: "127.0.0.1:0", journal: \(bridge.folder)/big.db, image_bytes: 60MiB }
      """
    try Data(config.utf8).write(to: URL(fileURLWithPath: "\(bridge.folder)/big.yaml"))
    let ready = "\(bridge.folder)/big.ready"
    let relay = try ChildProcess(
      ChildProcess.built("ferry"), ["relay", "--config", "\(bridge.folder)/big.yaml", "--ready-file", ready])
    let url = try #require(try await ServedBridge.ready(ready, relay)["relay"])
    while try await bridge.client.send(.init(method: "GET", url: url + "/readyz")).status != 200 {
      try await SystemClock().sleep(for: .milliseconds(10))
    }
    let file = try await bridge.upload([UInt8](repeating: 7, count: 50 << 20))
    try await bridge.call(
      "POST", "/v1/rooms/big/messages",
      ["author": ["id": "ann"], "text": "look", "attachments": [["file": .string(file), "name": "a.png"]]])
    var digest: String?
    while digest == nil, relay.isRunning {
      let copies = (try? await bridge.messages(of: "copy")) ?? []
      digest = copies.first?["attachments"]?.array?.first?["sha256"]?.string
      try await SystemClock().sleep(for: .milliseconds(50))
    }
    #expect(digest == file)
    let peak = Self.kilobytes("VmHWM", of: relay.pid)
    #expect(peak > 0 && peak < Self.kilobytesForAnImage, "the relay took \(peak) KB")
    relay.signal(15)
    #expect(await relay.wait() == 0)
    await bridge.close()
  }

  private static func kilobytes(_ name: String, of pid: Int32) -> Int {
    let status = FileManager.default.contents(atPath: "/proc/\(pid)/status").map { String(decoding: $0, as: UTF8.self) }
    let line = status?.split(separator: "\n").first { $0.hasPrefix("\(name):") }
    return line?.split(separator: " ").compactMap { Int($0) }.first ?? 0
  }

  @Test("peer 7: a post to a channel that does not exist is refused (there: 200, and dropped)")
  func unknownChannel() async throws {
    let place = try await PlaceKind.twilio.open()
    let account = try place.account(webhook: "http://127.0.0.1:1/hooks/a", clock: SystemClock())
    do throws(FerryError) {
      _ = try await account.post(OutgoingMessage(key: "k", author: ann, text: "hello"), to: "no such room")
      Issue.record("it was taken")
    } catch {
      #expect(error.code == .notFound)
      #expect(error.didNotAct)
      #expect(error.retry == .never)
    }
    await place.close()
  }
}
