import FerryCore
import FerryRuntime
import FerryStorage

/// The ordered queue of deliveries to one address of one bridge.
///
/// One send is under way at a time. What is being sent is marked in the journal before and settled after, both in one
/// commit with the neighbours' marks; after a restart, or when a send's outcome is unknown, the provider is asked
/// (`find`) before anything is repeated.
struct Lane: Sendable {
  let id: LaneID
  let renderer: Renderer
  let provider: any ChatProvider
  let journal: Journal
  /// Something to deliver; finished when the lane is to end.
  let signal: BoundedChannel<Void>
  /// Finished when the lane is to end after the send it is making.
  let stop: StopSignal
  /// Of the account that it writes to: where it waits while that fails.
  let health: AccountHealth
  /// Until when it waits because of a loop; a person may end that before. Nil while it does not.
  let stopped: @Sendable () -> Timestamp?
  /// Lets other lanes look again.
  let wake: @Sendable (Set<LaneID>) -> Void
  let clock: any FerryClock
  let logger: Logger
  let metrics: Metrics

  /// Deliveries read from the journal at a time.
  private static let window = 512

  /// The lane cannot go on now; it tries again after `delay`.
  struct Pause: Error {
    let error: FerryError
  }

  /// Until cancelled or told to stop.
  func run() async {
    var backoff = Backoff(base: .milliseconds(250), limit: .seconds(30))
    while !Task.isCancelled, !stop.isStopping {
      do {
        if let end = stopped() {
          let left = Duration.milliseconds(end.milliseconds - clock.now().milliseconds)
          await stop.sleep(for: max(left, .milliseconds(1)), on: clock, or: signal)
          continue
        }
        let open = try await journal.open(id, limit: Self.window)
        if open.isEmpty {
          guard await signal.next() != nil else { return }
        } else {
          guard await health.pass(id, stop) else { return }
          defer { health.left(id) }
          try await deliver(open)
          backoff.reset()
        }
      } catch {
        let failure = (error as? Pause)?.error ?? .wrap(error)
        guard failure.code != .cancelled else { return }
        let delay = delay(after: failure, &backoff)
        if health.isSending { logger.warning("\(id) waits \(delay.milliseconds) ms: \(failure)") }
        metrics.add(to: "ferry_lane_pauses_total", ["lane": id.description, "reason": failure.code.label])
        health.pauses(id, for: delay)
        renderer.patience.waits(delay)
        await stop.sleep(for: delay, on: clock)
      }
    }
  }

  private func delay(after error: FerryError, _ backoff: inout Backoff) -> Duration {
    // While the account as a whole fails, it says when to try again.
    if !health.isSending, error.isAccounts == true { return .zero }
    let own = backoff.next()
    // Rejected credentials stay rejected until a person acts: no hurry, and no loss either.
    if error.code == .badCredentials { return max(own, .seconds(10)) }
    if case .after(let asked) = error.retry { return max(asked, .milliseconds(50)) }
    return max(own, .milliseconds(50))
  }

  // MARK: One window

  private func deliver(_ open: [Delivery]) async throws {
    var settled: [Settlement] = []
    var rest = open[...]
    let unknown = rest.prefix { $0.state == .sending }
    if !unknown.isEmpty {
      settled += try await settleUnknown(Array(unknown))
      rest = rest.dropFirst(unknown.count)
      wake(try await journal.advance(settled: settled))
      return
    }
    while let first = rest.first, !stop.isStopping, stopped() == nil {
      let batch = try await plainRun(rest)
      if batch.count > 1 {
        // A batch that was refused is still to be delivered, before anything behind it.
        guard let sent = try await sendBatch(batch, after: settled) else { return }
        settled = sent
        rest = rest.dropFirst(batch.count)
        continue
      }
      if let message = try await plainMessage(first) {
        settled = try await sendSingle(first, message, after: settled)
      } else {
        // Everything else may ask the journal about messages just sent.
        wake(try await journal.advance(settled: settled))
        settled = []
        try await deliverOne(first)
      }
      rest = rest.dropFirst()
    }
    wake(try await journal.advance(settled: settled))
  }

  private func plainMessage(_ delivery: Delivery) async throws(FerryError) -> OutgoingMessage? {
    guard delivery.attempts == 0, case .posted(let message) = delivery.event.kind else { return nil }
    return try await renderer.plain(message, from: delivery.source)
  }

  private func plainRun(
    _ deliveries: ArraySlice<Delivery>
  ) async throws(FerryError) -> [(Delivery, OutgoingMessage)] {
    guard provider is any BatchingProvider else { return [] }
    var run: [(Delivery, OutgoingMessage)] = []
    for delivery in deliveries.prefix(provider.capabilities.batch) {
      guard let message = try await plainMessage(delivery) else { break }
      run.append((delivery, message))
    }
    return run
  }

  // MARK: Sending

