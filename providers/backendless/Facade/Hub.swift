import FerryCore
import FerryRuntime

/// Who is connected and who listens to what: a value behind its lock.
///
/// Whatever clients are sent about channels and tables is sent from here with the lock held, which makes one order of
/// it for all of them. Sending never waits. No connection takes this lock while it holds its own.
struct Hub: Sendable {
  struct Client: Sendable {
    let connection: RealTimeConnection
    /// The client has joined the namespace, with a right key.
    var isJoined = false
    var user: UserReference?
    /// By the ids that the client made.
    var subscriptions: [String: Subscription] = [:]
    /// Channels that the client left although it may still have listeners there.
    var away: Set<String> = []
  }

  /// One listener of one client. Each is told by itself, though several belong to one client.
  struct Listener: Sendable {
    let connection: RealTimeConnection
    /// The frame up to the data, and after it.
    let head: String
    let condition: SQLCondition?

    func tell(_ data: String) { connection.send(head + data + "}]") }
  }

  struct ListenerKey: Hashable, Sendable {
    let sid: String
    let id: String
  }

  typealias Listeners = [ListenerKey: Listener]

  struct Channel: Sendable {
    /// Connected clients with the ids of their subscriptions, and the order of their coming.
    var members: [String: (ids: Set<String>, order: UInt64)] = [:]
    /// Those who left and whose listeners are kept for their coming back.
    var away: Set<String> = []
    var messages: Listeners = [:]
    var commands: Listeners = [:]
    var users: Listeners = [:]

    var isUnused: Bool { members.isEmpty && messages.isEmpty && commands.isEmpty && users.isEmpty }
  }

  struct TableEvent: Hashable, Sendable {
    let table: String
    let event: String
  }

  private(set) var clients: [String: Client] = [:]
  private(set) var channels: [String: Channel] = [:]
  private(set) var tables: [TableEvent: Listeners] = [:]
  private var joins: UInt64 = 0
  private let namespace: String

  init(appID: String) { namespace = "/\(appID)" }

  // MARK: Clients

  mutating func open(_ connection: RealTimeConnection, limit: Int) -> Bool {
    guard clients.count < limit else { return false }
    clients[connection.sid] = Client(connection: connection)
    return true
  }

  mutating func join(_ sid: String, as user: UserReference?) {
    clients[sid]?.isJoined = true
    clients[sid]?.user = user
  }

  /// Ends all subscriptions of the client.
  mutating func leave(_ sid: String) {
    guard let client = clients[sid] else { return }
    for id in client.subscriptions.keys { unsubscribe(sid, id) }
    for channel in clients[sid]?.away ?? [] { channels[channel]?.away.remove(sid) }
    clients[sid]?.away = []
    clients[sid]?.isJoined = false
  }

  mutating func close(_ sid: String) {
    leave(sid)
    clients[sid] = nil
  }

  /// Puts another user on a connection, and tells the channels it is in.
  mutating func setUser(_ user: UserReference?, of sid: String) {
    guard clients[sid] != nil, clients[sid]?.user != user else { return }
    clients[sid]?.user = user
    for (name, channel) in channels where channel.members[sid] != nil { tellUsers(of: name, "USERUPDATE", sid) }
  }

  // MARK: Subscriptions

