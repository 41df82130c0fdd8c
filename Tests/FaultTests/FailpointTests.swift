import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import FoundationEssentials
import Testing

/// Ends the built relay between every two durable steps, and looks at what is left when it has come back (G1 to G4).
@Suite(.timeLimit(.minutes(10))) struct FailpointTests {
  /// Where the relay is ended, start by start; after the last it is left alone.
  private static let scripts: [[String]] =
    Failpoint.allCases.filter { $0 != .afterFind && !Failpoint.ofArchives.contains($0) }.flatMap { point in
      [[point.rawValue], ["\(point.rawValue):2"]]
    } + [
      // What is asked after an unknown send.
      ["before-send", "after-find"], ["after-send", "after-find"],
      // Ended again while it comes back.
      ["after-send", "before-commit"], ["before-send", "before-send", "after-send"], ["after-part", "after-part"],
      ["after-edit", "after-edit", "after-delete"],
    ]

  @Test("whatever the step at which the relay is ended, everything arrives, once and in order")
  func everyStep() async throws {
    let bridge = try await ServedBridge()
    let turns = Locked(Array(Self.scripts.enumerated()))
    try await withThrowingTaskGroup(of: Void.self) { group in
      // Most of a run is waiting for two seconds until an unknown send has settled.
      for _ in 0..<6 {
        group.addTask {
          while let (number, script) = turns.withLock({ $0.popLast() }) {
            try await Scene(bridge, number: number, script: script).play()
          }
        }
      }
      try await group.waitForAll()
    }
    await bridge.close()
  }
}

/// One conversation in a room that is bridged to another and to a Pusher channel.
private struct Scene {
  let bridge: ServedBridge
  let script: [String]
  let (here, there, site): (String, String, String)
  let folder: String
  let label: Comment

  init(_ bridge: ServedBridge, number: Int, script: [String]) throws {
    self.bridge = bridge
    self.script = script
    (here, there, site) = ("here-\(number)", "there-\(number)", "site-\(number)")
    folder = "\(bridge.folder)/relay-\(number)"
    label = "ended at \(script.joined(separator: ", then "))"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let account = #"{ provider: local, url: "\#(bridge.local)", token: \#(ServedBridge.token) }"#
    let port = bridge.pusher.split(separator: ":").last ?? ""
    let config = """
      accounts:
        here: \(account)
        there: \(account)
        site: { provider: pusher, app_id: "1001", key: k, secret: s, host: 127.0.0.1, port: \(port), tls: false }
      bridges:
        b:
          between: ["here:\(here)", "there:\(there)", "site:\(site)"]
          mirror: [messages, edits, deletes, typing, images, members, reads, reactions]
      relay: { listen: "127.0.0.1:0", journal: \(folder)/ferry.db }
      """
    try Data(config.utf8).write(to: URL(fileURLWithPath: "\(folder)/relay.yaml"))
  }

  private func start(_ failpoint: String?) throws -> ChildProcess {
    try ChildProcess(
      ChildProcess.built("ferry"),
      ["relay", "--config", "\(folder)/relay.yaml", "--ready-file", "\(folder)/ready"],
      environment: failpoint.map { ["FERRY_FAILPOINT": $0] } ?? [:])
  }

  /// Begins with a relay that runs, so that the sources have a place to go on from.
  private func begin() async throws {
    let relay = try start(nil)
    let urls = try await ServedBridge.ready("\(folder)/ready", relay)
    while try await !isReady(urls["relay"] ?? "") { try await SystemClock().sleep(for: .milliseconds(5)) }
    relay.signal(15)
    #expect(await relay.wait() == 0, label)
  }

  private func isReady(_ url: String) async throws -> Bool {
    try await bridge.client.send(.init(method: "GET", url: url + "/readyz")).status == 200
  }

  func play() async throws {
    let eyes = try await PusherEyes(bridge, site)
    try await begin()
    for (index, failpoint) in script.enumerated() {
      let relay = try start(failpoint)
      if index == 0 { try await talk() }
      // Whether the end comes now or after a restart, it must come: a place that is never passed proves nothing.
      while relay.isRunning {
        try await SystemClock().sleep(for: .milliseconds(5))
        if try await isComplete(eyes) {
          try await SystemClock().sleep(for: .milliseconds(300))
          break
        }
      }
      #expect(!relay.isRunning, label)
      relay.signal(9)
      #expect(await relay.wait() == 137, label)
    }
    let relay = try start(nil)
    while try await !isComplete(eyes), relay.isRunning { try await SystemClock().sleep(for: .milliseconds(20)) }
    #expect(relay.isRunning, label)
    relay.signal(15)
    #expect(await relay.wait() == 0, label)
    try await check(eyes)
    await eyes.close()
  }

