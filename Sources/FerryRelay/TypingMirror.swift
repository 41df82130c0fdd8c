package import FerryCore
import FerryRuntime
import FerryStorage

/// Who is typing where, as far as it was passed on: a pure value that decides what to send (G6).
package struct TypingThrottle: Sendable {
  package struct Key: Hashable, Sendable {
    let source: Address
    let sender: UserID

    package init(source: Address, sender: UserID) {
      self.source = source
      self.sender = sender
    }
  }

  private struct State {
    var sent: Timestamp
    var expires: Timestamp
  }

  package static let interval = Duration.seconds(1)
  package static let lifetime = Duration.seconds(5)

  private var typing: [Key: State] = [:]

  package init() {}

  /// True when this is to be passed on now.
  package mutating func shouldSend(_ on: Bool, by key: Key, at now: Timestamp) -> Bool {
    guard on else { return typing.removeValue(forKey: key) != nil }
    if var state = typing[key] {
      state.expires = now.advanced(by: Self.lifetime)
      let due = state.sent.advanced(by: Self.interval) <= now
      if due { state.sent = now }
      typing[key] = state
      return due
    }
    typing[key] = State(sent: now, expires: now.advanced(by: Self.lifetime))
    return true
  }

  /// The sender's message ends the typing at the destinations too, so nothing is to be sent.
  package mutating func ended(by key: Key) { typing[key] = nil }

  /// Those whose time ran out without a word: their end is to be passed on.
  package mutating func expired(at now: Timestamp) -> [Key] {
    let over = typing.filter { $0.value.expires <= now }.map(\.key)
    for key in over { typing[key] = nil }
    return over
  }
}

/// Passes typing on, past the journal: newest only, one at a time to a destination, never retried.
final class TypingMirror: Sendable {
  private struct Pending: Sendable {
    var throttle = TypingThrottle()
    /// The newest of every sender, by lane.
    var outgoing: [LaneID: [TypingThrottle.Key: Typing]] = [:]
    /// Who has taken over: what still comes here, from whoever looked before, is passed on to it.
    var successor: TypingMirror?
  }

  private let state = Locked(Pending())
  private let router: Router
  private let providers: [AccountName: any TypingProvider]
  private let signals: [LaneID: BoundedChannel<Void>]
  private let clock: any FerryClock
  private let metrics: Metrics
  private let identities: Identities
  private let names: AuthorNames
  /// False while an account fails: typing then is not worth another request.
  private let isSending: @Sendable (AccountName) -> Bool

  init(
    router: Router, providers: [AccountName: any ChatProvider], identities: Identities, names: AuthorNames,
    clock: any FerryClock, metrics: Metrics,
    isSending: @escaping @Sendable (AccountName) -> Bool
  ) {
    self.router = router
    self.providers = providers.compactMapValues { $0.capabilities.typing ? $0 as? any TypingProvider : nil }
    self.clock = clock
    self.metrics = metrics
    self.identities = identities
    self.names = names
    self.isSending = isSending
    var signals: [LaneID: BoundedChannel<Void>] = [:]
    for lane in router.lanes { signals[lane] = BoundedChannel(capacity: 1) }
    self.signals = signals
  }

  func run() async {
    await withDiscardingTaskGroup { group in
      for (lane, signal) in signals {
        guard let provider = providers[lane.destination.account] else { continue }
        group.addTask { await self.send(lane, signal, to: provider) }
      }
      group.addTask { await self.expire() }
    }
  }

  /// Goes on where another one stood: who types now is still seen to end (G6). Returns the lanes that are to be woken.
  func take(over old: TypingMirror) -> Set<LaneID> {
    // Both at once: what the other passes on from now on must not come before what it had.
    state.withLock { state -> Set<LaneID> in
      let before = old.state.withLock { old -> Pending in
        defer { old = Pending(successor: self) }
        return old
      }
      state.throttle = before.throttle
      state.outgoing = before.outgoing.filter { signals[$0.key] != nil }
      return Set(state.outgoing.keys)
    }
  }

  func wake(_ lanes: Set<LaneID>) {
    for lane in lanes { _ = signals[lane]?.offer(()) }
  }

  /// From any task; never waits.
  func typing(_ typing: Typing, at account: AccountName) {
    guard typing.stamp == nil else { return }
    let source = Address(account: account, channel: typing.channel)
    let key = TypingThrottle.Key(source: source, sender: typing.by.id)
    let now = clock.now()
    let (successor, isDue) = state.withLock { state -> (TypingMirror?, Bool) in
      if let successor = state.successor { return (successor, false) }
      return (nil, state.throttle.shouldSend(typing.on, by: key, at: now))
    }
    if let successor { return successor.typing(typing, at: account) }
    guard isDue else {
      metrics.add(to: "ferry_typing_dropped_total")
      return
    }
    queue(typing, key, source)
  }

  func messagePosted(by sender: UserID, at source: Address) {
    let successor = state.withLock { state -> TypingMirror? in
      state.throttle.ended(by: TypingThrottle.Key(source: source, sender: sender))
      return state.successor
    }
    successor?.messagePosted(by: sender, at: source)
  }

  private func queue(_ typing: Typing, _ key: TypingThrottle.Key, _ source: Address) {
    for lane in router.lanes(from: source, mirroring: .typing) {
      // What nobody takes from the queue must not be put there.
      guard let bridge = router.bridges[lane.bridge], providers[lane.destination.account] != nil else { continue }
      var author = bridge.author.author(for: typing.by, at: source, in: lane.bridge, identities: identities)
      if bridge.distinguish {
        author.name = names.shownNow(author.name, of: typing.by.id, from: source.account, at: lane.destination)
      }
      let copy = Typing(
        channel: lane.destination.channel, by: author, on: typing.on,
        stamp: Stamp(bridge: lane.bridge, origin: source, id: ""))
      let successor = state.withLock { state -> TypingMirror? in
        if state.successor == nil { state.outgoing[lane, default: [:]][key] = copy }
        return state.successor
      }
      if let successor { return successor.queue(typing, key, source) }
      wake([lane])
    }
  }

  /// What a change has cut off is sent by the successor, unless it knows something newer.
  private func putBack(_ typing: Typing, _ key: TypingThrottle.Key, _ lane: LaneID) {
    guard signals[lane] != nil else { return }
    let successor = state.withLock { state -> TypingMirror? in
      if state.successor == nil, state.outgoing[lane]?[key] == nil { state.outgoing[lane, default: [:]][key] = typing }
      return state.successor
    }
    if let successor { return successor.putBack(typing, key, lane) }
    wake([lane])
  }

  private func send(_ lane: LaneID, _ signal: BoundedChannel<Void>, to provider: any TypingProvider) async {
    while await signal.next() != nil {
      let newest = state.withLock { $0.outgoing.removeValue(forKey: lane) } ?? [:]
      guard isSending(lane.destination.account) else {
        metrics.add(Double(newest.count), to: "ferry_typing_dropped_total")
        continue
      }
      for (key, typing) in newest {
        do throws(FerryError) { try await provider.setTyping(typing) } catch {
          if Task.isCancelled { putBack(typing, key, lane) } else { metrics.add(to: "ferry_typing_failed_total") }
        }
      }
    }
  }

  private func expire() async {
    while (try? await clock.sleep(for: TypingThrottle.interval)) != nil {
      let now = clock.now()
      for key in state.withLock({ $0.throttle.expired(at: now) }) {
        let by = Author(id: key.sender, name: key.sender.rawValue)
        queue(Typing(channel: key.source.channel, by: by, on: false), key, key.source)
      }
    }
  }
}
