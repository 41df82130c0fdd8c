import FerryConfig
import FerryCore
import Testing

@testable import PusherProvider

@Suite struct SigningTests {
  let documented = AppKey(key: "278d425bdf160c739803", secret: Secret("7ad3773142a6692b25b8"))
  let gateway = AppKey(key: "gwkey", secret: Secret("gwsecret"))

  private func signature(_ parameters: [(name: String, value: String)]) -> String? {
    parameters.last { $0.name == "auth_signature" }?.value
  }

  @Test func `the documentation's own request gets the documented signature`() {
    let body = Array(#"{"name":"foo","channels":["project-3"],"data":"{\"some\":\"data\"}"}"#.utf8)
    let signed = documented.signed(method: "POST", path: "/apps/3/events", body: body, seconds: 1_353_088_179)
    #expect(signed.contains { $0 == ("body_md5", "ec365a775a4cd0599faeb73354201b6f") })
    #expect(signature(signed) == "da454824c97ba181a32ccc17a72625ba02771f50b50e1e7430e47a1f3f457e6c")
  }

  @Test func `a body beyond ASCII is digested as UTF-8`() {
    let text = #"{"name":"new_message","channel":"chatroom","data":"{\"sender\":\"Ann\",\"text\":\"h\#u{e9}llo\"}"}"#
    #expect(text.utf8.count == 93)
    let signed = gateway.signed(
      method: "post", path: "/apps/42/events", body: Array(text.utf8), seconds: 1_700_000_000)
    #expect(signed.contains { $0 == ("body_md5", "ed078ccfb54666ed4352e15b8f7fbc0a") })
    #expect(signature(signed) == "e17163c72240138f528b27f4e303e3dd73757cd7d4e19113034a7eff028a59cd")
  }

  @Test func `parameters are signed by name and without escapes`() {
    let signed = gateway.signed(
      method: "GET", path: "/apps/42/channels",
      parameters: [("info", "user_count"), ("filter_by_prefix", "presence-")], body: [], seconds: 1_700_000_000)
    #expect(signature(signed) == "8bf599bf6b9abb60618c73999007a31f3e94f23f5a67044c5c585ee4aac6a37b")
  }

  @Test func `a read request may sign the digest of its empty body`() {
    let text = AppKey.stringToSign(
      method: "GET", path: "/apps/42/channels",
      parameters: [
        ("INFO", "user_count"), ("filter_by_prefix", "presence-"), ("auth_signature", "ignored"),
        ("body_md5", AppKey.digest(of: [])), ("auth_version", "1.0"), ("auth_timestamp", "1700000000"),
        ("auth_key", "gwkey"),
      ])
    #expect(gateway.signature(of: text) == "6ced544b73bdafb12f4b983be4c60e13843939f7a0a9f776dfd3e5228a25fc19")
  }

  @Test func `a private channel's signature matches the documentation`() {
    #expect(
      documented.channelAuth(socketID: "1234.1234", channel: "private-foobar")
        == "278d425bdf160c739803:58df8b0c36d6982b82c3ecf6b4662e34fe8c25bba48f5369f135bf843651c3a4")
  }

  @Test func `a presence channel's signature covers the member's data as it travels`() {
    #expect(
      documented.channelAuth(
        socketID: "1234.1234", channel: "presence-foobar",
        channelData: #"{"user_id":10,"user_info":{"name":"Mr. Channels"}}"#)
        == "278d425bdf160c739803:31935e7d86dba64c2a90aed31fdc61869f9b22ba9d8863bba239c03ca481bc80")
  }

  @Test func `a sign-in's signature matches the documentation`() {
    #expect(
      documented.userAuth(socketID: "1234.1234", userData: #"{"id":"12345"}"#)
        == "278d425bdf160c739803:4708d583dada6a56435fb8bc611c77c359a31eebde13337c16ab43aa6de336ba")
  }
}
