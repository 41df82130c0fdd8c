import FerryCore
import FerryRuntime
import Testing

@testable import BackendlessProvider

@Suite struct WireEngineTests {
  @Test func `version 4 joins packets with a separator`() throws {
    let packets = [EnginePacket(.message, "40/APPID,"), EnginePacket(.ping), EnginePacket(binary: [1, 2, 3])]
    let text = EnginePayload.encode(packets, version: .four)
    #expect(text == "440/APPID,\u{1e}2\u{1e}bAQID")
    #expect(try EnginePayload.decode(Array(text.utf8), version: .four) == packets)
  }

  @Test func `version 3 counts UTF-16 units`() throws {
    let packets = [EnginePacket(.message, "2[\"é😀\"]"), EnginePacket(.noop), EnginePacket(binary: [1, 2, 3])]
    let text = EnginePayload.encode(packets, version: .three)
    #expect(text == "9:42[\"é😀\"]1:66:b4AQID")
    #expect(try EnginePayload.decode(Array(text.utf8), version: .three) == packets)
  }

  @Test func `a count that ends within a character is refused`() {
    #expect(throws: FerryError.self) { try EnginePayload.decode(Array("2:4😀".utf8), version: .three) }
    #expect(throws: FerryError.self) { try EnginePayload.decode(Array("2:4".utf8), version: .three) }
  }

  @Test func `a combining mark right behind the digit stays in the text`() throws {
    let packet = EnginePacket(.message, "\u{301}x")
    let text = EnginePayload.encode([packet], version: .three)
    #expect(try EnginePayload.decode(Array(text.utf8), version: .three) == [packet])
  }

  @Test func `the binary payloads of version 3 count bytes`() throws {
    let known: [UInt8] = [0, 9, 0xff] + Array("440/APPID".utf8) + [1, 3, 0xff, 4, 7, 8]
    let packets = try EnginePayload.decode(known, version: .three)
    #expect(packets == [EnginePacket(.message, "40/APPID"), EnginePacket(binary: [7, 8])])
    #expect(EnginePayload.encodeBinary(packets) == known)
    #expect(throws: FerryError.self) { try EnginePayload.decode(known.dropLast(), version: .three) }
    #expect(throws: FerryError.self) { try EnginePayload.decode([0, 10, 0xff, 0x32], version: .three) }
    let accented = EnginePacket(.message, "é")
    #expect(try EnginePayload.decode(EnginePayload.encodeBinary([accented]), version: .three) == [accented])
  }

  @Test func `the payload that python's older client sends is understood`() throws {
    // A ping and the joining of a namespace in one body.
    let bytes: [UInt8] = [0, 1, 0xff, 0x32, 0, 9, 0xff] + Array("40/APPID,".utf8)
    #expect(
      try EnginePayload.decode(bytes, version: .three) == [EnginePacket(.ping), EnginePacket(.message, "0/APPID,")])
  }

  @Test(arguments: [
    "", "x", "9", ":", "1:", "-1:2", "99999999999:2", "1234567890123456:2", "2:2", "1:x", "b", "1:b", "3:b5A",
  ])
  func `what is no payload of version 3 is refused`(text: String) {
    #expect(throws: FerryError.self) { try EnginePayload.decode(Array(text.utf8), version: .three) }
  }

  @Test(arguments: ["", "x", "\u{1e}", "2\u{1e}", "b!", "7", "/"])
  func `what is no payload of version 4 is refused`(text: String) {
    #expect(throws: FerryError.self) { try EnginePayload.decode(Array(text.utf8), version: .four) }
  }

  @Test func `sizes and counts are limited`() {
    let limits = EnginePayload.Limits(bytes: 100, packets: 3)
    for version in [EngineVersion.three, .four] {
      let four = EnginePayload.encode(Array(repeating: EnginePacket(.noop), count: 4), version: version)
      let error = #expect(throws: FerryError.self) {
        try EnginePayload.decode(Array(four.utf8), version: version, limits: limits)
      }
      #expect(error?.code == .tooLarge)
      let long = EnginePayload.encode([EnginePacket(.message, String(repeating: "x", count: 100))], version: version)
      #expect(throws: FerryError.self) { try EnginePayload.decode(Array(long.utf8), version: version, limits: limits) }
    }
  }

  @Test func `frames of a WebSocket carry one packet`() throws {
    #expect(try EnginePacket(text: "2probe", version: .four) == EnginePacket(.ping, "probe"))
    #expect(try EnginePacket(frame: [4, 1], version: .three) == EnginePacket(binary: [1]))
    #expect(try EnginePacket(frame: [4, 1], version: .four) == EnginePacket(binary: [4, 1]))
    #expect(throws: FerryError.self) { try EnginePacket(frame: [], version: .three) }
    #expect(throws: FerryError.self) { try EnginePacket(frame: [2], version: .three) }
  }

  @Test func `the handshake reads as the services write it`() throws {
    let handshake = EngineHandshake(sid: "gdnu", canUpgrade: true, maxPayload: 1_000_000)
    let text =
      #"{"sid":"gdnu","upgrades":["websocket"],"pingInterval":25000,"pingTimeout":20000,"maxPayload":1000000}"#
    #expect(handshake.text == text)
    #expect(try EngineHandshake(text) == handshake)
    let old = try EngineHandshake(#"{"sid":"a","upgrades":[],"pingInterval":25000,"pingTimeout":60000}"#)
    #expect(old == EngineHandshake(sid: "a", canUpgrade: false, pingTimeout: .seconds(60)))
  }

  @Test func `a handshake out of reason is brought back to it, and one without a session refused`() throws {
    let odd = try EngineHandshake(#"{"sid":"a","pingInterval":0,"pingTimeout":-5,"maxPayload":0,"upgrades":7}"#)
    #expect(odd.pingInterval == .milliseconds(100) && odd.pingTimeout == .milliseconds(100))
    #expect(odd.maxPayload == nil && !odd.canUpgrade)
    for text in ["", "{}", "[]", #"{"sid":""}"#, #"{"sid":7}"#] {
      #expect(throws: FerryError.self) { try EngineHandshake(text) }
    }
  }

  @Test func `text for clients that count characters has none that counts twice`() throws {
    let text = EnginePayload.encode([EnginePacket(.message, JSONText.escapingAstral(#"2["é😀"]"#))], version: .three)
    #expect(text == #"19:42["é\ud83d\ude00"]"#)
    #expect(text.utf16.count == text.unicodeScalars.count)
  }
}
