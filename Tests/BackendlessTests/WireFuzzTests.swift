import FerryCore
import FerryRuntime
import Testing

@testable import BackendlessProvider

/// Any bytes give a result or an error, and no result is larger than what it was made of allows.
@Suite(.timeLimit(.minutes(5))) struct WireFuzzTests {
  /// The same numbers in every run, so that what fails once fails again.
  struct Numbers: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
      state &+= 0x9e37_79b9_7f4a_7c15
      var z = state
      z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
      z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
      return z ^ (z >> 31)
    }
  }

  private static let seeds: [[UInt8]] = [
    Array(#"97:0{"sid":"fJUB","upgrades":["websocket"],"pingInterval":25000,"pingTimeout":20000}2:40"#.utf8),
    Array("81:40/APPID?apiKey=KEY&clientId=4A7A&userToken=null,".utf8),
    Array("440/APPID,{\"sid\":\"521F\"}\u{1e}42/APPID,[\"SUB_ON\",{\"id\":\"c\"}]\u{1e}bAQID\u{1e}2".utf8),
    [0, 9, 0xff] + Array("440/APPID".utf8) + [1, 3, 0xff, 4, 7, 8],
    Array("14:42[\"é😀\",{\"a\":[1,2.5e3,null,true]}]1:66:b4AQID".utf8),
  ]

  private static func mutated(_ bytes: [UInt8], using random: inout Numbers) -> [UInt8] {
    var bytes = bytes
    for _ in 0..<Int.random(in: 1...6, using: &random) {
      let at = Int.random(in: 0...bytes.count, using: &random)
      switch Int.random(in: 0..<5, using: &random) {
      case 0 where at < bytes.count: bytes[at] = UInt8.random(in: 0...255, using: &random)
      case 1 where at < bytes.count: bytes.remove(at: at)
      case 2: bytes.insert(UInt8.random(in: 0...255, using: &random), at: at)
      case 3: bytes.removeSubrange(at..<min(at + Int.random(in: 0...9, using: &random), bytes.count))
      default:
        let piece = seeds[Int.random(in: 0..<seeds.count, using: &random)]
        bytes.insert(contentsOf: piece.prefix(Int.random(in: 0...20, using: &random)), at: at)
      }
    }
    return bytes
  }

  @Test func `payloads`() async {
    var random = Numbers(state: 1)
    let limits = EnginePayload.Limits(bytes: 4096, packets: 16)
    var accepted = 0
    for round in 0..<30_000 {
      // Other tests wait for this thread.
      if round.isMultiple(of: 200) { await Task.yield() }
      let seed = Self.seeds[round % Self.seeds.count]
      let bytes = Self.mutated(seed, using: &random)
      for version in [EngineVersion.three, .four] {
        guard let packets = try? EnginePayload.decode(bytes, version: version, limits: limits) else { continue }
        accepted += 1
        #expect(packets.count <= limits.packets)
        let size = packets.reduce(0) { $0 + $1.size }
        // Bytes that are no UTF-8 become a sign of three bytes each.
        #expect(size <= bytes.count * 4 + packets.count * 4)
        for packet in packets { _ = try? SocketPacket(packet.text) }
        let again = EnginePayload.encode(packets, version: version)
        #expect((try? EnginePayload.decode(Array(again.utf8), version: version)) == packets)
      }
    }
    #expect(accepted > 1000, "only \(accepted) of the inputs got further than the first check")
  }

  @Test func `packets, handshakes and JSON`() async {
    var random = Numbers(state: 2)
    let seeds = [
      #"2/APPID,17["SUB_ON",{"id":"a","options":{"channel":"комната"}}]"#, "0/APPID?a=b,", #"4/APPID,{"message":"x"}"#,
      #"{"sid":"a","upgrades":["websocket"],"pingInterval":1,"pingTimeout":2,"maxPayload":3}"#, #"51-["x"]"#,
    ].map { Array($0.utf8) }
    for round in 0..<30_000 {
      // Other tests wait for this thread.
      if round.isMultiple(of: 200) { await Task.yield() }
      let bytes = Self.mutated(seeds[round % seeds.count], using: &random)
      let text = String(decoding: bytes, as: UTF8.self)
      if let packet = try? SocketPacket(text) { #expect((try? SocketPacket(packet.text)) == packet, "\(text)") }
      if let handshake = try? EngineHandshake(text) { #expect(handshake.pingInterval > .zero) }
      _ = JSONText.value(bytes)
      _ = try? EnginePacket(frame: bytes, version: .three)
    }
  }

  @Test func `conditions`() async {
    var random = Numbers(state: 4)
    let seeds = [
      "channel = 'x' AND created < 1796022761957", "NOT (a LIKE '%x_' OR b IN (1, 'two', 3.5)) AND c IS NOT NULL",
      "`a b` BETWEEN -1 AND 1e9 OR d <> TRUE",
    ].map { Array($0.utf8) }
    var accepted = 0
    for round in 0..<30_000 {
      // Other tests wait for this thread.
      if round.isMultiple(of: 200) { await Task.yield() }
      let text = String(decoding: Self.mutated(seeds[round % seeds.count], using: &random), as: UTF8.self)
      guard let condition = try? SQLCondition(text) else { continue }
      accepted += 1
      _ = condition.matches(["a": "x", "b": 1, "channel": .null, "created": 5, "d": true])
    }
    #expect(accepted > 300, "only \(accepted) of the inputs were conditions")
  }

  @Test func `sessions`() async {
    var random = Numbers(state: 3)
    for _ in 0..<300 {
      await Task.yield()
      var now = Timestamp(milliseconds: 0)
      let version: EngineVersion = Bool.random(using: &random) ? .three : .four
      let settings = EngineServerSession.Settings(payloadBytes: 2000, queueBytes: 1000)
      var server = EngineServerSession(
        version: version, transport: Bool.random(using: &random) ? .polling : .webSocket, sid: "a",
        settings: settings, now: now)
      var client = EngineClientSession(version: version, transport: server.transport, now: now)
      _ = server.begin()
      for _ in 0..<200 {
        now = now.advanced(by: .milliseconds(Int.random(in: 0...9000, using: &random)))
        let packet = EnginePacket(
          EnginePacket.Kind(rawValue: UInt8.random(in: 0...6, using: &random)) ?? .noop,
          ["", "probe", "0", "{\"sid\":\"a\",\"upgrades\":[\"websocket\"]}"].randomElement(using: &random) ?? "")
        let source: EngineServerSession.Transport = Bool.random(using: &random) ? .polling : .webSocket
        switch Int.random(in: 0..<7, using: &random) {
        case 0: _ = server.poll(now: now)
        case 1: _ = server.send(EnginePacket(.message, String(repeating: "x", count: 300)))
        case 2: _ = server.tick(now: now) + server.socketClosed()
        case 3: _ = client.tick(now: now) + client.pollingEnded()
        case 4: _ = client.socketOpened() + client.send(packet)
        case 5: _ = client.receive(packet, over: source, now: now)
        default: _ = server.receive(packet, over: source, now: now)
        }
        if server.isEnded {
          #expect(server.send(packet).isEmpty && server.nextDue == nil && server.tick(now: now).isEmpty)
        }
      }
    }
  }
}
