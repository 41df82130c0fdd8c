package import FerryCore
package import FerryRuntime

/// A chat service in memory, and an account at it: every power there is, and faults on demand.
///
/// Unlike a real service with idempotent posts, it writes a repeated send a second time: whoever relies on it shows.
package final class MemoryProvider: Sendable {
  /// What a fault is meant for.
  package enum Write: Sendable, Hashable, CaseIterable {
    /// Several posts in one are a `batch`, and a `post` as well.
    case post, batch, edit, delete, typing, fetch, upload, member, mark, react, find, history, past
  }

  struct Fault: Sendable {
    let write: Write
    let error: FerryError
    /// Thrown after the thing was done: the answer was lost.
    let afterActing: Bool
    /// How many uses of the power go well before.
    var after: Int
  }

  struct Room: Sendable {
    var events: [Event] = []
    var messages: [MessageID: Message] = [:]
    var order: [MessageID] = []
    var sends: [SendKey: MessageID] = [:]
    var members: [UserID: Author] = [:]
  }

  struct State: Sendable {
    var rooms: [ChannelID: Room] = [:]
    var files: [String: [UInt8]] = [:]
    var faults: [Fault] = []
    var faultsSpent = 0
    var isPaused = false
    var slowness = Duration.zero
    /// How often each power was used, faults included.
    var calls: [Write: Int] = [:]
    var typing: [Typing] = []
    /// How often somebody began to listen.
    var runs = 0
    var lastNumber = 0
  }

  package let capabilities: Capabilities
  let state = Observed(State())
  let clock: any FerryClock
  private let credentialsAreGood: Bool
  private let scramble = Locked<(@Sendable ([Event]) -> [Event])?>(nil)

  /// Everything it can do, unless `adjust` takes something away.
  package init(
    clock: any FerryClock = SystemClock(), credentialsAreGood: Bool = true,
    adjust: (inout Capabilities) -> Void = { _ in }
  ) {
    var capabilities = Capabilities()
    capabilities.edits = true
    capabilities.deletes = true
    capabilities.typing = true
    capabilities.members = true
    capabilities.reads = true
    capabilities.reactions = true
    capabilities.attachments = .stored
    capabilities.history = .events
    capabilities.certainty = .always
    capabilities.batch = 16
    var importing = ImportPowers()
    importing.batch = 16
    importing.isRepeatable = true
    importing.revisions = true
    importing.joins = true
    importing.reads = true
    importing.reactions = true
    capabilities.importing = importing
    adjust(&capabilities)
    self.capabilities = capabilities
    self.clock = clock
    self.credentialsAreGood = credentialsAreGood
  }

  // MARK: For tests

  /// The next `count` uses of a power fail, before or after having acted; the next `after` still go well.
  package func failNext(
    _ count: Int, _ write: Write = .post, with error: FerryError, afterActing: Bool = false, after: Int = 0
  ) {
    var error = error
    if afterActing { error.didNotAct = false }
    let faults = (0..<count).map { number in
      Fault(write: write, error: error, afterActing: afterActing, after: number == 0 ? after : 0)
    }
    state.update { $0.faults += faults }
  }

  /// No further use fails.
  package func failNoMore() { state.update { $0.faults = [] } }

  /// While paused no write ends, as at a service that has stopped answering.
  package func pause(_ isPaused: Bool = true) { state.update { $0.isPaused = isPaused } }

  /// Every write takes so much longer.
  package func slow(by slowness: Duration) { state.update { $0.slowness = slowness } }

  /// From now on events are told as `scramble` arranges them: repeated, or before those they depend on. Which of them
  /// have been told is then told by the last one's cursor alone.
  package func scrambleEvents(_ scramble: @escaping @Sendable ([Event]) -> [Event]) {
    self.scramble.withLock { $0 = scramble }
  }

  func scrambled(_ events: [Event]) -> [Event] {
    guard let scramble = scramble.withLock({ $0 }) else { return events }
    var cursors: [ChannelID: Cursor] = [:]
    for event in events { cursors[event.channel] = event.cursor }
    var arranged = scramble(events).map(\.withoutCursor)
    for (channel, cursor) in cursors {
      if let last = arranged.lastIndex(where: { $0.channel == channel }) { arranged[last].cursor = cursor }
    }
    return arranged
  }

  /// How many uses of a power have failed because a test wanted it.
  package var faultsSpent: Int { state.value.faultsSpent }

  package func calls(_ write: Write) -> Int { state.value.calls[write] ?? 0 }

  package var runs: Int { state.value.runs }

  /// What is in a channel, in order, without what was deleted.
  package func messages(in channel: ChannelID) -> [Message] { Self.messages(in: state.value.rooms[channel]) }

  package func events(in channel: ChannelID) -> [Event] { state.value.rooms[channel]?.events ?? [] }

  /// What the channel holds once `find` finds in it what it looks for; nil when cancelled.
  package func wait<Result>(in channel: ChannelID, for find: ([Message]) -> Result?) async -> Result? {
    await state.wait { find(Self.messages(in: $0.rooms[channel])) }
  }

  /// A message by somebody who is not Ferry.
  @discardableResult
  package func say(
    _ text: String, by author: Author, in channel: ChannelID, attachments: [Attachment] = [], stamp: Stamp? = nil
  ) -> MessageID {
    state.update { state in
      var message = Message(id: "", author: author, text: text, time: clock.now(), attachments: attachments)
      message.stamp = stamp
      return state.add(message, to: channel)
    }
  }

  package func change(_ id: MessageID, to text: String, in channel: ChannelID) {
    let now = clock.now()
    state.update { state in
      state.change(id, in: channel, at: now) { message in
        message.text = text
        message.stamp = nil
      }
    }
  }

  package func react(_ emoji: String, to id: MessageID, in channel: ChannelID, by author: Author) {
    let now = clock.now()
    let reaction = Reaction(message: id, by: author, emoji: emoji, added: true)
    state.update { $0.record(.reacted(reaction), in: channel, at: now) }
  }

  package func read(_ id: MessageID, in channel: ChannelID, by author: Author) {
    let now = clock.now()
    let mark = ReadMark(upTo: id, by: author, state: .read)
    state.update { $0.record(.read(mark), in: channel, at: now) }
  }

  /// Somebody comes, or goes.
  package func enter(_ author: Author, isPresent: Bool, in channel: ChannelID) {
    let now = clock.now()
    state.update { $0.enter(Membership(member: author), isPresent, in: channel, at: now) }
  }

  package func remove(_ id: MessageID, in channel: ChannelID, by author: Author? = nil) {
    let now = clock.now()
    state.update { $0.remove(Deletion(id: id, by: author), in: channel, at: now) }
  }

  /// Everything of that kind, Ferry's and others'.
  package var typing: [Typing] { state.value.typing }

  package func type(_ typing: Typing) { state.update { $0.typing.append(typing) } }

  package func store(_ bytes: [UInt8]) -> AttachmentReference {
    let name = Crypto.hex(Crypto.digest(.sha256, of: bytes))
    state.update { $0.files[name] = bytes }
    return .provider(name)
  }

  // MARK: What all methods share

  private static func messages(in room: Room?) -> [Message] {
    room.map { room in room.order.compactMap { room.messages[$0] } } ?? []
  }

  /// Carries out a write with the faults meant for it.
  func perform<Result: Sendable>(
    _ write: Write, _ body: (inout State) throws(FerryError) -> Result
  ) async throws(FerryError) -> Result {
    try checkCredentials()
    let goOn: Bool? = await state.wait { $0.isPaused ? nil : true }
    guard goOn == true, !Task.isCancelled else { throw .cancelled(didNotAct: true) }
    let slowness = state.value.slowness
    if slowness > .zero {
      do { try await clock.sleep(for: slowness) } catch { throw .cancelled(didNotAct: true) }
    }
    return try state.update { state throws(FerryError) -> Result in
      state.calls[write, default: 0] += 1
      guard let index = state.faults.firstIndex(where: { $0.write == write }) else { return try body(&state) }
      guard state.faults[index].after == 0 else {
        state.faults[index].after -= 1
        return try body(&state)
      }
      let fault = state.faults.remove(at: index)
      state.faultsSpent += 1
      if fault.afterActing { _ = try body(&state) }
      throw fault.error
    }
  }

  func checkCredentials() throws(FerryError) {
    guard credentialsAreGood else {
      throw FerryError(.badCredentials, "The memory provider was made with bad credentials.")
    }
  }
}

