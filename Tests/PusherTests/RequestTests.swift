import FerryConfig
import FerryCore
import FerryRuntime
import Testing

@testable import PusherProvider

@Suite struct RequestCheckTests {
  static let seconds: Int64 = 1_700_000_000
  let appKey = AppKey(key: "gwkey", secret: Secret("gwsecret"))

  private func refusal(
    _ parameters: [(name: String, value: String)], method: String = "POST", path: String = "/apps/42/events",
    body: String = "{}", now: Int64 = seconds
  ) -> String? {
    do throws(Refusal) {
      try RequestCheck(appKey: appKey).verify(
        method: method, paths: [path], parameters: parameters, body: Array(body.utf8),
        now: Timestamp(milliseconds: now * 1000))
      return nil
    } catch { return "\(error.status) \(error.text)" }
  }

  private func signed(body: String = "{}", key: AppKey? = nil) -> [(name: String, value: String)] {
    (key ?? appKey).signed(method: "POST", path: "/apps/42/events", body: Array(body.utf8), seconds: Self.seconds)
  }

  @Test func `a request that is signed well passes, up to ten minutes off`() {
    #expect(refusal(signed()) == nil)
    #expect(refusal(signed(), now: Self.seconds + 600) == nil)
    #expect(refusal(signed(), now: Self.seconds - 600) == nil)
  }

  @Test func `a wrong secret is told the text to sign and what was sent`() throws {
    let parameters = signed(key: AppKey(key: "gwkey", secret: Secret("wrong")))
    let sent = try #require(parameters.last?.value)
    #expect(
      refusal(parameters)
        == #"401 Invalid signature: you should have sent HmacSHA256Hex("POST\n/apps/42/events\nauth_key=gwkey"#
        + #"&auth_timestamp=1700000000&auth_version=1.0&body_md5=99914b932bd37a50b983c5e7c90ae93b", "#
        + #"your_secret_key), but you sent "\#(sent)""#)
  }

  @Test func `a stale request is told both times`() {
    let text =
      "401 Timestamp expired: Given timestamp (2023-11-14T22:13:20Z) not within 600s of server time "
      + "(2023-11-14T22:23:21Z)"
    #expect(refusal(signed(), now: Self.seconds + 601) == text)
    #expect(refusal(signed(), now: Self.seconds - 601)?.hasPrefix("401 Timestamp expired") == true)
  }

  @Test func `another body than the one that was signed is refused`() {
    #expect(refusal(signed(), body: "[]")?.hasPrefix("401 Invalid body_md5") == true)
    let bare = [("auth_key", "gwkey"), ("auth_timestamp", String(Self.seconds)), ("auth_version", "1.0")]
      .map { (name: $0.0, value: $0.1) }
    let text = AppKey.stringToSign(method: "POST", path: "/apps/42/events", parameters: bare)
    let unsignedBody = bare + [(name: "auth_signature", value: appKey.signature(of: text))]
    #expect(refusal(unsignedBody)?.hasPrefix("401 Missing body_md5") == true)
    #expect(refusal(unsignedBody, body: "") == nil)
  }

  @Test func `a signature for another path, method or parameter is none for this`() {
    #expect(refusal(signed(), path: "/apps/43/events")?.hasPrefix("401 Invalid signature") == true)
    #expect(refusal(signed(), method: "PUT")?.hasPrefix("401 Invalid signature") == true)
    #expect(refusal(signed() + [("info", "user_count")])?.hasPrefix("401 Invalid signature") == true)
  }

  @Test func `every missing or broken part is refused`() {
    #expect(refusal([])?.hasPrefix("401 Missing authentication") == true)
    for name in ["auth_key", "auth_timestamp", "auth_version", "auth_signature", "body_md5"] {
      #expect(refusal(signed().filter { $0.name != name })?.hasPrefix("401 ") == true)
      for value in ["", "x", "\u{0}", "-9223372036854775808", "9223372036854775807"] {
        let broken = signed().map { $0.name == name ? (name: name, value: value) : $0 }
        #expect(refusal(broken)?.hasPrefix("401 ") == true)
      }
    }
  }

  @Test(arguments: ["x", "-9223372036854775808", "9223372036854775807", "253402300800"])
  func `a time that is none is refused though it is signed`(time: String) {
    let bare = [("auth_key", "gwkey"), ("auth_timestamp", time), ("auth_version", "1.0")]
      .map { (name: $0.0, value: $0.1) }
    let text = AppKey.stringToSign(method: "POST", path: "/apps/42/events", parameters: bare)
    #expect(
      refusal(bare + [("auth_signature", appKey.signature(of: text))], body: "")?.hasPrefix("401 ") == true)
  }
}

@Suite struct PublishedEventTests {
  private func refusal(_ body: String) -> String? {
    do throws(Refusal) {
      _ = try PublishedEvent.one(from: Array(body.utf8))
      return nil
    } catch { return "\(error.status) \(error.text)" }
  }

