import FerryCore
import FerryRuntime

extension Importer {
  /// Stamps that were met in this run's page already.
  struct Repeats: Sendable {
    var taken: Set<Stamp> = []
    /// How often the same happened at one time, so that each has a key of its own.
    var time: Timestamp?
    var counts: [String: Int] = [:]
  }

  // MARK: Messages

  mutating func take(_ record: MessageRecord) async throws(FerryError) {
    let id = record.message.id
    if record.isDeleted {
      // What is left of it is no text to write; what was written of it before goes.
      if known[id] != nil { try await takeDeletion(of: id, by: nil, at: nil) }
      return
    }
    let isNew = known[id] == nil
    if isNew { try await takeNew(record) } else { try await takeChange(record) }
    // Also of a known one: its writing may have been the last thing that a run before this one did.
    takeTallies(record, isNew: isNew)
  }

  mutating func takeEdit(_ record: MessageRecord) async throws(FerryError) {
    // The message itself may have been left out, or lie before what was asked for.
    guard known[record.message.id] != nil else {
      // Nothing is written, so nothing is known.
      if settings.isPlan { return progress.update { $0.edits += 1 } }
      return try await takeNew(record)
    }
    try await takeChange(record)
  }

  private mutating func takeNew(_ record: MessageRecord) async throws(FerryError) {
    let message = record.message
    if message.author.isNobody { lose("author", message.id.rawValue, "nobody is named", "written as \"unknown\"") }
    if order.movesBack(message.time), powers.sortsByTime {
      lose("order", message.id.rawValue, "older than what came before it; the destination sorts by time")
    }
    var brought: Stamp?
    var fitted: [FittedPart]
    var stamp = ImportStamps.own(message.id, from: settings.source)
    if let candidate = ImportStamps.brought(record, from: settings.source),
      !repeats.taken.contains(candidate)
    {
      brought = candidate
      stamp = candidate
    }
    fitted = try await fit(record, known: [])
    if fitted.count > 1, stamp.part != 0 {
      // A part that is split further would share its numbers with its neighbours.
      brought = nil
      stamp = ImportStamps.own(message.id, from: settings.source)
    }
    if let brought { repeats.taken.insert(brought) }
    known[message.id] = Copy(
      hash: ImportStamps.hash(record), time: message.time, revision: message.revision,
      parts: fitted.map { Copy.Part(number: $0.number, id: nil) }, stamp: brought)
    for (index, part) in fitted.enumerated() {
      let stamp = ImportStamps.part(part.number, of: stamp)
      try await add(
        Pending(
          item: PastItem(key: stamp.key, time: message.time, kind: .message(part.message), stamp: stamp),
          files: part.files, message: message.id, part: index, isLast: index == fitted.count - 1))
    }
  }

  /// The source has told of the message before.
  private mutating func takeChange(_ record: MessageRecord) async throws(FerryError) {
    let message = record.message
    guard var copy = known[message.id] else { return }
    let hash = ImportStamps.hash(record)
    guard !copy.isDeleted, message.revision >= copy.revision, hash != copy.hash else {
      progress.update { $0.unchanged += 1 }
      return
    }
    guard provider.capabilities.edits else { return lose("edit", message.id.rawValue, "the destination has no edits") }
    let stamp = copy.stamp ?? ImportStamps.own(message.id, from: settings.source)
    let time = message.edited ?? message.time
    let fitted = try await fit(record, known: Set(copy.parts.map(\.number)))
    try await settle(message.id, before: fitted.count + copy.parts.count)
    guard let settled = known[message.id] else {
      return lose("edit", message.id.rawValue, Self.refusedMessage)
    }
    copy = settled
    var parts: [Copy.Part] = []
    let old = copy.parts
    let numbers = Set(fitted.map(\.number))
    let revision = String(message.revision)
    for part in fitted {
      let stamp = ImportStamps.part(part.number, of: stamp)
      if let existing = old.first(where: { $0.number == part.number }) {
        parts.append(existing)
        // A file in a message of its own is the same file as long as it has the same number.
        guard part.isText else { continue }
        guard canName(existing) else {
          lose("edit", message.id.rawValue, "not known whether its message was written")
          continue
        }
        let key = ImportStamps.key(
          "edit", [message.id.rawValue, revision, "\(part.number)", "\(hash)"], from: settings.source)
        var past = part.message
        past.edited = time
        let reference = PastReference(key: stamp.key, id: existing.id)
        try await add(
          Pending(
            item: PastItem(key: key, time: time, kind: .edit(reference, past), stamp: stamp), files: part.files,
            about: message.id))
      } else {
        parts.append(Copy.Part(number: part.number, id: nil))
        known[message.id]?.parts = parts
        try await add(
          Pending(
            item: PastItem(key: stamp.key, time: message.time, kind: .message(part.message), stamp: stamp),
            files: part.files, message: message.id, part: parts.count - 1, isLast: true))
        try await flush()
        parts = known[message.id]?.parts ?? parts
      }
    }
    for gone in old where !numbers.contains(gone.number) && canName(gone) {
      let stamp = ImportStamps.part(gone.number, of: stamp)
      let key = ImportStamps.key("delete", [message.id.rawValue, revision, "\(gone.number)"], from: settings.source)
      let reference = PastReference(key: stamp.key, id: gone.id)
      try await add(Pending(item: PastItem(key: key, time: time, kind: .delete(reference, by: nil), stamp: stamp)))
    }
    copy.parts = parts
    copy.hash = hash
    copy.revision = message.revision
    known[message.id] = copy
    outcome.copies.append((message.id, copy))
    progress.update { $0.edits += 1 }
  }

