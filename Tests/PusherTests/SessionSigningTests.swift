import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import Testing

@testable import PusherProvider

/// Sign-in, endpoints that sign, keys of encrypted channels, and members over several connections.
@Suite struct SessionSigningTests {
  static let now = SessionTests.now
  let greeting = FrameText.established(socketID: "1234.1234", activityTimeout: 15)

  private func succeeded(_ channel: String, _ data: String = "{}") -> String {
    FrameText.event("pusher_internal:subscription_succeeded", channel: channel, data: data)
  }

  // MARK: Sign-in

  @Test func `channels wait until the sign-in is confirmed`() throws {
    let user = AccountUser(id: "bridge", info: ["name": "Bridge"])
    var session = try SessionTests.session(["a", "presence-a"], user: user)
    let asked = session.receive(greeting, now: Self.now).map(\.words)
    let userData = #"{"id":"bridge","user_info":{"name":"Bridge"}}"#
    let auth = SessionTests.appKey.userAuth(socketID: "1234.1234", userData: userData)
    #expect(asked == ["send \(FrameText.signIn(auth: auth, userData: userData))"])
    let success = #"{"event":"pusher:signin_success","data":{"user_data":"{\"id\":\"bridge\"}"}}"#
    let actions = session.receive(success, now: Self.now).map(\.words)
    #expect(actions.count == 3)
    #expect(actions[0] == "signed in")
    #expect(actions[2].contains(#"{\"user_id\":\"bridge\",\"user_info\":{\"name\":\"Bridge\"}}"#))
    #expect(session.receive(success, now: Self.now).isEmpty)
  }

  @Test func `the sign-in's signature is the documented one`() {
    #expect(
      SessionTests.appKey.userAuth(socketID: "1234.1234", userData: #"{"id":"12345"}"#)
        == "278d425bdf160c739803:4708d583dada6a56435fb8bc611c77c359a31eebde13337c16ab43aa6de336ba")
  }

  @Test(arguments: [
    #"{"event":"pusher:error","data":{"code":null,"message":"Invalid signature"}}"#,
    #"{"event":"pusher:error","data":{"code":4009,"message":"Connection not authorized"}}"#,
    #"{"event":"pusher:error","data":"what is pusher:signin?"}"#,
  ])
  func `a sign-in that fails is told, and the channels are listened to all the same`(frame: String) throws {
    var session = try SessionTests.session(["a"], user: AccountUser(id: "u", info: [:]))
    _ = session.receive(greeting, now: Self.now)
    let actions = session.receive(frame, now: Self.now).map(\.words)
    #expect(actions.count == 2)
    #expect(actions.first?.hasPrefix("not signed in: ") == true)
    _ = session.receive(succeeded("a"), now: Self.now)
    #expect(session.state.phase == .degraded)
    #expect(session.state.reason?.hasPrefix("not signed in: ") == true)
  }

