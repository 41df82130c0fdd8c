import FerryCore
import FerryRuntime

/// One connection to the service, decided in a value: what a frame means and what is to be done about it.
struct Session: Sendable {
  /// As whom Ferry joins presence channels. Its own coming and going is nobody's news.
  static let userID = "ferry"
  static let memberData = #"{"user_id":"ferry","user_info":{"name":"Ferry"}}"#

  enum Action: Sendable {
    case send(String)
    case deliver(Event)
    case typing(Typing)
    /// The channel is being listened to from now on.
    case subscribed(ChannelID)
    case refused(ChannelID, reason: String)
    case end(Ending)
  }

  /// Why a connection is over.
  struct Ending: Hashable, Sendable {
    let code: Int
    let reason: String
    var advice: CloseAdvice { CloseAdvice(code: code) }
  }

  private let appKey: AppKey
  private let reader: EventReader
  private let channels: [ChannelName]
  private var pending: Set<ChannelID> = []
  private var frames = 0
  /// Names of the members of presence channels, by user id: who leaves is told by id alone.
  private var members: [ChannelID: [String: String]] = [:]

  /// Nil until the service has greeted.
  private(set) var socketID: String?
  private(set) var lastHeard: Timestamp
  /// Counts whatever is heard.
  private(set) var heard = 0
  /// What the service asks for: after this many seconds of silence somebody has to ask.
  private(set) var activityTimeout = 120

  init(appKey: AppKey, reader: EventReader, channels: [ChannelName], now: Timestamp) {
    self.appKey = appKey
    self.reader = reader
    self.channels = channels
    lastHeard = now
  }

  func isConfirmed(_ channel: ChannelID) -> Bool { socketID != nil && !pending.contains(channel) }
  var isComplete: Bool { socketID != nil && pending.isEmpty }

  // MARK: Input

  mutating func receive(_ text: String, now: Timestamp) -> [Action] {
    lastHeard = now
    heard += 1
    guard let frame = Frame(text: text) else { return [] }
    switch frame.event {
    case "pusher:connection_established": return established(frame)
    case "pusher:ping": return [.send(FrameText.pong)]
    case "pusher:error": return error(frame)
    case "pusher_internal:subscription_succeeded": return succeeded(frame)
    case "pusher:subscription_error", "pusher_internal:subscription_error": return failed(frame)
    case "pusher_internal:member_added", "pusher_internal:member_removed": return member(frame, now: now)
    case let name where EventName.isReserved(name): return []
    default: return event(frame, now: now)
    }
  }

  /// Asks again for what the service has not confirmed. Signed anew: signatures are bound to the connection.
  mutating func subscribeAgain() -> [Action] {
    guard socketID != nil else { return [] }
    return channels.filter { pending.contains(ChannelID($0.text)) }.map { .send(subscription(to: $0)) }
  }

  // MARK: Connection

  private mutating func established(_ frame: Frame) -> [Action] {
    guard let data = frame.data?.parsed, let socketID = data["socket_id"]?.text else {
      return [.end(Ending(code: 1002, reason: "the greeting names no socket_id"))]
    }
    self.socketID = socketID
    if let seconds = data["activity_timeout"]?.integer, seconds > 0 { activityTimeout = Int(min(seconds, 3600)) }
    pending = Set(channels.map { ChannelID($0.text) })
    return channels.map { .send(subscription(to: $0)) }
  }

  private func subscription(to channel: ChannelName) -> String {
    guard let socketID, channel.access != .everybody else { return FrameText.subscribe(to: channel.text) }
    let channelData = channel.isPresence ? Self.memberData : nil
    let auth = appKey.channelAuth(socketID: socketID, channel: channel.text, channelData: channelData)
    return FrameText.subscribe(to: channel.text, auth: auth, channelData: channelData)
  }

  /// An error of the connection carries a code; one of a subscription carries none, or the code for "not allowed".
  private mutating func error(_ frame: Frame) -> [Action] {
    let data = frame.data?.parsed ?? .null
    let message = data["message"]?.string ?? data.string ?? "the service reported an error without saying which"
    let code = data["code"]?.integer ?? data["code"]?.string.flatMap { Int64($0) }
    if let code, socketID == nil || code != Int64(ErrorCode.unauthorized.rawValue), (4000...4299).contains(code) {
      return [.end(Ending(code: Int(code), reason: message))]
    }
    guard
      let channel = pending.sorted(by: { $0.rawValue.utf8.count > $1.rawValue.utf8.count })
        .first(where: { message.contains($0.rawValue) })
    else { return [] }
    if message.contains("Existing subscription") { return confirm(channel) }
    return [.refused(channel, reason: message)]
  }

  // MARK: Channels

  private mutating func confirm(_ channel: ChannelID) -> [Action] {
    pending.remove(channel) == nil ? [] : [.subscribed(channel)]
  }

  private mutating func succeeded(_ frame: Frame) -> [Action] {
    guard let channel = frame.channel.map({ ChannelID($0) }) else { return [] }
    if case .object(let users)? = frame.data?.parsed["presence"]?["hash"] {
      members[channel] = users.mapValues { $0["name"]?.text ?? "" }
    }
    return confirm(channel)
  }

  private func failed(_ frame: Frame) -> [Action] {
    guard let channel = frame.channel.map({ ChannelID($0) }), pending.contains(channel) else { return [] }
    let data = frame.data?.parsed ?? .null
    let reason = data["error"]?.string ?? data["message"]?.string ?? data.string ?? "the service refused it"
    return [.refused(channel, reason: reason)]
  }

  private mutating func member(_ frame: Frame, now: Timestamp) -> [Action] {
    guard let channel = frame.channel.map({ ChannelID($0) }), let data = frame.data?.parsed,
      let id = data["user_id"]?.text, id != Self.userID
    else { return [] }
    frames += 1
    let joins = frame.event == "pusher_internal:member_added"
    let name = data["user_info"]?["name"]?.text ?? members[channel]?[id] ?? ""
    members[channel, default: [:]][id] = joins ? name : nil
    let member = Membership(member: Author(id: UserID(id), name: name.isEmpty ? id : name))
    let kind: Event.Kind = joins ? .joined(member) : .left(member)
    return [.deliver(Event(key: EventKey("p:\(unique)"), channel: channel, time: now, kind: kind))]
  }

  private mutating func event(_ frame: Frame, now: Timestamp) -> [Action] {
    guard let channel = frame.channel.map({ ChannelID($0) }) else { return [] }
    frames += 1
    switch reader.read(frame, in: channel, unique: unique, now: now) {
    case .event(let event): return [.deliver(event)]
    case .typing(let typing): return [.typing(typing)]
    case nil: return []
    }
  }

  private var unique: String { "\(socketID ?? "")#\(frames)" }
}
