import FerryCore
import FerryRuntime

/// Hands events on to the relay as the witness was told to: twice, late, or what is about a message before it.
struct WitnessInbox: Inbox {
  let inner: any Inbox
  let notes: Locked<Witness.Notes>

  func accept(_ events: [Event]) async throws(FerryError) {
    let mischief = notes.withLock { notes in
      guard notes.left > 0, notes.mischief != .none else { return Witness.Mischief.none }
      notes.left -= 1
      notes.done += 1
      return notes.mischief
    }
    switch mischief {
    case .none: try await inner.accept(events)
    case .repeats:
      try await inner.accept(events)
      try await inner.accept(events)
    case .delays:
      do { try await SystemClock().sleep(for: .milliseconds(300)) } catch {
        throw FerryError.cancelled(didNotAct: true)
      }
      try await inner.accept(events)
    case .scrambles: try await inner.accept(Self.scrambled(events))
    }
  }

  /// Messages keep their order, and what is about them comes first. Cursors only move forward.
  private static func scrambled(_ events: [Event]) -> [Event] {
    var cursors: [ChannelID: Cursor] = [:]
    for event in events { cursors[event.channel] = event.cursor ?? cursors[event.channel] }
    func isPost(_ event: Event) -> Bool { if case .posted = event.kind { true } else { false } }
    var arranged = events.filter { !isPost($0) } + events.filter(isPost)
    for index in arranged.indices { arranged[index].cursor = nil }
    for (channel, cursor) in cursors {
      if let last = arranged.lastIndex(where: { $0.channel == channel }) { arranged[last].cursor = cursor }
    }
    return arranged
  }

  func accept(cursor: Cursor, for channel: ChannelID) async throws(FerryError) {
    try await inner.accept(cursor: cursor, for: channel)
  }

  func recent(in channel: ChannelID, limit: Int) async throws(FerryError) -> [KnownMessage] {
    try await inner.recent(in: channel, limit: limit)
  }

  func typing(_ typing: Typing) { inner.typing(typing) }
  func gap(_ gap: Gap) async { await inner.gap(gap) }
  func connection(_ state: ConnectionState) { inner.connection(state) }
}
