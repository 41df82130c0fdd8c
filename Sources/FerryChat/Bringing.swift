import FerryCore
import FerryRuntime
import FerryStorage

/// Writes the items of one import in their order, messages several to a statement: one by one, each takes its own look
/// for whether it is there, for its position and for the counters of its tables.
///
/// Used within one transaction.
struct Bringing {
  private let transaction: ChatTransaction
  private let room: ChannelID
  private let row: Int64
  /// Of each item, what the message is called.
  private var ids: [MessageID?] = []
  /// Messages to be written together, with their keys and the places of their ids.
  private var waiting: [(message: Message, key: SendKey, place: Int)] = []
  /// Of the next message, while nothing else has counted.
  private var position: Int64?
  private var logged: [Logged] = []
  /// An observer is told of each before the next, and may write messages of its own.
  private let isObserved: Bool

  /// Rows of the event log; what lanes and sockets are told is made of them where there are any.
  fileprivate enum Logged: Sendable {
    case row(sequence: Int64, json: String)
    case event(LoggedEvent)
  }

  private static let most = 25
  private static let insertMessages = (0...most).map { count in
    """
    INSERT INTO messages(
      room, client_id, author, author_name, author_avatar, text, format, time, reply_to, extra, stamp, position,
      revision, edited)
    VALUES \(Array(repeating: "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", count: count).joined(separator: ", "))
    """
  }
  private static let insertEvents = (0...most).map { count in
    "INSERT INTO events(room, json) VALUES \(Array(repeating: "(?, ?)", count: count).joined(separator: ", "))"
  }

  init(_ transaction: ChatTransaction, into room: ChannelID, row: Int64) {
    self.transaction = transaction
    self.room = room
    self.row = row
    isObserved = transaction.chat.observation.withLock { $0 != nil }
  }

  mutating func take(_ item: PastItem) throws {
    ids.append(nil)
    guard case .message(let past) = item.kind else {
      // Events stand in the log in their order.
      try flush()
      publish()
      position = nil
      return try transaction.bring(other: item, into: room, row: row)
    }
    if let reply = past.replyTo, waiting.contains(where: { $0.key == reply.key }) { try flush() }
    var message = Message(
      id: "", author: past.author, text: past.text, format: past.format, time: item.time, revision: past.revision,
      edited: past.edited, attachments: past.attachments.map { Attachment($0) }, mentions: past.mentions,
      stamp: item.stamp, attributes: past.attributes)
    message.replyTo = try past.replyTo.flatMap { try transaction.id(of: $0, in: room, row: row) }
    let place = ids.count - 1
    if isObserved || !message.attachments.isEmpty {
      try flush()
      return try insert(message, item.key, place)
    }
    waiting.append((message, item.key, place))
    if waiting.count == Self.most { try flush() }
  }

  mutating func finish() throws -> [MessageID?] {
    try flush()
    publish()
    return ids
  }

  /// One message, which may be there already.
  private mutating func insert(_ message: Message, _ key: SendKey, _ place: Int) throws {
    let (posted, event) = try transaction.at(message.time).insert(message, clientID: key, to: room, row: row)
    position = nil
    ids[place] = posted.message.message.id
    if let event { logged.append(.event(event)) }
  }

  private mutating func flush() throws {
    if waiting.isEmpty { return }
    let new = waiting
    waiting = []
    let start = try position ?? transaction.nextPosition(inRoom: row)
    guard let first = try insertRows(new, at: start) else {
      for (message, key, place) in new { try insert(message, key, place) }
      return
    }
    position = start + Int64(new.count)
    var texts: [String] = []
    for (index, entry) in new.enumerated() {
      var message = entry.message
      message.id = MessageID(String(first + Int64(index)))
      ids[entry.place] = message.id
      let stored = ChatMessage(
        message: message, room: room, clientID: entry.key, position: start + Int64(index))
      let event = Event(key: "", channel: room, time: message.time, kind: .posted(message))
      texts.append(try Wire.Event.json(event, stored: stored))
    }
    let connection = transaction.connection
    try connection.execute(Self.insertEvents[new.count], values: texts.flatMap { [.integer(row), .text($0)] })
    let before = connection.lastInsertedID - Int64(new.count)
    for (index, json) in texts.enumerated() { logged.append(.row(sequence: before + 1 + Int64(index), json: json)) }
  }

  /// Returns the first one's number, which the others' follow. Nil, and nothing is written, where one of them is there
  /// already, which is rare.
  private func insertRows(
    _ new: [(message: Message, key: SendKey, place: Int)], at position: Int64
  ) throws -> Int64? {
    var values: [SQLValue] = []
    values.reserveCapacity(new.count * 14)
    for (index, (message, key, _)) in new.enumerated() {
      values.append(.integer(row))
      values.append(.text(key.rawValue))
      values.append(.text(message.author.id.rawValue))
      values.append(.text(message.author.name))
      values.append(SQLValue(message.author.avatar))
      values.append(.text(message.text))
      values.append(.text(message.format.rawValue))
      values.append(.integer(message.time.milliseconds))
      values.append(SQLValue(message.replyTo.flatMap(MessageRow.number)))
      values.append(try MessageRow.extra(message))
      values.append(MessageRow.stamp(message))
      values.append(.integer(position + Int64(index)))
      values.append(SQLValue(message.revision))
      values.append(SQLValue(message.edited?.milliseconds))
    }
    do throws(FerryError) {
      try transaction.connection.execute(Self.insertMessages[new.count], values: values)
    } catch {
      if error.code == .conflict { return nil }
      throw error
    }
    return transaction.connection.lastInsertedID - Int64(new.count) + 1
  }

  /// Hands what was logged to the readers once it is durable.
  private mutating func publish() {
    guard let last = logged.last else { return }
    let (logged, room, feed) = (logged, room, transaction.chat.feed)
    self.logged = []
    transaction.connection.afterCommit {
      feed.publish(through: last.sequence, of: room) { logged.map { $0.event(in: room) } }
    }
  }
}

extension Bringing.Logged {
  fileprivate var sequence: Int64 {
    switch self {
    case .row(let sequence, _): sequence
    case .event(let event): event.sequence
    }
  }

  fileprivate func event(in room: ChannelID) -> LoggedEvent {
    switch self {
    case .row(let sequence, let json): LoggedEvent(sequence: sequence, room: room, json: json)
    case .event(let event): event
    }
  }
}
