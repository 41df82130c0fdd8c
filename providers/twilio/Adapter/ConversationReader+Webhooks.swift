import FerryCore
import FerryRuntime

/// Webhooks that are accepted together, and who waits for that.
struct WebhookBatch {
  var events: [Event] = []
  var answers: [BoundedChannel<Bool>] = []
}

extension ConversationReader {
  /// Makes events of a webhook, or finds that it is no news. Asks the service where that must decide; when it cannot,
  /// the webhook is refused, and the next poll finds what it meant.
  mutating func take(
    _ event: WebhookEvent, _ answer: BoundedChannel<Bool>, into batch: inout WebhookBatch
  ) async throws(FerryError) {
    do throws(FerryError) {
      try await take(event, into: &batch)
      batch.answers.append(answer)
    } catch {
      _ = answer.offer(false)
      if Task.isCancelled { throw .cancelled() }
      if error.code == .notFound || error.code == .badCredentials { throw error }
      adapter.logger.info("\(channel): a webhook is left to the next poll: \(error)")
    }
  }

  private mutating func take(_ event: WebhookEvent, into batch: inout WebhookBatch) async throws(FerryError) {
    switch event {
    case .added(let message):
      switch state.arrival(of: message, isListed: false) {
      case .new, .late:
        state.take(message)
        batch.events.append(await posted(message))
      case .gap:
        try await flush(&batch)
        try await look()
        // A list that lags behind the webhook does not have it yet.
        guard state.arrival(of: message, isListed: true) != .known else { return }
        state.take(message)
        batch.events.append(await posted(message))
      case .known: break
      }
    case .updated(let message): try await edit(message, into: &batch)
    case .removed(let message, let time):
      if message.index > state.place.index {
        // It was never accepted, so there is nothing to delete; but others before it may be missing.
        try await flush(&batch)
        try await look()
        guard message.index <= state.place.index else { return }
      }
      batch.events.append(deleted(message.sid, at: time, stampOfMessage: message.ferry?.stamp))
    case .joined(let participant):
      if state.joined(participant), let event = await joined(participant) { batch.events.append(event) }
    case .left(let participant):
      if state.left(participant), let event = await left(participant) { batch.events.append(event) }
    case .participantChanged(let participant):
      guard state.isAhead(participant) else { return }
      if let event = try await read(participant) { batch.events.append(event) }
      state.read(participant)
    case .delivery(let receipt):
      if let event = await mark(receipt) { batch.events.append(event) }
    case .conversationChanged:
      try await flush(&batch)
      _ = try await adapter.resolve(channel)
    case .userChanged: break
    }
  }

  private mutating func edit(_ message: ListedMessage, into batch: inout WebhookBatch) async throws(FerryError) {
    switch state.edit(message) {
    case .none: break
    case .news(let revision): batch.events.append(await edited(message, revision: revision))
    case .gap:
      // The list has the message as it reads now.
      try await flush(&batch)
      try await look()
    case .unsure:
      let url = adapter.messageURL(conversation, message.sid)
      do throws(FerryError) {
        let now = try await api.get(url, doing: "look at an edited message")
        guard let listed = ListedMessage(json: now), ConversationState.same(listed.body, message.body) else {
          // There is a newer one, which is announced too, or found by the next poll.
          return
        }
      } catch {
        guard error.code == .notFound else { throw error }
        return
      }
      let revision = state.confirm(message)
      batch.events.append(await edited(message, revision: revision))
    }
  }

  /// Hands on what has gathered and answers the webhooks. When the inbox does not take it at once, they are refused, and
  /// it is offered for as long as it takes all the same.
  func flush(_ batch: inout WebhookBatch) async throws(FerryError) {
    let (events, answers) = (batch.events, batch.answers)
    batch = WebhookBatch()
    if events.isEmpty {
      for answer in answers { _ = answer.offer(true) }
      return
    }
    do throws(FerryError) {
      try await inbox.accept(events)
      for answer in answers { _ = answer.offer(true) }
    } catch {
      for answer in answers { _ = answer.offer(false) }
      if Task.isCancelled { throw .cancelled() }
      adapter.logger.warning("\(channel): events could not be stored, again soon: \(error)")
      try await accept(events)
    }
  }
}
