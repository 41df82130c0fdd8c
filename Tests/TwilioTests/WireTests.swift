import FerryConfig
import FerryCore
import Testing

@testable import TwilioProvider

@Suite struct AccessTokenTests {
  let secret = Secret("api-secret-of-32-characters-long")
  let now = Timestamp(milliseconds: 1_767_323_045_000)
  let known =
    "eyJjdHkiOiJ0d2lsaW8tZnBhO3Y9MSIsInR5cCI6IkpXVCIsImFsZyI6IkhTMjU2In0"
    + ".eyJqdGkiOiJTSzY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2LTE3NjczMjMwNDUiLCJncmFudHMiOnsiY2hhdCI6eyJzZXJ2aWNl"
    + "X3NpZCI6IklTMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIifSwiaWRlbnRpdHkiOiJhbGljZSJ9LCJpc3MiOiJTSzY2NjY2NjY2Nj"
    + "Y2NjY2NjY2NjY2NjY2NjY2NjY2NjY2IiwiZXhwIjoxNzY3MzI2NjQ1LCJuYmYiOjE3NjczMjMwNDUsInN1YiI6IkFDMTExMTExMTExMTExMTEx"
    + "MTExMTExMTExMTExMTExMTEifQ.0Zv9jGqNAK_ApECfPCnQvFAUGeGmfeu8zS_SPe1ufJo"

  var token: AccessToken {
    AccessToken(
      accountSID: "AC" + String(repeating: "1", count: 32), keySID: "SK" + String(repeating: "6", count: 32),
      serviceSID: "IS" + String(repeating: "2", count: 32), identity: "alice", issued: now)
  }

  private func number(_ text: String, at time: Timestamp, _ secret: Secret?) -> String? {
    do throws(FerryError) {
      _ = try AccessToken.verified(text, secret: { _ in secret }, now: time)
      return nil
    } catch { return error.cause }
  }

  @Test func `a token is byte for byte the one that the official library makes`() {
    #expect(token.signed(with: secret) == known)
  }

  @Test func `a token that fits is read back`() throws {
    let read = try AccessToken.verified(known, secret: { $0 == token.keySID ? secret : nil }, now: now)
    #expect(read == token)
    let odd = "zo\u{eb} \"\u{1F600}\\"
    var other = token
    other.identity = odd
    #expect(try AccessToken.verified(other.signed(with: secret), secret: { _ in secret }, now: now).identity == odd)
  }

  @Test func `what does not fit is refused with Twilio's number for it`() {
    #expect(number(known, at: now, nil) == "20103")
    #expect(number(known, at: now, Secret("another")) == "20107")
    #expect(number(known, at: Timestamp(milliseconds: 1_767_326_645_000), secret) == "20104")
    #expect(number(known, at: Timestamp(milliseconds: 1_767_323_044_000), secret) == "20105")
    #expect(number("x", at: now, secret) == "20101")
    #expect(number("a.b.c", at: now, secret) == "20101")
    var long = token
    long.ttl = 86_401
    #expect(number(long.signed(with: secret), at: now, secret) == "20157")
    var nobody = token
    nobody.identity = ""
    #expect(number(nobody.signed(with: secret), at: now, secret) == "20106")
    // The same claims under a header that asks for no signature at all.
    let unsigned = known.split(separator: ".")
    #expect(number("eyJhbGciOiJub25lIn0.\(unsigned[1]).", at: now, secret) == "20102")
  }
}

