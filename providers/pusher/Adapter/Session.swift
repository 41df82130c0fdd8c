import FerryCore
import FerryRuntime

/// One connection to the service, decided in a value: what a frame means and what is to be done about it.
struct Session: Sendable {
  /// What all connections of one run have in common.
  struct Context: Sendable {
    let channels: [ChannelName]
    let readers: [ChannelID: EventReader]
    /// Signs by itself; nil where an endpoint of the app does.
    let signer: AppKey?
    /// Signs users' sign-ins by itself; nil where an endpoint does.
    let userSigner: AppKey?
    /// As whom to sign in; nil to stay nobody.
    let user: AccountUser?
    /// From which the keys of encrypted channels are made.
    let masterKey: SecretBox?
  }

  /// What outlasts a connection.
  struct Memory: Sendable {
    var messages = MessageMemory()
    var chunks = ChunkAssembly()
    /// Names of the members of presence channels, by user id. Without an entry, nobody has said who is there.
    var members: [ChannelID: [String: String]] = [:]
    /// As whom Ferry is in a presence channel, where an endpoint decided it.
    var ownIDs: [ChannelID: String] = [:]
    var boxes: [ChannelID: SecretBox] = [:]
    /// When a channel's key was last asked for again because an event did not open.
    var refreshed: [ChannelID: Timestamp] = [:]
    /// Events that did not open, and all after them, while a new key is asked for.
    var held: [ChannelID: [(frame: Frame, unique: String)]] = [:]
  }

  enum Action: Sendable {
    case send(String)
    /// A subscription is to be signed by the endpoint, and the answer given to `authorized` or `notAuthorized`.
    case authorize(ChannelName, socketID: String)
    /// The same for the sign-in, and `signInAuthorized` or `signInFailed`.
    case authorizeUser(socketID: String)
    case deliver(Event)
    case typing(Typing)
    /// The channel is being listened to from now on.
    case subscribed(ChannelID)
    case refused(ChannelID, reason: String)
    case signedIn
    case notSignedIn(reason: String)
    /// An event that no key opens, or that was published without being sealed. It is lost.
    case unreadable(ChannelID, count: Int)
    /// Sets of slices that never became complete. What they held is lost.
    case incomplete(ChannelID, count: Int)
    case pong
    /// The service does not take a client event.
    case rejected(code: Int?, reason: String)
    case end(Ending)
  }

  /// Why a connection is over.
  struct Ending: Hashable, Sendable {
    let code: Int
    let reason: String
    var advice: CloseAdvice { CloseAdvice(code: code) }
  }

  private enum SignIn: Hashable { case notAsked, waiting(since: Timestamp), over }

  let context: Context
  var memory: Memory
  /// Channels that the service has not confirmed, and those of them for which an endpoint has yet to answer.
  var pending: Set<ChannelID> = []
  var authorizing: Set<ChannelID> = []
  /// Channels with events that waited for a key, now that there is one.
  var ready: Set<ChannelID> = []
  /// What is wrong, by channel; the sign-in's is under the empty name.
  private(set) var troubles: [ChannelID: String] = [:]
  private var signIn = SignIn.notAsked
  private var frames = 0

  /// Nil until the service has greeted.
  private(set) var socketID: String?
  private(set) var lastHeard: Timestamp
  /// Counts whatever is heard.
  private(set) var heard = 0
  /// What the service asks for: after this many seconds of silence somebody has to ask.
  private(set) var activityTimeout = 120

  /// A service that says nothing to a sign-in does not know it.
  private static let signInTimeout = Duration.seconds(10)

  init(context: Context, memory: Memory = Memory(), now: Timestamp) {
    self.context = context
    self.memory = memory
    lastHeard = now
  }

  func isConfirmed(_ channel: ChannelID) -> Bool {
    socketID != nil && !pending.contains(channel) && context.readers[channel] != nil
  }
  var isComplete: Bool { socketID != nil && pending.isEmpty }

  /// What there is to tell about the connection.
  var state: ConnectionState {
    if let trouble = troubles.min(by: { $0.key < $1.key }) {
      let name = trouble.key.rawValue
      return ConnectionState(.degraded, reason: name.isEmpty ? trouble.value : "\(name): \(trouble.value)")
    }
    return ConnectionState(isComplete ? .connected : .connecting)
  }

  /// A name for one frame among all that were ever received.
  mutating func nextUnique() -> String {
    frames += 1
    return "\(socketID ?? "")#\(frames)"
  }

  mutating func note(_ trouble: String?, at channel: ChannelID) { troubles[channel] = trouble }

  // MARK: Input

  mutating func receive(_ text: String, now: Timestamp) -> [Action] {
    lastHeard = now
    heard += 1
    guard let frame = Frame(text: text) else { return [] }
    switch frame.event {
    case "pusher:connection_established": return established(frame, now: now)
    case "pusher:ping": return [.send(FrameText.pong)]
    case "pusher:pong": return [.pong]
    case "pusher:error": return error(frame)
    case "pusher:signin_success": return signInEnded(with: [.signedIn])
    case "pusher_internal:subscription_succeeded": return succeeded(frame, now: now)
    case "pusher:subscription_error", "pusher_internal:subscription_error": return failed(frame)
    case "pusher_internal:member_added", "pusher_internal:member_removed": return member(frame, now: now)
    case let name where EventName.isReserved(name): return []
    default: return event(frame, now: now)
    }
  }

