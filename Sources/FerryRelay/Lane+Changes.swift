import FerryCore
import FerryRuntime
import FerryStorage

/// Edits, deletes, members, reads and reactions: what changes something that is already there.
extension Lane {
  func edit(_ message: Message, _ delivery: Delivery) async throws(FerryError) {
    let links = try await journal.links(id.bridge, delivery.source, message.id, to: id.destination)
    guard !links.isEmpty else { return try await journal.park(delivery) }
    let live = links.filter { !$0.isDeleted }
    let isStale = message.revision > 0 && live.allSatisfy { $0.revision >= message.revision }
    guard !live.isEmpty, !isStale else { return try await settle(delivery) }
    guard provider.capabilities.edits, let editing = provider as? any EditingProvider else {
      let text = renderer.body(message, from: delivery.source)
      return try await note("(edited) \(text)", renderer.bridge.editFallback, message.author, delivery)
    }
    let known = Set(live.map(\.part))
    let parts = try await renderer.parts(of: message, from: delivery.source, known: known, isEdit: true)
    if let new = parts.first(where: { !known.contains($0.number) })?.message { try await prepare(new) }
    try await mark(delivery)
    // The revision is stored once all parts have it: until then the edit is not done, whatever interrupts it.
    var done: [Link] = []
    for part in parts {
      let old = live.first { $0.part == part.number }
      if let old, let outgoing = part.message {
        Failpoint.beforeEdit.pass()
        try await edit(old.copy, to: outgoing, with: editing)
        Failpoint.afterEdit.pass()
      } else if let outgoing = part.message {
        let copy = try await postOrFind(outgoing, mayHaveBeenSent: delivery.state == .sending)
        Failpoint.afterPart.pass()
        try await journal.store([revised(link(delivery, copy: copy, part: part.number), message.revision)])
        Failpoint.betweenParts.pass()
      }
      if let old { done.append(revised(old, message.revision)) }
    }
    for old in live where !parts.contains(where: { $0.number == old.part }) {
      try await delete(old, by: message.author, delivery)
      done.append(revised(old, message.revision, isDeleted: true))
    }
    count(1)
    wake(try await journal.advance(settled: [settlement(of: delivery, links: done)]))
  }

  private func edit(
    _ copy: MessageID, to part: OutgoingMessage, with editing: any EditingProvider
  ) async throws(FerryError) {
    do throws(FerryError) {
      try await reach(isWriting: true) { () async throws(FerryError) in
        try await editing.edit(copy, in: id.destination.channel, to: part)
      }
    } catch {
      // Somebody at the destination deleted the copy: there is nothing left to edit.
      guard error.code == .notFound else { throw error }
    }
  }

  func delete(_ deletion: Deletion, _ delivery: Delivery) async throws(FerryError) {
    let links = try await journal.links(id.bridge, delivery.source, deletion.id, to: id.destination)
    guard !links.isEmpty else { return try await journal.park(delivery) }
    guard provider.capabilities.deletes, provider is any DeletingProvider else {
      let by = deletion.by ?? Author(id: "ferry", name: "Ferry")
      return try await note("(a message was deleted)", renderer.bridge.deleteFallback, by, delivery)
    }
    Failpoint.beforeDelete.pass()
    for link in links where !link.isDeleted { try await delete(link, by: deletion.by, delivery) }
    Failpoint.afterDelete.pass()
    count(1)
    wake(
      try await journal.advance(
        settled: [settlement(of: delivery, links: links.map { revised($0, $0.revision, isDeleted: true) })]))
  }

  private func delete(_ link: Link, by author: Author?, _ delivery: Delivery) async throws(FerryError) {
    guard let deleting = provider as? any DeletingProvider else { return }
    let author = try await shown(author, delivery)
    let stamp = renderer.stamp(of: link.origin, from: delivery.source, revision: link.revision, part: link.part)
    do throws(FerryError) {
      try await reach(isWriting: true) { () async throws(FerryError) in
        try await deleting.delete(link.copy, in: id.destination.channel, as: author, stamp: stamp)
      }
    } catch {
      guard error.code == .notFound else { throw error }
    }
  }