@Suite struct TwilsockPacketTests {
  @Test func `a packet is read back as it was written`() throws {
    let packet = TwilsockPacket(
      header: ["id": "TM1", "method": "message", "payload_type": "text/plain"], payload: Array("h\u{e9}llo\r\n".utf8))
    let bytes = packet.encoded()
    #expect(
      String(decoding: bytes, as: UTF8.self)
        == "TWILSOCK V3.0 76\r\n{\"id\":\"TM1\",\"method\":\"message\",\"payload_size\":8,\"payload_type\":\"text/plain\"}"
        + "\r\nh\u{e9}llo\r\n")
    let read = try TwilsockPacket(bytes)
    #expect(read.payload == packet.payload)
    #expect(read.id == "TM1")
    #expect(read.method == "message")
    #expect(read.json == nil)
  }

  @Test func `a JSON payload is what an absent type means`() throws {
    let bytes = Array("TWILSOCK V3.0 13\r\n{\"id\":\"\u{1F600}\"}\r\n{\"a\":1}".utf8)
    #expect(try TwilsockPacket(bytes).json == ["a": 1])
    #expect(try TwilsockPacket(TwilsockPacket(header: ["id": "1"], json: ["b": []]).encoded()).json == ["b": []])
  }

  @Test(
    "anything else is refused",
    arguments: [
      "", "TWILSOCK V3.0 2\r\n", "TWILSOCK V3.0 2\r\n{}", "TWILSOCK V2.0 2\r\n{}\r\n", "TWILSOCK V3.0 -2\r\n{}\r\n",
      "TWILSOCK V3.0 9223372036854775807\r\n{}\r\n", "TWILSOCK V3.0 1\r\n{}\r\n", "TWILSOCK V3.0 2\r\n[]\r\n",
      "TWILSOCK V3.0 18\r\n{\"payload_size\":9}\r\nshort", "OTHER V3.0 2\r\n{}\r\n", "TWILSOCK V3.0 x\r\n{}\r\n",
    ])
  func malformed(text: String) {
    #expect(throws: FerryError.self) { try TwilsockPacket(Array(text.utf8)) }
  }
}

@Suite struct TwilioDateTests {
  let time = Timestamp(milliseconds: 1_767_323_045_678)

  @Test func `each form is written as Twilio writes it`() {
    #expect(TwilioDate.seconds(time) == "2026-01-02T03:04:05Z")
    #expect(TwilioDate.milliseconds(time) == "2026-01-02T03:04:05.678Z")
    #expect(TwilioDate.microseconds(time) == "2026-01-02T03:04:05.678000+00:00")
  }

  @Test(
    "any form is read",
    arguments: [
      ("2026-01-02T03:04:05Z", 1_767_323_045_000), ("2026-01-02T03:04:05.678Z", 1_767_323_045_678),
      ("2026-01-02T03:04:05.6Z", 1_767_323_045_600), ("2026-01-02T03:04:05.678000+00:00", 1_767_323_045_678),
      ("2022-03-14T13:10:38.897143-07:00", 1_647_288_638_897), ("2026-01-02T03:04:05", 1_767_323_045_000),
      ("2026-01-02 08:34:05+0530", 1_767_323_045_000), ("2026-01-02", 1_767_312_000_000),
      ("2000-02-29T00:00:00Z", 951_782_400_000), ("1969-12-31T23:59:59.999Z", -1),
      ("0001-03-01T00:00:00Z", -62_130_499_200_000), ("2400-12-31T23:59:59Z", 13_601_087_999_000),
    ])
  func readable(text: String, milliseconds: Int64) {
    #expect(TwilioDate.parse(text)?.milliseconds == milliseconds)
  }

  @Test(
    "what is no date is none",
    arguments: [
      "", "x", "2026-13-01T00:00:00Z", "2025-02-29T00:00:00Z", "2026-01-02T24:00:00Z", "2026-01-02T03:04:05.Z",
      "2026-01-02T03:04:05Zx", "2026-01-02T03:04", "2026-01-02T03:04:05+xx", "0000-01-01T00:00:00Z", "20260102",
      "\u{662}026-01-02",
    ])
  func unreadable(text: String) { #expect(TwilioDate.parse(text) == nil) }
}

@Suite struct SIDTests {
  @Test func `a new one is one of its kind and of no other`() {
    for kind in SID.Kind.allCases {
      let made = SID.make(kind)
      #expect(made.utf8.count == 34)
      for other in SID.Kind.allCases { #expect(SID.isOne(made, of: other) == (other == kind)) }
    }
    #expect(!SID.isOne("CH" + String(repeating: "g", count: 32), of: .conversation))
    #expect(!SID.isOne("CH", of: .conversation))
  }
}

@Suite struct FormTests {
  @Test func `missing, empty and repeated fields differ`() {
    let form = Form(decoding: Array("A=&B=1&B=2&C.D=x%20y+z".utf8))
    #expect(form["A"] == "")
    #expect(form["X"] == nil)
    #expect(form.all("B") == ["1", "2"])
    #expect(form["C.D"] == "x y z")
    #expect(form.encoded == "A=&B=1&B=2&C.D=x%20y%20z")
  }
}
