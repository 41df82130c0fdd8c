import FerryChat
import FerryCore
import FerryTransport

extension LocalServer {
  func rooms(_ request: HTTPRequest, _ caller: Caller) async throws(FerryError) -> HTTPResponse {
    let limit = try request.limit(100)
    // Taken first: what happens meanwhile may be in the answer and told again, but is not lost between them.
    let sequence = try await chat.head()
    let rooms = try await chat.rooms(after: request.query("after").map { ChannelID($0) }, limit: limit)
    let answers = try await standing(of: rooms, request, caller)
    return .json(
      Answers.Rooms(
        rooms: answers, next: rooms.count == limit ? rooms.last?.id.rawValue : nil, sequence: sequence,
        user: caller.user?.rawValue))
  }

  /// Rooms as they are answered, with where the user stands whom the token is bound to or the query names.
  private func standing(
    of rooms: [Room], _ request: HTTPRequest, _ caller: Caller
  ) async throws(FerryError) -> [Answers.Room] {
    guard let user = caller.user ?? request.query("user").map({ UserID($0) }) else {
      return rooms.map { Answers.Room($0) }
    }
    let standings = try await chat.standings(of: user, in: rooms.map(\.id))
    return zip(rooms, standings).map { Answers.Room($0, standing: $1) }
  }

  func room(_ request: HTTPRequest, _ id: ChannelID, _ caller: Caller) async throws(FerryError) -> HTTPResponse {
    guard request.method == "PUT" else {
      return .json(try await standing(of: [try await chat.room(id)], request, caller)[0])
    }
    let title = try await request.json(Bodies.Room.self).title
    guard title == nil || caller.moderates else {
      throw FerryError(.forbidden, "Only a moderator may give a room a title.")
    }
    let made = try await chat.makeRoom(id, title: title)
    return .json(Answers.Room(made.room), status: made.isNew ? 201 : 200)
  }

  func members(of room: ChannelID) async throws(FerryError) -> HTTPResponse {
    .json(Answers.Members(members: try await chat.members(of: room).map(Wire.Author.init)))
  }

  func member(
    _ request: HTTPRequest, _ user: UserID, of room: ChannelID, _ caller: Caller
  ) async throws(FerryError) -> HTTPResponse {
    let body = try await request.json(Bodies.Member.self)
    guard request.method == "PUT" else {
      try await chat.leave(user, room, by: caller, stamp: body.stamp)
      return .nothing
    }
    let member = Author(id: user, name: body.name ?? user.rawValue, avatar: body.avatar)
    let isNew = try await chat.join(member, room, by: caller, stamp: body.stamp)
    return .json(Wire.Author(member), status: isNew ? 201 : 200)
  }

  func typing(_ request: HTTPRequest, in room: ChannelID, _ caller: Caller) async throws(FerryError) -> HTTPResponse {
    let body = try await request.json(Bodies.Typing.self)
    let typing = Typing(
      channel: room, by: try caller.author(body.by?.author), on: body.on ?? true, stamp: body.stamp)
    try chat.setTyping(typing, by: caller)
    return .nothing
  }

  func reads(in room: ChannelID) async throws(FerryError) -> HTTPResponse {
    let marks = try await chat.marks(in: room)
    return .json(
      Answers.Reads(
        reads: marks.map { .init(by: $0.by.map(Wire.Author.init), id: $0.upTo.rawValue, state: $0.state) }))
  }

  func read(
    _ request: HTTPRequest, by user: UserID, in room: ChannelID, _ caller: Caller
  ) async throws(FerryError) -> HTTPResponse {
    let body = try await request.json(Bodies.Read.self)
    guard let id = body.id else { throw FerryError(.badRequest, "Name the message read: \"id\".") }
    let reader = Author(id: user, name: body.name ?? user.rawValue, avatar: body.avatar)
    let mark = ReadMark(upTo: MessageID(id), by: reader, state: body.state ?? .read, stamp: body.stamp)
    try await chat.mark(mark, in: room, by: caller)
    return .nothing
  }

  /// One page of the log. The events are stored as they are sent, so they are put together as text.
  func events(_ request: HTTPRequest) async throws(FerryError) -> HTTPResponse {
    let room = request.query("room").map { ChannelID($0) }
    let limit = try request.limit(100)
    let after = try request.number("after") ?? 0
    let events: [LoggedEvent]
    switch (request.query("deleted"), room) {
    case (nil, _): events = try await chat.events(of: room, after: after, limit: limit)
    case ("withheld", .some(let room)): events = try await chat.archivedEvents(of: room, after: after, limit: limit)
    default: throw FerryError(.badRequest, "\"deleted\" is withheld, of one room.")
    }
    let items = events.map { "{\"sequence\":\($0.sequence),\"event\":\($0.json)}" }.joined(separator: ",")
    let next = events.count == limit ? events.last.map { ",\"next\":\($0.sequence)" } ?? "" : ""
    return .text("{\"events\":[\(items)]\(next)}", type: "application/json")
  }
}
