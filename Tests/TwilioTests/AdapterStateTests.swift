import FerryCore
import FerryRuntime
import Testing

@testable import TwilioProvider

/// The state behind a reference, because expectations cannot call what changes a value.
private final class Subject {
  private var state: ConversationState

  init(at index: Int64 = 9) {
    let place = Place(index: index, message: "IMx", conversation: "CH1")
    state = ConversationState(channel: "lobby", place: place, window: 100)
  }

  var place: Place { state.place }
  func arrival(of message: ListedMessage, isListed: Bool) -> ConversationState.Arrival {
    state.arrival(of: message, isListed: isListed)
  }
  func take(_ message: ListedMessage) { state.take(message) }
  func edit(_ message: ListedMessage) -> ConversationState.Edit { state.edit(message) }
  func edit(_ message: ListedMessage, against known: Message) -> Int? { state.edit(message, against: known) }
  func confirm(_ message: ListedMessage) -> Int { state.confirm(message) }
  func look(at participants: [ListedParticipant]) -> ConversationState.Changes { state.look(at: participants) }
  func joined(_ participant: ListedParticipant) -> Bool { state.joined(participant) }
  func left(_ participant: ListedParticipant) -> Bool { state.left(participant) }
  func isAhead(_ participant: ListedParticipant) -> Bool { state.isAhead(participant) }
  func read(_ participant: ListedParticipant) { state.read(participant) }
  func hasProgress(_ message: ListedMessage) -> Bool { state.hasProgress(message) }
  func isNews(_ receipt: WebhookEvent.Receipt) -> Bool { state.isNews(receipt) }
}

@Suite struct ConversationStateTests {

  private static func listed(_ index: Int64, _ body: String, second: Int = 0) -> ListedMessage {
    var message = ScriptedTwilio.message(index, body)
    message.updated = second == 0 ? nil : "2026-01-02T03:04:\(second < 10 ? "0" : "")\(second)Z"
    guard let listed = ListedMessage(json: message.json) else { preconditionFailure("a message that is one") }
    return listed
  }

  /// Of second 5 unless said otherwise.
  private static func announced(_ index: Int64, _ body: String, at updated: String? = nil) -> ListedMessage {
    let message = ScriptedTwilio.message(index, body)
    guard let listed = ListedMessage(form: AdapterRig.announcement("onMessageUpdated", message, updated: updated))
    else { preconditionFailure("a message that is one") }
    return listed
  }

  private static func revision(_ time: String) -> Int { Int(TwilioDate.parse(time)?.milliseconds ?? 0) }

  @Test func `the next message is new, one further on leaves a gap`() {
    let state = Subject()
    #expect(state.arrival(of: Self.listed(10, "a"), isListed: false) == .new)
    #expect(state.arrival(of: Self.listed(11, "b"), isListed: false) == .gap)
    #expect(state.arrival(of: Self.listed(11, "b"), isListed: true) == .new)
    state.take(Self.listed(11, "b"))
    #expect(state.place.index == 11)
    #expect(state.arrival(of: Self.listed(11, "b"), isListed: false) == .known)
  }

  @Test func `a message that appears behind a later one is taken, and what was before the start is not`() {
    let state = Subject()
    state.take(Self.listed(11, "b"))
    #expect(state.arrival(of: Self.listed(10, "a"), isListed: true) == .late)
    state.take(Self.listed(10, "a"))
    #expect(state.place.index == 11)
    #expect(state.arrival(of: Self.listed(10, "a"), isListed: true) == .known)
    #expect(state.arrival(of: Self.listed(9, "old"), isListed: true) == .known)
    #expect(state.arrival(of: Self.listed(3, "older"), isListed: false) == .known)
  }

  @Test func `announced edits end with the newest, in whatever order they come`() {
    let first = Self.announced(10, "one", at: "2026-01-02T03:04:06.100Z")
    let second = Self.announced(10, "two", at: "2026-01-02T03:04:06.900Z")
    var state = Subject()
    state.take(Self.announced(10, "zero"))
    #expect(state.edit(first) == .news(revision: Self.revision("2026-01-02T03:04:06.100Z")))
    #expect(state.edit(first) == .none)
    #expect(state.edit(second) == .news(revision: Self.revision("2026-01-02T03:04:06.900Z")))
    #expect(state.edit(first) == .none)
    state = Subject()
    state.take(Self.announced(10, "zero"))
    #expect(state.edit(second) == .news(revision: Self.revision("2026-01-02T03:04:06.900Z")))
    #expect(state.edit(first) == .none)
  }

