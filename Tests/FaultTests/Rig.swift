import FerryCore
import FerryRelay
import FerryRuntime
import FerryStorage
import FerryTestKit

/// A clock on which waiting takes a hundredth of the time: faults need many pauses, and tests have little time.
struct HurriedClock: FerryClock {
  private let system = SystemClock()

  func now() -> Timestamp { system.now() }

  func sleep(for duration: Duration) async throws(CancellationError) { try await system.sleep(for: duration / 100) }
}

/// A journal, accounts in memory, and a relay that can be ended and started again at any moment.
struct Rig: Sendable {
  static let room: ChannelID = "room"

  private let folder: TemporaryFolder
  let accounts: [AccountName: MemoryProvider]
  private let bridges: [Bridge]

  init(_ accounts: [AccountName: MemoryProvider], bridges: [(BridgeName, [AccountName])]) throws {
    try self.init(
      accounts,
      bridges.map { name, accounts in
        let addresses = accounts.map { Address(account: $0, channel: Self.room) }
        return Bridge(name: name, routes: Bridge.mesh(addresses), mirror: Set(Bridge.Mirrored.allCases))
      })
  }

  init(_ accounts: [AccountName: MemoryProvider], _ bridges: [Bridge]) throws {
    folder = try TemporaryFolder()
    self.accounts = accounts
    self.bridges = bridges
  }

  /// Two accounts and a bridge between them.
  static func pair(there: MemoryProvider = MemoryProvider()) throws -> Rig {
    try Rig(["here": MemoryProvider(), "there": there], bridges: [("pair", ["here", "there"])])
  }

  subscript(account: AccountName) -> MemoryProvider {
    guard let provider = accounts[account] else { preconditionFailure("no account \(account)") }
    return provider
  }

  /// Runs a relay while `body` runs, then ends it: at once, or after what it is sending.
  func relaying<Result: Sendable>(
    gracefully: Bool = false, _ body: @escaping @Sendable (Journal) async throws -> Result
  ) async throws -> Result {
    let journal = try Journal(path: folder.file("journal.db"))
    defer { journal.close() }
    let relay = try Relay(
      Relay.Settings(
        accounts: accounts, bridges: bridges, journal: journal,
        spool: try Spool(folder: folder.file("spool"), limit: 1 << 20), publicURL: "http://127.0.0.1:1",
        clock: HurriedClock()))
    return try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { await relay.run() }
      // A source that was never listened to begins with what comes from now on.
      while try await relay.status().accounts.contains(where: { !["connected", "idle"].contains($0.state) }) {
        try await SystemClock().sleep(for: .milliseconds(1))
      }
      let result = try await body(journal)
      if gracefully { relay.stop() } else { group.cancelAll() }
      return result
    }
  }

  func say(_ text: String, at account: AccountName) {
    self[account].say(text, by: Author(id: "ann", name: "Ann"), in: Self.room)
  }

  /// What an account shows now, in order.
  func texts(at account: AccountName) -> [String] { self[account].messages(in: Self.room).map(\.text) }

  /// Waits until an account shows as many messages.
  func wait(for count: Int, at account: AccountName) async {
    _ = await self[account].wait(in: Self.room) { $0.count >= count ? true : nil }
  }

  /// Waits until an account shows just these.
  func wait(for texts: [String], at account: AccountName) async {
    _ = await self[account].wait(in: Self.room) { $0.map(\.text) == texts ? true : nil }
  }
}
