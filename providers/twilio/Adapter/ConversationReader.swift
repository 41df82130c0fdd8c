import FerryCore
import FerryRuntime

/// What webhooks are handed through to the task that reads their conversation.
final class ConversationDoor: Sendable {
  enum Item: Sendable {
    /// The answer is whether the inbox has accepted it.
    case webhook(WebhookEvent, answer: BoundedChannel<Bool>)
    /// `done` is told how long until the next one.
    case poll(done: BoundedChannel<Duration>)
  }

  let channel: ChannelID
  let queue = BoundedChannel<Item>(capacity: 256)
  /// The conversation's SID, once it is known.
  let conversation = Locked<String?>(nil)

  init(channel: ChannelID) { self.channel = channel }
}

/// Reads one conversation: one task that takes webhooks and polls one after the other, so that polls never overlap and
/// what both tell is compared with one memory.
struct ConversationReader {
  let adapter: TwilioAdapter
  let inbox: any Inbox
  let door: ConversationDoor
  let board: StatusBoard
  var state: ConversationState

  var channel: ChannelID { door.channel }
  var conversation: String { state.place.conversation }
  var api: TwilioAPI { adapter.api }

  private static let retryOfMissing = Duration.seconds(30)

  /// Until cancelled; throws only what no retry can mend.
  static func run(
    _ subscription: Subscription, adapter: TwilioAdapter, inbox: any Inbox, door: ConversationDoor, board: StatusBoard
  ) async throws(FerryError) {
    var place = subscription.cursor.flatMap { Place($0) }
    var backoff = Backoff(base: .milliseconds(500), limit: .seconds(30))
    while !Task.isCancelled {
      let delay: Duration
      do throws(FerryError) {
        var reader = try await begin(at: &place, adapter, inbox, door, board)
        do throws(FerryError) {
          try await reader.poll()
          backoff.reset()
          board.set(door.channel, .connected)
          try await reader.serve()
        } catch {
          place = reader.state.place
          throw error
        }
        return
      } catch {
        if Task.isCancelled { return }
        door.conversation.withLock { $0 = nil }
        delay = try report(error, door, board, adapter, &backoff)
      }
      guard (try? await adapter.clock.sleep(for: delay)) != nil else { return }
    }
  }

  /// How long to wait. Throws what ends the whole account.
  private static func report(
    _ error: FerryError, _ door: ConversationDoor, _ board: StatusBoard, _ adapter: TwilioAdapter,
    _ backoff: inout Backoff
  ) throws(FerryError) -> Duration {
    switch error.code {
    case .badCredentials, .badConfiguration: throw error
    case .notFound, .forbidden, .badRequest:
      board.set(door.channel, .missing(error.message))
      if board.isHopeless { throw error }
      return retryOfMissing
    default:
      board.set(door.channel, .connecting(error.message))
      adapter.logger.info("\(door.channel): \(error)")
      let own = backoff.next()
      if case .after(let asked) = error.retry { return max(asked, own) }
      return own
    }
  }

  // MARK: Beginning

  /// Finds the conversation, and where to begin in it. The first time that is now, which `place` then says for good.
  private static func begin(
    at place: inout Place?, _ adapter: TwilioAdapter, _ inbox: any Inbox, _ door: ConversationDoor,
    _ board: StatusBoard
  ) async throws(FerryError) -> ConversationReader {
    let conversation = try await adapter.resolve(door.channel)
    let isFirst = place == nil
    var start = place ?? Place(conversation: conversation)
    if start.conversation != conversation {
      adapter.logger.notice("\(door.channel) is another conversation now, which is read from its beginning")
      start = Place(conversation: conversation)
    }
    if isFirst {
      let url = adapter.messagesURL(conversation, [("Order", "desc"), ("PageSize", "1")])
      let page = try await adapter.api.page(url, doing: "read \(door.channel)")
      if let newest = page.records.compactMap({ ListedMessage(json: $0) }).first {
        start = Place(index: newest.index, message: newest.sid, conversation: conversation)
      }
    }
    let reader = ConversationReader(
      adapter: adapter, inbox: inbox, door: door, board: board,
      state: ConversationState(channel: door.channel, place: start, window: adapter.settings.pollWindow))
    if isFirst {
      let cursor = start.cursor
      try await reader.untilItSucceeds { () async throws(FerryError) in
        try await inbox.accept(cursor: cursor, for: door.channel)
      }
    }
    place = start
    // Webhooks are taken from here on: what they tell lies behind the start, which is now fixed.
    door.conversation.withLock { $0 = conversation }
    return reader
  }

  // MARK: Serving