  @Test func `one channel or several, and data of any kind`() throws {
    let one = try PublishedEvent.one(from: Array(#"{"name":"e","channel":"a","data":{"b":1}}"#.utf8))
    #expect(one.channels.map(\.text) == ["a"])
    #expect(one.data == #"{"b":1}"#)
    let several = try PublishedEvent.one(
      from: Array(#"{"name":"e","channels":["a","b","a"],"data":"x","socket_id":"1.2","info":"user_count"}"#.utf8))
    #expect(several.channels.map(\.text) == ["a", "b"])
    #expect(several.exceptSocketID == "1.2")
    #expect(several.info == [.userCount])
  }

  @Test(arguments: [
    ("", "400 Invalid body"), ("[]", "400 Invalid body"), ("{}", "400 Missing name"),
    (#"{"name":"","channel":"a","data":""}"#, "400 Missing name"),
    (#"{"name":"e","data":""}"#, "400 Invalid channels"),
    (#"{"name":"e","channels":[],"data":""}"#, "400 Invalid channels"),
    (#"{"name":"e","channel":"a b","data":""}"#, "400 Invalid channel name"),
    (##"{"name":"e","channel":"#x","data":""}"##, "400 Invalid channel name"),
    (#"{"name":"e","channel":"a"}"#, "400 Missing data"),
    (#"{"name":"pusher:x","channel":"a","data":""}"#, "400 Invalid event name"),
    (#"{"name":"pusher_internal:x","channel":"a","data":""}"#, "400 Invalid event name"),
    (#"{"name":"e","channel":"a","data":"","socket_id":"1"}"#, "400 Invalid socket_id"),
    (#"{"name":"e","channel":"a","data":"","socket_id":"1.2:x"}"#, "400 Invalid socket_id"),
    (#"{"name":"e","channel":"a","data":"","info":"age"}"#, "400 Invalid info"),
  ])
  func `each rule has its refusal`(body: String, refusal: String) {
    #expect(self.refusal(body)?.hasPrefix(refusal) == true, "\(self.refusal(body) ?? "accepted")")
  }

  @Test func `data is limited in UTF-8 bytes and the limit is named`() {
    let fits = String(repeating: "\u{e9}", count: 5120)
    #expect(refusal(#"{"name":"e","channel":"a","data":"\#(fits)"}"#) == nil)
    #expect(
      refusal(#"{"name":"e","channel":"a","data":"\#(fits)x"}"#)
        == "413 The data content of this event exceeds the allowed maximum (10240 bytes)")
  }

  @Test func `a hundred channels and ten events are the most`() throws {
    func channels(_ count: Int) -> String { (0..<count).map { "\"c\($0)\"" }.joined(separator: ",") }
    #expect(refusal(#"{"name":"e","channels":[\#(channels(100))],"data":""}"#) == nil)
    #expect(refusal(#"{"name":"e","channels":[\#(channels(101))],"data":""}"#)?.hasPrefix("400 ") == true)
    func batch(_ count: Int) -> [UInt8] {
      let item = #"{"name":"e","channel":"a","data":""}"#
      return Array(#"{"batch":[\#(repeatElement(item, count: count).joined(separator: ","))]}"#.utf8)
    }
    #expect(try PublishedEvent.batch(from: batch(10)).count == 10)
    #expect(throws: Refusal.self) { try PublishedEvent.batch(from: batch(11)) }
    #expect(throws: Refusal.self) { try PublishedEvent.batch(from: batch(0)) }
  }
}

@Suite struct PresenceListTests {
  @Test func `a user with two connections is one member`() throws {
    var list = PresenceList()
    let first = try PresenceList.Member(channelData: #"{"user_id":10,"user_info":{"name":"Ann"}}"#)
    let second = try PresenceList.Member(channelData: #"{"user_id":"10","user_info":{"name":"Other"}}"#)
    #expect([list.join(first), list.join(second)] == [true, false])
    #expect(list.text == #"{"presence":{"ids":["10"],"hash":{"10":{"name":"Ann"}},"count":1}}"#)
    #expect([list.leave("10"), list.leave("10"), list.leave("10")] == [false, true, false])
    #expect(list.text == #"{"presence":{"ids":[],"hash":{},"count":0}}"#)
  }

  @Test(arguments: [
    "", "7", "[]", "{}", #"{"user_id":null}"#, #"{"user_id":""}"#, #"{"user_id":{}}"#, #"{"user_id":[1]}"#,
  ])
  func `a member without an id is refused`(data: String) {
    #expect(throws: Refusal.self) { try PresenceList.Member(channelData: data) }
  }
}

@Suite struct RateWindowTests {
  @Test func `so many in a second and no more`() {
    var window = RateWindow()
    let start = Timestamp(milliseconds: 5000)
    let first = (0..<10).map { _ in window.admit(at: start, limit: 10) }
    #expect(first.allSatisfy { $0 })
    let late = window.admit(at: start.advanced(by: .milliseconds(999)), limit: 10)
    #expect(!late)
    let next = window.admit(at: start.advanced(by: .milliseconds(1000)), limit: 10)
    #expect(next)
  }
}
