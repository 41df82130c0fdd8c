package import FerryCore

/// What moving a history to another account or archive will keep, convert and drop: judged from the two capability
/// records and from a sample of what is to be moved.
package struct MigrationPlan: Codable, Hashable, Sendable {
  package enum Outcome: String, Codable, Sendable { case kept, converted, dropped }

  package struct Item: Codable, Hashable, Sendable {
    package var what: String
    package var outcome: Outcome
    /// How many of the sample; nil where counting says nothing.
    package var count: Int?
    /// How, or why not; empty when there is nothing to say.
    package var how: String

    package init(what: String, outcome: Outcome, count: Int? = nil, how: String = "") {
      self.what = what
      self.outcome = outcome
      self.count = count
      self.how = how
    }
  }

  package var from: String
  package var to: String
  /// Records that were looked at.
  package var sampled: Int
  /// Whether these were all.
  package var isWhole: Bool
  /// Messages in the sample, and how many writes they take at the destination.
  package var messages: Int
  package var writes: Int
  /// Seconds that writing the sample takes at least, at the destination's rate limit; nil where it names none.
  package var seconds: Double?
  package var items: [Item]

  enum CodingKeys: String, CodingKey {
    case from, to, sampled, messages, writes, seconds, items
    case isWhole = "whole"
  }
}

/// One end of a migration, for the plan.
package struct PlanEnd: Sendable {
  package var name: String
  /// Nil for an archive or a file.
  package var capabilities: Capabilities?

  package init(_ name: String, _ capabilities: Capabilities?) {
    self.name = name
    self.capabilities = capabilities
  }
}

