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
      relay: { listen: "127.0.0.1:0", journal: \(bridge.folder)/soak.db, retention: 1h }
      """
    try Data(config.utf8).write(to: URL(fileURLWithPath: "\(bridge.folder)/soak.yaml"))
    var relay = try await begin(bridge, hours: 0)
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
        await end(relay)
        relay = try await begin(bridge, hours: 0)
      }
    }
    let (first, last) = (try #require(samples.first), try #require(samples.last))
    #expect(last.microseconds < first.microseconds * 1.5, "\(first.microseconds) us became \(last.microseconds) us")
    #expect(Double(last.resident) < Double(samples[min(1, samples.count - 1)].resident) * 1.5 + 16_384)
    // What a message takes must not grow.
    let half = samples[samples.count / 2]
    let early = Double(half.journal - first.journal) / Double(half.messages - first.messages)
    let late = Double(last.journal - half.journal) / Double(max(last.messages - half.messages, 1))
    #expect(late < early * 1.5 + 100, "\(early) bytes of the journal a message became \(late)")
    relay.signal(SIGTERM)
    #expect(await end(relay) == 0)
    relay = try await begin(bridge, hours: 2)
    try await waitUntilPruned(to: last.journal / 4, bridge)
    relay.signal(SIGTERM)
    #expect(await end(relay) == 0)
    await bridge.close()
  }

  /// Two hours later all that was delivered is forgotten but for a digest, and the file gives back its room.
  private func waitUntilPruned(to most: Int64, _ bridge: ServedBridge) async throws {
    let end = ContinuousClock.now.advanced(by: .seconds(900))
    var sizes = [Self.size("\(bridge.folder)/soak.db")]
    // Until it has become small, and no smaller for a while.
    while ContinuousClock.now < end, sizes.last ?? 0 > most || Set(sizes.suffix(5)).count > 1 || sizes.count < 5 {
      try await SystemClock().sleep(for: .seconds(1))
      sizes.append(Self.size("\(bridge.folder)/soak.db"))
    }
    print("soak: after two hours the journal is \(sizes.last ?? 0) bytes")
    #expect(sizes.last ?? 0 <= most, "pruning was to bring the journal below \(most) bytes")
  }

  /// A relay whose clock is so many hours ahead.
  private func begin(_ bridge: ServedBridge, hours: Int) async throws -> ChildProcess {
    let ready = "\(bridge.folder)/soak.ready"
    try? FileManager.default.removeItem(atPath: ready)
    // The library that moves the clock wants to be in a process before the program is.
    let relay = try ChildProcess(
      "/bin/sh",
      [
        "-c", "exec \"$0\" \"$@\"", ChildProcess.built("ferry"), "relay", "--config", "\(bridge.folder)/soak.yaml",
        "--ready-file", ready,
      ], environment: try clock(ahead: hours))
    let url = try #require(try await ServedBridge.ready(ready, relay)["relay"])
    while try await bridge.client.send(.init(method: "GET", url: url + "/readyz")).status != 200 {
      try await SystemClock().sleep(for: .milliseconds(10))
    }
    return relay
  }

  /// Waits, and takes away what the library that moves the clock has left in memory.
  @discardableResult
  private func end(_ relay: ChildProcess) async -> Int32 {
    let code = await relay.wait()
    for name in ["faketime_shm_\(relay.pid)", "sem.faketime_sem_\(relay.pid)"] { unlink("/dev/shm/\(name)") }
    return code
  }

  /// An hour, at least, is what a journal keeps; nobody waits for one to pass.
  private func clock(ahead hours: Int) throws -> [String: String] {
    let library = ["x86_64", "aarch64"].map { "/usr/lib/\($0)-linux-gnu/faketime/libfaketimeMT.so.1" }
      .first { FileManager.default.fileExists(atPath: $0) }
    return [
      "LD_PRELOAD": try #require(library, "install the package faketime"), "FAKETIME": "+\(hours)h",
      "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    ]
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
