/// What a path of the API names.
enum Route: Hashable, Sendable {
  case health
  case rooms
  case room(String)
  case messages(room: String)
  case imports(room: String)
  case message(room: String, id: String)
  case reaction(room: String, id: String, emoji: String)
  case members(room: String)
  case member(room: String, user: String)
  case typing(room: String)
  case reads(room: String)
  case read(room: String, user: String)
  case files
  case file(String)
  case events
  case live

  /// Nil where there is nothing. Segments are percent-decoded; a path's first is empty or left out.
  init?(_ segments: [String]) {
    let path = segments.first == "" ? Array(segments.dropFirst()) : segments
    if path == ["healthz"] {
      self = .health
      return
    }
    guard path.count >= 2, path[0] == "v1" else { return nil }
    switch (path.count, path[1]) {
    case (2, "rooms"): self = .rooms
    case (2, "files"): self = .files
    case (2, "events"): self = .events
    case (2, "live"): self = .live
    case (3, "files"): self = .file(path[2])
    case (3, "rooms"): self = .room(path[2])
    case (4..., "rooms"): self.init(inRoom: path[2], path.dropFirst(3).map { $0 })
    default: return nil
    }
  }

  private init?(inRoom room: String, _ path: [String]) {
    switch (path.count, path[0]) {
    case (1, "messages"): self = .messages(room: room)
    case (1, "import"): self = .imports(room: room)
    case (2, "messages"): self = .message(room: room, id: path[1])
    case (4, "messages") where path[2] == "reactions":
      self = .reaction(room: room, id: path[1], emoji: path[3])
    case (1, "members"): self = .members(room: room)
    case (2, "members"): self = .member(room: room, user: path[1])
    case (1, "typing"): self = .typing(room: room)
    case (1, "reads"): self = .reads(room: room)
    case (2, "reads"): self = .read(room: room, user: path[1])
    default: return nil
    }
  }

  /// In the order in which `Allow` lists them.
  var methods: [String] {
    switch self {
    case .health, .file, .members, .reads, .rooms, .events, .live: ["GET"]
    case .room: ["GET", "PUT"]
    case .messages: ["GET", "POST"]
    case .message: ["GET", "PATCH", "DELETE"]
    case .reaction, .member: ["PUT", "DELETE"]
    case .typing, .files, .imports: ["POST"]
    case .read: ["PUT"]
    }
  }

  /// Browsers cannot set headers on a WebSocket or an image, so these take the token from the query too.
  var takesTokenInQuery: Bool {
    switch self {
    case .live, .file: true
    default: false
    }
  }
}
