package import FerryCore

/// What the journal knows of one message's way: ids, times and reasons, never a text.
package struct MessageTrace: Sendable {
  /// Something that a source said.
  package struct Received: Sendable {
    package let address: Address
    package let key: EventKey
    /// As `Event.kindName`.
    package let kind: String
    package let message: MessageID?
    /// When it happened, by the source's clock, and when it was journaled, by ours.
    package let time: Timestamp
    package let accepted: Timestamp
    package internal(set) var deliveries: [Sent] = []
  }

  /// What became of it at one destination.
  package struct Sent: Sendable {
    /// The number by which `ferry dead` knows it.
    package let delivery: Int64
    package let lane: LaneID
    package let state: Delivery.State
    package let failedAttempts: Int
    /// When its state last changed.
    package let updated: Timestamp
    package let lastError: String?
    /// The last failures, oldest first; the journal keeps twenty.
    package internal(set) var failures: [(time: Timestamp, error: String)] = []
  }

  /// Where the message was written, and what it is called there; no message for an event that has none.
  package let address: Address
  package let message: MessageID?
  /// In the order in which they were accepted: those of the original first, then what was said about its copies.
  package internal(set) var received: [Received] = []
  package internal(set) var copies: [Link] = []
}
