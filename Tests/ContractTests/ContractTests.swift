import FerryCore
import FerryTestKit
import Testing

/// The providers, in one place. A new one is a line here and a harness beside this file.
enum Subject: String, CaseIterable, Sendable, CustomTestStringConvertible {
  case memory, local, pusher, twilio, backendless
  /// With nothing in between: the rules that inject no fault.
  case backendlessDirectly = "backendless, directly"
  case pusherEncrypted = "pusher, encrypted"
  case pusherPresence = "pusher, presence"
  /// The same service, heard by webhooks rather than by asking.
  case twilioWebhooks = "twilio, webhooks"

  var testDescription: String { rawValue }

  func makeHarness() async throws -> any ProviderHarness {
    switch self {
    case .memory: MemoryHarness()
    case .local: try await LocalHarness.start()
    case .pusher: try await PusherHarness.start()
    case .pusherEncrypted: try await PusherHarness.start(channel: "private-encrypted-room")
    case .pusherPresence: try await PusherHarness.start(channel: "presence-room")
    case .twilio: try await TwilioHarness.start(webhooks: false)
    case .twilioWebhooks: try await TwilioHarness.start(webhooks: true)
    case .backendless: try await BackendlessHarness.start()
    case .backendlessDirectly: try await BackendlessHarness.start(isDirect: true)
    }
  }
}

extension ProviderContract.Rule: CustomTestStringConvertible {
  public var testDescription: String { name }
}

@Suite(.timeLimit(.minutes(3))) struct ContractTests {
  @Test("every rule of the contract holds", arguments: Subject.allCases, ProviderContract.rules)
  func rule(subject: Subject, rule: ProviderContract.Rule) async throws {
    let harness = try await subject.makeHarness()
    do {
      try await ProviderContract.check(rule, on: harness)
      await harness.close()
    } catch {
      await harness.close()
      throw error
    }
  }

  @Test("most rules are for every provider", arguments: Subject.allCases)
  func applicability(subject: Subject) async throws {
    let harness = try await subject.makeHarness()
    let provider = try harness.makeProvider(goodCredentials: true)
    let count = ProviderContract.rules.count { $0.applies(provider.capabilities) }
    await harness.close()
    #expect(count * 3 >= ProviderContract.rules.count * 2)
  }

  @Test("a provider that loses its capabilities still keeps the contract")
  func lesserProvider() async throws {
    for rule in ProviderContract.rules {
      let harness = MemoryHarness { capabilities in
        capabilities.history = .none
        capabilities.certainty = .none
        capabilities.edits = false
        capabilities.batch = 1
      }
      try await ProviderContract.check(rule, on: harness)
    }
  }

  @Test("a provider that posts twice is caught")
  func brokenProvider() async throws {
    let rule = try #require(ProviderContract.rules.first)
    await #expect(throws: ContractViolation.self) { try await ProviderContract.check(rule, on: DoublingHarness()) }
  }
}
