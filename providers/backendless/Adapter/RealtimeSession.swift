import FerryCore
import FerryRuntime

/// What is said over one connection to the real-time service, decided in a value: joining the app's namespace and its
/// channels, listening, and sending commands.
///
/// The subscriptions outlive the connection and keep their ids.
struct RealtimeSession: Sendable {
  /// What a subscription is for.
  enum Role: Hashable, Sendable {
    case join, messages, commands, users
    case rows(RowChange)
    /// Changes of rows that name no channel.
    case looseRows(RowChange)
    /// Many rows changed at once; which, nobody says.
    case bulk
  }

  enum RowChange: String, Hashable, Sendable { case created, updated, deleted, upserted }

  struct Subscription: Hashable, Sendable {
    var id: String
    var role: Role
    /// Nil for what concerns the table as a whole.
    var channel: ChannelID?
    var name: String
    var options: JSONValue
  }

  enum Action: Hashable, Sendable {
    case send(String)
    /// The app's namespace is joined.
    case connected
    /// Everything of the channel is subscribed to, or refused.
    case ready(ChannelID)
    case heard(Subscription, JSONValue)
    case refused(Subscription, ServiceFault)
    /// A command was carried out, or refused.
    case answered(String, ServiceFault?)
    case end(Ending)
  }

  enum Ending: Hashable, Sendable {
    /// The service does not let this client in.
    case refused(String)
    case closed(String)
  }

  private enum Phase: Hashable, Sendable {
    case asked(Timestamp)
    case active
    /// Asked again at this time.
    case refused(again: Timestamp)
  }

  private struct Command: Sendable {
    var id: String
    var channel: ChannelID?
    var text: String
  }

  private let namespace: String
  private let query: String
  private var subscriptions: [Subscription]
  private var phases: [String: Phase] = [:]
  /// How long the last refusal was waited for: each time twice as long.
  private var waits: [String: Duration] = [:]
  private var waiting: [Command] = []
  private var announced: Set<ChannelID> = []
  private var isConnected = false
  private var connecting: Timestamp?
  /// By which the service calls this connection.
  private(set) var ownIDs: Set<String> = []

  /// An answer that does not come in this time ends the connection; to a listener, no answer is consent.
  private static let answerTime = Duration.seconds(15)
  private static let consentTime = Duration.seconds(3)

  init(appID: String, query: String, subscriptions: [Subscription]) {
    namespace = "/" + appID
    self.query = query
    self.subscriptions = subscriptions
  }

  // MARK: Connecting

  mutating func opened(sid: String, _ version: EngineVersion, now: Timestamp) -> [Action] {
    ownIDs.insert(sid)
    connecting = now
    return [.send(SocketPacket.connect(to: namespace, version: version, query: query).text)]
  }

  mutating func receive(_ text: String, now: Timestamp) -> [Action] {
    guard let packet = try? SocketPacket(text) else { return [] }
    switch packet.content {
    case .refused: return [.end(.refused(packet.refusal ?? "no reason given"))]
    case .connect(let value) where packet.namespace == namespace: return connected(value, now: now)
    case .disconnect where packet.namespace == namespace || packet.namespace == SocketPacket.root:
      return [.end(.closed("the service ended the connection"))]
    case .event(let name, let argument) where packet.namespace == namespace:
      return event(name, argument ?? .null, now: now)
    case .connect, .disconnect, .event, .ack: return []
    }
  }

  private mutating func connected(_ value: JSONValue?, now: Timestamp) -> [Action] {
    guard !isConnected else { return [] }
    isConnected = true
    connecting = nil
    if let sid = value?["sid"]?.string { ownIDs.insert(sid) }
    let first = subscriptions.filter { $0.role == .join || $0.channel == nil }
    return [.connected] + first.flatMap { subscribe($0, now: now) } + flush()
  }

  // MARK: Subscriptions

  private mutating func subscribe(_ subscription: Subscription, now: Timestamp) -> [Action] {
    phases[subscription.id] = .asked(now)
    return [
      emit(
        "SUB_ON", ["id": .string(subscription.id), "name": .string(subscription.name), "options": subscription.options])
    ]
  }

  private func emit(_ event: String, _ argument: JSONValue) -> Action {
    .send(SocketPacket(.event(event, argument), in: namespace).text)
  }

  private mutating func event(_ name: String, _ argument: JSONValue, now: Timestamp) -> [Action] {
    guard let id = argument["id"]?.text else { return [] }
    if name == "MET_RES" {
      return [.answered(id, argument["error"].flatMap { $0 == .null ? nil : ServiceFault($0) })]
    }
    guard name == "SUB_RES" || name == "SUB_READY", let subscription = subscriptions.first(where: { $0.id == id }),
      phases[id] != nil
    else { return [] }
    if let error = argument["error"], error != .null { return refused(subscription, ServiceFault(error), now: now) }
    var actions = activate(subscription, now: now)
    if name == "SUB_RES", subscription.role != .join, let data = argument["data"] {
      actions.append(.heard(subscription, data))
    }
    return actions
  }

