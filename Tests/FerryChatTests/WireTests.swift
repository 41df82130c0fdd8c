import FerryChat
import FerryCore
import FerryRuntime
import Testing

@Suite struct WireTests {
  @Test func timesKeepTheirMillisecond() throws {
    var random = SystemRandomNumberGenerator()
    for _ in 0..<2000 {
      let time = Timestamp(milliseconds: Int64.random(in: -1_000_000_000_000...4_000_000_000_000, using: &random))
      #expect(Timestamp(iso8601: time.iso8601) == time)
    }
    #expect(Timestamp(milliseconds: 1_470_366_650_123).iso8601 == "2016-08-05T03:10:50.123Z")
    #expect(Timestamp(milliseconds: -1).iso8601 == "1969-12-31T23:59:59.999Z")
  }

  @Test(arguments: ["\"yesterday\"", "\"\"", "true", "1e300", "99999999999999999", "[]"])
  func whatIsNoTimeIsRefused(_ json: String) {
    #expect(throws: FerryError.self) { try Wire.value(Wire.Time.self, from: json.utf8) }
  }

  @Test func timesMayBeMilliseconds() throws {
    #expect(
      try Wire.value([Wire.Time].self, from: "[1470366650123, \"2016-08-05T03:10:50Z\"]".utf8).map(\.timestamp)
        == [Timestamp(milliseconds: 1_470_366_650_123), Timestamp(milliseconds: 1_470_366_650_000)])
  }

  @Test(arguments: [
    "{\"kind\":\"message\",\"room\":\"r\",\"time\":0}", "{\"kind\":\"read\",\"room\":\"r\",\"time\":0,\"id\":\"1\"}",
    "{\"kind\":\"nonsense\",\"room\":\"r\",\"time\":0}", "{}", "[]", "", "{\"kind\":\"delete\",\"room\":1,\"time\":0}",
  ])
  func anEventThatLacksSomethingIsRefused(_ json: String) {
    #expect(throws: FerryError.self) { try Wire.value(Wire.Event.self, from: json.utf8).event(sequence: 1) }
  }
}
