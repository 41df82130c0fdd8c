import FerryCore
import FerryRuntime
import FerryTestKit
import FoundationEssentials
import Glibc

/// Does one kind of fault to a stage, again and again. `begin` says how many faults were injected; `end` puts an end to
/// what lasts.
struct Trouble: Sendable {
  let fault: Fault
  let stage: Stage
  /// Whether the relay is in this process.
  let isInner: Bool

  private static let down = FerryError(.unavailable, "The service is down.", retry: .now)
  private static let lost = FerryError(.timedOut, "No answer came.", retry: .now, didNotAct: false)
  private static let slower = FerryError(.rateLimited, "Slower.", retry: .after(.seconds(1)))

  /// How many faults the places and the gate have spent, of those that are spent by requests and events.
  func spent() async -> Int {
    var sum = stage.gate.done
    for place in stage.places {
      sum += await place.proxy?.interfered ?? 0
      sum += place.memory?.faultsSpent ?? 0
    }
    return sum + stage.notes.reduce(0) { $0 + $1.withLock { $0.done } }
  }

  /// Counts those faults only that no request spends: `spent` counts the others.
  func begin(_ life: any RelayLife, with dice: Dice) async throws -> Int {
    switch fault {
    case .lostAnswer, .refused, .torn, .cut, .rateLimited, .failing, .garbage, .dropped, .outage3, .outage30, .slow:
      var count = 0
      for place in stage.places {
        if let proxy = place.proxy { count += await strike(proxy, dice) } else { strike(place.memory) }
      }
      if fault == .dropped { stage.gate.play(.drops, 2) }
      return count
    case .repeated: play(.repeats, .repeats)
    case .delayed: play(.delays, .delays)
    case .swapped: play(.scrambles, .swaps)
    case .clock:
      // More than ten minutes would be refused by Pusher, which checks the times of requests.
      let seconds = dice.roll(480) - 240
      stage.clock.shift(by: .seconds(seconds))
      return 1
    case .restart:
      for place in stage.places { try await place.restart() }
      return stage.places.count
    case .failpoint: return 0
    case .kill:
      try await SystemClock().sleep(for: .milliseconds(dice.roll(60)))
      await stage.end(life)
      return 1
    case .tornLog:
      await stage.end(life)
      tearLog(dice)
      return 1
    case .disk:
      if let relay = life as? OuterRelay { try await limitFiles(of: relay.child.pid) }
      return 1
    }
    return 0
  }

  private func play(_ events: Witness.Mischief, _ hooks: HookGate.Mischief) {
    for notes in stage.notes {
      notes.withLock { notes in
        notes.mischief = events
        notes.left = 15
      }
    }
    stage.gate.play(hooks, 6)
  }

  /// Returns how many faults that no request spends.
  private func strike(_ proxy: FaultProxy, _ dice: Dice) async -> Int {
    switch fault {
    case .lostAnswer:
      for method in ["POST", "PUT", "POST", "PATCH", "DELETE", "POST"] { await proxy.swallowAnswers(1, method: method) }
    case .torn: for method in ["POST", "PUT", "POST", "PATCH", "POST", "PUT"] { await proxy.tear(1, method: method) }
    case .rateLimited:
      for method in ["POST", "PUT"] { await proxy.answer(3, status: 429, retryAfter: 1, method: method) }
    case .failing: for method in ["POST", "PUT", "GET"] { await proxy.answer(4, status: 503, method: method) }
    case .garbage:
      await proxy.garble(3, method: "POST", afterActing: true)
      await proxy.garble(2, method: dice.roll(2) == 0 ? "POST" : "", afterActing: false)
    case .slow:
      await proxy.delay(.milliseconds(500))
      return 1
    case .refused, .outage3, .outage30:
      await proxy.refuse()
      return 1
    case .cut, .dropped:
      await proxy.cut()
      return 1
    default: break
    }
    return 0
  }

  /// The same for what is in this process, as far as it can be done there.
  private func strike(_ memory: MemoryProvider?) {
    switch fault {
    case .lostAnswer, .cut: memory?.failNext(2, .post, with: Self.lost, afterActing: true)
    case .garbage, .torn: memory?.failNext(2, .post, with: Self.lost)
    case .rateLimited: memory?.failNext(2, .post, with: Self.slower)
    case .failing, .refused, .outage3, .outage30, .dropped: memory?.failNext(2, .post, with: Self.down)
    case .slow: memory?.pause()
    default: break
    }
  }

  /// After people have talked on for a while.
  func end(_ life: any RelayLife, with dice: Dice) async throws -> any RelayLife {
    switch fault {
    case .outage3: try await SystemClock().sleep(for: .seconds(3))
    case .outage30: try await SystemClock().sleep(for: .seconds(30))
    case .slow: try await SystemClock().sleep(for: .seconds(1))
    case .refused: try await SystemClock().sleep(for: .milliseconds(100 + dice.roll(200)))
    case .disk:
      try await SystemClock().sleep(for: .milliseconds(300))
      if let relay = life as? OuterRelay { try await Self.setFileLimit(of: relay.child.pid, to: "unlimited") }
    case .kill, .tornLog: return try await stage.begin(inProcess: isInner)
    default: break
    }
    for place in stage.places {
      place.memory?.pause(false)
      guard let proxy = place.proxy else { continue }
      await proxy.delay(.zero)
      try await proxy.accept()
    }
    return life
  }

  /// What a crash in the middle of a write leaves behind the last commit.
  private func tearLog(_ dice: Dice) {
    let path = stage.folder.file("ferry.db-wal")
    let descriptor = open(path, O_WRONLY | O_APPEND)
    guard descriptor >= 0 else { return }
    let bytes = (0..<(1 + dice.roll(6000))).map { _ in UInt8(dice.roll(256)) }
    _ = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
    close(descriptor)
  }

  /// From now on the journal's files cannot grow: writes fail as on a full disk.
  private func limitFiles(of pid: Int32) async throws {
    var info = stat()
    let size = stat(stage.folder.file("ferry.db-wal"), &info) == 0 ? info.st_size : 0
    try await Self.setFileLimit(of: pid, to: String(size + 2000))
  }

  private static func setFileLimit(of pid: Int32, to bytes: String) async throws {
    let outcome = try await ChildProcess.run("/usr/bin/prlimit", ["--pid", "\(pid)", "--fsize=\(bytes):"])
    guard outcome.code == 0 else { throw FerryError(.internal, "prlimit: \(outcome.errors)") }
  }
}