  // MARK: Connection

  private mutating func established(_ frame: Frame, now: Timestamp) -> [Action] {
    guard let data = frame.data?.parsed, let socketID = data["socket_id"]?.text, !socketID.isEmpty else {
      return [.end(Ending(code: 1002, reason: "the greeting names no socket_id"))]
    }
    self.socketID = socketID
    if let seconds = data["activity_timeout"]?.integer, seconds > 0 { activityTimeout = Int(min(seconds, 3600)) }
    pending = Set(context.channels.map { ChannelID($0.text) })
    authorizing = []
    guard let user = context.user else { return subscribeToAll() }
    // Channels wait, because who is signed in decides who may join.
    signIn = .waiting(since: now)
    guard let signer = context.userSigner else { return [.authorizeUser(socketID: socketID)] }
    let auth = signer.userAuth(socketID: socketID, userData: user.userData)
    return [.send(FrameText.signIn(auth: auth, userData: user.userData))]
  }

  /// The endpoint has signed the sign-in.
  mutating func signInAuthorized(_ answer: JSONValue, socketID: String) -> [Action] {
    guard self.socketID == socketID, case .waiting = signIn else { return [] }
    guard let auth = answer["auth"]?.string, let userData = answer["user_data"]?.string else {
      return signInFailed("user_auth_endpoint's answer has no \"auth\" and \"user_data\"", socketID: socketID)
    }
    return [.send(FrameText.signIn(auth: auth, userData: userData))]
  }

  mutating func signInFailed(_ reason: String, socketID: String) -> [Action] {
    guard self.socketID == socketID else { return [] }
    return signInEnded(with: [.notSignedIn(reason: reason)])
  }

  /// The channels are asked for in any case: most of them do not depend on it.
  private mutating func signInEnded(with news: [Action]) -> [Action] {
    guard case .waiting = signIn else { return [] }
    signIn = .over
    for case .notSignedIn(let reason) in news { note("not signed in: \(reason)", at: "") }
    return news + subscribeToAll()
  }

  private mutating func subscribeToAll() -> [Action] { context.channels.flatMap { subscribe(to: $0) } }

  /// Asks again for what the service has not confirmed. Signed anew: signatures are bound to the connection.
  mutating func subscribeAgain(now: Timestamp) -> [Action] {
    guard let socketID else { return [] }
    if case .waiting(let since) = signIn {
      guard since.advanced(by: Self.signInTimeout) <= now else { return [] }
      return signInFailed("the service does not answer", socketID: socketID)
    }
    return context.channels.filter { channel in
      let id = ChannelID(channel.text)
      return pending.contains(id) || (memory.held[id] != nil && !ready.contains(id))
    }.flatMap { subscribe(to: $0) }
  }

  // MARK: Errors

  /// An error of the connection carries a code; one of a subscription carries none, or the code for "not allowed".
  private mutating func error(_ frame: Frame) -> [Action] {
    let data = frame.data?.parsed ?? .null
    let message = data["message"]?.string ?? data.string ?? "the service reported an error without saying which"
    let code = (data["code"]?.integer ?? data["code"]?.string.flatMap { Int64($0) }).flatMap(Int.init(exactly:))
    if let code, socketID == nil || code != Int(ErrorCode.unauthorized.rawValue), (4000...4299).contains(code) {
      return [.end(Ending(code: code, reason: message))]
    }
    if code == Int(ErrorCode.rateLimited.rawValue) || message.contains("lient event") {
      return [.rejected(code: code, reason: message)]
    }
    if code == Int(ErrorCode.watchlistLimit.rawValue) { return [] }
    // Nothing else has been asked for yet.
    if case .waiting = signIn { return signInEnded(with: [.notSignedIn(reason: message)]) }
    let named = pending.sorted(by: { $0.rawValue.utf8.count > $1.rawValue.utf8.count })
      .first(where: { Self.mentions($0.rawValue, in: message) })
    if let named {
      return message.contains("Existing subscription") ? confirm(named) : refuse(named, message)
    }
    guard code == Int(ErrorCode.unauthorized.rawValue) else { return [] }
    // There are services that do not say which: it can only be one of those that need a signature.
    return context.channels.filter { $0.access != .everybody }.map { ChannelID($0.text) }.filter(pending.contains)
      .flatMap { refuse($0, message) }
  }

  /// Whether a name stands in a text, and not merely within a longer name or word.
  private static func mentions(_ name: String, in text: String) -> Bool {
    func isOutside(_ byte: UInt8?) -> Bool {
      guard let byte else { return true }
      let isLetter = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
      let isDigit = (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
      return !isLetter && !isDigit && byte != UInt8(ascii: "-") && byte != UInt8(ascii: "_")
    }
    var rest = text[...]
    while let range = rest.firstRange(of: name) {
      let before = range.lowerBound > text.startIndex ? text.utf8[text.utf8.index(before: range.lowerBound)] : nil
      if isOutside(before), isOutside(text[range.upperBound...].utf8.first) { return true }
      rest = rest[range.upperBound...]
    }
    return false
  }
}