  /// Nil when the provider does not take the messages together.
  private func sendBatch(
    _ batch: [(Delivery, OutgoingMessage)], after settled: [Settlement]
  ) async throws -> [Settlement]? {
    guard let provider = provider as? any BatchingProvider, let last = batch.last else { return settled }
    let ids = batch.map(\.0.id)
    do throws(FerryError) { try await prepare(last.1) } catch {
      wake(try await journal.advance(settled: settled))
      try await batchFailed(ids, error)
      return nil
    }
    Failpoint.beforeMark.pass()
    wake(try await journal.advance(settled: settled, sending: ids))
    Failpoint.beforeSend.pass()
    do throws(FerryError) {
      let copies = try await reach(isWriting: true) { () async throws(FerryError) in
        try await provider.post(batch.map(\.1), to: id.destination.channel)
      }
      Failpoint.afterSend.pass()
      guard copies.count == batch.count else {
        throw FerryError(.badData, "The provider answered with too few ids.", retry: .now, didNotAct: false)
      }
      count(batch.count)
      return zip(batch, copies).map { settlement(of: $0.0, links: [link($0.0, copy: $1)]) }
    } catch {
      try await batchFailed(ids, error)
      return nil
    }
  }

  /// With attempts counted, each is sent by itself the next time: one bad message must not hold up the others. Returns
  /// when that may be at once.
  private func batchFailed(_ ids: [Int64], _ error: FerryError) async throws {
    try await journal.failed(ids, error, isSending: !error.didNotAct)
    if error.didNotAct, error.retry == .never, error.code != .badCredentials { return }
    throw Pause(error: error)
  }

  /// Before a send is marked, so that one interrupted in between was certainly not sent.
  func prepare(_ message: OutgoingMessage) async throws(FerryError) {
    guard let provider = provider as? any PreparingProvider else { return }
    try await reach { () async throws(FerryError) in
      try await provider.prepare(message.key, in: id.destination.channel)
    }
  }

  /// Everything that asks something of the destination goes through here, so that its account knows how it fares. Only
  /// writing proves that writing works: a service that answers questions may still refuse all that is sent.
  func reach<Answer>(
    isWriting: Bool = false, _ body: () async throws(FerryError) -> Answer
  ) async throws(FerryError) -> Answer {
    do throws(FerryError) {
      let answer = try await body()
      if isWriting { health.answered(id, hasActed: true) }
      return answer
    } catch {
      health.failed(id, error, isWriting: isWriting)
      throw error
    }
  }

  private func sendSingle(
    _ delivery: Delivery, _ message: OutgoingMessage, after settled: [Settlement]
  ) async throws -> [Settlement] {
    do throws(FerryError) { try await prepare(message) } catch {
      wake(try await journal.advance(settled: settled))
      try await failed(delivery, error)
      return []
    }
    Failpoint.beforeMark.pass()
    wake(try await journal.advance(settled: settled, sending: [delivery.id]))
    Failpoint.beforeSend.pass()
    do throws(FerryError) {
      let copy = try await write(message)
      Failpoint.afterSend.pass()
      count(1)
      return [settlement(of: delivery, links: [link(delivery, copy: copy)])]
    } catch {
      try await failed(delivery, error)
      return []
    }
  }

  private func deliverOne(_ delivery: Delivery) async throws {
    do throws(FerryError) {
      switch delivery.event.kind {
      case .posted(let message): try await post(message, delivery)
      case .edited(let message): try await edit(message, delivery)
      case .deleted(let deletion): try await delete(deletion, delivery)
      case .joined(let membership): try await setMember(membership, true, delivery)
      case .left(let membership): try await setMember(membership, false, delivery)
      case .read(let mark): try await read(mark, delivery)
      case .reacted(let reaction): try await react(reaction, delivery)
      }
    } catch {
      try await failed(delivery, error)
    }
  }

  /// Returns when the lane may go on with the next delivery; throws `Pause` when this one must be tried again.
  private func failed(_ delivery: Delivery, _ error: FerryError) async throws {
    if error.code == .cancelled || error.code == .storage { throw Pause(error: error) }
    if error.didNotAct, error.retry == .never, error.code != .badCredentials {
      logger.error("\(id): \(delivery.event.kindName) \(delivery.event.key) cannot be delivered: \(error)")
      metrics.add(to: "ferry_dead_letters_total", ["lane": id.description, "reason": error.code.label])
      try await journal.bury(delivery.id, error)
      return
    }
    // What an earlier attempt may have done is as unknown as before: this one may have failed at asking, or at what comes
    // before a send.
    let isSending = !error.didNotAct || delivery.state == .sending
    try await journal.failed([delivery.id], error, isSending: isSending)
    throw Pause(error: error)
  }

