import FerryCore
import FerryRuntime

/// What is heard of the channels, made into news and handed to the inbox: the one task that knows what is known.
///
/// Whatever is heard of a channel before its table has been read is held back, so that news come in their order.
struct ChannelFeed {
  enum Item: Sendable {
    case published(ChannelID, JSONValue)
    /// Of a row that names no channel, nil.
    case row(ChannelID?, RealtimeSession.RowChange, JSONValue)
    case mark(ChannelID, ReadMark)
    case member(ChannelID, Author, joined: Bool)
    /// The channel is listened to from now on; over which connection.
    case ready(ChannelID, connection: Int)
    /// Nobody listens any more, since then.
    case lost(since: Timestamp)
    /// Many rows have changed.
    case bulk
    /// A second has passed.
    case tick
  }

  /// One channel.
  struct Room {
    var book: ChannelBook
    /// Nil before the table was first read.
    var cursor: FeedCursor?
    /// Since when nobody has listened.
    var silentSince: Timestamp?
    var isListening = false
    var held: [Item] = []
    var nextPoll: Timestamp
  }

  static let batch = 256
  private static let heldLimit = 2000

  let adapter: BackendlessAdapter
  let inbox: any Inbox
  /// Which connection stands.
  let connection: Locked<Int>
  var rooms: [ChannelID: Room] = [:]
  /// News that have not been handed over.
  var events: [Event] = []
  private var counter = 0
  private let run = Crypto.randomHex(bytes: 6)

  init(adapter: BackendlessAdapter, inbox: any Inbox, connection: Locked<Int>) {
    self.adapter = adapter
    self.inbox = inbox
    self.connection = connection
  }

  var now: Timestamp { adapter.clock.now() }

  // MARK: Beginning

  /// Remembers what was accepted before. Waits for as long as that takes.
  mutating func begin(_ subscriptions: [FerryCore.Subscription]) async throws(FerryError) {
    for subscription in subscriptions {
      let recent = try await recent(in: subscription.channel)
      rooms[subscription.channel] = Room(
        book: ChannelBook(recent: recent), cursor: subscription.cursor.flatMap { FeedCursor($0) },
        silentSince: subscription.lastSeen, nextPoll: now)
    }
  }

  private func recent(in channel: ChannelID) async throws(FerryError) -> [KnownMessage] {
    var backoff = Backoff(base: .milliseconds(100), limit: .seconds(5))
    while true {
      do throws(FerryError) { return try await inbox.recent(in: channel, limit: 1000) } catch {
        if Task.isCancelled || error.code == .cancelled { throw error }
        adapter.logger.warning("what is known of \(channel) cannot be read: \(error)")
        do { try await adapter.clock.sleep(for: backoff.next()) } catch { throw .cancelled() }
      }
    }
  }

  // MARK: Taking in

  /// Everything in order, and then hands over. Throws only when the task is cancelled.
  mutating func take(_ items: [Item]) async throws(FerryError) {
    for item in items { try await take(item) }
    try await handOver()
  }

  private mutating func take(_ item: Item) async throws(FerryError) {
    switch item {
    case .published(let channel, _), .row(let channel?, _, _), .mark(let channel, _), .member(let channel, _, _):
      guard let room = rooms[channel] else { return }
      if !room.isListening, room.held.count < Self.heldLimit {
        rooms[channel]?.held.append(item)
        return
      }
      news(item, in: channel)
    case .row(nil, let change, let row):
      for channel in rooms.keys.sorted() { looseRow(change, row, in: channel) }
    case .ready(let channel, let number): try await ready(channel, number)
    case .lost(let since):
      for channel in rooms.keys {
        if rooms[channel]?.isListening == true { rooms[channel]?.silentSince = since }
        rooms[channel]?.isListening = false
      }
    case .bulk:
      let now = now
      for channel in rooms.keys { rooms[channel]?.nextPoll = now }
    case .tick: try await tick()
    }
    if events.count >= Self.batch { try await handOver() }
  }

  private mutating func ready(_ channel: ChannelID, _ number: Int) async throws(FerryError) {
    guard rooms[channel] != nil else { return }
    try await handOver()
    try await catchUp(channel)
    rooms[channel]?.isListening = true
    rooms[channel]?.silentSince = nil
    let held = rooms[channel]?.held ?? []
    rooms[channel]?.held = []
    for item in held { news(item, in: channel) }
    try await handOver()
    if rooms.values.allSatisfy(\.isListening), connection.withLock({ $0 }) == number {
      inbox.connection(ConnectionState(.connected))
    }
  }

  private mutating func tick() async throws(FerryError) {
    let now = now
    for channel in rooms.keys.sorted() {
      guard let room = rooms[channel], room.isListening else { continue }
      if adapter.settings.table != nil, room.nextPoll <= now {
        let next = now.advanced(by: adapter.settings.pollInterval)
        rooms[channel]?.nextPoll = next
        try await handOver()
        try await poll(channel)
      }
    }
  }

  // MARK: News

