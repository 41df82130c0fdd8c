import FerryCore
import FerryRuntime

extension Importer {
  mutating func add(_ entry: Pending) async throws(FerryError) {
    pending.append(entry)
    switch entry.item.kind {
    case .message(let message), .edit(_, let message): pendingBytes += message.text.utf8.count + 256
    default: pendingBytes += 256
    }
    if pending.count >= batchSize { try await advance() }
  }

  /// Writes what is pending and notes it.
  mutating func flush() async throws(FerryError) {
    try await settleUnderway()
    while !pending.isEmpty {
      let batch = Array(pending.prefix(batchSize))
      let results: [Result<Landing, FerryError>] =
        settings.isPlan ? batch.map { _ in .success(.there(nil)) } : try await write(batch)
      pending.removeFirst(batch.count)
      for (entry, result) in zip(batch, results) { note(entry, result) }
    }
    pendingBytes = 0
    // Whatever names one of them is written by now.
    refused = []
    try await commit()
  }

  mutating func commit() async throws(FerryError) {
    if settings.isPlan {
      outcome = .init()
      return
    }
    if let linking {
      let written = outcome.copies.map { id, copy in
        Written(
          id: id, revision: copy.revision, isDeleted: copy.isDeleted,
          parts: copy.parts.compactMap { part in part.id.map { (part.number, $0) } })
      }
      if !written.isEmpty { try await linking(written) }
    }
    try await book.commit(outcome)
    outcome = .init()
  }

  mutating func note(_ entry: Pending, _ result: Result<Landing, FerryError>) {
    let key = entry.item.key
    let wasThere = adopted.remove(key) != nil
    switch result {
    case .success(.unknown):
      // The first time it was told when it was asked about.
      if wasThere { lose("message", entry.message?.rawValue, Self.unknownOutcome) }
      outcome.settled.append(key)
      outcome.found.append((key, .unknown))
    case .success(.there(let id)):
      let isVain = loseRelations(of: entry)
      guard let message = entry.message else {
        if isVain { return }
        outcome.done.append(key)
        switch entry.item.kind {
        case .join, .leave, .read, .reaction: progress.update { $0.others += 1 }
        default: break
        }
        return
      }
      if !powers.isRepeatable {
        outcome.settled.append(key)
        if let id { outcome.found.append((key, .there(id))) }
      }
      if var copy = known[message], copy.parts.indices.contains(entry.part) {
        copy.parts[entry.part].id = id
        known[message] = copy
      }
    case .failure(let error):
      if !powers.isRepeatable, entry.message != nil { outcome.settled.append(key) }
      lose(
        entry.message == nil ? entry.item.kind.name : "message", (entry.message?.rawValue ?? key.rawValue),
        "refused: \(error.code.label)", error.message)
      if entry.message != nil { refused.insert(key) }
    }
    guard entry.isLast, let message = entry.message, let copy = known[message] else { return }
    guard settings.isPlan || copy.parts.contains(where: { $0.id != nil }) else {
      known[message] = nil
      // Of a change that was prepared meanwhile.
      outcome.copies.removeAll { $0.0 == message }
      return
    }
    outcome.copies.append((message, copy))
    progress.update { if wasThere { $0.unchanged += 1 } else { $0.messages += 1 } }
  }

  /// What an item names may have been refused after it was prepared, and then is not there for it. True when nothing of
  /// the item is left.
  private func loseRelations(of entry: Pending) -> Bool {
    let kind = entry.item.kind
    switch kind {
    case .message(let past):
      if let reply = past.replyTo, refused.contains(reply.key) { lose("reply", entry.message?.rawValue, Self.noReply) }
      return false
    case .edit(let reference, _):
      guard refused.contains(reference.key) else { return false }
      lose(kind.name, entry.about?.rawValue, Self.refusedMessage)
    case .reaction(let reference, _, _, _), .read(let reference, _, _):
      guard refused.contains(reference.key) else { return false }
      lose(kind.name, entry.about?.rawValue, Self.noMessage)
    case .delete(let reference, _): return refused.contains(reference.key)
    case .join, .leave: return false
    }
    return true
  }

  // MARK: Sending

