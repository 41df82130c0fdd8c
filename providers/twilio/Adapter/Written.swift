import FerryCore
import FerryRuntime

/// What this process wrote to Twilio, for knowing it again where the mark on it is lost, or where there is no place for
/// one (G5). Nothing durable: after a restart the marks, and the relay's links, decide.
final class Written: Sendable {
  private struct Mark: Hashable {
    let channel: ChannelID
    let identity: String
  }

  private struct State {
    var messages = Remembered<String, Stamp>(capacity: 10_000)
    var deletions = Remembered<String, Stamp>(capacity: 10_000)
    var reads = Remembered<Mark, FerryAttributes.ReadStamp>(capacity: 10_000)
    var departures = Remembered<Mark, Stamp>(capacity: 10_000)
    var attempts = Remembered<SendKey, Timestamp>(capacity: 10_000)
  }

  private let state = Locked(State())

  /// When a send was first tried.
  func tried(_ key: SendKey, at time: Timestamp) {
    state.withLock { state in if state.attempts[key] == nil { state.attempts[key] = time } }
  }

  func firstTry(of key: SendKey) -> Timestamp? { state.withLock { $0.attempts[key] } }

  func posted(_ message: String, _ stamp: Stamp?) { state.withLock { $0.messages[message] = stamp } }

  func stamp(ofMessage message: String) -> Stamp? { state.withLock { $0.messages[message] } }

  /// Told before the request is made: its effect may be seen before its answer.
  func deleting(_ message: String, _ stamp: Stamp?) { state.withLock { $0.deletions[message] = stamp } }

  func stamp(ofDeletion message: String) -> Stamp? { state.withLock { $0.deletions[message] } }

  func marking(_ index: Int64, by identity: String, in channel: ChannelID, _ stamp: Stamp?) {
    let read = stamp.map { FerryAttributes.ReadStamp(index: index, stamp: $0) }
    state.withLock { $0.reads[Mark(channel: channel, identity: identity)] = read }
  }

  func stamp(ofReading index: Int64, by identity: String, in channel: ChannelID) -> Stamp? {
    state.withLock { state in
      state.reads[Mark(channel: channel, identity: identity)].flatMap { $0.index == index ? $0.stamp : nil }
    }
  }

  /// Returns what was there before.
  @discardableResult
  func removing(_ identity: String, from channel: ChannelID, _ stamp: Stamp?) -> Stamp? {
    state.withLock { state in
      let mark = Mark(channel: channel, identity: identity)
      defer { state.departures[mark] = stamp }
      return state.departures[mark]
    }
  }

  /// Once: the next departure is another one.
  func takeDeparture(of identity: String, from channel: ChannelID) -> Stamp? {
    state.withLock { state in
      let mark = Mark(channel: channel, identity: identity)
      defer { state.departures[mark] = nil }
      return state.departures[mark]
    }
  }
}