  @Test func `a service that knows no sign-in is not waited for for ever`() throws {
    var session = try SessionTests.session(["a"], user: AccountUser(id: "u", info: [:]))
    _ = session.receive(greeting, now: Self.now)
    #expect(session.subscribeAgain(now: Self.now.advanced(by: .seconds(9))).isEmpty)
    let actions = session.subscribeAgain(now: Self.now.advanced(by: .seconds(10))).map(\.words)
    #expect(
      actions == [
        "not signed in: the service does not answer", #"send {"event":"pusher:subscribe","data":{"channel":"a"}}"#,
      ])
  }

  @Test func `an endpoint signs the sign-in for this connection only`() throws {
    var session = try SessionTests.session(["a"], userSigner: nil, user: AccountUser(id: "u", info: [:]))
    #expect(session.receive(greeting, now: Self.now).map(\.words) == ["authorize user for 1234.1234"])
    let answer: JSONValue = ["auth": "k:s", "user_data": #"{"id":"u"}"#]
    #expect(session.signInAuthorized(answer, socketID: "9.9").isEmpty)
    let sent = session.signInAuthorized(answer, socketID: "1234.1234").map(\.words)
    #expect(sent == [#"send {"event":"pusher:signin","data":{"auth":"k:s","user_data":"{\"id\":\"u\"}"}}"#])
    var other = try SessionTests.session(["a"], userSigner: nil, user: AccountUser(id: "u", info: [:]))
    _ = other.receive(greeting, now: Self.now)
    #expect(other.signInAuthorized(["auth": "k:s"], socketID: "1234.1234").count == 2)
  }

  // MARK: Endpoints

  @Test func `subscriptions are signed by the endpoint, one question at a time, and anew on every connection`() throws {
    var session = try SessionTests.session(["a", "private-a", "presence-a"], signer: nil)
    let actions = session.receive(greeting, now: Self.now).map(\.words)
    #expect(actions.dropFirst() == ["authorize private-a for 1234.1234", "authorize presence-a for 1234.1234"])
    // Nobody asks again while the endpoint thinks.
    #expect(session.subscribeAgain(now: Self.now).map(\.words).count == 1)
    let presence = try #require(ChannelName("presence-a"))
    let answer = Session.Authorization(auth: "k:s", channelData: #"{"user_id":7}"#)
    #expect(session.authorized(presence, socketID: "0.0", answer).isEmpty)
    let sent = session.authorized(presence, socketID: "1234.1234", answer).map(\.words)
    #expect(sent.first?.contains(#""auth":"k:s""#) == true)
    #expect(sent.first?.contains(#""channel_data":"{\"user_id\":7}""#) == true)
    // The endpoint has said who Ferry is.
    let list = #"{"presence":{"ids":[7,8],"hash":{"7":{"name":"Ferry"},"8":null},"count":2}}"#
    _ = session.receive(succeeded("presence-a", list), now: Self.now)
    #expect(session.memory.members["presence-a"] == ["8": ""])
    let privateChannel = try #require(ChannelName("private-a"))
    let refused = session.notAuthorized(privateChannel, socketID: "1234.1234", "status 403").map(\.words)
    #expect(refused == ["refused private-a: status 403"])
    #expect(session.state.phase == .degraded)
    #expect(session.subscribeAgain(now: Self.now).map(\.words).last == "authorize private-a for 1234.1234")
    _ = session.receive(FrameText.established(socketID: "5.6", activityTimeout: 15), now: Self.now)
    #expect(session.subscribeAgain(now: Self.now).count == 1)
    #expect(session.authorized(privateChannel, socketID: "1234.1234", answer).isEmpty)
  }

  // MARK: Encrypted channels

  private func sealed(_ text: String, _ box: SecretBox, _ channel: String = "private-encrypted-a") -> String {
    let data = #"{"text":"\#(text)","ID":"\#(text)"}"#
    return FrameText.event("new_message", channel: channel, data: box.seal(data))
  }

  @Test func `sealed events are opened, and nothing else on the channel is delivered`() throws {
    let masterKey = try SecretBoxTests.masterKey()
    let box = masterKey.box(for: "private-encrypted-a")
    var session = try SessionTests.session(["private-encrypted-a"], masterKey: masterKey)
    _ = session.receive(greeting, now: Self.now)
    _ = session.receive(succeeded("private-encrypted-a"), now: Self.now)
    #expect(session.receive(sealed("hi", box), now: Self.now).first?.words.hasPrefix("deliver m:hi ") == true)
    let lost = ["1 unreadable in private-encrypted-a"]
    let foreign = masterKey.box(for: "private-encrypted-b")
    #expect(session.receive(sealed("x", foreign), now: Self.now).map(\.words) == lost)
    #expect(session.state.phase == .degraded)
    let plain = FrameText.event("new_message", channel: "private-encrypted-a", data: #"{"text":"in the clear"}"#)
    #expect(session.receive(plain, now: Self.now).map(\.words) == lost)
    #expect(session.receive(sealed("well", box), now: Self.now).count == 1)
    #expect(session.state.phase == .connected)
  }

  @Test func `an event that does not open waits, with all behind it, for a new key`() throws {
    let old = try SecretBoxTests.masterKey().box(for: "old")
    let new = try SecretBoxTests.masterKey().box(for: "new")
    let channel = try #require(ChannelName("private-encrypted-a"))
    var session = try SessionTests.session([channel.text], signer: nil)
    _ = session.receive(greeting, now: Self.now)
    _ = session.authorized(
      channel, socketID: "1234.1234", Session.Authorization(auth: "k:s", sharedSecret: old.sharedSecret))
    _ = session.receive(succeeded(channel.text), now: Self.now)
    #expect(session.receive(sealed("1", old), now: Self.now).count == 1)
    let ask = "authorize private-encrypted-a for 1234.1234"
    #expect(session.receive(sealed("2", new), now: Self.now).map(\.words) == [ask])
    #expect(session.receive(sealed("3", old), now: Self.now).isEmpty)
    #expect(session.receive(sealed("4", new), now: Self.now).isEmpty)
    #expect(session.release("private-encrypted-a", now: Self.now) == nil)
    // An endpoint that fails is asked again; nothing is lost by that.
    _ = session.notAuthorized(channel, socketID: "1234.1234", "status 500")
    #expect(session.release("private-encrypted-a", now: Self.now) == nil)
    #expect(session.subscribeAgain(now: Self.now).map(\.words) == [ask])
    let answer = Session.Authorization(auth: "k:s", sharedSecret: new.sharedSecret)
    #expect(session.authorized(channel, socketID: "1234.1234", answer).isEmpty)
    // What comes before the others are handed on keeps its place behind them.
    #expect(session.receive(sealed("5", new), now: Self.now).isEmpty)
    var released: [String] = []
    while let actions = session.release("private-encrypted-a", now: Self.now) { released += actions.map(\.words) }
    #expect(released.map { $0.prefix(12) } == ["deliver m:2 ", "1 unreadable", "deliver m:4 ", "deliver m:5 "])
    #expect(session.receive(sealed("6", new), now: Self.now).count == 1)
    // Not asked for again at once: whoever publishes rubbish must not make Ferry hammer the endpoint.
    #expect(session.receive(sealed("7", old), now: Self.now).map(\.words) == ["1 unreadable in private-encrypted-a"])
    let later = Self.now.advanced(by: .seconds(30))
    #expect(session.receive(sealed("8", old), now: later).map(\.words) == [ask])
  }

  @Test func `what waits for a key outlasts the connection`() throws {
    let (old, new) = (try SecretBoxTests.masterKey().box(for: "old"), try SecretBoxTests.masterKey().box(for: "new"))
    let channel = try #require(ChannelName("private-encrypted-a"))
    var first = try SessionTests.session([channel.text], signer: nil)
    _ = first.receive(greeting, now: Self.now)
    _ = first.authorized(
      channel, socketID: "1234.1234", Session.Authorization(auth: "k:s", sharedSecret: old.sharedSecret))
    #expect(first.receive(sealed("1", new), now: Self.now).count == 1)
    var second = try SessionTests.session([channel.text], signer: nil, memory: first.memory)
    _ = second.receive(FrameText.established(socketID: "5.6", activityTimeout: 15), now: Self.now)
    let answer = Session.Authorization(auth: "k:s", sharedSecret: new.sharedSecret)
    #expect(second.authorized(channel, socketID: "5.6", answer).count == 1)
    #expect(second.release("private-encrypted-a", now: Self.now)?.count == 1)
  }

  @Test func `an endpoint that gives no key to an encrypted channel is told`() throws {
    let channel = try #require(ChannelName("private-encrypted-a"))
    var session = try SessionTests.session([channel.text], signer: nil)
    _ = session.receive(greeting, now: Self.now)
    for secret in [nil, "AAAA"] {
      let answer = Session.Authorization(auth: "k:s", sharedSecret: secret)
      let actions = session.authorized(channel, socketID: "1234.1234", answer).map(\.words)
      #expect(actions.first?.contains("shared_secret") == true)
    }
  }

  // MARK: Members

  @Test func `who came or went while nobody listened is told by comparing the lists`() throws {
    func list(_ hash: String) -> String { #"{"presence":{"ids":[],"hash":\#(hash),"count":0}}"# }
    var first = try SessionTests.session(["presence-a"])
    _ = first.receive(greeting, now: Self.now)
    let one = list(#"{"1":{"name":"Ann"},"2":{"name":"Bob"},"ferry":{"name":"Ferry"}}"#)
    #expect(first.receive(succeeded("presence-a", one), now: Self.now).map(\.words) == ["subscribed presence-a"])
    var second = try SessionTests.session(["presence-a"], memory: first.memory)
    _ = second.receive(FrameText.established(socketID: "5.6", activityTimeout: 15), now: Self.now)
    let two = list(#"{"2":{"name":"Bob"},"3":{"name":"Cy"},"ferry":{"name":"Ferry"}}"#)
    let actions = second.receive(succeeded("presence-a", two), now: Self.now)
    #expect(actions.count == 3)
    guard case .deliver(let left) = actions[1], case .deliver(let joined) = actions[2] else {
      throw FerryError(.badData, "not events")
    }
    #expect(left.kind == .left(Membership(member: Author(id: "1", name: "Ann"))))
    #expect(joined.kind == .joined(Membership(member: Author(id: "3", name: "Cy"))))
    #expect(left.key != joined.key)
    // The same list again, and an empty one written as a list, as one service does.
    #expect(second.receive(succeeded("presence-a", two), now: Self.now).isEmpty)
    #expect(second.receive(succeeded("presence-a", list("[]")), now: Self.now).count == 2)
    // No list at all is no list of nobody.
    #expect(second.receive(succeeded("presence-a"), now: Self.now).isEmpty)
  }

  @Test func `a user with several connections joins once`() throws {
    var session = try SessionTests.session(["presence-a"])
    _ = session.receive(greeting, now: Self.now)
    func member(_ event: String, _ data: String) -> Int {
      let frame = FrameText.event("pusher_internal:member_\(event)", channel: "presence-a", data: data)
      return session.receive(frame, now: Self.now).count
    }
    #expect(member("added", #"{"user_id":1,"user_info":{"name":"Ann"}}"#) == 1)
    #expect(member("added", #"{"user_id":"1"}"#) == 0)
    #expect(member("removed", #"{"user_id":1}"#) == 1)
    #expect(member("removed", #"{"user_id":1}"#) == 0)
    #expect(member("added", "{}") == 0)
    #expect(member("added", #"{"user_id":"ferry"}"#) == 0)
  }

  // MARK: Errors

  @Test func `an error that does not say which channel means those that need a signature`() throws {
    var session = try SessionTests.session(["a", "private-a", "presence-b"])
    _ = session.receive(greeting, now: Self.now)
    let frame = #"{"event":"pusher:error","data":"{\"code\":4009,\"message\":\"Connection is unauthorized\"}"}"#
    let actions = session.receive(frame, now: Self.now).map { $0.words.prefix(18) }
    #expect(actions == ["refused private-a:", "refused presence-b"])
  }

  @Test func `nothing a service says makes it fail`() async throws {
    var random = SeededGenerator(seed: 6)
    let names = [
      "pusher:connection_established", "pusher:error", "pusher:ping", "pusher:pong", "pusher:signin_success",
      "pusher_internal:subscription_succeeded", "pusher:subscription_error", "pusher_internal:member_added",
      "pusher_internal:member_removed", "new_message", "message:update", "message_deleted", "client-typing",
      "message_read", "chunked-new_message", "message_reaction", "user_joined", "messaging", #"App\Events\X"#,
    ]
    let channels = ["private-encrypted-a", "presence-a", "a", "", "nobody's"]
    let values = [
      "null", "7", "-1", "1e300", "true", #""""#, #""text""#, #""[]""#, "[]", "{}", #"{"socket_id":7}"#,
      #"{"presence":{"hash":[],"ids":7}}"#, #"{"presence":{"hash":{"1":7,"2":[]}}}"#, #"{"user_id":[]}"#,
      #"{"user_id":9007199254740993,"user_info":"x"}"#, #"{"code":"4301","message":[]}"#, #"{"code":9e18}"#,
      #"{"id":{},"text":[],"sender":{"name":""},"seen":[7,null,[],{"id":1}],"ferry":{"reader":7}}"#,
      #"{"id":"1","index":3,"chunk":"x","final":1}"#, #""{\"id\":1,\"seen\":[{}],\"typing\":\"no\"}""#,
      #"{"nonce":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB","ciphertext":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB"}"#,
    ]
    for preset in Preset.allCases.map(Optional.some) + [nil] {
      let profile = preset.map { Profile($0) } ?? Profile()
      var session = try SessionTests.session(
        ["private-encrypted-a", "presence-a", "a"], user: AccountUser(id: "u", info: [:]),
        masterKey: try SecretBoxTests.masterKey(), profile: profile)
      for _ in 0..<600 {
        await Task.yield()
        let name = JSONText.quoted(names.randomElement(using: &random) ?? "")
        let channel = JSONText.quoted(channels.randomElement(using: &random) ?? "")
        let data = values.randomElement(using: &random) ?? ""
        let text =
          #"{"event":\#(name),"channel":\#(channel),"data":\#(data),"user_id":\#(values.randomElement(using: &random) ?? "")}"#
        _ = session.receive(text, now: Self.now)
        _ = session.receive(String(text.prefix(Int.random(in: 0...text.count, using: &random))), now: Self.now)
        _ = session.subscribeAgain(now: Self.now)
      }
    }
  }
}
