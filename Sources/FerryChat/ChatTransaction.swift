package import FerryCore
import FerryRuntime
import FerryStorage

/// One unit of work over chat and documents: all of it is written, or nothing is.
///
/// Obtained inside `ChatService.write` and `ChatService.read` only, on the database's thread, and not to be kept
/// beyond them. Inside `read` everything that writes throws.
package final class ChatTransaction {
  let chat: ChatService
  let connection: Connection
  /// The time at which all of it happens.
  package let now: Timestamp
  /// True while the observer is not to be told: it makes these changes itself.
  var isOfObserver: Bool

  init(_ chat: ChatService, _ connection: Connection, now: Timestamp, isOfObserver: Bool = false) {
    self.chat = chat
    self.connection = connection
    self.now = now
    self.isOfObserver = isOfObserver
  }

  var limits: ChatLimits { chat.limits }

  /// The same unit of work, in which something happens at another time.
  func at(_ time: Timestamp) -> ChatTransaction {
    ChatTransaction(chat, connection, now: time, isOfObserver: isOfObserver)
  }

  /// Runs `body` once this is durable, on the writer's thread: it must be quick. Not run when the write fails.
  package func afterCommit(_ body: @escaping @Sendable () -> Void) { connection.afterCommit(body) }

  // MARK: The log

  /// Appends to the log and tells the observer. `stored` as in `Wire.Event.init`; `before` is what was deleted.
  func append(
    _ kind: Event.Kind, stored: ChatMessage? = nil, before: ChatMessage? = nil, to room: ChannelID, row: Int64
  ) throws -> LoggedEvent {
    var event = Event(key: "", channel: room, time: now, kind: kind)
    let json = try Wire.Event.json(event, stored: stored)
    try connection.execute("INSERT INTO events(room, json) VALUES (?, ?)", .integer(row), .text(json))
    let sequence = connection.lastInsertedID
    event.key = EventKey("s\(sequence)")
    event.cursor = Cursor(String(sequence))
    try chat.observed(event, stored: stored, before: before, in: self)
    return LoggedEvent(sequence: sequence, room: room, json: json, event: event)
  }

  /// Hands the transaction's events to the readers once they are durable.
  func publish(_ events: [LoggedEvent], of room: ChannelID, typingEnds authors: [UserID] = []) {
    if events.isEmpty { return }
    connection.afterCommit { [feed = chat.feed] in feed.publish(events, of: room, typingEnds: authors) }
  }

  /// Appends and publishes one event.
  func log(
    _ kind: Event.Kind, stored: ChatMessage? = nil, before: ChatMessage? = nil, of room: ChannelID, row: Int64
  ) throws {
    publish([try append(kind, stored: stored, before: before, to: room, row: row)], of: room)
  }
}

extension ChatService {
  /// Runs `body` in a transaction that is on disk when this returns. When it throws, nothing was written.
  ///
  /// `isOfObserver`: these changes are the observer's own, which is therefore not told of them.
  package func write<T: Sendable>(
    isOfObserver: Bool = false, _ body: @escaping @Sendable (ChatTransaction) throws -> T
  ) async throws(FerryError) -> T {
    let now = clock.now()
    return try await database.write { [self] connection in
      try body(ChatTransaction(self, connection, now: now, isOfObserver: isOfObserver))
    }
  }

  /// Runs `body` over what was committed when it starts.
  package func read<T: Sendable>(
    _ body: @escaping @Sendable (ChatTransaction) throws -> T
  ) async throws(FerryError) -> T {
    let now = clock.now()
    return try await database.read { [self] connection in try body(ChatTransaction(self, connection, now: now)) }
  }
}