  /// A message in one or more parts. A part is stored as soon as it is sent, so that after a restart only the first
  /// that has no link is in doubt.
  private func post(_ message: Message, _ delivery: Delivery) async throws(FerryError) {
    let done = try await journal.links(id.bridge, delivery.source, message.id, to: id.destination)
    let known = Set(done.map(\.part))
    let parts = try await renderer.parts(of: message, from: delivery.source, known: known, isEdit: false)
    if let first = parts.first?.message { try await prepare(first) }
    try await journal.advance(settled: [], sending: [delivery.id])
    var links = done
    for part in parts where !known.contains(part.number) {
      guard let outgoing = part.message else { continue }
      let copy = try await postOrFind(outgoing, mayHaveBeenSent: delivery.state == .sending)
      Failpoint.afterPart.pass()
      let link = link(delivery, copy: copy, part: part.number)
      links.append(link)
      if links.count < parts.count {
        try await journal.store([link])
        Failpoint.betweenParts.pass()
      }
      count(1)
    }
    wake(try await journal.advance(settled: [settlement(of: delivery, links: links)]))
  }

  func postOrFind(
    _ part: OutgoingMessage, mayHaveBeenSent: Bool
  ) async throws(FerryError) -> MessageID {
    if mayHaveBeenSent {
      switch try await find(part.key) {
      case .found(let copy): return copy
      case .absent: break
      case .unknown(let reason): throw outcomeUnknown(reason)
      }
    }
    return try await write(part)
  }

  func write(_ message: OutgoingMessage) async throws(FerryError) -> MessageID {
    try await reach(isWriting: true) { () async throws(FerryError) in
      try await provider.post(message, to: id.destination.channel)
    }
  }

  func find(_ key: SendKey) async throws(FerryError) -> Finding {
    try await reach { () async throws(FerryError) in try await provider.find(key, in: id.destination.channel) }
  }

  // MARK: Unknown outcomes

  /// Asks the provider which of these sends, interrupted or unanswered, were carried out. Those that were not go
  /// back to pending.
  private func settleUnknown(_ deliveries: [Delivery]) async throws -> [Settlement] {
    if let last = deliveries.map(\.updated).max() { await waitUntilSettled(last) }
    var settled: [Settlement] = []
    var plain: [(Delivery, OutgoingMessage)] = []
    for delivery in deliveries {
      guard case .posted(let message) = delivery.event.kind,
        let outgoing = try await renderer.plain(message, from: delivery.source)
      else { break }
      plain.append((delivery, outgoing))
    }
    if plain.count == deliveries.count {
      let findings = try await find(plain.map(\.1.key))
      Failpoint.afterFind.pass()
      for ((delivery, _), finding) in zip(plain, findings) {
        switch finding {
        case .found(let copy): settled.append(settlement(of: delivery, links: [link(delivery, copy: copy)]))
        case .absent: try await journal.reopen(delivery.id)
        case .unknown(let reason): try await bury(delivery, outcomeUnknown(reason))
        }
      }
      return settled
    }
    for delivery in deliveries { try await deliverOne(delivery) }
    return []
  }

  /// A request that was broken off may still be on its way: asked too early, the provider would say no and then act.
  private func waitUntilSettled(_ sent: Timestamp) async {
    let settled = sent.advanced(by: .seconds(provider.capabilities.settleSeconds))
    let left = Duration.milliseconds(settled.milliseconds - clock.now().milliseconds)
    if left > .zero { await stop.sleep(for: min(left, .seconds(provider.capabilities.settleSeconds)), on: clock) }
  }

  private func find(_ keys: [SendKey]) async throws -> [Finding] {
    do throws(FerryError) {
      if let provider = provider as? any BatchingProvider {
        return try await reach { () async throws(FerryError) in
          try await provider.find(keys, in: id.destination.channel)
        }
      }
      var findings: [Finding] = []
      for key in keys { findings.append(try await find(key)) }
      return findings
    } catch {
      throw Pause(error: error)
    }
  }

  private func bury(_ delivery: Delivery, _ error: FerryError) async throws {
    logger.error("\(id): \(delivery.event.kindName) \(delivery.event.key): \(error)")
    metrics.add(to: "ferry_dead_letters_total", ["lane": id.description, "reason": error.code.label])
    try await journal.bury(delivery.id, error)
  }

  private func outcomeUnknown(_ reason: String) -> FerryError {
    FerryError(
      .outcomeUnknown,
      "It is not known whether this was sent: \(reason) Look at the destination, then retry or drop it.")
  }

  // MARK: Records

  func settlement(of delivery: Delivery, links: [Link] = []) -> Settlement {
    Settlement(delivery: delivery.id, links: links)
  }

  func link(_ delivery: Delivery, copy: MessageID, part: Int = 0) -> Link {
    var revision = 0
    if case .posted(let message) = delivery.event.kind { revision = message.revision }
    return Link(
      bridge: id.bridge, source: delivery.source, origin: delivery.event.message ?? "", destination: id.destination,
      copy: copy, part: part, revision: revision)
  }

  func count(_ sends: Int) { metrics.add(Double(sends), to: "ferry_sends_total", ["lane": id.description]) }
}
