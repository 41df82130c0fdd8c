import FerryChat
import FerryCore
import FerryRuntime

/// What happens by itself, later.
extension Ledger {
  /// Something was written to a conversation: its timers begin anew, and it is active again.
  func touched(_ conversation: ConversationRecord, _ origin: Origin?) throws -> ConversationRecord {
    guard conversation.state == .inactive || !conversation.timers.isEmpty else { return conversation }
    var record = conversation
    if !record.timers.isEmpty { record.timers.activity = now }
    if record.state == .inactive { record.state = .active }
    try keep(record)
    if let origin, record.state != conversation.state {
      try announceState(record, from: conversation.state, reason: "EVENT", origin)
    }
    return record
  }

  /// Remembers when a conversation's state is to change.
  func schedule(_ record: ConversationRecord) throws {
    let due = [record.due(.inactive), record.due(.closed)].compactMap { $0 }.min()
    guard let due else {
      try chat.remove(record.sid, from: "timers")
      return
    }
    try chat.put(["service": .string(record.service), "due": .integer(due)] as JSONValue, as: record.sid, in: "timers")
    chat.afterCommit { [schedule = facade.schedule] in _ = schedule.offer(()) }
  }

  /// Does what is due, and returns when the next thing is.
  func endWhatIsDue() throws -> Int64? {
    var next: [Int64] = []
    // The oldest first: the rest has time when the first has.
    while let oldest = try chat.documents(in: "unattached", DocumentQuery(limit: 1)).first {
      let due = try oldest.value(Int64.self) + Int64(Limits.mediaWaits) * 1000
      if due > now {
        next.append(due)
        break
      }
      try chat.remove(oldest.id, from: "unattached")
      try chat.remove(oldest.id, from: "media")
    }
    for timer in try allDocuments(in: "timers") {
      let value = try timer.value(JSONValue.self)
      guard let due = value["due"]?.integer, let service = value["service"]?.string else { continue }
      if due <= now { try changeState(of: timer.id, in: service) }
      if let again = try chat.value(JSONValue.self, of: timer.id, in: "timers")?["due"]?.integer { next.append(again) }
    }
    return next.min()
  }

  private func changeState(of sid: String, in service: String) throws {
    guard var record = try conversation(sid, in: service) else {
      try chat.remove(sid, from: "timers")
      return
    }
    let before = record.state
    if let due = record.due(.closed), due <= now {
      record.state = .closed
    } else if let due = record.due(.inactive), due <= now {
      record.state = .inactive
    }
    if record.state != before { record.updated = now }
    try keep(record)
    if record.state != before { try announceState(record, from: before, reason: "TIMER", Origin(source: "API")) }
  }
}

extension ConversationRecord {
  /// When its timer moves it into a state; nil when none will.
  func due(_ wanted: State) -> Int64? {
    let start = timers.activity ?? updated
    switch wanted {
    case .active: return nil
    case .inactive: return state == .active ? timers.inactive.map { start + $0 } : nil
    case .closed: return state == .closed ? nil : timers.closed.map { start + $0 }
    }
  }
}

extension TwilioFacade {
  /// Collects media that nobody took and moves conversations on whose timers ran out, until cancelled.
  func endWhatIsDue() async {
    while !Task.isCancelled {
      var next: Int64?
      do {
        next = try await write { try $0.endWhatIsDue() }
      } catch {
        logger.error("what is due cannot be done: \(error)")
        next = clock.now().milliseconds + 1000
      }
      await wait(until: next, orTold: schedule)
    }
  }

  func wait(until due: Int64?, orTold news: BoundedChannel<Void>) async {
    await withTaskGroup { group in
      group.addTask { _ = await news.next() }
      if let due {
        let left = max(due - clock.now().milliseconds, 1)
        group.addTask { try? await self.clock.sleep(for: .milliseconds(left)) }
      }
      await group.next()
      group.cancelAll()
    }
  }
}
