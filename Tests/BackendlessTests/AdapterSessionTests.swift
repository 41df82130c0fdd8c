import FerryCore
import FerryRuntime
import FerryTestKit
import Testing

@testable import BackendlessProvider

@Suite struct AdapterSessionTests {
  private static let now = Timestamp(milliseconds: 1_800_000_000_000)

  private func subscription(_ id: String, _ role: RealtimeSession.Role, _ channel: ChannelID? = "room")
    -> RealtimeSession.Subscription
  {
    .init(id: id, role: role, channel: channel, name: "N-\(id)", options: ["channel": "room"])
  }

  private func session(_ extra: [RealtimeSession.Subscription] = []) -> RealtimeSession {
    let all = [subscription("c", .join), subscription("m", .messages), subscription("u", .users)] + extra
    return RealtimeSession(appID: "APP", query: "apiKey=K", subscriptions: all)
  }

  private func sent(_ actions: [RealtimeSession.Action]) -> [String] {
    actions.compactMap { if case .send(let text) = $0 { text } else { nil } }
  }

  private func connected(_ extra: [RealtimeSession.Subscription] = []) -> (RealtimeSession, [RealtimeSession.Action]) {
    var session = session(extra)
    _ = session.opened(sid: "s", .four, now: Self.now)
    let actions = session.receive(#"0/APP,{"sid":"own"}"#, now: Self.now)
    return (session, actions)
  }

  @Test func `each version is asked in its own way`() {
    var three = session()
    #expect(sent(three.opened(sid: "s", .three, now: Self.now)) == ["0/APP?apiKey=K,"])
    // The root is joined by the server itself.
    #expect(three.receive("0", now: Self.now).isEmpty)
    #expect(three.receive("0/APP", now: Self.now).first == .connected)
    var four = session()
    #expect(sent(four.opened(sid: "s", .four, now: Self.now)) == ["0/APP,"])
    #expect(four.receive(#"0/APP,{"sid":"own"}"#, now: Self.now).first == .connected)
    #expect(four.ownIDs == ["s", "own"])
  }

  @Test(arguments: [
    (#"1["x"]"#, "c", "SUB_RES"), ("", "c", "SUB_READY"),
  ])
  func `a channel is joined by either answer, and then listened to`(data: String, id: String, event: String) {
    var (session, first) = connected()
    #expect(sent(first) == [#"2/APP,["SUB_ON",{"id":"c","name":"N-c","options":{"channel":"room"}}]"#])
    let argument = event == "SUB_RES" ? #"{"id":"c","data":"connected"}"# : #"{"id":"c"}"#
    let joined = session.receive(#"2/APP,["\#(event)",\#(argument)]"#, now: Self.now)
    #expect(sent(joined).count == 2)
    #expect(!joined.contains(.ready("room")))
    _ = session.receive(#"2/APP,["SUB_READY",{"id":"m"}]"#, now: Self.now)
    // The first thing that is heard is an answer too.
    let ready = session.receive(#"2/APP,["SUB_RES",{"id":"u","data":{"status":"LISTING"}}]"#, now: Self.now)
    #expect(ready.first == .ready("room"))
    #expect(ready.last == .heard(subscription("u", .users), ["status": "LISTING"]))
    // Once is enough.
    #expect(session.receive(#"2/APP,["SUB_READY",{"id":"u"}]"#, now: Self.now).isEmpty)
  }

  @Test func `a service that never says that it is ready is believed after a while`() {
    var (session, _) = connected()
    _ = session.receive(#"2/APP,["SUB_RES",{"id":"c","data":"connected"}]"#, now: Self.now)
    #expect(session.tick(now: Self.now.advanced(by: .seconds(2))).isEmpty)
    #expect(session.tick(now: Self.now.advanced(by: .seconds(4))) == [.ready("room")])
  }

  @Test func `what is refused is told and asked again, later each time`() {
    var (session, _) = connected()
    _ = session.receive(#"2/APP,["SUB_RES",{"id":"c","data":"connected"}]"#, now: Self.now)
    _ = session.receive(#"2/APP,["SUB_READY",{"id":"m"}]"#, now: Self.now)
    let refusal = #"2/APP,["SUB_RES",{"id":"u","error":{"code":5002,"message":"no"}}]"#
    let refused = session.receive(refusal, now: Self.now)
    #expect(
      refused == [.refused(subscription("u", .users), ServiceFault(["code": 5002, "message": "no"])), .ready("room")])
    #expect(session.tick(now: Self.now.advanced(by: .seconds(4))).isEmpty)
    let again = Self.now.advanced(by: .seconds(5))
    #expect(sent(session.tick(now: again)).count == 1)
    _ = session.receive(refusal, now: again)
    #expect(session.tick(now: again.advanced(by: .seconds(9))).isEmpty)
    #expect(sent(session.tick(now: again.advanced(by: .seconds(10)))).count == 1)
  }

  @Test func `a channel whose messages are refused is not ready`() {
    var (session, _) = connected()
    _ = session.receive(#"2/APP,["SUB_RES",{"id":"c","data":"connected"}]"#, now: Self.now)
    _ = session.receive(#"2/APP,["SUB_READY",{"id":"u"}]"#, now: Self.now)
    let refused = session.receive(#"2/APP,["SUB_RES",{"id":"m","error":{"code":1}}]"#, now: Self.now)
    #expect(!refused.contains(.ready("room")))
    let later = Self.now.advanced(by: .seconds(6))
    _ = session.tick(now: later)
    #expect(session.receive(#"2/APP,["SUB_READY",{"id":"m"}]"#, now: later) == [.ready("room")])
  }

  @Test func `commands wait for the channel, and channels nobody listens to are joined for them`() {
    var session = session()
    #expect(session.command("x", "T", ["a": 1], in: "room", joinID: "c", now: Self.now).isEmpty)
    _ = session.opened(sid: "s", .four, now: Self.now)
    _ = session.receive(#"0/APP,{"sid":"own"}"#, now: Self.now)
    let joined = session.receive(#"2/APP,["SUB_RES",{"id":"c","data":"connected"}]"#, now: Self.now)
    let command =
      #"2/APP,["MET_REQ",{"id":"x","name":"PUB_SUB_COMMAND","options":{"channel":"room","data":{"a":1},"type":"T"}}]"#
    #expect(sent(joined).contains(command))
    let other = session.command("y", "T", .null, in: "other", joinID: "j", now: Self.now)
    #expect(sent(other).first?.contains(#""id":"j","name":"PUB_SUB_CONNECT""#) == true)
    let flushed = session.receive(#"2/APP,["SUB_READY",{"id":"j"}]"#, now: Self.now)
    #expect(sent(flushed).first?.contains(#""id":"y""#) == true)
    #expect(session.receive(#"2/APP,["MET_RES",{"id":"y","result":null}]"#, now: Self.now) == [.answered("y", nil)])
    let error = session.receive(#"2/APP,["MET_RES",{"id":"x","error":{"code":"5003","message":"no"}}]"#, now: Self.now)
    #expect(error == [.answered("x", ServiceFault(["code": "5003", "message": "no"]))])
  }

  @Test func `what was not sent can be withdrawn, what was cannot`() {
    var session = session()
    _ = session.command("x", "T", .null, in: "room", joinID: "c", now: Self.now)
    let withdrawals = [session.withdraw("x"), session.withdraw("x")]
    #expect(withdrawals == [true, false])
  }

  @Test(arguments: [
    (#"4/APP,"Invalid api key""#, "Invalid api key"), (#"4/APP,{"message":"Invalid api key"}"#, "Invalid api key"),
    ("4", "no reason given"),
  ])
  func `a refusal ends it, in either version's shape`(text: String, reason: String) {
    var session = session()
    _ = session.opened(sid: "s", .four, now: Self.now)
    #expect(session.receive(text, now: Self.now) == [.end(.refused(reason))])
  }

  @Test func `a service that does not answer, or says goodbye, is left`() {
    var silent = session()
    _ = silent.opened(sid: "s", .four, now: Self.now)
    #expect(silent.tick(now: Self.now.advanced(by: .seconds(14))).isEmpty)
    guard case .end(.closed)? = silent.tick(now: Self.now.advanced(by: .seconds(15))).first else {
      Issue.record("it waits for ever")
      return
    }
    var (joining, _) = connected()
    guard case .end(.closed)? = joining.tick(now: Self.now.advanced(by: .seconds(15))).last else {
      Issue.record("it waits for ever to join")
      return
    }
    var (parting, _) = connected()
    #expect(parting.receive("1/APP,", now: Self.now).count == 1)
    #expect(parting.receive("1/OTHER,", now: Self.now).isEmpty)
  }

  @Test func `the token changes without a new connection`() {
    var (session, _) = connected()
    #expect(
      sent(session.setUserToken("t", "TOKEN"))
        == [#"2/APP,["MET_REQ",{"id":"t","name":"SET_USER_TOKEN","options":{"userToken":"TOKEN"}}]"#])
    #expect(sent(session.setUserToken("t", nil)).first?.contains(#"{"userToken":null}"#) == true)
  }

  @Test func `whatever arrives, something sensible or nothing is done`() {
    var random = SystemRandomNumberGenerator()
    let pieces = [
      "2/APP,", "0/APP", "1", "4/APP,", "[", "]", "\"SUB_RES\"", "\"SUB_READY\"", "\"MET_RES\"", ",", "{", "}",
      "\"id\":",
      "\"c\"", "\"m\"", "\"error\":", "\"data\":", "null", "17", "\"code\":", "\u{0}", "👩‍👩‍👧", "\\", "5-", "/OTHER,",
    ]
    var (session, _) = connected([subscription("r", .rows(.deleted)), subscription("b", .bulk, nil)])
    for step in 0..<20_000 {
      let text = (0..<Int.random(in: 0...12, using: &random)).map { _ in pieces.randomElement(using: &random) ?? "" }
      let now = Self.now.advanced(by: .milliseconds(step))
      _ = session.receive(text.joined(), now: now)
      if step % 100 == 0 { _ = session.tick(now: now) }
    }
    #expect(session.ownIDs.count <= 2)
  }

  @Test func `a subscription keeps its id over all connections, and no two share one`() {
    let identity = ClientIdentity()
    #expect(identity.id(for: "a") == identity.id(for: "a"))
    #expect(identity.id(for: "a") != identity.id(for: "b"))
    #expect(ClientIdentity().id(for: "a") != identity.id(for: "a"))
    #expect(identity.clientID.count == 36)
  }
}