  mutating func takeDeletion(of id: MessageID, by author: Author?, at time: Timestamp?) async throws(FerryError) {
    guard var copy = known[id] else {
      // Nothing was written of it, so nothing is to be taken back; a plan writes nothing, and cannot tell.
      if settings.isPlan { progress.update { $0.deletes += 1 } }
      return
    }
    guard !copy.isDeleted else { return progress.update { $0.unchanged += 1 } }
    guard provider.capabilities.deletes else { return lose("delete", id.rawValue, "the destination has no deletions") }
    try await settle(id, before: copy.parts.count)
    // Refused meanwhile, so there is nothing to take back.
    guard let settled = known[id] else { return }
    copy = settled
    let stamp = copy.stamp ?? ImportStamps.own(id, from: settings.source)
    for part in copy.parts where canName(part) {
      let stamp = ImportStamps.part(part.number, of: stamp)
      let key = ImportStamps.key("delete", [id.rawValue, "\(part.number)"], from: settings.source)
      let item = PastItem(
        key: key, time: time ?? lastTime ?? copy.time,
        kind: .delete(PastReference(key: stamp.key, id: part.id), by: author.map { self.author($0) }), stamp: stamp)
      try await add(Pending(item: item))
    }
    copy = known[id] ?? copy
    copy.isDeleted = true
    known[id] = copy
    outcome.copies.append((id, copy))
    progress.update { $0.deletes += 1 }
  }

  // MARK: Others

  /// The key of what is no message; nil of messages and of what is not written.
  mutating func key(of record: Record) -> SendKey? {
    switch record {
    case .join(let membership): key("join", membership.member.id, membership.time)
    case .leave(let membership): key("leave", membership.member.id, membership.time)
    case .reaction(let reaction):
      key(
        reaction.reaction.added ? "react" : "unreact", reaction.reaction.by.id, reaction.time,
        reaction.reaction.message.rawValue, reaction.reaction.emoji)
    case .read(let mark):
      key("read", mark.mark.by?.id ?? "", mark.time, mark.mark.upTo.rawValue, mark.mark.state.rawValue)
    default: nil
    }
  }

  private mutating func key(_ kind: String, _ user: UserID, _ time: Timestamp?, _ more: String...) -> SendKey {
    if repeats.time != time {
      repeats.time = time
      repeats.counts = [:]
    }
    let words = [user.rawValue, time.map { String($0.milliseconds) } ?? "-"] + more
    let count = repeats.counts[([kind] + words).joined(separator: "|"), default: 0]
    repeats.counts[([kind] + words).joined(separator: "|")] = count + 1
    return ImportStamps.key(kind, words + (count == 0 ? [] : [String(count)]), from: settings.source)
  }

  mutating func takeMembership(_ record: MembershipRecord, isPresent: Bool, _ key: SendKey?) {
    guard let key, !done.contains(key) else { return progress.update { $0.unchanged += 1 } }
    let member = author(record.member)
    guard powers.joins else {
      let capabilities = provider.capabilities
      if capabilities.members { outcome.members.append((member.id, member.name, isPresent)) }
      lose(
        isPresent ? "join" : "leave", member.id.rawValue,
        capabilities.members
          ? "the destination keeps only who is a member" : capabilities.absent["members"] ?? "not kept there")
      outcome.done.append(key)
      return
    }
    let time = record.time ?? lastTime ?? Timestamp(milliseconds: 0)
    pending.append(
      Pending(item: PastItem(key: key, time: time, kind: isPresent ? .join(member) : .leave(member), stamp: other(key)))
    )
  }

