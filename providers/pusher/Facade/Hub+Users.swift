import FerryCore
import FerryTransport

/// Who has signed in, and who watches whom.
extension Hub {
  /// Signs a connection in and confirms it. False when it is somebody else's already.
  mutating func signIn(_ id: UInt64, as user: SignedInUser) -> Bool {
    guard let connection = connections[id] else { return true }
    guard connection.user == nil || connection.user?.id == user.id else { return false }
    let isFirst = users[user.id, default: []].isEmpty
    connections[id]?.user = user
    users[user.id, default: []].insert(id)
    connection.socket.send(FrameText.object("pusher:signin_success", ["user_data": .string(user.userData)]))
    if settings.watchlist { watch(user.watchlist, by: id, connection.socket) }
    if isFirst { tellWatchers(of: user.id, isOnline: true, except: id) }
    return true
  }

  mutating func signOut(_ id: UInt64) {
    for watched in connections[id]?.watched ?? [] { unwatch(watched, by: id) }
    connections[id]?.watched = []
    guard let user = connections[id]?.user else { return }
    connections[id]?.user = nil
    users[user.id]?.remove(id)
    guard users[user.id]?.isEmpty == true else { return }
    users[user.id] = nil
    tellWatchers(of: user.id, isOnline: false, except: id)
  }

  /// Every socket on which the user has signed in.
  func sockets(of userID: String) -> [WebSocket] {
    (users[userID] ?? []).sorted().compactMap { connections[$0]?.socket }
  }

  // MARK: Watching

  private mutating func watch(_ list: [String], by id: UInt64, _ socket: WebSocket) {
    for watched in connections[id]?.watched ?? [] { unwatch(watched, by: id) }
    let kept = Array(list.prefix(Limits.watchlistUsers))
    connections[id]?.watched = kept
    for userID in kept { watchers[userID, default: []].insert(id) }
    if kept.count < list.count {
      socket.send(
        FrameText.error(
          .watchlistLimit,
          "The watchlist has \(list.count) users; only the first \(Limits.watchlistUsers) are watched"))
    }
    let online = kept.filter { users[$0] != nil }
    let offline = kept.filter { users[$0] == nil }
    guard !kept.isEmpty else { return }
    socket.send(Self.watchlistFrame(online: online, offline: offline))
  }

  private mutating func unwatch(_ userID: String, by id: UInt64) {
    watchers[userID]?.remove(id)
    if watchers[userID]?.isEmpty == true { watchers[userID] = nil }
  }

  /// Not the connection that has just come, which knows from its snapshot, nor the one that goes.
  private func tellWatchers(of userID: String, isOnline: Bool, except id: UInt64) {
    guard let watching = watchers[userID] else { return }
    let frame = EncodedFrame(
      text: isOnline
        ? Self.watchlistFrame(online: [userID], offline: []) : Self.watchlistFrame(online: [], offline: [userID]))
    for watcher in watching where watcher != id { connections[watcher]?.socket.send(frame) }
  }

  private static func watchlistFrame(online: [String], offline: [String]) -> String {
    let events = [("online", online), ("offline", offline)].filter { !$0.1.isEmpty }.map { name, ids in
      #"{"name":"\#(name)","user_ids":[\#(ids.map(JSONText.quoted).joined(separator: ","))]}"#
    }
    return FrameText.event(
      "pusher_internal:watchlist_events", channel: nil, data: #"{"events":[\#(events.joined(separator: ","))]}"#)
  }
}

/// Who a connection belongs to, as its server signed it.
struct SignedInUser: Sendable {
  let id: String
  /// JSON text of an object, for presence channels.
  let info: String
  /// Without repetitions.
  let watchlist: [String]
  /// The signed text as it arrived.
  let userData: String

  private struct Content: Decodable {
    let id: JSONValue?
    let info: JSONValue?
    let watchlist: JSONValue?

    enum CodingKeys: String, CodingKey {
      case id, watchlist
      case info = "user_info"
    }
  }

  /// Throws what the client is told.
  init(userData: String) throws(Refusal) {
    guard let content = JSONText.decode(Content.self, from: userData) else {
      throw Refusal(400, "Invalid user_data: it must be a JSON object with an id")
    }
    guard let id = content.id?.text, ChannelName.isUserID(id), id.utf8.count <= Limits.userIDLength else {
      throw Refusal(
        400,
        "Invalid user_data: id must be 1 to \(Limits.userIDLength) of the letters, digits and signs _-=@,.;")
    }
    var seen: Set<String> = []
    watchlist = (content.watchlist?.array ?? []).compactMap(\.text).filter { seen.insert($0).inserted }
    info = try PresenceList.Member.info(content.info)
    self.id = id
    self.userData = userData
  }

  var member: PresenceList.Member { PresenceList.Member(id: id, info: info) }
}