  private func shown(_ author: Author?, _ delivery: Delivery) async throws(FerryError) -> Author? {
    guard let author else { return nil }
    return try await renderer.author(author, at: delivery.source)
  }

  private func revised(_ link: Link, _ revision: Int, isDeleted: Bool = false) -> Link {
    var link = link
    link.revision = revision
    link.isDeleted = isDeleted
    return link
  }

  /// A correction in place of a change that the destination cannot make.
  private func note(
    _ text: String, _ fallback: Bridge.Fallback, _ author: Author, _ delivery: Delivery
  ) async throws(FerryError) {
    metrics.add(to: "ferry_fallbacks_total", ["lane": id.description, "kind": delivery.event.kindName])
    if fallback == .note {
      let message = try await renderer.note(text, by: author, about: delivery.event, from: delivery.source)
      try await prepare(message)
      try await mark(delivery)
      _ = try await postOrFind(message, mayHaveBeenSent: delivery.state == .sending)
      count(1)
    }
    try await settle(delivery)
  }

  func setMember(_ membership: Membership, _ present: Bool, _ delivery: Delivery) async throws(FerryError) {
    if provider.capabilities.members, let keeping = provider as? any MembershipProvider {
      let copy = Membership(
        member: try await renderer.author(membership.member, at: delivery.source),
        stamp: Stamp(bridge: id.bridge, origin: delivery.source, id: MessageID(delivery.event.key.rawValue)))
      try await mark(delivery)
      try await reach(isWriting: true) { () async throws(FerryError) in
        try await keeping.setMember(copy, of: id.destination.channel, present: present)
      }
      Failpoint.afterChange.pass()
      count(1)
    }
    try await settle(delivery)
  }

  func read(_ mark: ReadMark, _ delivery: Delivery) async throws(FerryError) {
    if provider.capabilities.reads, let reading = provider as? any ReadingProvider {
      guard let upTo = try await journal.translate(mark.upTo, at: delivery.source, to: id.destination) else {
        return try await journal.park(delivery)
      }
      let copy = ReadMark(
        upTo: upTo, by: try await shown(mark.by, delivery), state: mark.state,
        stamp: renderer.stamp(of: mark.upTo, from: delivery.source))
      try await reach(isWriting: true) { () async throws(FerryError) in
        try await reading.mark(copy, in: id.destination.channel)
      }
      Failpoint.afterChange.pass()
      count(1)
    }
    try await settle(delivery)
  }

  func react(_ reaction: Reaction, _ delivery: Delivery) async throws(FerryError) {
    if provider.capabilities.reactions, let reacting = provider as? any ReactingProvider {
      guard let message = try await journal.translate(reaction.message, at: delivery.source, to: id.destination) else {
        return try await journal.park(delivery)
      }
      let copy = Reaction(
        message: message, by: try await renderer.author(reaction.by, at: delivery.source), emoji: reaction.emoji,
        added: reaction.added, stamp: renderer.stamp(of: reaction.message, from: delivery.source))
      try await mark(delivery)
      try await reach(isWriting: true) { () async throws(FerryError) in
        try await reacting.react(copy, in: id.destination.channel)
      }
      Failpoint.afterChange.pass()
      count(1)
    }
    try await settle(delivery)
  }

  /// Before a change is sent: one that is broken off by the end of the relay may arrive late, and the next start waits
  /// for that before it sends what came after it.
  private func mark(_ delivery: Delivery) async throws(FerryError) {
    try await journal.advance(settled: [], sending: [delivery.id])
  }

  private func settle(_ delivery: Delivery) async throws(FerryError) {
    try await journal.advance(settled: [settlement(of: delivery)])
  }
}
