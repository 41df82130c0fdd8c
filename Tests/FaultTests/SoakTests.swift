import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import FoundationEssentials
import Glibc
import Testing

/// `FERRY_SOAK=1000000` sends so many messages through a relay of its own, with edits, pictures and two restarts.
@Suite(
  .timeLimit(.minutes(240)),
  .enabled(if: ProcessInfo.processInfo.environment["FERRY_SOAK"] != nil, "run alone, with FERRY_SOAK=1000000"))
struct SoakTests {
  private struct Sample {
    let messages: Int
    let resident: Int
    let microseconds: Double
    let journal: Int64
  }

  /// Messages in a request, as many as the local server takes.
  private static let batch = 250

  @Test("memory, time and room in the journal for a message are the same in the end as in the beginning")
  func soak() async throws {
    let total = ProcessInfo.processInfo.environment["FERRY_SOAK"].flatMap { Int($0) } ?? 0
    let step = max(total / 10, Self.batch)
    let bridge = try await ServedBridge()
    let account = #"{ provider: local, url: "\#(bridge.local)", token: \#(ServedBridge.token) }"#
    let config = """
      accounts: { here: \(account), there: \(account) }
      bridges: { b: { between: ["here:soak", "there:copy"], mirror: [messages, edits, images] } }
      relay: { listen: "127.0.0.1:0", journal: \(bridge.folder)/soak.db }
      """
    try Data(config.utf8).write(to: URL(fileURLWithPath: "\(bridge.folder)/soak.yaml"))
    var relay = try await begin(bridge)
    var samples: [Sample] = []
    var sent = 0
    while sent < total {
      let before = Self.microseconds(of: relay.pid)
      var inStep = 0
      while inStep < step {
        try await send(sent, bridge)
        sent += Self.batch
        inStep += Self.batch
      }
      try await waitUntilCopied(sent - 1, bridge)
      let used = Self.microseconds(of: relay.pid) - before
      let sample = Sample(
        messages: sent, resident: Self.kilobytes(of: relay.pid), microseconds: used / Double(inStep),
        journal: Self.size("\(bridge.folder)/soak.db") + Self.size("\(bridge.folder)/soak.db-wal"))
      samples.append(sample)
      print(
        "soak: \(sent) messages, \(sample.resident) KB, \(sample.microseconds) us each, journal \(sample.journal) bytes"
      )
      if samples.count == 3 || samples.count == 7 {
        relay.signal(samples.count == 3 ? SIGTERM : SIGKILL)
        _ = await relay.wait()
        relay = try await begin(bridge)
      }
    }
    let (first, last) = (try #require(samples.first), try #require(samples.last))
    #expect(last.microseconds < first.microseconds * 1.5, "\(first.microseconds) us became \(last.microseconds) us")
    #expect(Double(last.resident) < Double(samples[min(1, samples.count - 1)].resident) * 1.5 + 16_384)
    // Nothing is pruned in the hour that everything is kept at least: what a message takes must not grow meanwhile.
    let half = samples[samples.count / 2]
    let early = Double(half.journal - first.journal) / Double(half.messages - first.messages)
    let late = Double(last.journal - half.journal) / Double(max(last.messages - half.messages, 1))
    #expect(late < early * 1.5 + 100, "\(early) bytes of the journal a message became \(late)")
    relay.signal(SIGTERM)
    #expect(await relay.wait() == 0)
    await bridge.close()
  }

  private func begin(_ bridge: ServedBridge) async throws -> ChildProcess {
    let ready = "\(bridge.folder)/soak.ready"
    try? FileManager.default.removeItem(atPath: ready)
    let relay = try ChildProcess(
      ChildProcess.built("ferry"), ["relay", "--config", "\(bridge.folder)/soak.yaml", "--ready-file", ready])
    let url = try #require(try await ServedBridge.ready(ready, relay)["relay"])
    while try await bridge.client.send(.init(method: "GET", url: url + "/readyz")).status != 200 {
      try await SystemClock().sleep(for: .milliseconds(10))
    }
    return relay
  }

  /// A batch of messages, one of them edited, and now and then one with a picture.
  private func send(_ number: Int, _ bridge: ServedBridge) async throws {
    var drafts: [JSONValue] = []
    for index in number..<(number + Self.batch) {
      var draft: [String: JSONValue] = ["author": ["id": "ann"], "text": .string("message \(index)")]
      if index % 10_000 == 100 {
        let file = try await bridge.upload([0x89, 0x50, 0x4e, 0x47] + Array("\(index)".utf8))
        draft["attachments"] = [["file": .string(file), "name": "a.png"]]
      }
      drafts.append(.object(draft))
    }
    let answer = try await bridge.call("POST", "/v1/rooms/soak/messages", ["messages": .array(drafts)])
    if let id = answer["messages"]?.array?.first?["id"]?.string {
      try await bridge.call("PATCH", "/v1/rooms/soak/messages/\(id)", ["text": .string("message \(number), edited")])
    }
  }

  private func waitUntilCopied(_ last: Int, _ bridge: ServedBridge) async throws {
    while true {
      let page = try? await bridge.call("GET", "/v1/rooms/copy/messages?order=newest&limit=1")
      if page?["messages"]?.array?.first?["text"]?.string == "message \(last)" { return }
      try await SystemClock().sleep(for: .milliseconds(20))
    }
  }

  private static func kilobytes(of pid: Int32) -> Int {
    let status = FileManager.default.contents(atPath: "/proc/\(pid)/status").map { String(decoding: $0, as: UTF8.self) }
    let line = status?.split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
    return line?.split(separator: " ").compactMap { Int($0) }.first ?? 0
  }

  /// Of processor time, all threads together.
  private static func microseconds(of pid: Int32) -> Double {
    let text =
      FileManager.default.contents(atPath: "/proc/\(pid)/stat").map { String(decoding: $0, as: UTF8.self) } ?? ""
    let fields = text.split(separator: " ")
    guard fields.count > 14, let user = Double(fields[13]), let system = Double(fields[14]) else { return 0 }
    return (user + system) * 1_000_000 / Double(sysconf(Int32(_SC_CLK_TCK)))
  }

  private static func size(_ path: String) -> Int64 {
    var info = stat()
    return stat(path, &info) == 0 ? Int64(info.st_size) : 0
  }
}
