import FerryCore
import FerryRuntime
import FerryTestKit
import FoundationEssentials
import Glibc

/// Benchmarks of the budgets in Benchmarks.md. Each prints one line of JSON. Arguments choose by name.
@main
struct Main {
  private static let benchmarks: [(name: String, run: @Sendable () async throws -> Void)] = [
    // First, because it reports the largest of all children waited for.
    ("shell", Benchmarks.postFromTheShell),
    ("fan-out", { try await FanOut.run(subscribers: 500, idle: 0, events: 2000) }),
    ("fan-out-idle", { try await FanOut.run(subscribers: 500, idle: 9000, events: 2000) }),
    ("idle", { try await FanOut.run(subscribers: 1, idle: 10_000, events: 1) }),
    ("churn", { try await Churn.run(sockets: 10_000) }),
    ("posts", Benchmarks.durablePosts),
    ("relay", Benchmarks.relayLocalToLocal),
    ("latency", Benchmarks.latency),
    ("start", Benchmarks.startToReady),
    ("rest", Benchmarks.relayAtRest),
    ("image", Benchmarks.largeImage),
    ("slow-leg", Benchmarks.besideASlowLeg),
    ("verify", { try await VerifyLoad.run(messages: 1_000_000) }),
    ("history-archive", { try await HistoryArchive.run(messages: 1_000_000) }),
  ]

  static func main() async {
    signal(SIGPIPE, SIG_IGN)
    let code = await run(Array(CommandLine.arguments.dropFirst()))
    fflush(nil)
    Glibc._exit(code)
  }

  @concurrent
  static func run(_ names: [String]) async -> Int32 {
    let known = benchmarks.map(\.name)
    if let unknown = names.first(where: { !known.contains($0) }) {
      complain("there is no \"\(unknown)\"; choose from \(known.joined(separator: ", "))")
      return 64
    }
    raiseFileLimit()
    for (name, run) in benchmarks where names.isEmpty || names.contains(name) {
      do { try await run() } catch {
        complain("\(name): \(error)")
        return 70
      }
    }
    return 0
  }

  private static func complain(_ text: String) {
    Logger.standardError("ferry-bench: \(text)\n")
  }

  private static func raiseFileLimit() {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  }
}

enum Benchmarks {
  /// Posts through the HTTP API into a bridged room, eight connections, each post durable before its answer.
  static func durablePosts() async throws {
    let child = try Child("demo", config: Configurations.localToLocal)
    let load = try LocalLoad(port: child.port("local"))
    try await load.watch("b")
    let cpu = child.cpuMicroseconds
    let count = 40_000
    let seconds = try await load.post(count, connections: 8)
    let cpuPosted = child.cpuMicroseconds
    let start = ContinuousClock.now
    await load.waitUntilSeen(count)
    Report(
      benchmark: "durable posts, 8 connections, into a bridge",
      values: [
        "per_second": Double(count) / seconds, "cpu_us": (cpuPosted - cpu) / Double(count),
        "mirrored_after_s": start.duration(to: .now).inSeconds,
        "cpu_us_with_relay": (child.cpuMicroseconds - cpu) / Double(count), "peak_mb": child.peakMB,
      ]
    ).print()
    await load.close()
    await child.stop()
  }

  /// From the first post in one room to the last copy in the other, posts handed over in batches.
  static func relayLocalToLocal() async throws {
    let child = try Child("demo", config: Configurations.localToLocal)
    let load = try LocalLoad(port: child.port("local"))
    try await load.watch("b")
    let cpu = child.cpuMicroseconds
    let count = 50_000
    let start = ContinuousClock.now
    _ = try await load.post(count, connections: 1, batch: 200)
    await load.waitUntilSeen(count)
    let seconds = start.duration(to: .now).inSeconds
    Report(
      benchmark: "relay local to local, one channel, durable",
      values: [
        "per_second": Double(count) / seconds, "cpu_us": (child.cpuMicroseconds - cpu) / Double(count),
        "peak_mb": child.peakMB,
      ]
    ).print()
    await load.close()
    await child.stop()
  }

  /// From the request to the copy at a reader of the other room, at 500 messages a second.
  static func latency() async throws {
    let child = try Child("demo", config: Configurations.localToLocal)
    let load = try LocalLoad(port: child.port("local"))
    try await load.watch("b")
    let count = 5000
    try await load.post(count, perSecond: 500, connections: 1)
    await load.waitUntilSeen(count)
    let latencies = await load.latencies
    Report(
      benchmark: "latency through the relay at 500 messages a second",
      values: [
        "p50_ms": percentile(latencies, 0.5), "p99_ms": percentile(latencies, 0.99),
        "max_ms": latencies.max() ?? 0,
      ]
    ).print()
    await load.close()
    await child.stop()
  }

