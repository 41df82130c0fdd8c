import FerryCore
import FerryRuntime

/// Hands what happens to its readers, in order and without waiting for any of them.
///
/// Events are published by the database's writer thread only, in the order of their sequences, after their commit.
final class Feed: Sendable {
  private struct State {
    /// The sequence of the last event that was published, or was in the log when somebody looked. Nil before either.
    var head: Int64?
    var readers: [ExactName: [FeedReader]] = [:]
    var readersOfAll: [FeedReader] = []
    var typing = TypingTable()
    var closed = false

    func readers(of room: ChannelID) -> [FeedReader] {
      guard let some = readers[ExactName(room.rawValue)] else { return readersOfAll }
      return readersOfAll.isEmpty ? some : some + readersOfAll
    }
  }

  private let state = Locked(State())
  /// Told that somebody started to type, so that `ChatService.run` looks after the end.
  let typingBegan = BoundedChannel<Void>(capacity: 1)

  var head: Int64? { state.withLock { $0.head } }

  /// Takes the log's last sequence, unless a later one is known.
  func learn(head: Int64) -> Int64 {
    state.withLock { state in
      let known = max(state.head ?? head, head)
      state.head = known
      return known
    }
  }

  /// Registers a reader, once `head` is known, and returns the sequence after which it will be told everything.
  func add(_ reader: FeedReader, room: ChannelID?) -> Int64 {
    let (head, closed) = state.withLock { state in
      if let room {
        state.readers[ExactName(room.rawValue), default: []].append(reader)
      } else {
        state.readersOfAll.append(reader)
      }
      return (state.head ?? 0, state.closed)
    }
    if closed { reader.finish() }
    return head
  }

  func remove(_ reader: FeedReader, room: ChannelID?) {
    state.withLock { state in
      if let room {
        let name = ExactName(room.rawValue)
        state.readers[name]?.removeAll { $0 === reader }
        if state.readers[name]?.isEmpty == true { state.readers[name] = nil }
      } else {
        state.readersOfAll.removeAll { $0 === reader }
      }
    }
  }

  /// The events of one transaction, all of one room. Writer thread.
  func publish(_ events: [LoggedEvent], of room: ChannelID, typingEnds authors: [UserID]) {
    guard let last = events.last else { return }
    publish(through: last.sequence, of: room, typingEnds: authors) { events }
  }

  /// As above, for events up to a sequence that are made only where somebody reads them.
  func publish(
    through last: Int64, of room: ChannelID, typingEnds authors: [UserID] = [], _ events: () -> [LoggedEvent]
  ) {
    let (ended, readers) = state.withLock { state in
      state.head = last
      return (authors.compactMap { state.typing.end($0, in: room) }, state.readers(of: room))
    }
    if readers.isEmpty { return }
    let items = ended.map(FeedItem.typing) + events().map(FeedItem.event)
    for reader in readers { reader.offer(items) }
  }

  /// From anywhere. Stopping when not typing tells nobody.
  func publish(_ typing: Typing, at now: Timestamp, lasting: Duration) {
    let (told, readers) = state.withLock { state -> (Typing?, [FeedReader]) in
      let told =
        typing.on
        ? state.typing.begin(typing, at: now, until: now.advanced(by: lasting))
        : state.typing.end(typing.by.id, in: typing.channel)
      return (told, state.readers(of: typing.channel))
    }
    guard let told else { return }
    for reader in readers { reader.offer([.typing(told)]) }
    if told.on { _ = typingBegan.offer(()) }
  }

  /// Ends the typing that was due by `now` and returns when the next is due; nil when nobody types.
  func endTyping(dueBy now: Timestamp) -> Timestamp? {
    let (ended, next) = state.withLock { state in
      let ended = state.typing.expire(at: now).map { ($0, state.readers(of: $0.channel)) }
      return (ended, state.typing.nextDue)
    }
    for (typing, readers) in ended {
      for reader in readers { reader.offer([.typing(typing)]) }
    }
    return next
  }

  /// Ends every reader.
  func close() {
    let readers = state.withLock { state in
      state.closed = true
      defer {
        state.readers = [:]
        state.readersOfAll = []
      }
      return state.readers.values.flatMap { $0 } + state.readersOfAll
    }
    for reader in readers { reader.finish() }
  }
}
