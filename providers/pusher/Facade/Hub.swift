import FerryCore
import FerryRuntime
import FerryTransport

/// Who is connected and who listens to what: the facade's whole state, a value behind its lock.
///
/// Everything that subscribers are sent is sent from here, with the lock held: that makes one order of events for all
/// subscribers of a channel. Sending never waits; a socket that would block has a bounded queue of its own.
struct Hub: Sendable {
  struct Subscriber: Sendable {
    let id: UInt64
    let socket: WebSocket
  }

  struct Room: Sendable {
    var subscribers: [Subscriber] = []
    var presence = PresenceList()
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
  }

  /// The last event of a cache channel.
  struct Cached: Sendable {
    /// The frame as subscribers get it.
    let frame: String
    let time: Timestamp

    func age(at now: Timestamp) -> Double { Double(now.milliseconds - time.milliseconds) / 1000 }
  }

  private(set) var rooms: [String: Room] = [:]
  private(set) var connections: [UInt64: Connection] = [:]
  private var numbers: [String: UInt64] = [:]
  /// A copy of part of the store: nil inside when the store is known to have nothing.
  private var cache: [String: Cached?] = [:]

  private static let cacheCapacity = 1000

  // MARK: Connections

  /// Admits a socket and returns its id, which no other open socket has.
  mutating func open(_ socket: WebSocket) -> String {
    var socketID = Self.randomSocketID()
    while numbers[socketID] != nil { socketID = Self.randomSocketID() }
    connections[socket.id] = Connection(socketID: socketID, socket: socket)
    numbers[socketID] = socket.id
    return socketID
  }

  mutating func close(_ id: UInt64) {
    guard let connection = connections[id] else { return }
    for channel in connection.seats.keys { leave(channel, id) }
    connections[id] = nil
    numbers[connection.socketID] = nil
  }

  func number(of socketID: String?) -> UInt64? { socketID.flatMap { numbers[$0] } }

  func isSubscribed(_ id: UInt64, to channel: String) -> Bool { connections[id]?.seats[channel] != nil }

  private static func randomSocketID() -> String {
    "\(UInt32.random(in: 1...UInt32(Int32.max))).\(UInt32.random(in: 1...UInt32(Int32.max)))"
  }

  // MARK: Channels

  /// Seats a connection unless the channel or the connection is full.
  mutating func admit(
    _ channel: ChannelName, _ id: UInt64, as member: PresenceList.Member?, limit: Int, now: Timestamp
  ) -> Refusal? {
    let name = channel.text
    if !isSubscribed(id, to: name) {
      if let member, isFull(name, for: member.id) {
        return Refusal(400, "Channel \(name) is full: it takes \(Limits.presenceMembers) members")
      }
      if connections[id]?.seats.count ?? 0 >= limit {
        return Refusal(400, "This connection has \(limit) subscriptions already")
      }
    }
    join(channel, id, as: member, now: now)
    return nil
  }

  /// Seats a connection and confirms it, so that the confirmation precedes every event of the channel. To seat one
  /// that is there already only confirms again.
  private mutating func join(_ channel: ChannelName, _ id: UInt64, as member: PresenceList.Member?, now: Timestamp) {
    guard let socket = connections[id]?.socket else { return }
    let name = channel.text
    let isNew = !isSubscribed(id, to: name)
    var isFirst = false
    if isNew {
      let index = rooms[name, default: Room()].subscribers.count
      connections[id]?.seats[name] = Seat(index: index, userID: member?.id)
      if let member { isFirst = rooms[name, default: Room()].presence.join(member) }
      rooms[name, default: Room()].subscribers.append(Subscriber(id: id, socket: socket))
    }
    let data = channel.isPresence ? rooms[name]?.presence.text ?? "{}" : "{}"
    socket.send(
      FrameText.event("pusher_internal:subscription_succeeded", channel: name, data: data))
    if isNew, channel.isCache { sendCached(name, to: socket, now: now) }
    if isFirst, let member {
      let data = #"{"user_id":\#(JSONText.quoted(member.id)),"user_info":\#(member.info)}"#
      deliver(FrameText.event("pusher_internal:member_added", channel: name, data: data), to: name, except: id)
    }
  }

  /// False when the connection was not there.
  @discardableResult
  mutating func leave(_ channel: String, _ id: UInt64) -> Bool {
    guard let seat = connections[id]?.seats.removeValue(forKey: channel) else { return false }
    if let last = rooms[channel]?.subscribers.popLast(), last.id != id {
      rooms[channel]?.subscribers[seat.index] = last
      connections[last.id]?.seats[channel]?.index = seat.index
    }
    if rooms[channel]?.subscribers.isEmpty == true {
      rooms[channel] = nil
    } else if let userID = seat.userID, rooms[channel]?.presence.leave(userID) == true {
      let data = #"{"user_id":\#(JSONText.quoted(userID))}"#
      deliver(FrameText.event("pusher_internal:member_removed", channel: channel, data: data), to: channel)
    }
    return true
  }

  /// Whether one more user would be more than a presence channel takes.
  private func isFull(_ channel: String, for userID: String) -> Bool {
    guard let presence = rooms[channel]?.presence else { return false }
    return presence.count >= Limits.presenceMembers && !presence.contains(userID)
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

  /// Counts a client event against its sender's limit; false when it is over.
  mutating func admitClientEvent(from id: UInt64, now: Timestamp, limit: Int) -> Bool {
    connections[id]?.clientEvents.admit(at: now, limit: limit) ?? false
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

  private func sendCached(_ channel: String, to socket: WebSocket, now: Timestamp) {
    if let cached = cached(channel, now: now) {
      socket.send(cached.frame)
    } else {
      socket.send(FrameText.event("pusher:cache_miss", channel: channel, data: "{}"))
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
