import FerryCore
import Testing

@testable import BackendlessProvider

@Suite struct WireSocketTests {
  private func parsed(_ text: String) throws -> SocketPacket { try SocketPacket(text) }

  @Test func `connecting carries a query in version 3 and an object in version 4`() throws {
    let query = "apiKey=KEY&clientId=4A7A&userToken=null"
    let three = SocketPacket.connect(to: "/APPID", version: .three, query: query)
    #expect(three.text == "0/APPID?\(query),")
    #expect(try parsed(three.text) == three)
    let four = SocketPacket.connect(to: "/APPID", version: .four, query: query)
    #expect(four.text == "0/APPID,")
    #expect(try parsed(four.text) == four)
    #expect(try parsed("0/APPID") == four)
    #expect(try parsed(#"0/APPID,{"token":"x"}"#).content == .connect(["token": "x"]))
    #expect(try parsed("0") == SocketPacket(.connect(nil), in: "/"))
    #expect(SocketPacket(.connect(nil), in: "/").text == "0")
  }

  @Test func `consent and refusal have each version's shape`() throws {
    #expect(SocketPacket.connected(to: "/A", version: .three, sid: "s").text == "0/A,")
    #expect(SocketPacket.connected(to: "/A", version: .four, sid: "s").text == #"0/A,{"sid":"s"}"#)
    let three = SocketPacket.refused("Invalid api key", in: "/A", version: .three)
    let four = SocketPacket.refused("Invalid api key", in: "/A", version: .four)
    #expect(three.text == #"4/A,"Invalid api key""#)
    #expect(four.text == #"4/A,{"message":"Invalid api key"}"#)
    for packet in [three, four] { #expect(try parsed(packet.text).refusal == "Invalid api key") }
    #expect(try parsed("4/A").refusal == "no reason given")
  }

  @Test func `an event is a name and one argument`() throws {
    let event = SocketPacket(.event("SUB_ON", ["id": "a", "name": "PUB_SUB_CONNECT"]), in: "/A")
    #expect(event.text == #"2/A,["SUB_ON",{"id":"a","name":"PUB_SUB_CONNECT"}]"#)
    #expect(try parsed(event.text) == event)
    #expect(try parsed(#"2["x"]"#) == SocketPacket(.event("x", nil), in: "/"))
    #expect(try parsed(#"2/A,17["x",1,2]"#) == SocketPacket(.event("x", 1), in: "/A", acknowledgement: 17))
    #expect(SocketPacket.event("SUB_RES", json: #"{"id":"a"}"#, in: "/A") == #"2/A,["SUB_RES",{"id":"a"}]"#)
  }

  @Test func `leaving needs no comma`() throws {
    #expect(try parsed("1/A") == SocketPacket(.disconnect, in: "/A"))
    #expect(try parsed("1/A,") == SocketPacket(.disconnect, in: "/A"))
    #expect(SocketPacket(.disconnect, in: "/A").text == "1/A,")
  }

  @Test func `an answer is numbered`() throws {
    let answer = SocketPacket(.ack("ok"), in: "/A", acknowledgement: 5)
    #expect(answer.text == #"3/A,5["ok"]"#)
    #expect(try parsed(answer.text) == answer)
  }

  @Test(arguments: [
    "", "x", "7", "2", "2[]", "2{}", "2[1]", "2/A,[", "2/A", "20[\"x\"", "299999999999999999999[\"x\"]", "0/A,{",
    "-1", "²",
  ])
  func `what is no packet is refused`(text: String) {
    #expect(throws: FerryError.self) { try parsed(text) }
  }

  @Test(arguments: ["51-[\"x\",{\"_placeholder\":true,\"num\":0}]", "61-1[{}]"])
  func `events with bytes are not supported`(text: String) {
    let error = #expect(throws: FerryError.self) { try parsed(text) }
    #expect(error?.code == .unsupported)
  }

  @Test func `what is nested too deeply is refused before it is decoded`() {
    let deep = String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000)
    #expect(throws: FerryError.self) { try parsed(#"2["x",\#(deep)]"#) }
    #expect(JSONText.value(#""[[[""#) == "[[[")
  }
}
