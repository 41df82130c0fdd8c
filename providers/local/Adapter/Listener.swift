import FerryChat
import FerryCore
import FerryRuntime
import FerryTransport

/// Keeps a WebSocket to the server and hands what it says to an inbox.
///
/// One task reads and decodes frames into a bounded queue; another hands over what has gathered, in one call, so that
/// the inbox's durable writes are shared by many events. A full queue stops the reading, and so the server.
struct Listener {
  private enum Frame: Sendable {
    case event(Event, sequence: Int64)
    case typing(Typing)
    case subscribed(ChannelID, sequence: Int64)
    case refused(FerryError, ChannelID?)
  }

  /// Where a room's stream stands.
  private struct Place {
    /// The last sequence that the inbox has accepted; nil before the first subscription.
    var sequence: Int64?
    var lastSeen: Timestamp?
    var isSubscribed = false
  }

  private static let queueLimit = 1024
  private static let batchLimit = 512

  private let adapter: LocalAdapter
  private let inbox: any Inbox
  private let rooms: [ChannelID]
  private var places: [ChannelID: Place] = [:]

  init(adapter: LocalAdapter, inbox: any Inbox, subscriptions: [Subscription]) {
    self.adapter = adapter
    self.inbox = inbox
    rooms = subscriptions.map(\.channel)
    for subscription in subscriptions {
      places[subscription.channel] = Place(
        sequence: subscription.cursor.flatMap { Int64($0.rawValue) }, lastSeen: subscription.lastSeen)
    }
  }

  /// Until cancelled; throws only what trying again cannot mend.
  mutating func run() async throws(FerryError) {
    var policy = adapter.settings.reconnect
    while !Task.isCancelled {
      inbox.connection(ConnectionState(.connecting))
      let start = adapter.clock.now()
      var failure = ReconnectPolicy.Failure.unknown
      var reason: String
      var wasConnected = false
      do throws(FerryError) {
        let socket = try await connect()
        wasConnected = true
        try await listen(to: socket)
        let closing = socket.closing
        if closing?.code == 1001 { failure = .quick }
        reason = "the server closed the connection (\(closing?.code ?? 1006))"
      } catch {
        if Task.isCancelled { break }
        if Self.isPermanent(error) {
          inbox.connection(
            ConnectionState(error.code == .badCredentials ? .badCredentials : .stopped, reason: error.message))
          throw error
        }
        if case .after(let wait) = error.retry { failure = .after(wait) }
        reason = error.message
      }
      if Task.isCancelled { break }
      inbox.connection(ConnectionState(.connecting, reason: reason))
      let held = Duration.milliseconds(adapter.clock.now().milliseconds - start.milliseconds)
      let wait = policy.delay(after: failure, connectedFor: wasConnected ? held : nil) ?? .seconds(1)
      adapter.logger.info("not connected to the local server (\(reason)); again in \(wait.milliseconds) ms")
      do { try await adapter.clock.sleep(for: wait) } catch { break }
    }
    inbox.connection(ConnectionState(.stopped))
  }

  private static func isPermanent(_ error: FerryError) -> Bool {
    [.badCredentials, .forbidden, .badRequest, .addressRefused].contains(error.code)
  }

  private func connect() async throws(FerryError) -> WebSocket {
    try await adapter.client.webSocket(
      adapter.settings.liveURL, headers: adapter.authorization,
      settings: WebSocketSettings(messageBytes: 4 << 20, pingAfter: .seconds(20), pongTimeout: .seconds(10)),
      deadline: .seconds(10))
  }

  /// Until the socket closes or the task is cancelled.
  private mutating func listen(to socket: WebSocket) async throws(FerryError) {
    defer { socket.close() }
    for room in rooms {
      places[room]?.isSubscribed = false
      await subscribe(to: room, on: socket)
    }
    if rooms.isEmpty { inbox.connection(ConnectionState(.connected)) }
    let queue = BoundedChannel<Frame>(capacity: Self.queueLimit)
    // The reading task ends with the socket, and the socket is closed before the group is left.
    // Beforehand, for `take` changes this value meanwhile.
    let logger = adapter.logger
    async let reading: Void = Self.read(socket, into: queue, logger)
    var failure: FerryError?
    do throws(FerryError) { try await take(from: queue, of: socket) } catch { failure = error }
    socket.close()
    queue.finish()
    await reading
    if let failure { throw failure }
  }

  private func subscribe(to room: ChannelID, on socket: WebSocket) async {
    struct Subscribe: Encodable {
      let type = "subscribe"
      let room: String
      let after: Int64?
    }
    let request = Subscribe(room: room.rawValue, after: places[room]?.sequence)
    if let text = try? Wire.json(request) { _ = await socket.sendWaiting(text) }
  }

