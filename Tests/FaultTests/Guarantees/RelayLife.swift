import FerryCore
import FerryRelay
import FerryRuntime
import FerryStorage
import FerryTestKit
import FerryTransport
import FoundationEssentials
import Glibc

/// A relay that runs until it is ended, in this process or in one of its own.
protocol RelayLife: Sendable {
  /// Where its listener is.
  var url: String { get }
  var isRunning: Bool { get }
  /// At once, without a word, as far as that can be done.
  func kill() async
}

/// Two accounts, a bridge between their rooms, and the files of the relay that runs it.
struct Stage: Sendable {
  static let token = "t0ken"
  static let names: [AccountName] = ["a", "b"]

  let folder: TemporaryFolder
  let places: [any Place]
  let gate: HookGate
  let clock: ShiftingClock
  /// By how much the clock of a relay in this process is faster.
  let haste: Int
  /// What passes at either account of a relay in this process.
  let notes = [Locked(Witness.Notes()), Locked(Witness.Notes())]

  func webhook(_ index: Int) -> String { "\(gate.server.url)/hooks/\(Self.names[index])" }

  func address(_ index: Int) -> Address { Address(account: Self.names[index], channel: places[index].room) }

  /// Whether a relay of its own could reach both places.
  var isServed: Bool { places.allSatisfy { $0.proxy != nil } }

  /// Begins a relay and waits until it listens to both accounts, however long that takes.
  func begin(inProcess: Bool, failpoint: String? = nil, script: String? = nil) async throws -> any RelayLife {
    let life: any RelayLife =
      if inProcess { try InnerRelay(self) } else { try await OuterRelay(self, failpoint: failpoint, script: script) }
    gate.lead(to: life.url)
    return life
  }

  func end(_ life: any RelayLife) async {
    gate.lead(to: nil)
    await life.kill()
  }
}

/// A relay in this process, on a hurried clock.
final class InnerRelay: RelayLife {
  let url: String
  private let task: Task<Void, Never>
  private let relay: Relay
  private let journal: Journal
  private let loop: LoopExecutor

  convenience init(_ stage: Stage) throws {
    var accounts: [AccountName: any ChatProvider] = [:]
    for (index, place) in stage.places.enumerated() {
      accounts[Stage.names[index]] = Witness(
        inner: try place.account(webhook: stage.webhook(index), clock: stage.clock), place: place,
        notes: stage.notes[index], haste: stage.haste)
    }
    let bridge = Bridge(
      name: "b", routes: Bridge.mesh([stage.address(0), stage.address(1)]), mirror: Set(Bridge.Mirrored.allCases))
    try self.init(
      files: stage.folder.file("ferry"), accounts: accounts, bridges: [bridge], publicURL: stage.gate.server.url,
      clock: stage.clock)
  }

  /// `files` is what the names of the journal and the spool begin with.
  init(
    files: String, accounts: [AccountName: any ChatProvider], bridges: [Bridge], publicURL: String,
    clock: any FerryClock
  ) throws {
    journal = try Journal(path: files + ".db")
    loop = try LoopExecutor(name: "relay")
    let relay = try Relay(
      Relay.Settings(
        accounts: accounts, bridges: bridges, journal: journal,
        spool: try Spool(folder: files + ".spool", limit: 1 << 20),
        publicURL: publicURL, clock: clock))
    self.relay = relay
    let listener = try RelayListener(relay: relay, token: Stage.token)
    let server = try HTTPServer(
      HTTPServer.Settings(stopTimeout: .milliseconds(50)), loop: loop, logger: .silent, handler: listener.handle)
    url = server.url
    task = Task {
      await withDiscardingTaskGroup { group in
        group.addTask { await server.run() }
        group.addTask { await relay.run() }
      }
    }
  }

  var isRunning: Bool { true }

  /// Until every account is listened to that is to be.
  func waitUntilReady() async throws {
    while try await relay.status().accounts.contains(where: { !["connected", "idle"].contains($0.state) }) {
      try await SystemClock().sleep(for: .milliseconds(5))
    }
  }

  func kill() async {
    task.cancel()
    await task.value
    journal.close()
    loop.stop()
  }
}

/// The built relay, in a process of its own.
final class OuterRelay: RelayLife {
  let url: String
  let child: ChildProcess

  /// `script` runs in a shell before the relay takes its place.
  init(_ stage: Stage, failpoint: String?, script: String?) async throws {
    let accounts = stage.places.enumerated().map { index, place in
      "  \(Stage.names[index]): \(place.configuration(webhook: stage.webhook(index)) ?? "")"
    }
    let config = """
      accounts:
      \(accounts.joined(separator: "\n"))
      bridges:
        b:
          between: ["\(stage.address(0))", "\(stage.address(1))"]
          mirror: [messages, edits, deletes, typing, images, members, reads, reactions]
      relay:
        listen: 127.0.0.1:0
        token: \(Stage.token)
        journal: \(stage.folder.file("ferry.db"))
        public_url: "\(stage.gate.server.url)"
        allow_hosts: [127.0.0.1]
      """
    try Data(config.utf8).write(to: URL(fileURLWithPath: stage.folder.file("relay.yaml")))
    let ready = stage.folder.file("ready")
    try? FileManager.default.removeItem(atPath: ready)
    let ferry = ChildProcess.built("ferry")
    let words = ["relay", "--config", stage.folder.file("relay.yaml"), "--ready-file", ready]
    let environment = failpoint.map { ["FERRY_FAILPOINT": $0] } ?? [:]
    let child =
      if let script {
        try ChildProcess(
          "/bin/sh", ["-c", "\(script); exec \"$0\" \"$@\"", ferry] + words, environment: environment)
      } else { try ChildProcess(ferry, words, environment: environment) }
    self.child = child
    // A failpoint may end it before it is ready.
    url = (try? await ServedBridge.ready(ready, child))?["relay"] ?? "http://127.0.0.1:9"
  }

  var isRunning: Bool { child.isRunning }

  func kill() async {
    child.signal(SIGKILL)
    _ = await child.wait()
  }
}
