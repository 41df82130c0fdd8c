import FerryCore
import FerryRuntime
import Testing

@Suite struct TimestampTests {
  @Test("every millisecond survives being written and read")
  func roundTrip() {
    for milliseconds in Int64(0)..<1000 {
      for second in [Int64(0), 951_782_399, 1_796_025_600, 4_102_444_799] {
        let time = Timestamp(milliseconds: second * 1000 + milliseconds)
        #expect(Timestamp(iso8601: time.iso8601) == time)
      }
    }
  }

  @Test(
    "times are written in one form",
    arguments: [
      (Int64(0), "1970-01-01T00:00:00.000Z"), (1_796_025_600_123, "2026-11-30T08:00:00.123Z"),
      (951_782_400_001, "2000-02-29T00:00:00.001Z"), (-1, "1969-12-31T23:59:59.999Z"),
      (253_402_300_799_999, "9999-12-31T23:59:59.999Z"), (.min, "-292275055-05-16T16:47:04.192Z"),
      (.max, "292278994-08-17T07:12:55.807Z"),
    ])
  func writing(milliseconds: Int64, text: String) {
    #expect(Timestamp(milliseconds: milliseconds).iso8601 == text)
  }

  @Test("times are read with and without a fraction, and nothing else is")
  func reading() {
    #expect(Timestamp(iso8601: "2026-11-30T08:00:00Z") == Timestamp(milliseconds: 1_796_025_600_000))
    #expect(Timestamp(iso8601: "2026-11-30T08:00:00.5Z") == Timestamp(milliseconds: 1_796_025_600_500))
    for text in ["", "yesterday", "2026-11-30", "2026-13-30T08:00:00Z", "1796025600"] {
      #expect(Timestamp(iso8601: text) == nil)
    }
  }

  @Test("a duration's milliseconds are whole and rounded down")
  func durations() {
    #expect(Duration.microseconds(1999).milliseconds == 1)
    #expect(Duration.seconds(3).milliseconds == 3000)
    #expect(Duration.milliseconds(1500).inSeconds == 1.5)
    #expect(Timestamp(milliseconds: 5).advanced(by: .seconds(-1)) == Timestamp(milliseconds: -995))
  }

  @Test("sleeping ends with the task", .timeLimit(.minutes(1)))
  func sleepIsCancelled() async {
    let sleeper = Task { () -> Bool in
      do { try await SystemClock().sleep(for: .seconds(3600)) } catch { return true }
      return false
    }
    sleeper.cancel()
    #expect(await sleeper.value)
  }
}

@Suite struct BackoffTests {
  /// Always the largest or the smallest number.
  private struct Extreme: RandomNumberGenerator {
    let bits: UInt64
    func next() -> UInt64 { bits }
  }

  @Test("delays are drawn from zero to a limit that doubles up to the greatest")
  func bounds() {
    var backoff = Backoff(base: .milliseconds(500), limit: .seconds(60))
    var most = Extreme(bits: .max)
    let delays = (0..<200).map { _ in backoff.next(using: &most) }
    #expect(delays.prefix(8).map(\.milliseconds) == [500, 1000, 2000, 4000, 8000, 16000, 32000, 60000])
    #expect(delays.last == .seconds(60))
    // Not zero itself: the library draws again after that, for ever.
    var least = Extreme(bits: 1 << 40)
    #expect(backoff.next(using: &least) == .zero)
  }

  @Test("a reset starts over")
  func reset() {
    var backoff = Backoff(base: .milliseconds(100), limit: .seconds(1))
    var most = Extreme(bits: .max)
    for _ in 0..<10 { _ = backoff.next(using: &most) }
    backoff.reset()
    #expect(backoff.next(using: &most) == .milliseconds(100))
  }

  @Test("drawn delays stay in bounds")
  func draws() {
    var backoff = Backoff(base: .milliseconds(10), limit: .milliseconds(80))
    for attempt in 0..<1000 {
      let delay = backoff.next()
      #expect(delay >= .zero && delay <= min(.milliseconds(10 * (1 << min(attempt, 3))), .milliseconds(80)))
    }
  }
}
