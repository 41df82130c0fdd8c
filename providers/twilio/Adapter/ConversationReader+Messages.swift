import FerryCore
import FerryRuntime

extension ConversationReader {
  /// Messages as they are listed now, newest first, with none left out between two of them.
  struct Window {
    var messages: [ListedMessage]
    /// Of what may be called deleted when it is not among them.
    var indexes: ClosedRange<Int64>
  }

  /// One page of what was missed. After a long outage only the last pages are kept, and the others read again on the
  /// way back, so that memory stays flat.
  private struct Leaf {
    let url: String
    var messages: [ListedMessage]?
    let lowest: Int64?
  }

  private static let keptPages = 20
  private static let doing = "read the messages"

  /// Accepts what is new, and then what has become of the messages before it: an edit must not get lost because many
  /// messages followed it.
  @discardableResult
  mutating func look() async throws(FerryError) -> Window {
    let known = await recent()
    let window = try await catchUp()
    try await compare(known, window)
    return window
  }

  /// Reads from the newest back to what is known and as far into that as is compared, and accepts what is new, oldest
  /// first.
  private mutating func catchUp() async throws(FerryError) -> Window {
    let size = adapter.settings.pollWindow
    var leaves: [Leaf] = []
    var next: String? = adapter.messagesURL(
      conversation, [("Order", "desc"), ("PageSize", String(min(size, AdapterLimits.pageSize)))])
    var known = 0
    while let url = next, known < size {
      let page = try await api.page(url, doing: Self.doing)
      let messages = page.records.compactMap { ListedMessage(json: $0) }
      if messages.count < page.records.count {
        adapter.logger.error("\(channel): Twilio listed something that is no message; it is skipped")
      }
      leaves.append(Leaf(url: url, messages: messages, lowest: messages.map(\.index).min()))
      if leaves.count > Self.keptPages { leaves[leaves.count - 1 - Self.keptPages].messages = nil }
      known += messages.count { $0.index <= state.place.index }
      next = page.next
    }
    for leaf in leaves.reversed() { try await takeNew(try await messages(of: leaf)) }
    let kept = leaves.compactMap(\.messages)
    let listed = Array(kept.joined())
    let lowest = next == nil ? 0 : listed.map(\.index).min() ?? .max
    let highest = kept.count == leaves.count ? .max : listed.map(\.index).max() ?? lowest
    return Window(messages: listed, indexes: lowest...max(lowest, highest))
  }

  private func messages(of leaf: Leaf) async throws(FerryError) -> [ListedMessage] {
    if let messages = leaf.messages { return messages }
    let page = try await api.page(leaf.url, doing: Self.doing)
    let messages = page.records.compactMap { ListedMessage(json: $0) }
    guard messages.map(\.index).min() == leaf.lowest else {
      // Something was deleted meanwhile and the pages have moved: begin again from where this one ended.
      throw FerryError(.unavailable, "The list of messages changed while it was read.", retry: .now)
    }
    return messages
  }

  private mutating func takeNew(_ messages: [ListedMessage]) async throws(FerryError) {
    var events: [Event] = []
    for message in messages.sorted(by: { $0.index < $1.index }) {
      guard state.arrival(of: message, isListed: true) != .known else {
        state.see(message)
        continue
      }
      state.take(message)
      events.append(await posted(message))
    }
    try await accept(events)
  }

  /// What the inbox accepted before.
  private func recent() async -> [KnownMessage] {
    do throws(FerryError) {
      return try await inbox.recent(in: channel, limit: 2 * adapter.settings.pollWindow)
    } catch {
      adapter.logger.warning("\(channel): edits and deletions were not looked for: \(error)")
      return []
    }
  }

  /// Finds edits and deletions that nobody announced, by comparing with what the inbox accepted before.
  private mutating func compare(_ known: [KnownMessage], _ window: Window) async throws(FerryError) {
    let listed = Dictionary(window.messages.map { ($0.sid, $0) }, uniquingKeysWith: { first, _ in first })
    var events: [Event] = []
    for known in known.reversed() {
      guard let message = known.message else { continue }
      if let listed = listed[known.id.rawValue] {
        if let revision = state.edit(listed, against: message) {
          events.append(await edited(listed, revision: revision))
        }
      } else if let index = ListedMessage.index(of: message), window.indexes.contains(index),
        try await isGone(known.id)
      {
        events.append(deleted(known.id.rawValue, at: nil, stampOfMessage: message.stamp))
      }
    }
    try await accept(events)
  }

  /// Asks for the message itself: that a list lacks it may have other reasons.
  private func isGone(_ id: MessageID) async throws(FerryError) -> Bool {
    do throws(FerryError) {
      _ = try await api.get(adapter.messageURL(conversation, id.rawValue), doing: "look at a message")
      return false
    } catch {
      guard error.code == .notFound else { throw error }
      return true
    }
  }
}
