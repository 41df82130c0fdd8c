package import FerryCore
import FerryRuntime
import FerryStorage

/// An event as the observer is told of it.
package struct ObservedEvent: Sendable {
  package var event: Event
  /// The message as stored, for what was posted or edited.
  package var stored: ChatMessage?
  /// The message as it was, for what was deleted; nil when it was deleted while nobody observed.
  package var before: ChatMessage?
  /// True when it happens now, false when the observer is told later of what it missed.
  package var isLive: Bool
}

/// Told of every event in the transaction that makes it, so that documents never fall out of step with the chat. When
/// it throws, the event does not happen.
package typealias ChatObserver = @Sendable (ChatTransaction, ObservedEvent) throws -> Void

struct Observation: Sendable {
  let name: String
  let observer: ChatObserver
}

extension ChatService {
  /// Lets `observer` see every event exactly once, also through restarts and crashes: first those since it was here
  /// last under this name (or from the beginning), then each as it happens. One observer at a time.
  package func observe(as name: String, _ observer: @escaping ChatObserver) async throws(FerryError) {
    let now = clock.now()
    try await database.write { [self] connection in
      let transaction = ChatTransaction(self, connection, now: now, isOfObserver: true)
      let position = try connection.first(
        "SELECT value FROM kept WHERE key = ?", .text(Self.positionKey(name))
      ) { Int64($0.text(0)) ?? 0 }
      try Self.catchUp(observer, as: name, after: position ?? 0, transaction)
      // Here and not after the commit: the next write of the same group must be told of already.
      observation.withLock { $0 = Observation(name: name, observer: observer) }
    }
  }

  /// Called with every event that is appended. Writer thread.
  func observed(
    _ event: Event, stored: ChatMessage?, before: ChatMessage?, in transaction: ChatTransaction
  ) throws {
    guard let observation = observation.withLock({ $0 }) else { return }
    // First, because what the observer does may be events too.
    try Self.remember(event.cursor, of: observation.name, transaction)
    if transaction.isOfObserver { return }
    transaction.isOfObserver = true
    defer { transaction.isOfObserver = false }
    try observation.observer(transaction, ObservedEvent(event: event, stored: stored, before: before, isLive: true))
  }

  private static func catchUp(
    _ observer: ChatObserver, as name: String, after position: Int64, _ transaction: ChatTransaction
  ) throws {
    var position = position
    while true {
      let page = try transaction.connection.rows(
        """
        SELECT sequence, json, rooms.name FROM events JOIN rooms ON rooms.id = events.room
        WHERE sequence > ? AND rooms.removed IS NULL ORDER BY sequence LIMIT 500
        """, .integer(position)
      ) { LoggedEvent(sequence: $0.integer(0), room: ChannelID($0.text(2)), json: $0.text(1)) }
      guard let last = page.last else { return }
      for logged in page {
        let event = try logged.event()
        var stored: ChatMessage?
        if case .posted(let message) = event.kind {
          stored = try transaction.asTold(message, in: event.channel)
        } else if case .edited(let message) = event.kind {
          stored = try transaction.asTold(message, in: event.channel)
        }
        try observer(transaction, ObservedEvent(event: event, stored: stored, isLive: false))
      }
      position = last.sequence
      try remember(Cursor(String(position)), of: name, transaction)
    }
  }

  private static func remember(_ cursor: Cursor?, of name: String, _ transaction: ChatTransaction) throws {
    try transaction.connection.execute(
      """
      INSERT INTO kept(key, value, time) VALUES (?, ?, ?)
      ON CONFLICT(key) DO UPDATE SET value = excluded.value, time = excluded.time
      """, .text(positionKey(name)), .text(cursor?.rawValue ?? "0"), .integer(transaction.now.milliseconds))
  }

  private static func positionKey(_ name: String) -> String { "observer/\(name)" }
}

extension ChatTransaction {
  /// A message as an event told it, with what only its row knows.
  fileprivate func asTold(_ message: Message, in room: ChannelID) throws -> ChatMessage {
    let row = try ChatService.existingRow(of: room, connection)
    var stored = try ChatService.message(message.id, in: room, row: row, connection)
    stored.message = message
    stored.deleted = nil
    return stored
  }
}