extension MemoryProvider.State {
  mutating func enter(_ membership: Membership, _ present: Bool, in channel: ChannelID, at now: Timestamp) {
    let isPresent = rooms[channel]?.members[membership.member.id] != nil
    guard isPresent != present else { return }
    rooms[channel, default: MemoryProvider.Room()].members[membership.member.id] = present ? membership.member : nil
    record(present ? .joined(membership) : .left(membership), in: channel, at: now)
  }

  mutating func add(_ message: Message, key: SendKey? = nil, to channel: ChannelID) -> MessageID {
    var message = message
    lastNumber += 1
    message.id = MessageID("m\(lastNumber)")
    rooms[channel, default: MemoryProvider.Room()].messages[message.id] = message
    rooms[channel]?.order.append(message.id)
    if let key { rooms[channel]?.sends[key] = message.id }
    record(.posted(message), in: channel, at: message.time)
    return message.id
  }

  @discardableResult
  mutating func change(
    _ id: MessageID, in channel: ChannelID, at time: Timestamp, _ body: (inout Message) -> Void
  ) -> Bool {
    guard var message = rooms[channel]?.messages[id] else { return false }
    body(&message)
    message.revision += 1
    message.edited = time
    rooms[channel]?.messages[id] = message
    record(.edited(message), in: channel, at: time)
    return true
  }

  mutating func remove(_ deletion: Deletion, in channel: ChannelID, at time: Timestamp) {
    guard rooms[channel]?.messages.removeValue(forKey: deletion.id) != nil else { return }
    rooms[channel]?.order.removeAll { $0 == deletion.id }
    record(.deleted(deletion), in: channel, at: time)
  }

  mutating func record(_ kind: Event.Kind, in channel: ChannelID, at time: Timestamp) {
    let number = rooms[channel]?.events.count ?? 0
    rooms[channel, default: MemoryProvider.Room()].events.append(
      Event(key: EventKey("e\(number)"), channel: channel, time: time, kind: kind, cursor: Cursor(String(number + 1))))
  }
}