  private mutating func write(
    _ batch: [Pending]
  ) async throws(FerryError) -> [Result<Landing, FerryError>] {
    if isIndexed || !powers.isRepeatable {
      let keys = batch.filter { $0.message != nil }.map(\.item.key)
      let found = try await book.found(keys)
      if !found.isEmpty {
        var results: [Result<Landing, FerryError>] = []
        for entry in batch {
          if entry.message != nil, let landing = found[entry.item.key] {
            adopted.insert(entry.item.key)
            results.append(.success(landing))
          } else {
            results += try await send([entry])
          }
        }
        return results
      }
    }
    return try await send(batch)
  }

  private mutating func send(
    _ batch: [Pending]
  ) async throws(FerryError) -> [Result<Landing, FerryError>] {
    try await waitForTurn(batch.count)
    let isRisky = !powers.isRepeatable && batch.contains { $0.message != nil }
    if isRisky {
      outcome.sending += batch.filter { $0.message != nil }.map(\.item.key)
      try await commit()
    }
    return try await deliver(batch, without: refused, isRisky: isRisky)
  }

  /// Leaves away what names a message that was refused: written in vain, its key would be taken when that message comes
  /// another time.
  func deliver(
    _ batch: [Pending], without refused: Set<SendKey>, isRisky: Bool = false
  ) async throws(FerryError) -> [Result<Landing, FerryError>] {
    let left = batch.map { refused.isEmpty ? $0 : $0.without(refused) }
    let kept = left.compactMap(\.self)
    if kept.isEmpty { return batch.map { _ in .success(.there(nil)) } }
    var results = try await deliver(kept, isRisky: isRisky)[...]
    return left.map { $0 == nil ? .success(.there(nil)) : results.removeFirst() }
  }

  /// Sends until it is known what became of each. Where the outcome is in doubt and the destination would double it, it
  /// is asked: `isRisky`, of one item.
  func deliver(
    _ batch: [Pending], isRisky: Bool = false
  ) async throws(FerryError) -> [Result<Landing, FerryError>] {
    var batch = batch
    var hasUploadedAgain = false
    var trouble = Patience.Trouble(at: patience.clock.now())
    let (provider, channel) = (provider, channel)
    while true {
      let items = batch.map(\.item)
      let attempt = await Patience.outcome { () async throws(FerryError) in
        try await provider.write(items, into: channel)
      }
      switch attempt {
      case .success(let ids): return batch.indices.map { .success(.there(ids.indices.contains($0) ? ids[$0] : nil)) }
      case .failure(var error):
        if error.code == .cancelled || error.code == .badCredentials { throw error }
        if isRisky, !error.didNotAct {
          if let landing = try await settle(batch[0].item.key) { return [.success(landing)] }
          // Certainly not there: the same again.
          error.retry = error.retry == .never ? .now : error.retry
        }
        if error.code == .notFound, !hasUploadedAgain {
          hasUploadedAgain = true
          if try await uploadAgain(&batch) { continue }
        }
        if error.retry == .never {
          guard batch.count > 1 else { return [.failure(error)] }
          var results: [Result<Landing, FerryError>] = []
          var refused: Set<SendKey> = []
          for entry in batch {
            let result = try await deliver([entry], without: refused)
            if entry.message != nil, case .failure? = result.first { refused.insert(entry.item.key) }
            results += result
          }
          return results
        }
        try await patience.pause(after: error, &trouble)
      }
    }
  }

  /// A service that keeps a file for a while has forgotten it. False when that was not it, or the files are not to be had.
  private func uploadAgain(_ batch: inout [Pending]) async throws(FerryError) -> Bool {
    var isChanged = false
    for index in batch.indices where !batch[index].files.isEmpty {
      var sent: [OutgoingAttachment] = []
      for file in batch[index].files {
        switch await Patience.outcome({ () async throws(FerryError) in try await upload(file) }) {
        case .success(.some(let again)): sent.append(again)
        case .success(nil): return false
        case .failure(let error):
          if [.cancelled, .storage, .badCredentials].contains(error.code) { throw error }
          return false
        }
      }
      guard batch[index].item.kind.carry(sent) else { continue }
      isChanged = true
    }
    return isChanged
  }

  private mutating func waitForTurn(_ items: Int) async throws(FerryError) {
    guard let rate = settings.rate, rate > 0 else { return }
    let now = patience.clock.now()
    let turn = max(nextTurn, now)
    nextTurn = turn.advanced(by: .milliseconds(Int64((Double(items) * 1000 / rate).rounded())))
    guard turn > now else { return }
    let wait = Duration.milliseconds(turn.milliseconds - now.milliseconds)
    do { try await patience.clock.sleep(for: wait) } catch { throw .cancelled(didNotAct: true) }
  }

