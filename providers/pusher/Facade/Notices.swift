import FerryCore
import FerryTransport

/// What waits for its time, and what webhooks are to tell: noted under the hub's lock, in the order in which it
/// happened.
struct Notices: Sendable {
  enum Job: Sendable {
    case vacated(String, number: UInt64)
    case removed(Member, number: UInt64)
    /// The number of a channel's subscribers may be told again.
    case count(String)
    /// A connection must have proved who it is.
    case authorization(UInt64)
    /// Events of cache channels may be too old.
    case pruning
  }

  struct Member: Hashable, Sendable {
    let channel: String
    let userID: String
  }

  /// Source: the Channels documentation (webhooks, subscription counting), and what others do about unauthorised
  /// connections.
  static let returnDelay = Duration.seconds(3)
  static let countDelay = Duration.seconds(5)
  static let authorizationDelay = Duration.seconds(30)
  static let pruningDelay = Duration.seconds(300)
  private static let capacity = 10_000

  var schedule = Schedule<Job>()
  private let kinds: Set<WebhookEvent.Kind>
  private(set) var events: [WebhookEvent] = []
  private var dropped = 0
  private var isPruningPlanned = false
  /// When whoever fetches what is due will look again by itself; nil before the first time and while nothing waits.
  private var nextLook: Timestamp?
  /// Those who left a moment ago: when they come back in time, neither is told.
  private var vacatedChannels: [String: UInt64] = [:]
  private var removedMembers: [Member: UInt64] = [:]
  private var lastNumber: UInt64 = 0

  init(kinds: Set<WebhookEvent.Kind>) { self.kinds = kinds }

  mutating func note(_ event: WebhookEvent) {
    guard kinds.contains(event.kind) else { return }
    if events.count < Self.capacity { events.append(event) } else { dropped += 1 }
  }

  mutating func occupied(_ channel: String) {
    guard Self.isTold(channel), vacatedChannels.removeValue(forKey: channel) == nil else { return }
    note(.channelOccupied(channel))
  }

  mutating func vacated(_ channel: String, now: Timestamp) {
    guard Self.isTold(channel), !kinds.isDisjoint(with: [.channelOccupied, .channelVacated]) else { return }
    lastNumber += 1
    vacatedChannels[channel] = lastNumber
    schedule.add(.vacated(channel, number: lastNumber), after: Self.returnDelay, now: now)
  }

  mutating func added(_ userID: String, to channel: String) {
    guard removedMembers.removeValue(forKey: Member(channel: channel, userID: userID)) == nil else { return }
    note(.memberAdded(channel, user: userID))
  }

  mutating func removed(_ userID: String, from channel: String, now: Timestamp) {
    guard !kinds.isDisjoint(with: [.memberAdded, .memberRemoved]) else { return }
    lastNumber += 1
    let member = Member(channel: channel, userID: userID)
    removedMembers[member] = lastNumber
    schedule.add(.removed(member, number: lastNumber), after: Self.returnDelay, now: now)
  }

  /// The time to come back is over.
  mutating func settleVacated(_ channel: String, number: UInt64) {
    guard vacatedChannels[channel] == number else { return }
    vacatedChannels[channel] = nil
    note(.channelVacated(channel))
  }

  mutating func settleRemoved(_ member: Member, number: UInt64) {
    guard removedMembers[member] == number else { return }
    removedMembers[member] = nil
    note(.memberRemoved(member.channel, user: member.userID))
  }

  /// Something is kept that will be too old one day.
  mutating func planPruning(now: Timestamp) {
    guard !isPruningPlanned else { return }
    isPruningPlanned = true
    schedule.add(.pruning, after: Self.pruningDelay, now: now)
  }

  mutating func pruningBegins() { isPruningPlanned = false }

  /// Everything noted since the last time.
  mutating func takeEvents() -> (events: [WebhookEvent], dropped: Int) {
    defer { (events, dropped) = ([], 0) }
    return (events, dropped)
  }

  /// When to look again; nil: when `needsLook` is true.
  mutating func planLook() -> Timestamp? {
    nextLook = schedule.next
    return nextLook
  }

  /// Whether something has to be done before the time of `planLook`.
  var needsLook: Bool {
    guard events.isEmpty, dropped == 0 else { return true }
    guard let next = schedule.next else { return false }
    return nextLook.map { next < $0 } ?? true
  }

  /// Users' own channels are an affair of the service.
  private static func isTold(_ channel: String) -> Bool { !channel.hasPrefix(ChannelName.userPrefix) }
}

extension Hub {
  /// What is to be done outside the lock, and when to ask again.
  struct Pulse: Sendable {
    let events: [WebhookEvent]
    let dropped: Int
    /// Those who have not proved in time who they are.
    let unauthorized: [WebSocket]
    let isPruningDue: Bool
    let next: Timestamp?
  }

  /// Does what is due.
  mutating func pulse(at now: Timestamp) -> Pulse {
    var unauthorized: [WebSocket] = []
    var isPruningDue = false
    for job in notices.schedule.take(at: now) {
      switch job {
      case .vacated(let channel, let number): notices.settleVacated(channel, number: number)
      case .removed(let member, let number): notices.settleRemoved(member, number: number)
      case .count(let channel): countReleased(channel, now: now)
      case .authorization(let id):
        if let connection = connections[id], !connection.isAuthorized { unauthorized.append(connection.socket) }
      case .pruning:
        notices.pruningBegins()
        forgetOldCopies(now: now)
        isPruningDue = true
      }
    }
    let (events, dropped) = notices.takeEvents()
    return Pulse(
      events: events, dropped: dropped, unauthorized: unauthorized, isPruningDue: isPruningDue,
      next: notices.planLook())
  }
}

extension Hub.Connection {
  /// Signed in, or on a channel that takes a signature.
  fileprivate var isAuthorized: Bool {
    user != nil || seats.keys.contains { ChannelName($0)?.isSigned == true }
  }
}
