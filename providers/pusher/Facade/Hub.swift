import FerryCore
import FerryRuntime
import FerryTransport

/// Who is connected and who listens to what: the facade's whole state, a value behind its lock.
///
/// Everything that subscribers are sent is sent from here, with the lock held: that makes one order of events for all
/// subscribers of a channel. Sending never waits; a socket that would block has a bounded queue of its own. What has
/// to wait or to leave the machine is noted here and fetched with `pulse(at:)`.
struct Hub: Sendable {
  struct Subscriber: Sendable {
    let id: UInt64
    let socket: WebSocket
  }

  struct Room: Sendable {
    var subscribers: [Subscriber] = []
    var presence = PresenceList()
    /// Set while the number of subscribers was told a short while ago, and whether it has changed since.
    var isCountHeld = false
    var hasCountChanged = false
  }

  /// Where a connection sits in a room, so that it is taken out without a search.
  struct Seat: Sendable {
    var index: Int
    let userID: String?
  }

  struct Connection: Sendable {
    let socketID: String
    let socket: WebSocket
    var seats: [String: Seat] = [:]
    var clientEvents = RateWindow()
    /// Who has signed in, and whom they watch.
    var user: SignedInUser?
    var watched: [String] = []
  }

  /// A user's first connection to a presence channel, or the end of the last.
  struct Coming: Sendable {
    let channel: String
    let member: PresenceList.Member
    let isThere: Bool
  }

  /// The last event of a cache channel.
  struct Cached: Sendable {
    /// The frame as subscribers get it.
    let frame: String
    let time: Timestamp

    func age(at now: Timestamp) -> Double { Double(now.milliseconds - time.milliseconds) / 1000 }
  }

  let settings: PusherFacade.Settings
  var rooms: [String: Room] = [:]
  var connections: [UInt64: Connection] = [:]
  private var numbers: [String: UInt64] = [:]
  /// A copy of part of the store: nil inside when the store is known to have nothing.
  private var cache: [String: Cached?] = [:]
  /// Connections by who has signed in there, and by whom they watch.
  var users: [String: Set<UInt64>] = [:]
  var watchers: [String: Set<UInt64>] = [:]
  var notices: Notices
  /// Who has come to presence channels and gone since this was last taken; noted only where a view wants to know.
  var comings: [Coming] = []
  var notesComings = false
  /// No more sockets are admitted.
  var isStopping = false

  private static let cacheCapacity = 1000

  init(settings: PusherFacade.Settings) {
    self.settings = settings
    notices = Notices(kinds: settings.webhooks.reduce(into: []) { $0.formUnion($1.events) })
  }

  // MARK: Connections

  enum Admission: Sendable {
    case socketID(String)
    case refused(ErrorCode, String)
  }

  /// Admits a socket and gives it an id that no other open socket has, unless there are too many.
  mutating func open(_ socket: WebSocket, now: Timestamp) -> Admission {
    if isStopping { return .refused(.overCapacity, "The server is shutting down; come back later") }
    if let limit = settings.connections, connections.count >= limit {
      return .refused(settings.overflow.code, "There are \(limit) connections already, which is the limit here")
    }
    var socketID = Self.randomSocketID()
    while numbers[socketID] != nil { socketID = Self.randomSocketID() }
    connections[socket.id] = Connection(socketID: socketID, socket: socket)
    numbers[socketID] = socket.id
    if settings.authorizedConnections {
      notices.schedule.add(.authorization(socket.id), after: Notices.authorizationDelay, now: now)
    }
    return .socketID(socketID)
  }

  mutating func close(_ id: UInt64, now: Timestamp) {
    guard let connection = connections[id] else { return }
    for channel in connection.seats.keys { leave(channel, id, now: now) }
    signOut(id)
    connections[id] = nil
    numbers[connection.socketID] = nil
  }

  func number(of socketID: String?) -> UInt64? { socketID.flatMap { numbers[$0] } }

  func isSubscribed(_ id: UInt64, to channel: String) -> Bool { connections[id]?.seats[channel] != nil }

  private static func randomSocketID() -> String {
    "\(UInt32.random(in: 1...UInt32(Int32.max))).\(UInt32.random(in: 1...UInt32(Int32.max)))"
  }

  // MARK: Events

  /// Returns how many subscribers there are. Encoded once; nothing is allocated and nobody waited for in the loop.
  @discardableResult
  func deliver(_ text: String, to channel: String, except: UInt64? = nil) -> Int {
    guard let subscribers = rooms[channel]?.subscribers else { return 0 }
    let frame = EncodedFrame(text: text)
    for subscriber in subscribers where subscriber.id != except { subscriber.socket.send(frame) }
    return subscribers.count
  }

  /// Sends a client's event on to the others, or returns what the client is told instead.
  mutating func deliver(
    client event: String, _ data: String, to channel: String, from id: UInt64, echoes: Bool, now: Timestamp
  ) -> String? {
    guard let connection = connections[id], let seat = connection.seats[channel] else {
      return FrameText.error(nil, "Client event rejected - you are not subscribed to \(channel)")
    }
    let limit = settings.clientEventsPerSecond
    guard connections[id]?.clientEvents.admit(at: now, limit: limit) == true else {
      return FrameText.error(.rateLimited, "Client event rejected - the limit is \(limit) a second")
    }
    let text = FrameText.event(event, channel: channel, data: data, userID: seat.userID)
    deliver(text, to: channel, except: echoes ? nil : id)
    notices.note(
      .clientEvent(channel, event: event, data: data, socketID: connection.socketID, user: seat.userID))
    return nil
  }

  // MARK: Cache channels

  /// False when the store has to be asked first.
  func knowsCache(of channel: String) -> Bool { cache[channel] != nil }

  /// What the channel's cache holds, unless it is too old.
  func cached(_ channel: String, now: Timestamp) -> Cached? {
    guard let cached = cache[channel] ?? nil, cached.age(at: now) < Limits.cacheSeconds else { return nil }
    return cached
  }

  mutating func remember(_ cached: Cached?, for channel: String) {
    if cache.count >= Self.cacheCapacity, cache[channel] == nil { cache.removeAll() }
    cache.updateValue(cached, forKey: channel)
  }

  /// Forgets the copies that are too old to be sent.
  mutating func forgetOldCopies(now: Timestamp) {
    cache = cache.filter { $0.value.map { $0.age(at: now) < Limits.cacheSeconds } ?? false }
  }

  mutating func sendCached(_ channel: String, to socket: WebSocket, now: Timestamp) {
    if let cached = cached(channel, now: now) {
      socket.send(cached.frame)
    } else {
      socket.send(FrameText.event("pusher:cache_miss", channel: channel, data: "{}"))
      notices.note(.cacheMiss(channel))
    }
  }
}

/// How many events a connection sent in the second that is running.
struct RateWindow: Sendable {
  private var start = Timestamp(milliseconds: 0)
  private var count = 0

  mutating func admit(at now: Timestamp, limit: Int) -> Bool {
    if now.milliseconds - start.milliseconds >= 1000 || now < start {
      start = now
      count = 0
    }
    guard count < limit else { return false }
    count += 1
    return true
  }
}