/// Counts what a migration will meet.
package struct MigrationSurvey: Sendable {
  private let from: PlanEnd
  private let to: PlanEnd
  private let layout: MessageLayout?
  private let splitter: TextSplitter?

  private var sampled = 0
  private var isWhole = false
  private var messages = 0
  private var writes = 0
  private var split = 0
  private var people: Set<UserID> = []
  private var fineTimes = 0
  private var order: PastOrder
  private var unordered = 0
  private var edited = 0
  private var edits = 0
  private var deleted: Set<MessageID> = []
  private var attachments = 0
  private var linked = 0
  private var apart = 0
  private var refusedTypes = 0
  private var gone = 0
  private var unread: Int64 = 0
  private var replies = 0
  private var reactions = 0
  private var joins = 0
  private var reads = 0
  private var actions = 0
  private var system = 0
  private var skipped = 0
  private var gaps = 0

  package init(from: PlanEnd, to: PlanEnd) {
    self.from = from
    self.to = to
    layout = to.capabilities.map { MessageLayout($0) }
    splitter = to.capabilities.map { TextSplitter($0) }
    order = PastOrder(to.capabilities?.importing)
  }

  /// Reads at most `limit` records of `source`.
  package mutating func read(_ source: any RecordSource, limit: Int) async throws(FerryError) {
    while sampled < limit {
      let records = try await source.next(limit: min(500, limit - sampled))
      if records.isEmpty {
        isWhole = true
        return
      }
      for record in records { add(record) }
    }
    isWhole = try await source.next(limit: 1).isEmpty
  }

  package mutating func add(_ record: Record) {
    sampled += 1
    switch record {
    case .message(let message): add(message)
    case .edit: edits += 1
    case .delete(let deletion): deleted.insert(deletion.id)
    case .reaction(let record): if record.reaction.added { reactions += 1 }
    case .join, .leave: joins += 1
    case .read: reads += 1
    case .skipped(let record): skipped &+= max(record.count, 1)
    case .gap: gaps += 1
    case .channel, .person, .end, .unknown: sampled -= 1
    }
  }

  private mutating func add(_ record: MessageRecord) {
    if record.isDeleted {
      deleted.insert(record.message.id)
      return
    }
    let message = record.message
    messages += 1
    people.insert(message.author.id)
    let unit = to.capabilities?.importing?.timeUnit ?? 1
    if unit > 1, message.time.milliseconds % unit != 0 { fineTimes += 1 }
    if order.movesBack(message.time) { unordered += 1 }
    if message.edited != nil { edited += 1 }
    if message.replyTo != nil { replies += 1 }
    reactions = record.reactions.reduce(reactions) { $0 &+ $1.count }
    if record.isAction { actions += 1 }
    if record.system != nil { system += 1 }
    var inline = 0
    var separate = 0
    for (index, file) in message.attachments.enumerated() {
      attachments += 1
      if let status = record.file(at: index).status, ![.present, .remote].contains(status) { gone += 1 }
      unread &+= file.size ?? 0
      guard let layout else { continue }
      if let types = to.capabilities?.mediaTypes, !types.contains(where: { Self.matches(file.mediaType, $0) }) {
        refusedTypes += 1
      }
      switch layout.place(ofSize: file.size, inline: inline) {
      case .inline: inline += 1
      case .apart:
        apart += 1
        separate += 1
      case .link: linked += 1
      }
    }
    let parts = layout?.texts(of: message.text, inline: inline, apart: separate).count ?? 1
    if parts > 1 { split += 1 }
    writes += parts + separate
  }

  private static func matches(_ type: String, _ pattern: String) -> Bool {
    pattern == type || (pattern.hasSuffix("/*") && type.hasPrefix(pattern.dropLast()))
  }

  // MARK: The plan

  package var plan: MigrationPlan {
    var plan = MigrationPlan(
      from: from.name, to: to.name, sampled: sampled, isWhole: isWhole, messages: messages, writes: writes,
      seconds: seconds, items: [])
    plan.items = cannotBeRead + written + told + losses
    return plan
  }

  private var seconds: Double? {
    guard let rate = to.capabilities?.sendsPerSecond, rate > 0 else { return nil }
    let batch = max(to.capabilities?.importing?.batch ?? 1, 1)
    return (Double(writes) / Double(batch)).rounded(.up) / rate
  }

  private var canWrite: Bool { to.capabilities == nil || to.capabilities?.importing != nil }

  private var cannotBeRead: [MigrationPlan.Item] {
    guard let source = from.capabilities, source.history == .none else { return [] }
    return [
      .init(
        what: "everything", outcome: .dropped,
        how: (source.absent["history"] ?? "\(from.name) keeps no history.")
          + " What a relay mirrored is in its journal: ferry export journal:\(from.name) FILE")
    ]
  }

  /// Messages and their fields.
  private var written: [MigrationPlan.Item] {
    guard canWrite else {
      return [
        .init(
          what: "everything", outcome: .dropped,
          how: to.capabilities?.absent["import"] ?? "\(to.name) cannot be written to as having happened before.")
      ]
    }
    var items: [MigrationPlan.Item] = [.init(what: "messages", outcome: .kept, count: messages - split)]
    if split > 0 {
      items.append(.init(what: "long messages", outcome: .converted, count: split, how: "split, \(limitText)"))
    }
    let destination = to.capabilities
    items.append(
      destination?.keepsAuthor ?? true
        ? .init(what: "authors", outcome: .kept, count: people.count)
        : .init(
          what: "authors", outcome: .converted, count: people.count,
          how: "written by Ferry's account, the name in front of the text"))
    if destination?.keepsTime == false {
      items.append(.init(what: "times", outcome: .converted, count: messages, how: "the time of writing is shown"))
    } else if fineTimes > 0 {
      items.append(
        .init(
          what: "times", outcome: .kept, count: messages,
          how: "\(to.name) shows whole \(unitName); the exact times are kept beside them"))
    } else {
      items.append(.init(what: "times", outcome: .kept, count: messages))
    }
    if unordered > 0, destination?.importing?.sortsByTime == true {
      items.append(
        .init(
          what: "order", outcome: .converted, count: unordered,
          how: "older than what came before them; \(to.name) sorts by time"))
    }
    if replies > 0 { items.append(.init(what: "replies", outcome: .kept, count: replies)) }
    return items + files
  }

  private var limitText: String {
    var limits: [String] = []
    if let characters = to.capabilities?.bodyCharacters { limits.append("\(characters) characters") }
    if let bytes = to.capabilities?.bodyBytes { limits.append("\(bytes) bytes") }
    return "at \(limits.joined(separator: " or "))"
  }

  private var unitName: String {
    switch to.capabilities?.importing?.timeUnit ?? 1 {
    case 60_000...: "minutes"
    case 1000...: "seconds"
    default: "milliseconds"
    }
  }

  private var files: [MigrationPlan.Item] {
    guard attachments > 0 else { return [] }
    var items: [MigrationPlan.Item] = []
    let there = attachments - gone
    if let capabilities = to.capabilities, capabilities.attachments != .stored {
      items.append(.init(what: "attachments", outcome: .dropped, count: there, how: "\(to.name) stores no files"))
    } else {
      let stored = max(there - linked - refusedTypes, 0)
      var how = unread > 0 ? "\(unread) bytes" : ""
      if apart > 0 { how += "\(how.isEmpty ? "" : "; ")\(apart) in messages of their own" }
      items.append(.init(what: "attachments", outcome: .kept, count: stored, how: how))
      if linked > 0 {
        items.append(
          .init(
            what: "attachments", outcome: .dropped, count: linked,
            how: "larger than \(to.capabilities?.attachmentBytes ?? 0) bytes"))
      }
      if refusedTypes > 0 {
        items.append(
          .init(
            what: "attachments", outcome: .dropped, count: refusedTypes,
            how: "\(to.name) takes \((to.capabilities?.mediaTypes ?? []).joined(separator: ", "))"))
      }
    }
    if gone > 0 {
      items.append(.init(what: "attachments", outcome: .dropped, count: gone, how: "the source has lost them"))
    }
    return items
  }

  /// What happened to messages, and beside them.
  private var told: [MigrationPlan.Item] {
    guard canWrite else { return [] }
    let powers = to.capabilities?.importing
    let isArchive = to.capabilities == nil
    var items: [MigrationPlan.Item] = []
    if edited + edits > 0 {
      let keeps = isArchive || powers?.revisions == true
      items.append(
        .init(
          what: "edits", outcome: keeps ? .kept : .converted, count: max(edits, edited),
          how: keeps ? "" : "the last text, and when it was edited"))
    } else if from.capabilities?.history == .messages {
      items.append(.init(what: "edits", outcome: .converted, how: "\(from.name) tells the last text only"))
    }
    if !deleted.isEmpty {
      items.append(
        isArchive
          ? .init(what: "deleted messages", outcome: .kept, count: deleted.count, how: "their places, not their texts")
          : .init(
            what: "deleted messages", outcome: .dropped, count: deleted.count, how: "what is gone is not written again")
      )
    }
    add("reactions", reactions, isArchive || powers?.reactions == true, to.capabilities?.absent["reactions"], &items)
    let isMembership = to.capabilities?.members == true
    add(
      "joins and leaves", joins, isArchive || powers?.joins == true,
      isMembership ? "who is a member at the end is made one" : to.capabilities?.absent["members"], &items,
      otherwise: isMembership ? .converted : .dropped)
    add("read marks", reads, isArchive || powers?.reads == true, to.capabilities?.absent["reads"], &items)
    return items
  }

  private func add(
    _ what: String, _ count: Int, _ keeps: Bool, _ reason: String?, _ items: inout [MigrationPlan.Item],
    otherwise outcome: MigrationPlan.Outcome = .dropped
  ) {
    guard count > 0 else { return }
    items.append(
      keeps
        ? .init(what: what, outcome: .kept, count: count)
        : .init(what: what, outcome: outcome, count: count, how: reason ?? "\(to.name) cannot hold them"))
  }

  private var losses: [MigrationPlan.Item] {
    var items: [MigrationPlan.Item] = []
    if skipped > 0 {
      items.append(.init(what: "unreadable records", outcome: .dropped, count: skipped, how: "the source lacks them"))
    }
    if gaps > 0 {
      items.append(.init(what: "gaps", outcome: .dropped, count: gaps, how: "nobody knows what was said in them"))
    }
    guard to.capabilities != nil, canWrite else { return items }
    if actions > 0 { items.append(.init(what: "actions", outcome: .kept, count: actions, how: "marked as such")) }
    if system > 0 {
      items.append(.init(what: "notices of the service", outcome: .converted, count: system, how: "as messages"))
    }
    return items
  }
}
