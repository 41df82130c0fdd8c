import FerryConfig
import FerryCore
import Testing

@testable import PusherProvider

@Suite struct SessionTests {
  static let now = Timestamp(milliseconds: 1_700_000_000_000)
  let greeting = FrameText.established(socketID: "1234.1234", activityTimeout: 15)

  static let appKey = AppKey(key: "278d425bdf160c739803", secret: Secret("7ad3773142a6692b25b8"))

  private func session(_ channels: String...) throws -> Session { try Self.session(channels) }

  static func session(
    _ channels: [String], signer: AppKey? = appKey, userSigner: AppKey? = appKey, user: AccountUser? = nil,
    masterKey: SecretBox? = nil, profile: Profile = Profile(), memory: Session.Memory = Session.Memory()
  ) throws -> Session {
    let readers = channels.map { (ChannelID($0), EventReader(profile)) }
    let context = Session.Context(
      channels: try channels.map { try #require(ChannelName($0)) }, readers: Dictionary(uniqueKeysWithValues: readers),
      signer: signer, userSigner: userSigner, user: user, masterKey: masterKey)
    return Session(context: context, memory: memory, now: now)
  }

  private func describe(_ actions: [Session.Action]) -> [String] { actions.map(\.words) }

  @Test func `the greeting is answered with every subscription, signed for this connection`() throws {
    var session = try session("chatroom", "private-foobar", "presence-a")
    let actions = describe(session.receive(greeting, now: Self.now))
    #expect(actions.count == 3)
    #expect(actions[0] == #"send {"event":"pusher:subscribe","data":{"channel":"chatroom"}}"#)
    let signature = "58df8b0c36d6982b82c3ecf6b4662e34fe8c25bba48f5369f135bf843651c3a4"
    #expect(
      actions[1]
        == #"send {"event":"pusher:subscribe","data":{"auth":"278d425bdf160c739803:\#(signature)","#
        + #""channel":"private-foobar"}}"#)
    #expect(actions[2].contains(#""channel_data":"{\"user_id\":\"ferry\",\"user_info\":{\"name\":\"Ferry\"}}""#))
    #expect(session.activityTimeout == 15)
    #expect(!session.isComplete)
  }

  @Test func `the greeting may have its data as an object`() throws {
    var session = try session("a")
    _ = session.receive(
      #"{"event":"pusher:connection_established","data":{"socket_id":"1.2","activity_timeout":120}}"#, now: Self.now)
    #expect(session.socketID == "1.2")
  }

  @Test func `a channel is confirmed once`() throws {
    var session = try session("a", "b")
    _ = session.receive(greeting, now: Self.now)
    let confirmation = #"{"event":"pusher_internal:subscription_succeeded","channel":"a","data":"{}"}"#
    #expect(describe(session.receive(confirmation, now: Self.now)) == ["subscribed a"])
    #expect(describe(session.receive(confirmation, now: Self.now)) == [])
    #expect(session.isConfirmed("a"))
    #expect(!session.isConfirmed("b"))
    #expect(describe(session.subscribeAgain(now: Self.now)).count == 1)
    let existing = FrameText.error(nil, "Existing subscription to channel b")
    #expect(describe(session.receive(existing, now: Self.now)) == ["subscribed b"])
    #expect(session.isComplete)
  }

  @Test func `a refused subscription is told by each of the events that services use`() throws {
    var session = try session("private-a", "private-ab")
    _ = session.receive(greeting, now: Self.now)
    let frames = [
      FrameText.error(nil, "Invalid signature: Expected ... of 1.2:private-ab, but got x"),
      FrameText.error(.unauthorized, "private-ab: not authorized"),
      #"{"event":"pusher:subscription_error","channel":"private-ab","data":{"type":"AuthError","error":"no"}}"#,
      #"{"event":"pusher_internal:subscription_error","channel":"private-ab","data":"{}"}"#,
    ]
    for frame in frames {
      let actions = describe(session.receive(frame, now: Self.now))
      #expect(actions.count == 1)
      #expect(actions.first?.hasPrefix("refused private-ab: ") == true)
    }
  }

  @Test(arguments: [
    (#"{"event":"pusher:error","data":{"code":4001,"message":"no"}}"#, "end 4001 no"),
    (#"{"event":"pusher:error","data":"{\"code\":\"4100\",\"message\":\"full\"}"}"#, "end 4100 full"),
    (#"{"event":"pusher:connection_established","data":"{}"}"#, "end 1002 the greeting names no socket_id"),
  ])
  func `an error of the connection ends it`(frame: String, action: String) throws {
    var session = try session("a")
    #expect(describe(session.receive(frame, now: Self.now)) == [action])
  }

  @Test func `a client event over its limit is no reason to leave`() throws {
    var session = try session("a")
    _ = session.receive(greeting, now: Self.now)
    let actions = describe(session.receive(FrameText.error(.rateLimited, "slow down"), now: Self.now))
    #expect(actions == ["rejected 4301: slow down"])
  }

  @Test func `members come and go by name, but not Ferry itself`() throws {
    var session = try session("presence-a")
    _ = session.receive(greeting, now: Self.now)
    let presence = #"{"presence":{"ids":["u1"],"hash":{"u1":{"name":"Ann"},"ferry":{"name":"Ferry"}},"count":2}}"#
    _ = session.receive(
      FrameText.event("pusher_internal:subscription_succeeded", channel: "presence-a", data: presence), now: Self.now)
    func member(_ event: String, _ data: String) -> [String] {
      describe(
        session.receive(
          FrameText.event("pusher_internal:member_\(event)", channel: "presence-a", data: data), now: Self.now))
    }
    #expect(member("removed", #"{"user_id":"ferry"}"#) == [])
    #expect(member("removed", #"{"user_id":"u1"}"#).first?.contains(#"name: "Ann""#) == true)
    #expect(member("added", #"{"user_id":10,"user_info":{"name":"Bob"}}"#).first?.contains(#"name: "Bob""#) == true)
    #expect(member("removed", #"{"user_id":"10"}"#).first?.contains(#"name: "Bob""#) == true)
  }

  @Test func `pings are answered and unknown events passed over`() throws {
    var session = try session("a")
    #expect(describe(session.receive(FrameText.ping, now: Self.now)) == ["send \(FrameText.pong)"])
    #expect(describe(session.receive(#"{"event":"pusher_internal:new","data":"{}"}"#, now: Self.now)) == [])
    #expect(describe(session.receive("garbage", now: Self.now)) == [])
    #expect(session.heard == 3)
  }
}

extension Session.Action {
  /// For comparing.
  var words: String {
    switch self {
    case .send(let text): "send \(text)"
    case .authorize(let channel, let socketID): "authorize \(channel.text) for \(socketID)"
    case .authorizeUser(let socketID): "authorize user for \(socketID)"
    case .deliver(let event): "deliver \(event.key) \(event.kind)"
    case .typing(let typing): "typing \(typing.by.name)"
    case .subscribed(let channel): "subscribed \(channel)"
    case .refused(let channel, let reason): "refused \(channel): \(reason)"
    case .signedIn: "signed in"
    case .notSignedIn(let reason): "not signed in: \(reason)"
    case .unreadable(let channel, let count): "\(count) unreadable in \(channel)"
    case .incomplete(let channel, let count): "\(count) incomplete in \(channel)"
    case .pong: "pong"
    case .rejected(let code, let reason): "rejected \(code ?? 0): \(reason)"
    case .end(let ending): "end \(ending.code) \(ending.reason)"
    }
  }
}