  // MARK: Unknown outcomes

  private static let unknownOutcome = "not known whether it was written"

  /// What became of sends that a run before this one did not see the end of.
  mutating func settleInterrupted() async throws(FerryError) {
    for key in try await book.sending() {
      if let landing = try await settle(key) { outcome.found.append((key, landing)) }
      outcome.settled.append(key)
      try await commit()
    }
  }

  /// What became of the message written under a key; nil when it certainly was not. Where nobody can tell it is not
  /// written again, and reported.
  private func settle(_ key: SendKey) async throws(FerryError) -> Landing? {
    // Asked too early, the service would say no and then act.
    let delay = Duration.seconds(provider.capabilities.settleSeconds)
    if delay > .zero {
      do { try await patience.clock.sleep(for: delay) } catch { throw .cancelled() }
    }
    let (provider, channel) = (provider, channel)
    let finding = try await patience.repeating { () async throws(FerryError) in
      try await provider.find(key, in: channel)
    }
    switch finding {
    case .found(let id): return .there(id)
    case .absent: return nil
    case .unknown(let reason):
      lose("message", key.rawValue, Self.unknownOutcome, reason)
      return .unknown
    }
  }

  /// Looks at what the destination holds already, in case an earlier run's book was lost, or a bridge has been at work:
  /// all of it the first time, then back to what is known.
  mutating func indexDestination() async throws(FerryError) {
    guard let history = provider as? any HistoryProvider, provider.capabilities.history != .none else { return }
    let before = try await book.fact("indexed").flatMap { Int($0) }
    var count = before ?? 0
    let channel = channel
    var cursor: Cursor?
    repeat {
      let after = cursor
      let result = await Patience.outcome { () async throws(FerryError) in
        try await patience.repeating { () async throws(FerryError) in
          try await history.history(of: channel, order: .newestFirst, after: after, limit: 500)
        }
      }
      // Nothing is there yet.
      if case .failure(let error) = result, error.code == .notFound { break }
      let page = try result.get()
      var found: [(SendKey, MessageID)] = []
      var isNews = false
      for message in page.messages {
        guard let stamp = message.stamp else { continue }
        let key = Stamp(bridge: ImportStamps.bridge, origin: stamp.origin, id: stamp.id, part: stamp.part).key
        // What imports wrote is in the book, when there is one.
        guard before == nil || stamp.bridge != ImportStamps.bridge else { continue }
        found.append((key, message.id))
      }
      if !found.isEmpty {
        // One whose outcome nobody could tell is news once it is seen.
        let known = try await book.found(found.map(\.0)).filter { $0.value != .unknown }
        isNews = known.count < found.count
        count += found.count - known.count
        try await book.note(found: found)
      }
      if before != nil, !isNews { break }
      cursor = page.next
    } while cursor != nil
    isIndexed = count > 0
    if !settings.isPlan { try await book.setFact("indexed", to: String(count)) }
  }

  // MARK: Members

  /// Makes members those who are, where coming and going is not kept.
  mutating func applyMembers() async throws(FerryError) {
    try await commit()
    guard !settings.isPlan, provider.capabilities.members, let members = provider as? any MembershipProvider else {
      return
    }
    let channel = channel
    for (member, isPresent) in try await book.members() {
      let key = ImportStamps.key("member", [member.id.rawValue, isPresent ? "in" : "out"], from: settings.source)
      guard try await book.done([key]).isEmpty else { continue }
      let other = ImportStamps.key("member", [member.id.rawValue, isPresent ? "out" : "in"], from: settings.source)
      // Nobody is made to leave who was not made to join.
      if !isPresent, try await book.done([other]).isEmpty { continue }
      try await waitForTurn(1)
      let membership = Membership(
        member: member, stamp: Stamp(bridge: ImportStamps.bridge, origin: settings.source, id: MessageID(key.rawValue)))
      let result = await Patience.outcome { () async throws(FerryError) in
        try await patience.repeating { () async throws(FerryError) in
          try await members.setMember(membership, of: channel, present: isPresent)
        }
      }
      switch result {
      case .success: progress.update { $0.others += 1 }
      case .failure(let error):
        guard error.retry == .never, error.code != .badCredentials else { throw error }
        lose("member", member.id.rawValue, "refused: \(error.code.label)", error.message)
      }
      outcome.done.append(key)
      try await commit()
    }
  }
}
