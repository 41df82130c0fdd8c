package import FerryCore
import FerryRuntime

/// What the contract needs of a provider: an account on a service of its own, and a way round the adapter.
package protocol ProviderHarness: Sendable {
  /// A channel nobody else uses.
  var channel: ChannelID { get }

  /// An adapter for the service, with the right credentials or with wrong ones.
  func makeProvider(goodCredentials: Bool) throws(FerryError) -> any ChatProvider

  /// Writes to the channel without the adapter, as a person would.
  func say(_ text: String, by author: Author) async throws(FerryError)

  /// Watches the channel without the adapter, from now on. `texts` returns once as many have been written to it.
  func watch() async throws(FerryError) -> any ChannelWatcher

  /// What stands between the adapter and its service; nil where there is nothing to cut.
  var proxy: FaultProxy? { get }

  /// Ends the service.
  func close() async
}

/// Sees a channel as a person would.
package protocol ChannelWatcher: Sendable {
  /// Author's name and text of the first `count` messages seen; fewer when the task is cancelled.
  func messages(_ count: Int) async -> [Seen]
  func close() async
}

/// What a person sees of a message.
package struct Seen: Sendable, Hashable {
  package let author: String
  package let text: String

  package init(author: String, text: String) {
    self.author = author
    self.text = text
  }
}

/// A provider breaks its contract.
package struct ContractViolation: Error, CustomStringConvertible {
  package let description: String
  package init(_ description: String) { self.description = description }
}

/// The rules that hold for every provider, each a function of its own that throws when they do not.
package struct ProviderContract: Sendable {
  /// One rule, and for whom it is.
  package struct Rule: Sendable, CustomStringConvertible {
    package let name: String
    package let applies: @Sendable (Capabilities) -> Bool
    let check: @Sendable (ProviderContract) async throws -> Void

    package var description: String { name }

    init(
      _ name: String, when applies: @escaping @Sendable (Capabilities) -> Bool = { _ in true },
      check: @escaping @Sendable (ProviderContract) async throws -> Void
    ) {
      self.name = name
      self.applies = applies
      self.check = check
    }
  }

  /// All rules. A new provider meets them all from its first day.
  package static let rules: [Rule] = reading + writing + changing + settling + failing + importing

  let harness: any ProviderHarness
  let provider: any ChatProvider

  var channel: ChannelID { harness.channel }

  /// Checks one rule; false when it is not for this provider.
  @discardableResult
  package static func check(_ rule: Rule, on harness: any ProviderHarness) async throws -> Bool {
    let provider = try harness.makeProvider(goodCredentials: true)
    guard rule.applies(provider.capabilities) else { return false }
    try await rule.check(ProviderContract(harness: harness, provider: provider))
    return true
  }

  // MARK: What rules are made of

  static let ada = Author(id: "ada", name: "ada")
  static let bob = Author(id: "bob", name: "bob")

  func outgoing(_ text: String, id: String = Crypto.randomHex(bytes: 8), revision: Int = 0) -> OutgoingMessage {
    let stamp = Stamp(
      bridge: "contract", origin: Address(account: "elsewhere", channel: "room"), id: MessageID(id), revision: revision)
    return OutgoingMessage(key: stamp.key, author: Self.ada, text: text, stamp: stamp)
  }

  /// Runs the adapter while `body` works, then stops it, which must not take longer than `limit`.
  /// That is generous, because the machine may be busy; a rule of its own is strict.
  func listening<Result: Sendable>(
    _ subscription: Subscription? = nil, stopsWithin limit: Duration = .seconds(10),
    _ body: @escaping @Sendable (RecordingInbox) async throws -> Result
  ) async throws -> Result {
    let subscription = subscription ?? Subscription(channel: channel)
    let inbox = RecordingInbox()
    return try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await provider.run([subscription], into: inbox) }
      let result = try await Self.within(.seconds(60), "the rule is done") {
        await inbox.connected()
        return try await body(inbox)
      }
      let clock = ContinuousClock()
      let start = clock.now
      group.cancelAll()
      do { try await group.waitForAll() } catch {
        // Cancellation may be reported; anything else may not.
        guard FerryError.wrap(error).code == .cancelled else { throw error }
      }
      try require(clock.now - start < limit, "run went on for \(clock.now - start) after it was cancelled")
      return result
    }
  }

  /// The result of `body`, or a violation when there is none in time.
  static func within<Result: Sendable>(
    _ limit: Duration, _ what: String, _ body: @escaping @Sendable () async throws -> Result
  ) async throws -> Result {
    try await withThrowingTaskGroup(of: Result?.self) { group in
      group.addTask { try await body() }
      group.addTask {
        try await SystemClock().sleep(for: limit)
        return nil
      }
      defer { group.cancelAll() }
      guard let first = try await group.next(), let result = first else {
        throw ContractViolation("not within \(limit): \(what)")
      }
      return result
    }
  }

  func require(_ condition: Bool, _ violation: @autoclosure () -> String) throws {
    guard condition else { throw ContractViolation(violation()) }
  }

  func unwrap<Value>(_ value: Value?, _ violation: @autoclosure () -> String) throws -> Value {
    guard let value else { throw ContractViolation(violation()) }
    return value
  }

  /// The error of `body`, which must throw one of `codes`.
  func error(_ codes: Set<FerryError.Code>, _ doing: String, _ body: () async throws -> Void) async throws -> FerryError
  {
    do { try await body() } catch {
      guard let error = error as? FerryError, codes.contains(error.code) else {
        throw ContractViolation("\(doing) threw \(error) instead of one of \(codes.map(\.label).sorted())")
      }
      return error
    }
    throw ContractViolation("\(doing) succeeded")
  }

  /// The provider with a power that its capabilities promise.
  func power<Power>(_ type: Power.Type) throws -> Power {
    try unwrap(provider as? Power, "the capabilities promise \(type), which the provider does not have")
  }
}

extension RecordingInbox.Record {
  var posted: [Message] {
    events.compactMap { event in if case .posted(let message) = event.kind { message } else { nil } }
  }
}
