package import FerryCore

/// A channel's past, read in pages from a place that can be written down.
package protocol ChannelHistory: Sendable {
  var channel: ChannelID { get }
  var scope: HistoryScope { get }
  /// Whether the place after the last page is one from which later things are read. Otherwise what changed is found by
  /// reading again.
  var goesOn: Bool { get }

  /// Oldest first, starting after `cursor`.
  func page(after cursor: Cursor?, limit: Int) async throws(FerryError) -> RecordPage

  /// Newest first, of a source that does not go on.
  func pageBackwards(after cursor: Cursor?, limit: Int) async throws(FerryError) -> RecordPage

  func bytes(of attachment: Attachment) async throws(FerryError) -> ByteStream
}

package struct RecordPage: Sendable {
  package var records: [Record]
  package var next: Cursor?
  package var isLast: Bool

  package init(records: [Record], next: Cursor?, isLast: Bool) {
    self.records = records
    self.next = next
    self.isLast = isLast
  }
}

/// What is taken of a channel's past.
package struct HistoryScope: Hashable, Sendable {
  /// Only what happened from then on.
  package var since: Timestamp?
  /// Only what happened before.
  package var until: Timestamp?
  /// Who has read what, which is left out otherwise.
  package var reads = false
  package var avatars = false

  package init(since: Timestamp? = nil, until: Timestamp? = nil, reads: Bool = false, avatars: Bool = false) {
    self.since = since
    self.until = until
    self.reads = reads
    self.avatars = avatars
  }

  /// What was asked for, in words that differ when it does: a place in a history is one for this alone.
  package var name: String {
    let words = [
      since.map { "since \($0.milliseconds)" }, until.map { "until \($0.milliseconds)" }, reads ? "reads" : nil,
      avatars ? "avatars" : nil,
    ]
    return words.compactMap { $0 }.joined(separator: " ")
  }

  func takes(_ time: Timestamp?) -> Bool {
    guard let time else { return true }
    return (since.map { time >= $0 } ?? true) && (until.map { time < $0 } ?? true)
  }
}

/// The history of an account that can tell its past.
package struct AccountHistory: ChannelHistory {
  package let channel: ChannelID
  package let scope: HistoryScope
  private let provider: any ChatProvider

  /// Throws `unsupported` when the account keeps no history.
  package init(_ provider: any ChatProvider, _ address: Address, _ scope: HistoryScope = .init()) throws(FerryError) {
    channel = address.channel
    self.provider = provider
    self.scope = scope
    guard provider.capabilities.history != .none, provider is any HistoryProvider else {
      let reason = provider.capabilities.absent["history"] ?? "This kind of account keeps no history."
      throw FerryError(
        .unsupported,
        "\(address) cannot be exported: \(reason) What a relay has mirrored is in its journal: "
          + "ferry export journal:\(address) FILE")
    }
  }

  package var goesOn: Bool { provider.capabilities.history == .events && provider is any EventHistoryProvider }

  package func page(after cursor: Cursor?, limit: Int) async throws(FerryError) -> RecordPage {
    guard goesOn, let provider = provider as? any EventHistoryProvider else {
      return try await messages(.oldestFirst, after: cursor, limit: limit)
    }
    let page = try await provider.events(of: channel, after: cursor, limit: limit)
    var records: [Record] = []
    records.reserveCapacity(page.events.count)
    for event in page.events {
      if let record = Record(event, withheld: page.withheld, scope) { records.append(record) }
    }
    return RecordPage(records: records, next: page.next, isLast: page.isLast)
  }

  package func pageBackwards(after cursor: Cursor?, limit: Int) async throws(FerryError) -> RecordPage {
    try await messages(.newestFirst, after: cursor, limit: limit)
  }

  package func bytes(of attachment: Attachment) async throws(FerryError) -> ByteStream {
    try await provider.attachment(attachment.reference)
  }

  private func messages(
    _ order: HistoryOrder, after cursor: Cursor?, limit: Int
  ) async throws(FerryError) -> RecordPage {
    guard let provider = provider as? any HistoryProvider else {
      throw FerryError(.unsupported, "The account keeps no history.")
    }
    let page = try await provider.history(of: channel, order: order, after: cursor, limit: limit)
    let unit = provider.capabilities.importing?.timeUnit ?? 1
    var records: [Record] = []
    for message in page.messages where scope.takes(message.time) {
      var record = MessageRecord(channel: channel, message: message, scope)
      if unit == 1000, message.time.milliseconds % 1000 == 0 { record.precision = .seconds }
      records.append(.message(record))
    }
    for event in page.notices {
      guard let record = Record(event, withheld: [], scope) else { continue }
      let index = records.firstIndex { other in
        guard let time = other.time else { return false }
        return order == .oldestFirst ? time > event.time : time < event.time
      }
      records.insert(record, at: index ?? records.count)
    }
    return RecordPage(records: records, next: page.next, isLast: page.next == nil)
  }
}

extension MessageRecord {
  init(channel: ChannelID, message: Message, _ scope: HistoryScope) {
    var message = message
    if !scope.avatars { message.author.avatar = nil }
    self.init(channel: channel, message: message)
    isAction = message.attributes?["action"]?.bool == true
    system = message.attributes?["system"]?.string
  }
}

extension Record {
  /// Nil for what is left out.
  package init?(_ event: Event, withheld: Set<MessageID>, _ scope: HistoryScope = .init()) {
    let channel = event.channel
    switch event.kind {
    case .posted(let message):
      guard scope.takes(message.time) else { return nil }
      var record = MessageRecord(channel: channel, message: message, scope)
      record.isDeleted = withheld.contains(message.id)
      self = .message(record)
    case .edited(let message):
      guard scope.takes(message.time), !withheld.contains(message.id) else { return nil }
      self = .edit(MessageRecord(channel: channel, message: message, scope))
    case .deleted(let deletion):
      guard scope.takes(event.time) else { return nil }
      self = .delete(
        DeleteRecord(
          channel: channel, id: deletion.id, by: deletion.by?.shown(scope), time: event.time, stamp: deletion.stamp))
    case .joined(let membership), .left(let membership):
      guard scope.takes(event.time) else { return nil }
      let record = MembershipRecord(
        channel: channel, member: membership.member.shown(scope), time: event.time, stamp: membership.stamp)
      if case .joined = event.kind { self = .join(record) } else { self = .leave(record) }
    case .read(let mark):
      guard scope.reads, scope.takes(event.time) else { return nil }
      var mark = mark
      mark.by = mark.by?.shown(scope)
      self = .read(ReadRecord(channel: channel, mark: mark, time: event.time))
    case .reacted(let reaction):
      guard scope.takes(event.time) else { return nil }
      var reaction = reaction
      reaction.by = reaction.by.shown(scope)
      self = .reaction(ReactionRecord(channel: channel, reaction: reaction, time: event.time))
    }
  }
}

extension Author {
  fileprivate func shown(_ scope: HistoryScope) -> Author {
    scope.avatars ? self : Author(id: id, name: name)
  }
}
