import FerryCore
import FerryRuntime
import FerryTransport

/// The live status: the same for everybody who follows, asked of the journal at most once a second.
///
/// Source of the wire format: https://html.spec.whatwg.org/multipage/server-sent-events.html
final class ConsoleFeed: Sendable {
  private struct State: Sendable {
    var bytes: [UInt8] = []
    /// When somebody last began to make them; nil when they are to be made anew.
    var made: Timestamp?
    /// Goes up when what is being made is out of date already.
    var changes = 0
    var isRetired = false
  }

  /// How often those who follow are told.
  static let interval = Duration.seconds(1)
  /// Enough for a roomful of people; each costs a connection.
  private static let followers = 64

  private let relay: Relay
  private let providers: [AccountName: String]
  private let state = Locked(State())
  private let count = Locked(0)

  init(relay: Relay, providers: [AccountName: String]) {
    self.relay = relay
    self.providers = providers
  }

  /// What was told last is no longer so.
  func changed() {
    state.withLock { state in
      state.made = nil
      state.changes += 1
    }
  }

  /// Ends all streams.
  func retire() { state.withLock { $0.isRetired = true } }

  /// A stream of `status` events that ends when the relay does.
  func follow() -> HTTPResponse {
    guard let follower = Follower(count, limit: Self.followers) else {
      var refusal = HTTPResponse.error(
        FerryError(.rateLimited, "Too many consoles follow this relay.", retry: .after(.seconds(10))))
      refusal.headers.set("Cache-Control", "no-store")
      return refusal
    }
    let isFirst = Locked(true)
    let stream = ByteStream { () throws(FerryError) -> [UInt8]? in
      _ = follower
      let clock = self.relay.settings.clock
      if !isFirst.withLock({ first in
        defer { first = false }
        return first
      }) {
        do { try await clock.sleep(for: Self.interval) } catch { throw .cancelled(didNotAct: true) }
      }
      return self.relay.isStopping || self.state.withLock { $0.isRetired } ? nil : try await self.event()
    }
    return HTTPResponse(
      status: 200, headers: ["Content-Type": "text/event-stream; charset=utf-8"], body: .stream(stream))
  }

  private func event() async throws(FerryError) -> [UInt8] {
    let now = relay.settings.clock.now()
    let known = state.withLock { state -> [UInt8]? in
      if let made = state.made, made.advanced(by: .milliseconds(900)) > now, made <= now { return state.bytes }
      // One asks the journal; the others are told meanwhile what was so a second ago.
      if !state.bytes.isEmpty { state.made = now }
      return nil
    }
    if let known { return known }
    let changes = state.withLock { $0.changes }
    let status = try await relay.consoleStatus(providers: providers)
    let bytes = Array("event: status\ndata: ".utf8) + ConsoleAPI.encode(status) + Array("\n\n".utf8)
    state.withLock { state in
      state.bytes = bytes
      state.made = state.changes == changes ? now : nil
    }
    return bytes
  }

  /// Counted for as long as its stream is held.
  private final class Follower: Sendable {
    private let count: Locked<Int>

    init?(_ count: Locked<Int>, limit: Int) {
      self.count = count
      let isIn = count.withLock { count in
        guard count < limit else { return false }
        count += 1
        return true
      }
      guard isIn else { return nil }
    }

    deinit { count.withLock { $0 -= 1 } }
  }
}
