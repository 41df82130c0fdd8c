import FerryCore
import FerryRuntime

extension ConversationReader {
  // MARK: Polled

  mutating func lookAtMembers() async throws(FerryError) {
    let participants = try await adapter.participants(of: conversation)
    // Known only once it has been handed on: what fails on the way is found again by the next look.
    var next = state
    let changes = next.look(at: participants)
    var events: [Event] = []
    for participant in changes.joined { if let event = await joined(participant) { events.append(event) } }
    for participant in changes.read { if let event = try await read(participant) { events.append(event) } }
    for participant in changes.left { if let event = await left(participant) { events.append(event) } }
    try await accept(events)
    state = next
  }

  mutating func lookAtDeliveries(_ window: Window) async throws(FerryError) {
    for message in window.messages.prefix(adapter.settings.pollWindow).reversed() {
      let before = state
      guard state.hasProgress(message) else { continue }
      do throws(FerryError) { try await readReceipts(of: message) } catch {
        state = before
        throw error
      }
    }
  }

  private mutating func readReceipts(of message: ListedMessage) async throws(FerryError) {
    let url = api.url(
      "Conversations", conversation, "Messages", message.sid, "Receipts",
      query: [("PageSize", String(AdapterLimits.smallPageSize))])
    var events: [Event] = []
    for record in try await api.all(url, doing: "read delivery receipts") {
      guard let receipt = WebhookEvent.Receipt(json: record) else { continue }
      if let event = await mark(receipt) { events.append(event) }
    }
    try await accept(events)
  }

  // MARK: Events

  /// Nil for Ferry itself, whose coming and going is nobody's news.
  func joined(_ participant: ListedParticipant) async -> Event? {
    guard !isFerry(participant) else { return nil }
    let membership = Membership(member: await author(participant), stamp: participant.ferry?.stamp)
    return Event(
      key: EventKey("joined:\(participant.sid)"), channel: channel, time: participant.changed ?? adapter.clock.now(),
      kind: .joined(membership))
  }

  func left(_ participant: ListedParticipant) async -> Event? {
    guard !isFerry(participant) else { return nil }
    let stamp = adapter.written.takeDeparture(of: participant.id, from: channel)
    let membership = Membership(member: await author(participant), stamp: stamp)
    return Event(
      key: EventKey("left:\(participant.sid)"), channel: channel, time: adapter.clock.now(), kind: .left(membership))
  }

  /// Nil when there is no message up to which somebody could have read.
  func read(_ participant: ListedParticipant) async throws(FerryError) -> Event? {
    guard !isFerry(participant), let horizon = participant.horizon,
      let message = try await message(upTo: horizon)
    else { return nil }
    var stamp = adapter.written.stamp(ofReading: horizon, by: participant.id, in: channel)
    if stamp == nil, let mark = participant.ferry?.read, mark.index == horizon { stamp = mark.stamp }
    let mark = ReadMark(upTo: MessageID(message), by: await author(participant), state: .read, stamp: stamp)
    return Event(
      key: EventKey("read:\(participant.sid):\(horizon)"), channel: channel,
      time: participant.changed ?? adapter.clock.now(), kind: .read(mark))
  }

  /// Of a message that got to a phone, or was read there.
  mutating func mark(_ receipt: WebhookEvent.Receipt) async -> Event? {
    guard let status = receipt.state, state.isNews(receipt) else { return nil }
    var by: Author?
    if let participant = state.members?[receipt.participant] { by = await author(participant) }
    let mark = ReadMark(upTo: MessageID(receipt.message), by: by, state: status)
    return Event(
      key: EventKey("receipt:\(receipt.sid):\(receipt.status)"), channel: channel,
      time: receipt.changed ?? adapter.clock.now(), kind: .read(mark))
  }

  private func isFerry(_ participant: ListedParticipant) -> Bool {
    adapter.capabilities.typing && participant.identity == adapter.settings.identity
  }

  private func author(_ participant: ListedParticipant) async -> Author { await adapter.author(participant) }

  /// The SID of the last message at or before an index, which may be that of a message that is gone.
  private func message(upTo index: Int64) async throws(FerryError) -> String? {
    if let message = state.message(at: index) { return message }
    guard index >= 0 else { return nil }
    var next: String? = adapter.messagesURL(
      conversation, [("Order", "desc"), ("PageSize", String(AdapterLimits.pageSize))])
    var pages = 0
    while let url = next, pages < Self.lookBack {
      let page = try await api.page(url, doing: "find the message that was read")
      for message in page.records.compactMap({ ListedMessage(json: $0) }) where message.index <= index {
        return message.sid
      }
      next = page.next
      pages += 1
    }
    return nil
  }

  /// Pages; what was read longer ago is nobody's news.
  private static let lookBack = 10
}
