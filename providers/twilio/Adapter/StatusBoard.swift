import FerryCore
import FerryRuntime

/// How the conversations of one run are doing, and the account's state that follows: told to the inbox when it changes.
final class StatusBoard: Sendable {
  enum Status: Hashable, Sendable {
    case connecting(String?)
    case connected
    /// Twilio answers, but this conversation cannot be read.
    case missing(String)
  }

  private struct State {
    var statuses: [ChannelID: Status]
    var told: ConnectionState?
    /// Somebody tells the inbox at this moment, and will tell what is set meanwhile too: in order.
    var isTelling = false
  }

  private let inbox: any Inbox
  private let state: Locked<State>

  init(_ channels: [ChannelID], inbox: any Inbox) {
    self.inbox = inbox
    let statuses = channels.map { ($0, Status.connecting(nil)) }
    state = Locked(State(statuses: Dictionary(statuses, uniquingKeysWith: { first, _ in first })))
    tell()
  }

  func set(_ channel: ChannelID, _ status: Status) {
    state.withLock { $0.statuses[channel] = status }
    tell()
  }

  /// Whether no conversation can be read at all.
  var isHopeless: Bool {
    state.withLock { state in
      state.statuses.values.allSatisfy { if case .missing = $0 { true } else { false } }
    }
  }

  private func tell() {
    let isMine = state.withLock { state in
      defer { state.isTelling = true }
      return !state.isTelling
    }
    guard isMine else { return }
    while let news = next() { inbox.connection(news) }
  }

  private func next() -> ConnectionState? {
    state.withLock { state in
      let now = Self.summary(state.statuses)
      guard now != state.told else {
        state.isTelling = false
        return nil
      }
      state.told = now
      return now
    }
  }

  private static func summary(_ statuses: [ChannelID: Status]) -> ConnectionState {
    let sorted = statuses.sorted { $0.key < $1.key }
    for (channel, status) in sorted {
      if case .connecting(let reason) = status {
        return ConnectionState(.connecting, reason: reason.map { "\(channel): \($0)" })
      }
    }
    for (channel, status) in sorted {
      if case .missing(let reason) = status { return ConnectionState(.degraded, reason: "\(channel): \(reason)") }
    }
    return ConnectionState(.connected)
  }
}
