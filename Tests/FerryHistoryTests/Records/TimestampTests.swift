import FerryCore
import FerryHistory
import FerryRuntime
import Testing

@Suite struct TimestampTests {
  @Test("a time reads as it was written, over eight thousand years")
  func roundTrip() {
    var random = SystemRandomNumberGenerator()
    for _ in 0..<5000 {
      let time = Timestamp(milliseconds: .random(in: -62_135_596_800_000...253_402_300_799_999, using: &random))
      #expect(Timestamp(rfc3339: time.iso8601) == time, "\(time.iso8601)")
    }
  }

  @Test(
    "zones and fractions of any length",
    arguments: [
      ("1970-01-01T00:00:00Z", 0), ("1970-01-01t00:00:00.1z", 100), ("1970-01-01 00:00:00.123456789Z", 123),
      ("1970-01-01T02:30:00+02:30", 0), ("1969-12-31T23:00:00-0100", 0), ("2000-02-29T00:00:00Z", 951_782_400_000),
      ("2016-12-31T23:59:60Z", 1_483_228_800_000),
    ])
  func forms(text: String, milliseconds: Int64) { #expect(Timestamp(rfc3339: text)?.milliseconds == milliseconds) }

  @Test(
    "what is no time",
    arguments: [
      "", "1970-01-01", "1970-01-01T00:00:00", "1970-13-01T00:00:00Z", "1970-02-29T00:00:00Z", "1970-01-01T24:00:00Z",
      "1970-01-01T00:00:00.Z", "1970-01-01T00:00:00+1Z", "1970-01-01T00:00:00Zx", "197o-01-01T00:00:00Z",
    ])
  func refused(text: String) { #expect(Timestamp(rfc3339: text) == nil) }
}
