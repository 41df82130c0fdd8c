import FerryChat
import FerryCore
import FerryRuntime
import FerryTransport

/// `/messaging`: publishing, what became of it, and the older way of receiving by asking again and again.
extension BackendlessFacade {
  func messaging(_ context: RequestContext) async throws(Fault) -> HTTPResponse {
    let path = context.path.filter { !$0.isEmpty }
    switch (context.request.method, path.count) {
    case ("POST", 1): return try await publish(context, to: path[0])
    case ("GET", 1):
      return .value(Self.answer(path[0], try await status(of: path[0])))
    case ("DELETE", 1):
      guard try await cancel(path[0]) else { throw .cannotCancel }
      return .value(Self.answer(path[0], "cancelled"))
    case ("DELETE", 2) where path[0] == "channels": return try await deleteChannel(path[1])
    case ("POST", 2) where path[1] == "subscribe": return try await subscribe(context, to: path[0])
    case ("GET", 2) where path[1] == "properties":
      throw .unsupported("The properties of a channel")
    case ("GET", 2): return try await poll(context, channel: path[0], subscription: path[1])
    default: throw .nothingHere
    }
  }

  private static func answer(_ id: String, _ status: String) -> JSONValue {
    ["errorMessage": .null, "messageId": .string(id), "status": .string(status)]
  }

  // MARK: Publishing

  private func publish(_ context: RequestContext, to channel: String) async throws(Fault) -> HTTPResponse {
    let publication = try Self.publication(try await context.object(), channel: channel, user: context.user)
    // Nothing but a push to devices was asked for, and there are none here.
    if publication.policy?.uppercased() != "PUSH" { try await accept(publication) }
    metrics?.add(to: "ferry_backendless_facade_published_total")
    return .value(Self.answer(publication.id, "scheduled"))
  }

  static func publication(
    _ body: [String: JSONValue], channel: String, user: UserReference?
  ) throws(Fault) -> Publication {
    guard ChannelName.isValid(channel) else {
      throw .badRequest("A channel's name has between 1 and 256 bytes and no control characters")
    }
    guard let message = body["message"], message != .null else { throw .missing("message") }
    var publication = Publication(id: Publication.newID(), channel: channel, message: message, user: user)
    publication.publisherID = body["publisherId"]?.text
    publication.subtopic = body["subtopic"]?.string
    publication.headers = Publication.headers(body["headers"])
    publication.policy = body["publishPolicy"]?.string
    publication.publishAt = try time(body["publishAt"], "publishAt")
    publication.repeatEvery = try time(body["repeatEvery"], "repeatEvery")
    publication.repeatExpiresAt = try time(body["repeatExpiresAt"], "repeatExpiresAt")
    return publication
  }

  private static func time(_ value: JSONValue?, _ name: String) throws(Fault) -> Int64 {
    switch value {
    case nil, .null?: return 0
    case .integer(let time)? where time >= 0: return time
    case .number(let time)? where time >= 0 && time < 1e15: return Int64(time)
    default: throw .badRequest("\"\(name)\" must be a number that is not negative")
    }
  }

  private func deleteChannel(_ channel: String) async throws(Fault) -> HTTPResponse {
    guard try await change({ try $0.transaction.removeRoom(ChannelID(channel)) }) else {
      throw Fault(404, 5004, "There is no channel '\(channel.prefix(100))'")
    }
    return .nothing
  }

  // MARK: Asking again and again

  /// What a subscriber asked for and how far it has come.
  private struct Poll: Codable, Sendable {
    let channel: String
    let selector: String?
    let subtopic: String?
    var position: Int64
    var used: Timestamp
  }

  /// How old a message may be.
  private static let pollWindow = Duration.seconds(60)
  private static let mostPolls = 10_000

