import FerryCore
import FerryRelay
import FerryRuntime
import FerryStorage
import FerryTestKit

/// Accounts in memory with a bridge between their rooms, and a relay that runs while a test does something.
struct RelayRig: Sendable {
  static let room: ChannelID = "room"

  let folder: TemporaryFolder
  let accounts: [AccountName: MemoryProvider]
  var bridges: [Bridge]
  var identities = Identities()
  var clock: any FerryClock = SystemClock()
  var retention: Duration?
  let metrics = Metrics()

  /// One bridge called `pair`, all to all.
  init(_ accounts: [AccountName: MemoryProvider], mirror: Set<Bridge.Mirrored> = Set(Bridge.Mirrored.allCases)) throws {
    let addresses = accounts.keys.sorted().map { Address(account: $0, channel: Self.room) }
    try self.init(accounts, [Bridge(name: "pair", routes: Bridge.mesh(addresses), mirror: mirror)])
  }

  init(_ accounts: [AccountName: MemoryProvider], _ bridges: [Bridge]) throws {
    folder = try TemporaryFolder()
    self.accounts = accounts
    self.bridges = bridges
  }

  subscript(account: AccountName) -> MemoryProvider {
    guard let provider = accounts[account] else { preconditionFailure("no account \(account)") }
    return provider
  }

  var journalPath: String { folder.file("journal.db") }

  func settings(_ journal: Journal) throws -> Relay.Settings {
    Relay.Settings(
      accounts: accounts, bridges: bridges, identities: identities, journal: journal,
      spool: try Spool(folder: folder.file("spool"), limit: 1 << 20), publicURL: "http://127.0.0.1:1",
      retention: retention, clock: clock,
      metrics: metrics)
  }

  /// Runs a relay while `body` runs. It is ended like a process that is killed.
  func relaying<Result: Sendable>(
    _ body: @escaping @Sendable (Relay, Journal) async throws -> Result
  ) async throws -> Result {
    let journal = try Journal(path: journalPath, clock: clock)
    defer { journal.close() }
    let relay = try Relay(try settings(journal))
    return try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { await relay.run() }
      try await until { try await relay.status().accounts.allSatisfy { $0.state != "connecting" } }
      let result = try await body(relay, journal)
      group.cancelAll()
      return result
    }
  }

  @discardableResult
  func say(_ text: String, at account: AccountName, by name: String = "Ann") -> MessageID {
    self[account].say(text, by: Author(id: UserID(name.lowercased()), name: name), in: Self.room)
  }

  func texts(at account: AccountName) -> [String] { self[account].messages(in: Self.room).map(\.text) }

  /// Waits until an account shows as many messages, and returns them.
  @discardableResult
  func wait(for count: Int, at account: AccountName) async -> [Message] {
    await self[account].wait(in: Self.room) { $0.count >= count ? $0 : nil } ?? []
  }
}

/// Asks again and again; only the test's time limit ends it.
func until(_ condition: () async throws -> Bool) async throws {
  while try await !condition() { try await SystemClock().sleep(for: .milliseconds(2)) }
}
