import FerryCore

/// What one run knows of a conversation, and what follows from that for what it hears next: a pure value.
///
/// Lists and webhooks tell the same things twice, late and in any order. Here it is decided what is news.
struct ConversationState: Sendable {
  private struct Heard {
    var revision: Int
    /// Of its last change.
    var second: Int64
    /// Whether the revision is to the millisecond.
    var isExact: Bool
    var text: Int
  }

  /// What a message is to us.
  enum Arrival: Hashable, Sendable {
    /// The next one.
    case new
    /// There may be others before it that are not known yet: they come first.
    case gap
    /// Appeared behind one that has a higher index.
    case late
    case known
  }

  /// What the announcement of an edit is to us.
  enum Edit: Hashable, Sendable {
    case news(revision: Int)
    /// Older than what is known, or no change of the text.
    case none
    /// Of the same second as what is known: only the service can tell which is newer.
    case unsure
    /// Of a message that has not been heard of.
    case gap
  }

  let channel: ChannelID
  private(set) var place: Place
  /// Where this run began. What lies before is not looked at again.
  private let base: Int64
  private var heard: Remembered<String, Heard>
  private var messages: Remembered<Int64, String>
  /// By the SID of the membership; nil as long as nobody has looked.
  private(set) var members: [String: ListedParticipant]?
  /// How far messages got at phones.
  private var progress: Remembered<String, String>
  private var receipts: Remembered<String, Bool>
  /// Texts that contradict what is known and are older by their date.
  private var doubts: Remembered<String, Int>

  init(channel: ChannelID, place: Place, window: Int) {
    self.channel = channel
    self.place = place
    base = place.index
    // More than the window, so that nothing in it is ever taken for something new.
    let capacity = 2 * window + 256
    heard = Remembered(capacity: capacity)
    messages = Remembered(capacity: capacity)
    progress = Remembered(capacity: capacity)
    receipts = Remembered(capacity: capacity)
    doubts = Remembered(capacity: capacity)
  }

  // MARK: Messages

  /// `isListed` for messages of a list, which has everything before them.
  func arrival(of message: ListedMessage, isListed: Bool) -> Arrival {
    if message.index > place.index {
      return isListed || message.index == place.index + 1 ? .new : .gap
    }
    return message.index > base && heard[message.sid] == nil ? .late : .known
  }

  /// The message has been made an event. The place moves on when it is the newest.
  mutating func take(_ message: ListedMessage) {
    note(message, revision: message.revision)
    if message.index > place.index {
      place = Place(index: message.index, message: message.sid, conversation: place.conversation)
    }
  }

  /// What a list says of a message that is no news.
  mutating func see(_ message: ListedMessage) {
    messages[message.index] = message.sid
    if heard[message.sid] == nil { note(message, revision: message.revision) }
  }

  private mutating func note(_ message: ListedMessage, revision: Int) {
    messages[message.index] = message.sid
    heard[message.sid] = Heard(
      revision: revision, second: Self.second(message), isExact: message.isExact, text: Self.fingerprint(message.body))
  }

  /// The SID of the message with exactly this index, if it is remembered.
  func message(at index: Int64) -> String? { messages[index] }

  // MARK: Edits

  /// Of an announced edit. When it is news, it is remembered as known.
  mutating func edit(_ message: ListedMessage) -> Edit {
    let revision = message.revision
    guard let known = heard[message.sid] else {
      if message.index > place.index { return .gap }
      note(message, revision: revision)
      return .news(revision: max(revision, 1))
    }
    if known.text == Self.fingerprint(message.body) {
      if revision > known.revision { note(message, revision: revision) }
      return .none
    }
    if !known.isExact, Self.second(message) == known.second { return .unsure }
    let isNewer = known.isExact ? revision > known.revision : Self.second(message) > known.second
    guard isNewer else { return .none }
    note(message, revision: revision)
    return .news(revision: revision)
  }

  /// The revision of an edit that was unsure and is the newest, as the service says. It is remembered as known.
  mutating func confirm(_ message: ListedMessage) -> Int {
    let revision = max(message.revision, (heard[message.sid]?.revision ?? 0) &+ 1)
    note(message, revision: revision)
    return revision
  }