  @Test func `an edit of what is not known comes after what is missing`() {
    let state = Subject()
    #expect(state.edit(Self.announced(10, "x", at: "2026-01-02T03:04:06.100Z")) == .gap)
    #expect(
      state.edit(Self.announced(4, "x", at: "2026-01-02T03:04:06.100Z"))
        == .news(revision: Self.revision("2026-01-02T03:04:06.100Z")))
  }

  @Test func `an announcement of the second in which the list was read is unsure`() {
    let state = Subject()
    state.take(Self.listed(10, "two", second: 6))
    #expect(state.edit(Self.announced(10, "one", at: "2026-01-02T03:04:06.100Z")) == .unsure)
    #expect(state.edit(Self.announced(10, "two", at: "2026-01-02T03:04:06.900Z")) == .none)
    // Now it is known to the millisecond.
    #expect(state.edit(Self.announced(10, "one", at: "2026-01-02T03:04:06.100Z")) == .none)
    state.take(Self.listed(10, "two", second: 6))
    #expect(state.edit(Self.announced(10, "before", at: "2026-01-02T03:04:05.999Z")) == .none)
    #expect(
      state.edit(Self.announced(10, "after", at: "2026-01-02T03:04:07.000Z"))
        == .news(revision: Self.revision("2026-01-02T03:04:07.000Z")))
  }

  @Test func `an unsure edit that is the newest goes beyond what was known`() {
    let state = Subject()
    state.take(Self.listed(10, "one", second: 6))
    #expect(
      state.confirm(Self.announced(10, "two", at: "2026-01-02T03:04:06.000Z"))
        == Self.revision("2026-01-02T03:04:06.001Z"))
  }

  private func known(_ body: String, revision: Int) -> Message {
    Self.listed(10, body).message(name: nil, stamp: nil, revision: revision)
  }

  @Test func `comparing finds an edit by its text`() {
    let state = Subject()
    let six = Self.revision("2026-01-02T03:04:06.000Z")
    #expect(state.edit(Self.listed(10, "a", second: 6), against: known("a", revision: 0)) == nil)
    #expect(state.edit(Self.listed(10, "b", second: 6), against: known("a", revision: 0)) == six)
    // To the millisecond known, and in the same second edited again.
    #expect(state.edit(Self.listed(10, "b", second: 6), against: known("a", revision: six + 678)) == six + 679)
    // Looks alike and is not the same.
    #expect(state.edit(Self.listed(10, "e\u{301}", second: 7), against: known("\u{e9}", revision: 0)) == six + 1000)
  }

  @Test func `a list that lags is not believed at once, but twice`() {
    let state = Subject()
    let seven = Self.revision("2026-01-02T03:04:07.000Z")
    let lagging = Self.listed(10, "old", second: 6)
    #expect(state.edit(lagging, against: known("new", revision: seven)) == nil)
    #expect(state.edit(lagging, against: known("new", revision: seven)) == seven + 1)
    #expect(state.edit(lagging, against: known("new", revision: seven)) == nil)
    #expect(state.edit(Self.listed(10, "new", second: 7), against: known("new", revision: seven)) == nil)
    #expect(state.edit(lagging, against: known("new", revision: seven)) == nil)
  }

  @Test func `a revision at the end of all numbers does not overflow`() {
    let state = Subject()
    _ = state.edit(Self.listed(10, "b"), against: known("a", revision: .max))
    _ = state.edit(Self.listed(10, "b"), against: known("a", revision: .max))
  }

  // MARK: Members

  private func participant(_ number: Int64, _ identity: String, read: Int64? = nil) throws -> ListedParticipant {
    try #require(ListedParticipant(json: ScriptedTwilio.participant(number, identity, read: read)))
  }

  @Test func `who comes, goes and reads is found by looking twice`() throws {
    let state = Subject()
    #expect(try state.look(at: [participant(1, "ann", read: 3), participant(2, "bob")]) == ConversationState.Changes())
    var changes = try state.look(at: [participant(1, "ann", read: 5), participant(3, "cy", read: 0)])
    #expect(changes.joined.map(\.id) == ["cy"])
    #expect(changes.left.map(\.id) == ["bob"])
    #expect(changes.read.map(\.id) == ["ann", "cy"])
    // Backwards is no news, and neither is the way forward again.
    changes = try state.look(at: [participant(1, "ann", read: 2), participant(3, "cy", read: 0)])
    #expect(changes == ConversationState.Changes())
    changes = try state.look(at: [participant(1, "ann", read: 5), participant(3, "cy", read: 0)])
    #expect(changes == ConversationState.Changes())
    // Back again is another membership.
    changes = try state.look(at: [participant(1, "ann", read: 5), participant(3, "cy", read: 0), participant(4, "bob")])
    #expect(changes.joined.map(\.sid) == [ScriptedTwilio.sid("MB", 4)])
  }

  @Test func `what was announced is not found again by looking`() throws {
    let state = Subject()
    _ = state.look(at: [])
    #expect(try state.joined(participant(1, "ann")))
    #expect(try !state.joined(participant(1, "ann")))
    #expect(try state.isAhead(participant(1, "ann", read: 3)))
    state.read(try participant(1, "ann", read: 3))
    #expect(try !state.isAhead(participant(1, "ann", read: 3)))
    #expect(try !state.isAhead(participant(1, "ann")))
    #expect(try state.look(at: [participant(1, "ann", read: 3)]) == ConversationState.Changes())
    #expect(try state.left(participant(1, "ann")))
    #expect(try !state.left(participant(1, "ann")))
    #expect(state.look(at: []) == ConversationState.Changes())
  }

  // MARK: Deliveries

  @Test func `receipts are read when something got further, and told once`() throws {
    let state = Subject()
    func message(_ index: Int64, _ delivered: String, _ read: String) throws -> ListedMessage {
      var message = ScriptedTwilio.message(index, "x")
      message.delivery = ["delivered": .string(delivered), "read": .string(read)]
      return try #require(ListedMessage(json: message.json))
    }
    #expect(try !state.hasProgress(message(10, "none", "none")))
    #expect(try state.hasProgress(message(10, "all", "none")))
    #expect(try !state.hasProgress(message(10, "all", "none")))
    #expect(try state.hasProgress(message(10, "all", "some")))
    // Delivered before this run began.
    #expect(try !state.hasProgress(message(5, "all", "none")))
    #expect(try state.hasProgress(message(5, "all", "all")))
    #expect(!state.hasProgress(Self.listed(11, "chat only")))
    let receipt = try #require(WebhookEvent.Receipt(json: ["sid": "DY1", "message_sid": "IM1", "status": "delivered"]))
    let first = state.isNews(receipt)
    let second = state.isNews(receipt)
    #expect(first && !second)
  }
}
