package import FerryCore
import FerryRuntime

/// A stable JSON document: the answer of the relay's `/status`.
package struct RelayStatus: Codable, Sendable {
  package struct Account: Codable, Sendable {
    package struct Failure: Codable, Sendable {
      package var time: String
      package var message: String
    }

    package var name: AccountName
    /// `connecting`, `connected`, `degraded`, `bad_credentials`, `stopped`, or `idle`: only written to, and well.
    package var state: String
    package var reason: String?
    /// Since when it is in this state.
    package var since: String
    /// When an event was last accepted from it; `lastEvent` is its older name.
    package var lastIn: String?
    package var lastEvent: String?
    /// When something was last written to it.
    package var lastOut: String?
    /// The last failure, however long ago.
    package var lastError: Failure?
    /// How many lanes wait together because the account fails, and when the next of them tries.
    package var lanesWaiting: Int
    package var nextAttempt: String?
  }

  package struct Lane: Codable, Sendable {
    package var bridge: BridgeName
    package var destination: Address
    package var pending: Int
    package var waiting: Int
    package var dead: Int
    /// When the oldest event that is to be delivered was accepted; nil when none is.
    package var oldest: String?
    /// No longer configured: what is left waits in the journal until it is again.
    package var parked: Bool
    /// Why it waits and until when, and what a person is to do; nil while it does not.
    package var stopped: String?
  }

  package struct Gap: Codable, Sendable {
    package var address: Address
    package var start: String
    package var end: String
  }

  package var accounts: [Account]
  package var lanes: [Lane]
  package var gaps: [Gap]
}

extension RelayStatus.Account {
  init(_ name: AccountName, _ snapshot: AccountHealth.Snapshot) {
    self.name = name
    state = snapshot.state.phase.rawValue
    reason = snapshot.state.reason
    since = snapshot.since.iso8601
    lastIn = snapshot.lastIn?.iso8601
    lastEvent = lastIn
    lastOut = snapshot.lastOut?.iso8601
    lastError = snapshot.lastError.map { Failure(time: $0.time.iso8601, message: $0.text) }
    lanesWaiting = snapshot.circuit.waitingCount
    nextAttempt = snapshot.nextAttempt?.iso8601
  }
}