  // MARK: Reading

  private static func read(_ socket: WebSocket, into queue: BoundedChannel<Frame>, _ logger: Logger) async {
    while let message = await socket.next() {
      guard case .text(let text) = message, let frame = frame(text) else {
        // Of a newer server, perhaps. To stop here would stop here for ever.
        logger.error("the local server sent something that is not understood; it is skipped")
        continue
      }
      guard await queue.send(frame) else { break }
    }
    queue.finish()
  }

  private struct Received: Decodable {
    let type: String
    let sequence: Int64?
    let room: String?
    let event: Wire.Event?
    let by: Wire.Author?
    let on: Bool?
    let stamp: Stamp?
    let code: String?
    let message: String?
  }

  private static func frame(_ text: String) -> Frame? {
    guard let received = try? Wire.value(Received.self, from: text.utf8) else { return nil }
    switch received.type {
    case "event":
      guard let sequence = received.sequence, let event = try? received.event?.event(sequence: sequence) else {
        return nil
      }
      return .event(event, sequence: sequence)
    case "typing":
      guard let room = received.room, let by = received.by, let on = received.on else { return nil }
      return .typing(Typing(channel: ChannelID(room), by: by.author, on: on, stamp: received.stamp))
    case "subscribed":
      guard let room = received.room, let sequence = received.sequence else { return nil }
      return .subscribed(ChannelID(room), sequence: sequence)
    case "error":
      let code = FerryError.Code(received.code ?? "")
      let retry: FerryError.Retry = [.badRequest, .forbidden].contains(code) ? .never : .now
      return .refused(
        FerryError(code, "The server refuses: \(received.message ?? "no reason given")", retry: retry),
        received.room.map { ChannelID($0) })
    default: return nil
    }
  }

  // MARK: Handing over

  private mutating func take(from queue: BoundedChannel<Frame>, of socket: WebSocket) async throws(FerryError) {
    while let first = await queue.next() {
      var events: [Event] = []
      for frame in [first] + queue.drain(upTo: Self.batchLimit - 1) {
        switch frame {
        case .event(let event, let sequence):
          // A room subscribed to twice, or a server gone wrong, must not move a cursor back.
          guard sequence > places[event.channel]?.sequence ?? .min else { continue }
          events.append(event)
        case .typing(let typing): inbox.typing(typing)
        case .subscribed(let room, let sequence):
          try await accept(events)
          events = []
          try await subscribed(to: room, at: sequence)
        case .refused(let error, let room):
          try await accept(events)
          events = []
          guard let room, error.code == .conflict else { throw error }
          try await startAnew(room, on: socket)
        }
      }
      try await accept(events)
    }
  }

  private mutating func subscribed(to room: ChannelID, at sequence: Int64) async throws(FerryError) {
    if places[room]?.sequence == nil {
      let inbox = inbox
      try await untilItSucceeds { () async throws(FerryError) in
        try await inbox.accept(cursor: Cursor(String(sequence)), for: room)
      }
      places[room]?.sequence = sequence
    }
    places[room]?.isSubscribed = true
    if places.values.allSatisfy(\.isSubscribed) { inbox.connection(ConnectionState(.connected)) }
  }

  /// The server's log ends before our cursor: it was restored from a backup. What it forgot cannot be had.
  private mutating func startAnew(_ room: ChannelID, on socket: WebSocket) async throws(FerryError) {
    let now = adapter.clock.now()
    await inbox.gap(Gap(channel: room, start: places[room]?.lastSeen ?? now, end: now))
    places[room]?.sequence = nil
    await subscribe(to: room, on: socket)
  }

  private mutating func accept(_ events: [Event]) async throws(FerryError) {
    if events.isEmpty { return }
    let inbox = inbox
    try await untilItSucceeds { () async throws(FerryError) in try await inbox.accept(events) }
    let now = adapter.clock.now()
    for event in events {
      places[event.channel]?.sequence = event.cursor.flatMap { Int64($0.rawValue) }
      places[event.channel]?.lastSeen = now
    }
  }

  /// The inbox fails while the disk is full, say: what it did not take is kept and offered again.
  private func untilItSucceeds(_ body: @Sendable () async throws(FerryError) -> Void) async throws(FerryError) {
    var backoff = Backoff(base: .milliseconds(100), limit: .seconds(5))
    while true {
      do throws(FerryError) { return try await body() } catch {
        if Task.isCancelled { throw .cancelled() }
        adapter.logger.warning("events could not be stored, again soon: \(error)")
        do { try await adapter.clock.sleep(for: backoff.next()) } catch { throw .cancelled() }
      }
    }
  }
}