  /// The listener's first answers follow from here, before anything that happens later.
  mutating func subscribe(_ sid: String, _ id: String, to subscription: Subscription, limit: Int) -> Fault? {
    guard let client = clients[sid] else { return nil }
    if client.subscriptions[id] != nil {
      unsubscribe(sid, id)
    } else if client.subscriptions.count >= limit {
      return Fault(400, 5002, "This connection has \(limit) subscriptions already")
    }
    clients[sid]?.subscriptions[id] = subscription
    let key = ListenerKey(sid: sid, id: id)
    let quoted = JSONText.quoted(id)
    let listener = Listener(
      connection: client.connection, head: #"2\#(namespace),["SUB_RES",{"id":\#(quoted),"data":"#,
      condition: subscription.condition)
    switch subscription.target {
    case .connect(let channel):
      connect(sid, id, to: channel)
      listener.tell("\"connected\"")
      return nil
    case .messages(let channel): channels[channel, default: Channel()].messages[key] = listener
    case .commands(let channel): channels[channel, default: Channel()].commands[key] = listener
    case .users(let channel): channels[channel, default: Channel()].users[key] = listener
    case .changes(let event): tables[event, default: [:]][key] = listener
    }
    client.connection.send(SocketPacket.event("SUB_READY", json: #"{"id":\#(quoted)}"#, in: namespace))
    if case .users(let channel) = subscription.target { listener.tell(listing(of: channel)) }
    return nil
  }

  mutating func unsubscribe(_ sid: String, _ id: String) {
    guard let subscription = clients[sid]?.subscriptions.removeValue(forKey: id) else { return }
    let key = ListenerKey(sid: sid, id: id)
    switch subscription.target {
    case .connect(let channel): disconnect(sid, id, from: channel)
    case .messages(let channel):
      channels[channel]?.messages[key] = nil
      dropIfUnused(channel)
    case .commands(let channel):
      channels[channel]?.commands[key] = nil
      dropIfUnused(channel)
    case .users(let channel):
      channels[channel]?.users[key] = nil
      dropIfUnused(channel)
    case .changes(let event):
      tables[event]?[key] = nil
      if tables[event]?.isEmpty == true { tables[event] = nil }
    }
  }

  private mutating func connect(_ sid: String, _ id: String, to channel: String) {
    joins += 1
    let isNew = channels[channel]?.members[sid] == nil
    channels[channel, default: Channel()].members[sid, default: ([], joins)].ids.insert(id)
    channels[channel]?.away.remove(sid)
    clients[sid]?.away.remove(channel)
    if isNew { tellUsers(of: channel, "CONNECTED", sid) }
  }

  /// Ends what the client is told of the channel, although it forgets to end its listeners.
  private mutating func disconnect(_ sid: String, _ id: String, from channel: String) {
    channels[channel]?.members[sid]?.ids.remove(id)
    guard channels[channel]?.members[sid]?.ids.isEmpty == true else { return }
    channels[channel]?.members[sid] = nil
    channels[channel]?.away.insert(sid)
    clients[sid]?.away.insert(channel)
    tellUsers(of: channel, "DISCONNECTED", sid)
    dropIfUnused(channel)
  }

  private mutating func dropIfUnused(_ channel: String) {
    if channels[channel]?.isUnused == true { channels[channel] = nil }
  }

  // MARK: Users

  private func tellUsers(of channel: String, _ status: String, _ sid: String) {
    guard let channel = channels[channel], !channel.users.isEmpty else { return }
    let data = #"{"status":"\#(status)","data":[\#(person(sid))]}"#
    for (key, listener) in channel.users where !channel.away.contains(key.sid) { listener.tell(data) }
  }

  private func listing(of channel: String) -> String {
    let members = channels[channel]?.members.sorted { $0.value.order < $1.value.order } ?? []
    return #"{"status":"LISTING","data":[\#(members.map { person($0.key) }.joined(separator: ","))]}"#
  }

  private func person(_ sid: String) -> String {
    let user = clients[sid]?.user.map { JSONText.quoted($0.id) } ?? "null"
    return #"{"connectionId":\#(JSONText.quoted(sid)),"userId":\#(user)}"#
  }

  // MARK: Telling

  /// To every listener of the channel's messages whose selector is true of the headers.
  func deliver(_ publication: Publication, at time: Timestamp) {
    guard let channel = channels[publication.channel], !channel.messages.isEmpty else { return }
    var texts = TextsByAddress { publication.json(at: time, files: $0) }
    for (key, listener) in channel.messages where !channel.away.contains(key.sid) {
      if let condition = listener.condition,
        !condition.matches({ publication.headers[$0].map(JSONValue.string) })
      {
        continue
      }
      listener.tell(texts[listener.connection.files])
    }
  }

  func deliver(command: String, to name: String) {
    guard let channel = channels[name] else { return }
    for (key, listener) in channel.commands where !channel.away.contains(key.sid) { listener.tell(command) }
  }

  func deliver(_ change: TableChange) {
    guard let listeners = tables[change.key], !listeners.isEmpty else { return }
    var texts = TextsByAddress { change.json(files: $0) }
    for listener in listeners.values {
      if let condition = listener.condition, !change.matches(condition) { continue }
      listener.tell(texts[listener.connection.files])
    }
  }

  func hasListeners(of change: TableEvent) -> Bool { tables[change] != nil }
}

/// One text for each way in which clients call this server, made when somebody needs it.
private struct TextsByAddress {
  let make: (String) -> String
  private var texts: [String: String] = [:]

  init(_ make: @escaping (String) -> String) { self.make = make }

  subscript(address: String) -> String {
    mutating get {
      if let text = texts[address] { return text }
      let text = make(address)
      texts[address] = text
      return text
    }
  }
}

/// What one listener asked for.
struct Subscription: Hashable, Sendable {
  enum Target: Hashable, Sendable {
    case connect(String)
    case messages(String)
    case commands(String)
    case users(String)
    case changes(Hub.TableEvent)
  }

  let target: Target
  var condition: SQLCondition?
}

/// A user, as far as others are told.
struct UserReference: Hashable, Sendable, Codable {
  let id: String
  let name: String
}