  /// `ferry post`, as a whole process.
  static func postFromTheShell() async throws {
    let child = try Child("serve", config: Configurations.serve)
    let address = "local+http://bench@127.0.0.1:\(child.port("local"))/a"
    var times: [Double] = []
    for _ in 0..<30 {
      let start = ContinuousClock.now
      let outcome = try await ChildProcess.run(Child.ferry, ["post", address, "hello"])
      times.append(milliseconds(start.duration(to: .now)))
      guard outcome.code == 0 else { throw FerryError(.unavailable, "ferry post failed: \(outcome.errors)") }
    }
    // The largest of all children so far: the server before it is smaller or not yet waited for.
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_CHILDREN.rawValue), &usage)
    Report(
      benchmark: "ferry post, one message",
      values: [
        "p50_ms": percentile(times, 0.5), "p99_ms": percentile(times, 0.99), "peak_mb": Double(usage.ru_maxrss) / 1024,
      ]
    ).print()
    await child.stop()
  }

  /// From exec to the ready file.
  static func startToReady() async throws {
    var times: [Double] = []
    for _ in 0..<10 {
      let start = ContinuousClock.now
      let child = try Child("serve", config: Configurations.serve)
      times.append(milliseconds(start.duration(to: .now)))
      await child.stop()
    }
    Report(
      benchmark: "start to ready, ferry serve",
      values: ["p50_ms": percentile(times, 0.5), "max_ms": times.max() ?? 0]
    ).print()
  }

  static func relayAtRest() async throws {
    let child = try Child("demo", config: Configurations.localToLocal)
    try await Task.sleep(for: .seconds(2))
    let cpu = child.cpuMicroseconds
    try await Task.sleep(for: .seconds(5))
    Report(
      benchmark: "demo at rest",
      values: ["resident_mb": child.residentMB, "cpu_us_per_second": (child.cpuMicroseconds - cpu) / 5]
    ).print()
    await child.stop()
  }

  /// A picture of 50 MiB from one room to another, server and relay in one process.
  static func largeImage() async throws {
    let child = try Child("demo", config: Configurations.localToLocal)
    let load = try LocalLoad(port: child.port("local"))
    try await load.watch("b")
    let path = "\(FileManager.default.temporaryDirectory.path)/ferry-bench-\(Crypto.randomHex(bytes: 6)).bin"
    try Data(Crypto.randomBytes(50 << 20)).write(to: URL(fileURLWithPath: path))
    defer { try? FileManager.default.removeItem(atPath: path) }
    let before = child.residentMB
    let start = ContinuousClock.now
    let address = "local+http://bench@127.0.0.1:\(child.port("local"))/a"
    let outcome = try await ChildProcess.run(Child.ferry, ["post", address, "bench-message", "--image", path])
    guard outcome.code == 0 else { throw FerryError(.unavailable, "ferry post failed: \(outcome.errors)") }
    await load.waitUntilSeen(1)
    Report(
      benchmark: "a picture of 50 MiB through the relay",
      values: [
        "peak_mb": child.peakMB, "resident_before_mb": before, "seconds": start.duration(to: .now).inSeconds,
      ]
    ).print()
    await load.close()
    await child.stop()
  }

  /// The latency to one room while sends to another take a second each.
  static func besideASlowLeg() async throws {
    let server = try Child("serve", config: Configurations.serve)
    let proxy = try await FaultProxy.start(to: server.port("local"))
    let relay = try Child(
      "relay",
      config: Configurations.besideASlowLeg(port: server.port("local"), slowPort: proxy.port))
    // Until the relay listens to its source: what is said before the first time is not mirrored.
    try await Task.sleep(for: .seconds(1))
    await proxy.delay(.seconds(1))
    let load = try LocalLoad(port: server.port("local"))
    try await load.watch("b")
    try await load.post(200, perSecond: 50, connections: 1)
    await load.waitUntilSeen(200)
    let latencies = await load.latencies
    Report(
      benchmark: "latency beside a leg that takes 1 s a send",
      values: [
        "p50_ms": percentile(latencies, 0.5), "p99_ms": percentile(latencies, 0.99), "max_ms": latencies.max() ?? 0,
      ]
    ).print()
    await load.close()
    await relay.stop()
    await proxy.close()
    await server.stop()
  }
}