  /// Until cancelled; throws when the conversation is gone or the service refuses.
  private mutating func serve() async throws(FerryError) {
    // These run beside what changes this value, so they get what they need of it beforehand.
    let (adapter, door, channel, conversation) = (adapter, door, channel, conversation)
    // Cancelled, and awaited, when this returns or throws.
    async let ticking: Void = Self.tick(door, adapter.clock, first: adapter.pollInterval)
    async let preparing: Void = adapter.prepare(channel, conversation)
    try await work()
    await ticking
    await preparing
  }

  private static func tick(_ door: ConversationDoor, _ clock: any FerryClock, first: Duration) async {
    let done = BoundedChannel<Duration>(capacity: 1)
    var delay = first
    while (try? await clock.sleep(for: delay)) != nil {
      guard await door.queue.send(.poll(done: done)), let next = await done.next() else { return }
      delay = next
    }
  }

  private mutating func work() async throws(FerryError) {
    var backoff = Backoff(base: .milliseconds(500), limit: .seconds(30))
    while let first = await door.queue.next() {
      var batch = WebhookBatch()
      do throws(FerryError) {
        for item in [first] + door.queue.drain(upTo: 63) {
          switch item {
          case .webhook(let event, let answer): try await take(event, answer, into: &batch)
          case .poll(let done):
            try await flush(&batch)
            _ = done.offer(try await pollOrReport(&backoff))
          }
        }
      } catch {
        // What has gathered counts as read, so it is handed on before anything is begun anew.
        try await flush(&batch)
        throw error
      }
      try await flush(&batch)
    }
  }

  /// How long until the next poll.
  private mutating func pollOrReport(_ backoff: inout Backoff) async throws(FerryError) -> Duration {
    do throws(FerryError) {
      try await poll()
      backoff.reset()
      board.set(channel, .connected)
      return adapter.pollInterval
    } catch {
      if Task.isCancelled { throw .cancelled() }
      // Gone, or not allowed any more: begin anew.
      if [.notFound, .forbidden, .badCredentials, .badRequest].contains(error.code) { throw error }
      board.set(channel, .connecting(error.message))
      adapter.logger.info("\(channel): \(error)")
      let own = backoff.next()
      if case .after(let asked) = error.retry { return max(asked, own) }
      return own
    }
  }

  /// Asks the service for everything that webhooks may have left out.
  private mutating func poll() async throws(FerryError) {
    guard await adapter.gate.send(()) else { throw .cancelled() }
    defer { _ = adapter.gate.drain(upTo: 1) }
    let window = try await look()
    try await lookAtMembers()
    try await lookAtDeliveries(window)
  }

  // MARK: Handing on

  /// For as long as it takes: the inbox fails while the disk is full, say. What it did not take is offered again.
  func accept(_ events: [Event]) async throws(FerryError) {
    if events.isEmpty { return }
    let inbox = inbox
    try await untilItSucceeds { () async throws(FerryError) in try await inbox.accept(events) }
  }

  func untilItSucceeds(_ body: @Sendable () async throws(FerryError) -> Void) async throws(FerryError) {
    var backoff = Backoff(base: .milliseconds(100), limit: .seconds(5))
    while true {
      do throws(FerryError) { return try await body() } catch {
        if Task.isCancelled { throw .cancelled() }
        adapter.logger.warning("\(channel): events could not be stored, again soon: \(error)")
        do { try await adapter.clock.sleep(for: backoff.next()) } catch { throw .cancelled() }
      }
    }
  }

  // MARK: Events

  func posted(_ message: ListedMessage) async -> Event {
    let stamp = adapter.written.stamp(ofMessage: message.sid)
    let posted = message.message(name: await name(of: message), stamp: stamp, revision: message.revision)
    return Event(
      key: EventKey(message.sid), channel: channel, time: posted.time, kind: .posted(posted), cursor: state.place.cursor
    )
  }

  func edited(_ message: ListedMessage, revision: Int) async -> Event {
    let stamp = adapter.written.stamp(ofMessage: message.sid)
    let edited = message.message(name: await name(of: message), stamp: stamp, revision: revision)
    return Event(
      key: EventKey("edited:\(message.sid):\(revision)"), channel: channel,
      time: message.updated ?? adapter.clock.now(), kind: .edited(edited))
  }

  /// The deletion of what Ferry wrote bears Ferry's mark, whoever deleted it: there is no original to delete.
  func deleted(_ message: String, at time: Timestamp?, stampOfMessage: Stamp?) -> Event {
    let stamp =
      adapter.written.stamp(ofDeletion: message) ?? stampOfMessage ?? adapter.written.stamp(ofMessage: message)
    return Event(
      key: EventKey("deleted:\(message)"), channel: channel, time: time ?? adapter.clock.now(),
      kind: .deleted(Deletion(id: MessageID(message), stamp: stamp)))
  }

  /// Nil where the author's own text is the name: whoever is no participant has no other.
  private func name(of message: ListedMessage) async -> String? {
    guard message.participant != nil, message.ferry?.author == nil else { return nil }
    return await adapter.names.name(of: message.author)
  }
}
