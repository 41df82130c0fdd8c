import FerryChat
import FerryCore
import FerryRuntime
import FerryTransport

extension LocalServer {
  func post(_ request: HTTPRequest, to room: ChannelID, _ caller: Caller) async throws(FerryError) -> HTTPResponse {
    // A full batch of the longest texts, escaped, with room for what is around them.
    let body = try await request.json(Bodies.Post.self, upTo: chat.limits.batch * chat.limits.textBytes * 2)
    guard let several = body.messages else {
      let posted = try await chat.post(try body.draft(), to: room, by: caller)
      var response = HTTPResponse.text(
        try Wire.Message(posted.message).json(), status: posted.isRepeat ? 200 : 201, type: "application/json")
      let id = posted.message.message.id
      response.headers.set("Location", "/v1/rooms/\(PercentEncoding.encode(room.rawValue))/messages/\(id)")
      return response
    }
    var drafts: [Draft] = []
    for one in several { drafts.append(try one.draft()) }
    let posted = try await chat.post(drafts, to: room, by: caller)
    return try Self.page(posted.map(\.message), next: nil, status: posted.allSatisfy(\.isRepeat) ? 200 : 201)
  }

  func messages(
    _ request: HTTPRequest, of room: ChannelID, _ caller: Caller
  ) async throws(FerryError) -> HTTPResponse {
    let clientIDs = request.queryItems.filter { $0.name == "client_id" }.map { SendKey($0.value) }
    if !clientIDs.isEmpty {
      let found = try await chat.messages(byClientIDs: clientIDs, in: room)
      return try Self.page(found, next: nil)
    }
    let order: HistoryOrder
    switch request.query("order") {
    case nil, "newest": order = .newestFirst
    case "oldest": order = .oldestFirst
    default: throw FerryError(.badRequest, "\"order\" is newest or oldest.")
    }
    let sequence = try await chat.head()
    let page = try await chat.history(
      of: room, order: order, after: request.query("after").map { MessageID($0) },
      before: request.query("before").map { MessageID($0) }, containing: request.query("text"),
      limit: try request.limit(50))
    return try Self.page(
      page.messages, next: page.next, sequence: sequence, opening: try await opening(request, room, caller))
  }

  /// What a client that opens a room shows besides its messages, in the same answer.
  private struct Opening {
    let title: String
    let standing: Standing
    /// Whom the token is bound to.
    let user: UserID?
  }

  /// Of the user whom the query names, or the token; nil when the query names nobody.
  private func opening(
    _ request: HTTPRequest, _ room: ChannelID, _ caller: Caller
  ) async throws(FerryError) -> Opening? {
    guard let named = request.query("user") else { return nil }
    let title = try await chat.room(room).title
    guard let standing = try await chat.standings(of: caller.user ?? UserID(named), in: [room]).first else {
      return nil
    }
    return Opening(title: title, standing: standing, user: caller.user)
  }

  /// The same as an `Answers.Messages`.
  private static func page(
    _ messages: [ChatMessage], next: MessageID?, sequence: Int64? = nil, opening: Opening? = nil, status: Int = 200
  ) throws(FerryError) -> HTTPResponse {
    var json = JSONWriter(capacity: 256 * messages.count + 64)
    json.begin()
    json.name("messages")
    json.begin("[")
    for message in messages { try Wire.Message(message).write(to: &json) }
    json.end("]")
    json.member("next", next?.rawValue)
    if let sequence {
      json.name("sequence")
      json.value(sequence)
    }
    if let opening {
      json.member("title", opening.title)
      json.name("unread")
      json.value(Int64(opening.standing.unread))
      json.member("read", opening.standing.read?.rawValue)
      json.member("user", opening.user?.rawValue)
    }
    json.end()
    return .text(json.text, status: status, type: "application/json")
  }

  func message(
    _ request: HTTPRequest, _ id: MessageID, in room: ChannelID, _ caller: Caller
  ) async throws(FerryError) -> HTTPResponse {
    switch request.method {
    case "PATCH":
      let change = try await request.json(Bodies.Edit.self).change()
      return .json(Wire.Message(try await chat.edit(id, in: room, to: change, by: caller)))
    case "DELETE":
      let act = try await request.json(Bodies.Act.self)
      try await chat.delete(id, in: room, by: caller, as: act.by?.author, stamp: act.stamp)
      return .nothing
    default:
      return .json(Wire.Message(try await chat.message(id, in: room)))
    }
  }

  func react(
    _ request: HTTPRequest, _ emoji: String, to id: MessageID, in room: ChannelID, _ caller: Caller
  ) async throws(FerryError) -> HTTPResponse {
    let act = try await request.json(Bodies.Act.self)
    let named = act.by?.author ?? request.query("user").map { Author(id: UserID($0), name: $0) }
    let reaction = Reaction(
      message: id, by: try caller.author(named), emoji: emoji, added: request.method == "PUT", stamp: act.stamp)
    try await chat.react(reaction, in: room, by: caller)
    return .nothing
  }
}

extension HTTPResponse {
  /// Done, and nothing to say.
  static var nothing: HTTPResponse { HTTPResponse(status: 204, headers: [:], body: .empty) }
}