  /// The revision of the edit that shows by comparing what is listed with what was accepted last, or nil when there is
  /// none. Dates in lists are whole seconds.
  mutating func edit(_ listed: ListedMessage, against known: Message) -> Int? {
    guard !Self.same(listed.body, known.text) else {
      doubts[listed.sid] = nil
      return nil
    }
    let fingerprint = Self.fingerprint(listed.body)
    if Self.second(listed) < Int64(known.revision / 1000), doubts[listed.sid] != fingerprint {
      // Read from a replica that lags, perhaps. Twice the same is no accident.
      doubts[listed.sid] = fingerprint
      return nil
    }
    doubts[listed.sid] = nil
    let revision = listed.revision > known.revision ? listed.revision : known.revision &+ 1
    note(listed, revision: revision)
    return revision
  }

  private static func second(_ message: ListedMessage) -> Int64 {
    (message.updated ?? message.created).milliseconds / 1000
  }

  /// By bytes: to Swift, texts that merely look alike are equal.
  static func same(_ left: String, _ right: String) -> Bool { left.utf8.elementsEqual(right.utf8) }

  private static func fingerprint(_ text: String) -> Int {
    var hasher = Hasher()
    for byte in text.utf8 { hasher.combine(byte) }
    return hasher.finalize()
  }

  // MARK: Members

  /// Who came, who went and who read on since the list was last looked at; nothing the first time.
  struct Changes: Hashable, Sendable {
    var joined: [ListedParticipant] = []
    var left: [ListedParticipant] = []
    var read: [ListedParticipant] = []
  }

  mutating func look(at participants: [ListedParticipant]) -> Changes {
    var now: [String: ListedParticipant] = [:]
    for participant in participants { now[participant.sid] = participant }
    defer { members = now }
    guard let before = members else { return Changes() }
    var changes = Changes()
    for participant in participants where now[participant.sid] == participant {
      let old = before[participant.sid]
      if old == nil { changes.joined.append(participant) }
      if let horizon = participant.horizon, horizon > old?.horizon ?? -1 { changes.read.append(participant) }
      // A mark that was set back is not to be announced again.
      if let horizon = old?.horizon, participant.horizon ?? -1 < horizon { now[participant.sid]?.horizon = horizon }
    }
    changes.left = before.values.filter { now[$0.sid] == nil }.sorted { $0.sid < $1.sid }
    return changes
  }

  /// True when it is news.
  mutating func joined(_ participant: ListedParticipant) -> Bool {
    guard members?[participant.sid] == nil else { return false }
    members?[participant.sid] = participant
    return true
  }

  /// True when it is news.
  mutating func left(_ participant: ListedParticipant) -> Bool {
    guard members != nil else { return true }
    return members?.removeValue(forKey: participant.sid) != nil
  }

  /// True when the mark moved forward.
  func isAhead(_ participant: ListedParticipant) -> Bool {
    guard let horizon = participant.horizon else { return false }
    return horizon > members?[participant.sid]?.horizon ?? -1
  }

  /// The mark has been made an event.
  mutating func read(_ participant: ListedParticipant) { members?[participant.sid] = participant }

  // MARK: Deliveries

  /// True when receipts of the message are worth reading: something was delivered or read that was not before.
  mutating func hasProgress(_ message: ListedMessage) -> Bool {
    guard message.delivered != nil || message.read != nil else { return false }
    let now = "\(message.delivered ?? "none")/\(message.read ?? "none")"
    let before = progress[message.sid]
    guard before != now else { return false }
    progress[message.sid] = now
    // What was before this run began is no news.
    return now != "none/none" && (before != nil || message.index > base)
  }

  /// True once for every receipt and status.
  mutating func isNews(_ receipt: WebhookEvent.Receipt) -> Bool {
    let key = "\(receipt.sid)/\(receipt.status)"
    guard receipts[key] == nil else { return false }
    receipts[key] = true
    return true
  }
}
