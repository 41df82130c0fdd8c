package import FerryCore
import FerryRuntime
package import FerryTransport

extension TwilioAdapter {
  /// One call of `run`: where webhooks find those who read their conversations.
  struct Run: Sendable {
    let doors: [ConversationDoor]

    func door(of conversation: String) -> ConversationDoor? {
      doors.first { door in door.conversation.withLock { $0 == conversation } }
    }

    /// Whether every conversation's SID is known, so that one not found is not ours.
    var isComplete: Bool { doors.allSatisfy { door in door.conversation.withLock { $0 != nil } } }
  }

  package func run(_ subscriptions: [Subscription], into inbox: any Inbox) async throws(FerryError) {
    let board = StatusBoard(subscriptions.map(\.channel), inbox: inbox)
    let doors = subscriptions.map { ConversationDoor(channel: $0.channel) }
    current.withLock { $0 = Run(doors: doors) }
    defer { current.withLock { $0 = nil } }
    do {
      try await withThrowingTaskGroup(of: Void.self) { group in
        defer { group.cancelAll() }
        for (subscription, door) in zip(subscriptions, doors) {
          group.addTask {
            try await ConversationReader.run(subscription, adapter: self, inbox: inbox, door: door, board: board)
          }
        }
        if let realtime { group.addTask { await realtime.run(self, doors, into: inbox) } }
        // Also where there is nothing to read: `run` lasts until it is cancelled.
        group.addTask { await self.untilCancelled() }
        for try await _ in group {}
      }
    } catch {
      let failure = FerryError.wrap(error)
      if Task.isCancelled || failure.code == .cancelled {
        inbox.connection(ConnectionState(.stopped))
        return
      }
      let phase: ConnectionState.Phase = failure.code == .badCredentials ? .badCredentials : .stopped
      inbox.connection(ConnectionState(phase, reason: failure.message))
      throw failure
    }
    inbox.connection(ConnectionState(.stopped))
  }

  private func untilCancelled() async {
    while (try? await clock.sleep(for: .seconds(3600))) != nil {}
  }
}

extension TwilioAdapter: WebhookReceiver {
  /// The longest body that is read: 32 KB of text, every byte escaped, and attributes.
  private static let bodyBytes = 512 << 10

  package var webhookPath: String? {
    guard let address = settings.webhook, let slashes = address.firstRange(of: "://") else { return nil }
    let path = address[slashes.upperBound...].drop { $0 != "/" && $0 != "?" }.prefix { $0 != "?" && $0 != "#" }
    return "/" + path.split(separator: "/").map { PercentEncoding.decode($0) }.joined(separator: "/")
  }

  package func webhook(_ request: HTTPRequest) async -> HTTPResponse {
    guard let address = settings.webhook, let token = settings.authToken else {
      return .text("No webhook is configured for this account.\n", status: 404)
    }
    guard request.method == "POST" || request.method == "GET" else {
      return HTTPResponse(status: 405, headers: ["Allow": "GET, POST"])
    }
    var form = Form(decoding: Array(request.rawQuery.utf8))
    var signed: Form = []
    if request.method == "POST" {
      guard let body = try? await request.body.collect(upTo: Self.bodyBytes) else {
        return .text("The body is too long or was cut off.\n", status: 413)
      }
      form = Form(decoding: body)
      signed = form
    }
    // What is signed is the address as Twilio was told it, and the query as it came: nothing is put together anew.
    let path = address.prefix { $0 != "?" && $0 != "#" }
    let url = request.rawQuery.isEmpty ? String(path) : "\(path)?\(request.rawQuery)"
    let signature = WebhookSignature(authToken: token, sharedKeys: settings.signatureKeys)
    guard signature.isValid(url: url, form: signed.fields, headers: request.headers) else {
      logger.notice("a webhook with a wrong signature was refused; is webhook exactly the URL that Twilio was given?")
      return .text("The signature is wrong.\n", status: 403)
    }
    return await accepted(form)
  }

  private func accepted(_ form: Form) async -> HTTPResponse {
    guard let run = current.withLock({ $0 }) else { return Self.later }
    isCalled.withLock { $0 = true }
    guard let event = WebhookEvent(form) else { return Self.done }
    if case .userChanged(let identity) = event {
      names.mayHaveChanged(identity)
      return Self.done
    }
    guard let door = run.door(of: form["ConversationSid"] ?? "") else {
      // An account's webhook tells of all its conversations.
      return run.isComplete ? Self.done : Self.later
    }
    let answer = BoundedChannel<Bool>(capacity: 1)
    guard case .queued = door.queue.offer(.webhook(event, answer: answer)) else { return Self.later }
    let isAccepted = await withTaskGroup(of: Bool?.self) { group in
      group.addTask { await answer.next() }
      group.addTask {
        try? await self.clock.sleep(for: self.settings.answerTime)
        return nil
      }
      defer { group.cancelAll() }
      return await group.next() ?? nil
    }
    return isAccepted == true ? Self.done : Self.later
  }

  /// Without a body: to a hook before an action that lets it pass as it is.
  private static let done = HTTPResponse(status: 200)
  private static let later = HTTPResponse(status: 503, headers: ["Retry-After": "1"])
}