  private mutating func news(_ item: Item, in channel: ChannelID) {
    switch item {
    case .published(_, let frame): published(frame, in: channel)
    case .row(_, let change, let row): self.row(change, row, in: channel)
    case .mark(_, let mark):
      add("r:\(mark.state.rawValue):\(mark.upTo):\(mark.by?.id.rawValue ?? "")", channel, now, .read(mark))
    case .member(_, let author, let joined): came(author, joined, in: channel)
    case .ready, .lost, .bulk, .tick: return
    }
  }

  private mutating func published(_ frame: JSONValue, in channel: ChannelID) {
    switch adapter.reader.published(frame, now: now) {
    case .message(let said):
      if said.message.stamp != nil { adapter.echoes.note(said.message.id.rawValue, true) }
      observe(said, .published, in: channel)
    case .notice(let notice, let membership, let id, let time): announced(notice, membership, id, time, in: channel)
    case nil: return
    }
  }

  private mutating func row(_ change: RealtimeSession.RowChange, _ row: JSONValue, in channel: ChannelID) {
    if change == .deleted {
      if let id = row["objectId"]?.text { deleted(MessageID(id), in: channel) }
      return
    }
    guard case .message(let said)? = adapter.reader.row(row) else { return }
    // What is put in whole may be new or not.
    let isChange = change == .updated || (change == .upserted && said.updated != nil)
    observe(said, isChange ? .changed : .created, in: channel)
  }

  /// Of rows that name no channel it is known only from their publishing where they belong.
  private mutating func looseRow(_ change: RealtimeSession.RowChange, _ row: JSONValue, in channel: ChannelID) {
    guard let id = row["objectId"]?.text, rooms[channel]?.book.isKnown(MessageID(id)) == true else { return }
    self.row(change, row, in: channel)
  }

  mutating func observe(_ said: ChatReader.Said, _ origin: ChannelBook.Origin, in channel: ChannelID) {
    guard let kind = rooms[channel]?.book.observe(said, origin) else { return }
    let id = said.message.id
    switch kind {
    case .edited(let message): add("e:\(id):\(message.revision)", channel, message.edited ?? now, kind)
    default: add("m:\(id)", channel, said.message.time, kind)
    }
  }

  mutating func deleted(_ id: MessageID, in channel: ChannelID) {
    guard rooms[channel]?.book.delete(id) == true else { return }
    let stamp = adapter.deletions[id.rawValue] ?? nil
    add("d:\(id)", channel, now, .deleted(Deletion(id: id, stamp: stamp)))
  }

  mutating func add(_ key: String, _ channel: ChannelID, _ time: Timestamp, _ kind: Event.Kind) {
    events.append(
      Event(key: EventKey(key), channel: channel, time: time, kind: kind, cursor: rooms[channel]?.cursor?.cursor))
  }

  // MARK: People

  /// Whoever has announced themselves has been reported.
  private mutating func came(_ author: Author, _ joined: Bool, in channel: ChannelID) {
    if joined, adapter.present.withLock({ $0[channel]?.announced[author.name] }) != nil { return }
    counter += 1
    let membership = Membership(member: author)
    add("p:\(run):\(counter)", channel, now, joined ? .joined(membership) : .left(membership))
  }

  /// A notice of somebody who is known to be there is no news, nor one that is repeated.
  private mutating func announced(
    _ notice: FerryMark.Notice, _ membership: Membership, _ id: String, _ time: Timestamp, in channel: ChannelID
  ) {
    let member = membership.member
    let people = adapter.people
    let isNews = adapter.present.withLock { present in
      var presence = present[channel] ?? Presence()
      defer { present[channel] = presence }
      let isConnected = presence.users.contains { people.known($0)?.name == member.name }
      switch notice {
      case .joined:
        let old = presence.announced.updateValue(member, forKey: member.name)
        if presence.announced.count > 10_000 { presence.announced = [member.name: member] }
        return old == nil && !isConnected
      case .left: return presence.announced.removeValue(forKey: member.name) != nil || !isConnected
      }
    }
    guard isNews else { return }
    add("j:\(id)", channel, time, notice == .joined ? .joined(membership) : .left(membership))
  }

  // MARK: Handing over

  /// For as long as it takes: meanwhile the queue fills, and then the service waits. Throws only when cancelled.
  mutating func handOver() async throws(FerryError) {
    guard !events.isEmpty else { return }
    let batch = events
    events = []
    let inbox = inbox
    try await untilItSucceeds("\(batch.count) events") { () async throws(FerryError) in try await inbox.accept(batch) }
  }

  func untilItSucceeds(
    _ what: String, _ body: @Sendable () async throws(FerryError) -> Void
  ) async throws(FerryError) {
    var backoff = Backoff(base: .milliseconds(100), limit: .seconds(5))
    while true {
      do throws(FerryError) { return try await body() } catch {
        adapter.logger.warning("\(what) could not be stored: \(error)")
        do { try await adapter.clock.sleep(for: backoff.next()) } catch { throw .cancelled() }
      }
    }
  }
}