  private mutating func activate(_ subscription: Subscription, now: Timestamp) -> [Action] {
    if phases[subscription.id] == .active { return [] }
    phases[subscription.id] = .active
    var actions: [Action] = []
    if subscription.role == .join, let channel = subscription.channel {
      let listeners = subscriptions.filter { $0.channel == channel && $0.role != .join }
      actions += listeners.filter { phases[$0.id] == nil }.flatMap { subscribe($0, now: now) } + flush()
    }
    return actions + readiness(of: subscription.channel)
  }

  private mutating func refused(_ subscription: Subscription, _ fault: ServiceFault, now: Timestamp) -> [Action] {
    let wait = waits[subscription.id].map { min($0 * 2, .seconds(300)) } ?? .seconds(5)
    waits[subscription.id] = wait
    phases[subscription.id] = .refused(again: now.advanced(by: wait))
    return [.refused(subscription, fault)] + readiness(of: subscription.channel)
  }

  /// A channel is ready when its join and its messages stand, and all else was answered.
  private mutating func readiness(of channel: ChannelID?) -> [Action] {
    guard let channel, !announced.contains(channel) else { return [] }
    let own = subscriptions.filter { $0.channel == channel }
    let isReady = own.allSatisfy { subscription in
      switch phases[subscription.id] {
      case .active: true
      case .refused: subscription.role != .join && subscription.role != .messages
      case .asked, nil: false
      }
    }
    guard isReady, own.contains(where: { $0.role == .messages }) else { return [] }
    announced.insert(channel)
    return [.ready(channel)]
  }

  // MARK: Commands

  /// Sends once the channel is joined, which is asked for where nobody listens to it.
  mutating func command(
    _ id: String, _ type: String, _ data: JSONValue, in channel: ChannelID, joinID: String, now: Timestamp
  ) -> [Action] {
    let options: JSONValue = ["channel": .string(channel.rawValue), "type": .string(type), "data": data]
    var actions: [Action] = []
    if !subscriptions.contains(where: { $0.role == .join && $0.channel == channel }) {
      let join = Subscription(
        id: joinID, role: .join, channel: channel, name: "PUB_SUB_CONNECT",
        options: ["channel": .string(channel.rawValue)])
      subscriptions.append(join)
      if isConnected { actions += subscribe(join, now: now) }
    }
    waiting.append(Command(id: id, channel: channel, text: method(id, "PUB_SUB_COMMAND", options)))
    return actions + flush()
  }

  /// Changes whose connection this is, without a new one.
  mutating func setUserToken(_ id: String, _ token: String?) -> [Action] {
    let options: JSONValue = ["userToken": token.map(JSONValue.string) ?? .null]
    waiting.append(Command(id: id, channel: nil, text: method(id, "SET_USER_TOKEN", options)))
    return flush()
  }

  /// Nobody waits for its answer any more; what was not sent never will be. True when it was not.
  mutating func withdraw(_ id: String) -> Bool {
    let count = waiting.count
    waiting.removeAll { $0.id == id }
    return waiting.count < count
  }

  private func method(_ id: String, _ name: String, _ options: JSONValue) -> String {
    SocketPacket(.event("MET_REQ", ["id": .string(id), "name": .string(name), "options": options]), in: namespace).text
  }

  private mutating func flush() -> [Action] {
    guard isConnected else { return [] }
    let joined = Set(subscriptions.filter { $0.role == .join && phases[$0.id] == .active }.compactMap(\.channel))
    let ready = waiting.filter { $0.channel.map(joined.contains) ?? true }
    waiting.removeAll { $0.channel.map(joined.contains) ?? true }
    return ready.map { .send($0.text) }
  }

  // MARK: Time

  /// To be called every second or so.
  mutating func tick(now: Timestamp) -> [Action] {
    if let connecting, connecting.advanced(by: Self.answerTime) <= now {
      return [.end(.closed("the service does not answer"))]
    }
    var actions: [Action] = []
    for subscription in subscriptions {
      switch phases[subscription.id] {
      case .asked(let since) where subscription.role == .join && since.advanced(by: Self.answerTime) <= now:
        return actions + [.end(.closed("the service does not answer"))]
      case .asked(let since) where subscription.role != .join && since.advanced(by: Self.consentTime) <= now:
        actions += activate(subscription, now: now)
      case .refused(let again) where again <= now: actions += subscribe(subscription, now: now)
      default: continue
      }
    }
    return actions
  }

  /// The goodbye of the Socket.IO protocol.
  var goodbye: String { SocketPacket(.disconnect, in: namespace).text }
}
