import FerryCore
import Testing

@testable import PusherProvider

@Suite struct ChannelNameTests {
  @Test(arguments: [
    ("chatroom", ChannelName.Access.everybody, false, false),
    ("cache-a", .everybody, true, false),
    ("private-a", .signed, false, false),
    ("private-cache-a", .signed, true, false),
    ("private-encrypted-a", .signed, false, true),
    ("private-encrypted-cache-a", .signed, true, true),
    ("presence-a", .members, false, false),
    ("presence-cache-a", .members, true, false),
    ("privateer", .everybody, false, false),
  ])
  func `the longest prefix decides a channel's kind`(
    text: String, access: ChannelName.Access, isCache: Bool, isEncrypted: Bool
  ) throws {
    let name = try #require(ChannelName(text))
    #expect(name.access == access)
    #expect(name.isCache == isCache)
    #expect(name.isEncrypted == isEncrypted)
  }

  @Test(arguments: ["", "a b", "a:b", "#server-to-user-1", "caf\u{e9}", "a/b", String(repeating: "a", count: 201)])
  func `a name outside the rules is refused`(text: String) { #expect(ChannelName(text) == nil) }

  @Test func `every allowed sign is accepted up to the longest name`() {
    #expect(ChannelName("a_B-1=@,.;") != nil)
    #expect(ChannelName(String(repeating: "a", count: 200)) != nil)
    #expect(ChannelName(String(repeating: "a", count: 165), longest: ChannelName.longestSent) == nil)
  }
}

@Suite struct FrameTests {
  @Test func `the handshake has its data as a string`() {
    #expect(
      FrameText.established(socketID: "123.456", activityTimeout: 120)
        == #"{"event":"pusher:connection_established","data":"{\"socket_id\":\"123.456\",\"activity_timeout\":120}"}"#)
  }

  @Test func `an error has its data as an object`() {
    #expect(
      FrameText.error(.unknownKey, "no \"such\" key")
        == #"{"event":"pusher:error","data":{"code":4001,"message":"no \"such\" key"}}"#)
    #expect(FrameText.error(nil, "x") == #"{"event":"pusher:error","data":{"code":null,"message":"x"}}"#)
  }

  @Test func `an event carries the publisher's data as one string`() {
    #expect(
      FrameText.event("new_message", channel: "chatroom", data: #"{"text":"a\nb"}"#)
        == #"{"event":"new_message","channel":"chatroom","data":"{\"text\":\"a\\nb\"}"}"#)
    #expect(
      FrameText.event("client-typing", channel: "presence-a", data: "{}", userID: "u1")
        == #"{"event":"client-typing","channel":"presence-a","data":"{}","user_id":"u1"}"#)
  }

  @Test func `control characters and the whole of Unicode survive quoting`() {
    let text = String(String.UnicodeScalarView((0..<0x3000).compactMap(Unicode.Scalar.init))) + "\u{1F600}\u{2028}"
    #expect(JSONText.decode([String].self, from: "[\(JSONText.quoted(text))]") == [text])
  }

  @Test func `data is understood as a string, as an object and when it is missing`() throws {
    let asString = try #require(Frame(text: #"{"event":"e","channel":"c","data":"{\"a\":1}"}"#))
    #expect(asString.data?.string == #"{"a":1}"#)
    #expect(asString.data?.parsed["a"] == 1)
    let asObject = try #require(Frame(text: #"{"event":"e","data":{"b":[1,"x"],"a":true}}"#))
    #expect(asObject.data?.string == #"{"a":true,"b":[1,"x"]}"#)
    let missing = try #require(Frame(text: #"{"event":"e"}"#))
    #expect(missing.data == nil)
    let bare = try #require(Frame(text: #"{"event":"e","data":"hello"}"#))
    #expect(bare.data?.parsed == "hello")
    let null = try #require(Frame(text: #"{"event":"e","data":null}"#))
    #expect(null.data == nil)
  }

  @Test(arguments: ["", "{", "[]", "null", "7", #"{"event":7}"#, #"{"data":"x"}"#, #"{"event":"e","channel":{}}"#])
  func `what is no frame is nil`(text: String) { #expect(Frame(text: text) == nil) }

  @Test func `the ranges of codes say what to do`() {
    #expect(CloseAdvice(code: 4001) == .stop)
    #expect(CloseAdvice(code: 4099) == .stop)
    #expect(CloseAdvice(code: 4100) == .backOff)
    #expect(CloseAdvice(code: 4200) == .reconnect)
    #expect(CloseAdvice(code: 4301) == .carryOn)
    #expect(CloseAdvice(code: 1006) == .backOff)
  }
}
