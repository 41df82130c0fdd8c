import FerryCore
import FerryRuntime

/// Subscriptions, and who is there.
extension Session {
  /// What an endpoint says to a subscription.
  struct Authorization: Sendable {
    let auth: String
    /// The string exactly as it was signed.
    let channelData: String?
    /// The key of an encrypted channel, in base64.
    let sharedSecret: String?

    init(auth: String, channelData: String? = nil, sharedSecret: String? = nil) {
      self.auth = auth
      self.channelData = channelData
      self.sharedSecret = sharedSecret
    }
  }

  // MARK: Subscribing

  mutating func subscribe(to channel: ChannelName) -> [Action] {
    guard let socketID else { return [] }
    guard channel.access != .everybody else { return [.send(FrameText.subscribe(to: channel.text))] }
    let id = ChannelID(channel.text)
    if channel.isEncrypted, let masterKey = context.masterKey { memory.boxes[id] = masterKey.box(for: channel.text) }
    guard let signer = context.signer else {
      return authorizing.insert(id).inserted ? [.authorize(channel, socketID: socketID)] : []
    }
    let channelData = channel.isPresence ? (context.user ?? .ferry).channelData : nil
    let auth = signer.channelAuth(socketID: socketID, channel: channel.text, channelData: channelData)
    return [.send(FrameText.subscribe(to: channel.text, auth: auth, channelData: channelData))]
  }

  /// The endpoint has signed. An answer for an earlier connection is of no use: signatures are bound to it.
  mutating func authorized(
    _ channel: ChannelName, socketID: String, _ authorization: Authorization
  ) -> [Action] {
    guard self.socketID == socketID else { return [] }
    let id = ChannelID(channel.text)
    authorizing.remove(id)
    if channel.isEncrypted, context.masterKey == nil {
      guard let box = authorization.sharedSecret.flatMap({ SecretBox(base64: $0) }) else {
        return notAuthorized(channel, socketID: socketID, "auth_endpoint's answer has no \"shared_secret\"")
      }
      memory.boxes[id] = box
    }
    if memory.held[id] != nil { ready.insert(id) }
    guard pending.contains(id) else {
      // The key alone was asked for, and what was wrong with asking is over.
      note(nil, at: id)
      return []
    }
    if channel.isPresence {
      memory.ownIDs[id] =
        authorization.channelData
        .flatMap { JSONText.decode(JSONValue.self, from: $0) }?["user_id"]?.text
    }
    let frame = FrameText.subscribe(
      to: channel.text, auth: authorization.auth, channelData: authorization.channelData)
    return [.send(frame)]
  }

  mutating func notAuthorized(_ channel: ChannelName, socketID: String, _ reason: String) -> [Action] {
    guard self.socketID == socketID else { return [] }
    let id = ChannelID(channel.text)
    authorizing.remove(id)
    // Events that wait for a key go on waiting: it is asked for again.
    return refuse(id, reason)
  }

  mutating func confirm(_ channel: ChannelID) -> [Action] {
    guard pending.remove(channel) != nil else { return [] }
    note(nil, at: channel)
    return [.subscribed(channel)]
  }

  mutating func refuse(_ channel: ChannelID, _ reason: String) -> [Action] {
    note(reason, at: channel)
    return [.refused(channel, reason: reason)]
  }

  mutating func succeeded(_ frame: Frame, now: Timestamp) -> [Action] {
    guard let channel = frame.channel.map({ ChannelID($0) }) else { return [] }
    let confirmed = confirm(channel)
    guard ChannelName(channel.rawValue)?.isPresence == true, let presence = frame.data?.parsed["presence"] else {
      return confirmed
    }
    return confirmed + replaceMembers(of: channel, with: presence, now: now)
  }

  mutating func failed(_ frame: Frame) -> [Action] {
    guard let channel = frame.channel.map({ ChannelID($0) }), pending.contains(channel) else { return [] }
    let data = frame.data?.parsed ?? .null
    let told = [data["error"]?.string, data["message"]?.string, data.string].compactMap { $0 }.first { !$0.isEmpty }
    return refuse(channel, told ?? "the service refused it")
  }

  // MARK: Members

  private func ownID(in channel: ChannelID) -> String { memory.ownIDs[channel] ?? (context.user ?? .ferry).id }

  /// The list counts, whatever was heard before: who came or went while nobody listened is told now. The first list
  /// of a run is no news.
  private mutating func replaceMembers(of channel: ChannelID, with presence: JSONValue, now: Timestamp) -> [Action] {
    var members: [String: String] = [:]
    if case .object(let users)? = presence["hash"] {
      members = users.mapValues { Self.name(in: $0) }
    } else {
      for id in presence["ids"]?.array ?? [] { if let id = id.text { members[id] = "" } }
    }
    members[ownID(in: channel)] = nil
    defer { memory.members[channel] = members }
    guard let before = memory.members[channel] else { return [] }
    let unique = nextUnique()
    func news(_ ids: [String], _ names: [String: String], _ kind: (Membership) -> Event.Kind) -> [Action] {
      ids.sorted().map { id in
        let event = Event(
          key: EventKey("p:\(unique):\(id)"), channel: channel, time: now, kind: kind(Self.member(id, names[id])))
        return .deliver(event)
      }
    }
    return news(before.keys.filter { members[$0] == nil }, before) { .left($0) }
      + news(members.keys.filter { before[$0] == nil }, members) { .joined($0) }
  }

  mutating func member(_ frame: Frame, now: Timestamp) -> [Action] {
    guard let channel = frame.channel.map({ ChannelID($0) }), let data = frame.data?.parsed,
      let id = data["user_id"]?.text, id != ownID(in: channel)
    else { return [] }
    let known = memory.members[channel]
    let isThere = known?[id] != nil
    let kind: Event.Kind
    if frame.event == "pusher_internal:member_added" {
      let told = Self.name(in: data["user_info"] ?? .null)
      memory.members[channel, default: [:]][id] = told.isEmpty ? known?[id] ?? "" : told
      // There are services that tell every connection of a user.
      guard !isThere else { return [] }
      kind = .joined(Self.member(id, told))
    } else {
      memory.members[channel]?[id] = nil
      guard isThere || known == nil else { return [] }
      kind = .left(Self.member(id, known?[id]))
    }
    return [.deliver(Event(key: EventKey("p:\(nextUnique())"), channel: channel, time: now, kind: kind))]
  }

  private static func name(in info: JSONValue) -> String {
    info.first(["name", "username", "userName", "displayName", "display_name"], \.text) ?? ""
  }

  private static func member(_ id: String, _ name: String?) -> Membership {
    let name = name ?? ""
    return Membership(member: Author(id: UserID(id), name: name.isEmpty ? id : name))
  }
}