  mutating func takeReaction(_ record: ReactionRecord, _ key: SendKey?) {
    guard let key, !done.contains(key) else { return progress.update { $0.unchanged += 1 } }
    let reaction = record.reaction
    guard powers.reactions else {
      return lose("reaction", reaction.message.rawValue, provider.capabilities.absent["reactions"] ?? "not kept there")
    }
    guard let reference = reference(to: reaction.message) else {
      return lose("reaction", reaction.message.rawValue, Self.noMessage)
    }
    let emoji = reaction.emoji + (record.tone.map { "::skin-tone-\($0)" } ?? "")
    let kind = PastItem.Kind.reaction(reference, by: author(reaction.by), emoji: emoji, added: reaction.added)
    let time = record.time ?? lastTime ?? Timestamp(milliseconds: 0)
    pending.append(
      Pending(item: PastItem(key: key, time: time, kind: kind, stamp: other(key)), about: reaction.message))
  }

  /// Reactions that a message brings counted.
  private mutating func takeTallies(_ record: MessageRecord, isNew: Bool) {
    for tally in record.reactions {
      guard powers.reactions else {
        guard isNew else { continue }
        lose("reaction", record.message.id.rawValue, provider.capabilities.absent["reactions"] ?? "not kept there")
        continue
      }
      if isNew, tally.count > tally.users.count {
        lose("reaction", record.message.id.rawValue, "the source does not say by whom")
      }
      guard let reference = reference(to: record.message.id) else { continue }
      for (user, key) in zip(tally.users, tallyKeys(tally, record)) where done.insert(key).inserted {
        let by = author(Author(id: user, name: user.rawValue))
        let kind = PastItem.Kind.reaction(reference, by: by, emoji: tally.emoji, added: true)
        pending.append(
          Pending(
            item: PastItem(key: key, time: record.message.time, kind: kind, stamp: other(key)),
            about: record.message.id))
      }
    }
  }

  /// The keys of the reactions that a message brings, one for each of their users.
  func tallyKeys(_ tally: ReactionTally, _ record: MessageRecord) -> [SendKey] {
    tally.users.map { user in
      ImportStamps.key("react", [user.rawValue, record.message.id.rawValue, tally.emoji], from: settings.source)
    }
  }

  mutating func takeRead(_ record: ReadRecord, _ key: SendKey?) {
    guard let key, !done.contains(key) else { return progress.update { $0.unchanged += 1 } }
    guard powers.reads else {
      return lose("read", record.mark.upTo.rawValue, "read marks of the past are not kept there")
    }
    guard let reference = reference(to: record.mark.upTo) else {
      return lose("read", record.mark.upTo.rawValue, Self.noMessage)
    }
    let kind = PastItem.Kind.read(reference, by: record.mark.by.map { author($0) }, state: record.mark.state)
    let time = record.time ?? lastTime ?? Timestamp(milliseconds: 0)
    pending.append(
      Pending(item: PastItem(key: key, time: time, kind: kind, stamp: other(key)), about: record.mark.upTo))
  }

  /// Marks it as Ferry's, so that no relay mirrors it.
  private func other(_ key: SendKey) -> Stamp {
    Stamp(bridge: ImportStamps.bridge, origin: settings.source, id: MessageID(key.rawValue))
  }

  /// To the first part of a message of the source.
  func reference(to id: MessageID) -> PastReference? {
    guard let copy = known[id], !copy.isDeleted, let first = copy.parts.first, canName(first) else { return nil }
    let stamp = copy.stamp ?? ImportStamps.own(id, from: settings.source)
    return PastReference(key: ImportStamps.part(first.number, of: stamp).key, id: first.id)
  }

  /// Not where it is not known whether the part was written, and only its id would do.
  private func canName(_ part: Copy.Part) -> Bool { part.id != nil || !needsIDs || settings.isPlan }
}

extension ReactionTally {
  fileprivate var emoji: String { key + (tone.map { "::skin-tone-\($0)" } ?? "") }
}
