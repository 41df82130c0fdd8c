package import FerryCore

/// An inbox that remembers everything, and lets tests wait for what is to come.
package final class RecordingInbox: Inbox {
  package struct Record: Sendable {
    /// Without duplicates, in the order of acceptance.
    package var events: [Event] = []
    /// Events whose key had been accepted before for the channel.
    package var duplicates: [Event] = []
    package var cursors: [ChannelID: Cursor] = [:]
    package var typing: [Typing] = []
    package var gaps: [Gap] = []
    package var connections: [ConnectionState] = []
    /// `accept` throws these first, one a call.
    package var failures: [FerryError] = []
    fileprivate var keys: [ChannelID: Set<EventKey>] = [:]
  }

  private let record = Observed(Record())

  package init() {}

  package var now: Record { record.value }

  /// The next calls of `accept` fail like a full disk.
  package func failNext(_ count: Int, with error: FerryError = FerryError(.storage, "The disk is full.", retry: .now)) {
    record.update { $0.failures += Array(repeating: error, count: count) }
  }

  /// The first answer of `find` that is not nil, asked again whenever something arrives; nil when cancelled.
  package func wait<Result>(for find: (Record) -> Result?) async -> Result? { await record.wait(for: find) }

  /// The first event of which `matches` is true, from the beginning on.
  package func event(where matches: (Event) -> Bool) async -> Event? {
    await wait { $0.events.first(where: matches) }
  }

  /// The first message whose text is `text`.
  package func message(_ text: String) async -> Message? {
    await wait { record in
      for case .posted(let message) in record.events.map(\.kind) where message.text == text { return message }
      return nil
    }
  }

  /// Until the account says that it is connected.
  package func connected() async {
    _ = await wait { $0.connections.last?.phase == .connected ? true : nil }
  }

  // MARK: Inbox

  package func accept(_ events: [Event]) async throws(FerryError) {
    try record.update { record throws(FerryError) in
      if !record.failures.isEmpty { throw record.failures.removeFirst() }
      for event in events {
        if record.keys[event.channel, default: []].insert(event.key).inserted {
          record.events.append(event)
        } else {
          record.duplicates.append(event)
        }
        if let cursor = event.cursor { record.cursors[event.channel] = cursor }
      }
    }
  }

  package func accept(cursor: Cursor, for channel: ChannelID) async throws(FerryError) {
    try record.update { record throws(FerryError) in
      if !record.failures.isEmpty { throw record.failures.removeFirst() }
      record.cursors[channel] = cursor
    }
  }

  package func recent(in channel: ChannelID, limit: Int) async throws(FerryError) -> [KnownMessage] {
    Array(KnownMessage.latest(of: now.events.reversed().filter { $0.channel == channel }).prefix(limit))
  }

  package func typing(_ typing: Typing) { record.update { $0.typing.append(typing) } }
  package func gap(_ gap: Gap) async { record.update { $0.gaps.append(gap) } }
  package func connection(_ state: ConnectionState) { record.update { $0.connections.append(state) } }
}