  private func subscribe(_ context: RequestContext, to channel: String) async throws(Fault) -> HTTPResponse {
    let body = try await context.object()
    guard ChannelName.isValid(channel) else { throw .badRequest("The channel's name is not valid") }
    let selector = body["selector"]?.string
    if let selector, !selector.isEmpty {
      do throws(FerryError) { _ = try SQLCondition(selector) } catch { throw .badCondition(error.message) }
    }
    let id = GUID.new()
    let subtopic = body["subtopic"]?.string
    try await change { writer in
      let transaction = writer.transaction
      guard try transaction.count(in: Self.polls) < Self.mostPolls else {
        throw Fault(429, 429, "There are \(Self.mostPolls) subscriptions already")
      }
      let poll = Poll(
        channel: channel, selector: selector, subtopic: subtopic, position: try Self.lastPublished(transaction),
        used: transaction.now)
      try transaction.put(poll, as: id, in: Self.polls)
    }
    return .value(["subscriptionId": .string(id)])
  }

  private static func lastPublished(_ transaction: ChatTransaction) throws -> Int64 {
    try transaction.documents(in: published, DocumentQuery(order: .newestFirst, limit: 1)).first?.sequence ?? 0
  }

  private func poll(
    _ context: RequestContext, channel: String, subscription: String
  ) async throws(Fault) -> HTTPResponse {
    let appID = settings.appID
    let messages = try await change { writer in
      let transaction = writer.transaction
      guard var poll = try transaction.value(Poll.self, of: subscription, in: Self.polls), poll.channel == channel
      else { throw Fault(404, 5002, "There is no subscription '\(subscription.prefix(100))'") }
      let last = try Self.lastPublished(transaction)
      guard last > poll.position || transaction.now.milliseconds - poll.used.milliseconds > 600_000 else {
        return [JSONValue]()
      }
      let oldest = transaction.now.advanced(by: .zero - Self.pollWindow)
      let condition = try poll.selector.flatMap { $0.isEmpty ? nil : try SQLCondition($0) }
      var messages: [JSONValue] = []
      var query = DocumentQuery(
        after: poll.position, before: last + 1, limit: 100, where: ("$.publication.channel", .string(channel)))
      while true {
        let page = try transaction.documents(in: Self.published, query)
        for document in page {
          let record = try document.value(Record.self)
          let headers = record.publication.headers
          guard record.status == "published", record.time >= oldest,
            condition?.matches({ headers[$0].map(JSONValue.string) }) ?? true,
            Subtopic.matches(record.publication.subtopic, poll.subtopic)
          else { continue }
          messages.append(
            record.publication.polled(
              at: record.time, files: context.files, appID: appID, subscriber: subscription))
        }
        // The answer is bounded: what is left comes with the next.
        guard page.count == 100, messages.count < 1000 else {
          poll.position = page.count == 100 ? page.last?.sequence ?? last : last
          break
        }
        query.after = page.last?.sequence
      }
      poll.used = transaction.now
      try transaction.put(poll, as: subscription, in: Self.polls)
      return messages
    }
    return .value(["messages": .array(messages)])
  }

  /// Subscribers that have not asked for an hour.
  func prunePolls(now: Timestamp) async {
    let limit = now.advanced(by: .seconds(-3600))
    _ = try? await chat.write(isOfObserver: true) { transaction in
      for document in try transaction.documents(in: Self.polls, DocumentQuery(limit: Self.mostPolls))
      where try document.value(Poll.self).used < limit {
        try transaction.remove(document.id, from: Self.polls)
      }
    }
  }
}

/// Subtopics have parts divided by dots; `*` at the end of a filter stands for any.
enum Subtopic {
  static func matches(_ subtopic: String?, _ filter: String?) -> Bool {
    guard let filter, !filter.isEmpty else { return true }
    guard let subtopic else { return false }
    guard filter.hasSuffix("*") else { return subtopic == filter }
    let stem = filter.dropLast()
    return subtopic.hasPrefix(stem) || (stem.hasSuffix(".") && subtopic == stem.dropLast())
  }
}