  private static let long = String(repeating: "a long story, ", count: 1500)
  private static let picture: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a] + Array(0...255)

  /// Everything a conversation can hold; ends with a message by which one sees that all came over.
  private func talk() async throws {
    let ids = try await say(here, ["one", "two", "three", "four"])
    let long = try await say(here, [Self.long])
    let file = try await bridge.upload(Self.picture)
    try await bridge.call(
      "POST", "/v1/rooms/\(here)/messages",
      ["author": ["id": "ann"], "text": "look", "attachments": [["file": .string(file), "name": "a.png"]]])
    try await edit(here, ids[1], "two, edited")
    try await edit(here, long[0], Self.long + "and its end")
    try await edit(here, ids[1], "two, edited again")
    try await bridge.call("DELETE", "/v1/rooms/\(here)/messages/\(ids[2])")
    try await bridge.call("PUT", "/v1/rooms/\(here)/messages/\(ids[0])/reactions/%F0%9F%91%8D", ["by": ["id": "bob"]])
    try await bridge.call("PUT", "/v1/rooms/\(here)/members/bob", ["name": "Bob"])
    try await bridge.call("PUT", "/v1/rooms/\(here)/reads/bob", ["id": .string(ids[3])])
    let back = try await say(there, ["back one", "back two"])
    try await edit(there, back[0], "back one, edited")
    try await say(here, ["last"])
    try await say(there, ["back last"])
  }

  @discardableResult
  private func say(_ room: String, _ texts: [String]) async throws -> [String] {
    var ids: [String] = []
    for text in texts {
      let answer = try await bridge.call(
        "POST", "/v1/rooms/\(room)/messages", ["author": ["id": "ann"], "text": .string(text)])
      ids.append(try #require(answer["id"]?.string ?? answer["messages"]?.array?.first?["id"]?.string))
    }
    return ids
  }

  private func edit(_ room: String, _ id: String, _ text: String) async throws {
    try await bridge.call("PATCH", "/v1/rooms/\(room)/messages/\(id)", ["text": .string(text)])
  }

  private static let said = ["one", "two, edited again", "four", long + "and its end", "look", "last"]
  private static let answered = ["back one, edited", "back two", "back last"]

  /// By the sides' last messages, and by the changes that may come after those.
  private func isComplete(_ eyes: PusherEyes) async throws -> Bool {
    guard try await texts(there).count >= 9, try await texts(here).count >= 9 else { return false }
    let seen = eyes.now.left
    guard seen.contains("last"), seen.contains("back last") else { return false }
    // Edits travel in order with the messages of their own room only.
    let copies = try await texts(here)
    return copies.contains("back one, edited") && seen.contains("back one, edited")
  }

  private func texts(_ room: String) async throws -> [String] {
    try await bridge.messages(of: room).compactMap { $0["text"]?.string }
  }

  private func check(_ eyes: PusherEyes) async throws {
    let (atHere, atThere) = (try await bridge.messages(of: here), try await bridge.messages(of: there))
    let seen = eyes.now
    await eyes.close()
    for (room, messages) in [("here", atHere), ("there", atThere)] {
      let texts = messages.compactMap { $0["text"]?.string }
      #expect(texts.filter(Self.said.contains) == Self.said, "\(label): \(room)")
      #expect(texts.filter(Self.answered.contains) == Self.answered, "\(label): \(room)")
      #expect(texts.count == Self.said.count + Self.answered.count, "\(label): \(room) \(texts.map { $0.prefix(30) })")
      let digest = messages.first { $0["text"] == "look" }?["attachments"]?.array?.first?["sha256"]?.string
      #expect(digest == Crypto.hex(Crypto.digest(.sha256, of: Self.picture)), "\(label): \(room)")
    }
    #expect(seen.doubled.isEmpty, "\(label): at Pusher")
    let short = seen.left.filter { $0.utf8.count < 100 }
    #expect(short.filter(Self.said.contains) == Self.said.filter { $0.utf8.count < 100 }, "\(label): at Pusher")
    #expect(short.filter(Self.answered.contains) == Self.answered, "\(label): at Pusher")
    let parts = seen.left.filter { $0.utf8.count >= 100 || $0.hasPrefix("a long") || $0.contains("and its end") }
    #expect(parts.joined() == Self.long + "and its end", "\(label): at Pusher, in \(parts.count) parts")
    let members = try await bridge.call("GET", "/v1/rooms/\(there)/members")
    #expect((members["members"]?.array ?? []).contains { $0["name"] == "Bob" }, label)
    #expect(atThere.first { $0["text"] == "one" }?["reactions"]?.array?.count == 1, label)
  }
}
