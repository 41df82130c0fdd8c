package import FerryCore
import FoundationEssentials

/// What time it is and how to wait, passed in so that tests own both.
package protocol FerryClock: Sendable {
  func now() -> Timestamp
  /// Throws only when the task is cancelled.
  func sleep(for duration: Duration) async throws(CancellationError)
}

package struct SystemClock: FerryClock {
  package init() {}

  package func now() -> Timestamp { Timestamp(milliseconds: Int64((Date().timeIntervalSince1970 * 1000).rounded())) }

  package func sleep(for duration: Duration) async throws(CancellationError) {
    do { try await Task.sleep(for: duration) } catch { throw CancellationError() }
  }
}

extension Timestamp {
  /// `2026-11-30T08:00:00.123Z`
  package var iso8601: String {
    // By hand: Foundation loses a millisecond at times, because it cuts off a binary fraction, and takes 3 us.
    let day: Int64 = 86_400_000
    let rest = milliseconds % day
    let days = milliseconds / day - (rest < 0 ? 1 : 0)
    let part = rest + (rest < 0 ? day : 0)
    // Days are counted from 0000-03-01, so that leap days end a year; the calendar repeats after 146,097 days.
    let count = days + 719_468
    let era = (count >= 0 ? count : count - 146_096) / 146_097
    let dayOfEra = count - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shifted = (5 * dayOfYear + 2) / 153
    let month = shifted < 10 ? shifted + 3 : shifted - 9
    let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    let text = Self.digits(
      abs(year), month, dayOfYear - (153 * shifted + 2) / 5 + 1, part / 3_600_000, part / 60_000 % 60,
      part / 1000 % 60, part % 1000)
    return year < 0 ? "-" + text : text
  }

  /// Straight into the text's own memory: an import writes several times for each message.
  private static func digits(
    _ year: Int64, _ month: Int64, _ day: Int64, _ hour: Int64, _ minute: Int64, _ second: Int64, _ part: Int64
  ) -> String {
    // Beyond the calendar of RFC 3339 a year has as many digits as it needs.
    guard year <= 9999 else { return String(year) + digits(0, month, day, hour, minute, second, part).dropFirst(4) }
    return String(unsafeUninitializedCapacity: 24) { text in
      func write(_ number: Int64, _ range: Range<Int>, then next: UInt8) {
        var rest = number
        for index in range.reversed() {
          text[index] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
          rest /= 10
        }
        text[range.upperBound] = next
      }
      write(year, 0..<4, then: UInt8(ascii: "-"))
      write(month, 5..<7, then: UInt8(ascii: "-"))
      write(day, 8..<10, then: UInt8(ascii: "T"))
      write(hour, 11..<13, then: UInt8(ascii: ":"))
      write(minute, 14..<16, then: UInt8(ascii: ":"))
      write(second, 17..<19, then: UInt8(ascii: "."))
      write(part, 20..<23, then: UInt8(ascii: "Z"))
      return 24
    }
  }

  /// With or without fractional seconds; nil for anything else.
  package init?(iso8601 text: String) {
    if let usual = Self.usual(text) {
      self = usual
      return
    }
    for fraction in [true, false] {
      if let date = try? Date.ISO8601FormatStyle(includingFractionalSeconds: fraction).parse(text) {
        self.init(milliseconds: Int64((date.timeIntervalSince1970 * 1000).rounded()))
        return
      }
    }
    return nil
  }

  /// The form in which Ferry writes times, read without Foundation, which takes 20 times as long (measured).
  private static func usual(_ text: String) -> Timestamp? {
    var text = text
    return text.withUTF8 { bytes -> Timestamp? in
      guard bytes.count == 24, bytes[4] == UInt8(ascii: "-"), bytes[7] == UInt8(ascii: "-"),
        bytes[10] == UInt8(ascii: "T"), bytes[13] == UInt8(ascii: ":"), bytes[16] == UInt8(ascii: ":"),
        bytes[19] == UInt8(ascii: "."), bytes[23] == UInt8(ascii: "Z")
      else { return nil }
      func number(_ range: Range<Int>) -> Int64? {
        var number: Int64 = 0
        for index in range {
          guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[index]) else { return nil }
          number = number * 10 + Int64(bytes[index] - UInt8(ascii: "0"))
        }
        return number
      }
      guard let year = number(0..<4), let month = number(5..<7), let day = number(8..<10), let hour = number(11..<13),
        let minute = number(14..<16), let second = number(17..<19), let part = number(20..<23),
        year >= 1600, (1...12).contains(month),
        (1...(month == 2 ? 28 : [4, 6, 9, 11].contains(month) ? 30 : 31)).contains(day),
        hour < 24, minute < 60, second < 60
      else { return nil }
      // Years that begin in March, so that leap days end them; the calendar repeats after 400 years.
      let shifted = month <= 2 ? year - 1 : year
      let era = shifted / 400
      let yearOfEra = shifted - era * 400
      let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
      let days = era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
      return Timestamp(milliseconds: days * 86_400_000 + ((hour * 60 + minute) * 60 + second) * 1000 + part)
    }
  }

  package func advanced(by duration: Duration) -> Timestamp {
    Timestamp(milliseconds: milliseconds + duration.milliseconds)
  }
}

/// Delays between attempts: each drawn evenly from zero to a limit that doubles (full jitter), so that clients that
/// failed together do not come back together.
package struct Backoff: Sendable {
  package let base: Duration
  package let limit: Duration
  private var attempt = 0

  package init(base: Duration = .milliseconds(500), limit: Duration = .seconds(60)) {
    self.base = base
    self.limit = limit
  }

  package mutating func next(using random: inout some RandomNumberGenerator) -> Duration {
    let ceiling = min(base * Double(1 << min(attempt, 20)), limit)
    attempt += 1
    return .milliseconds(Int64.random(in: 0...max(ceiling.milliseconds, 1), using: &random))
  }

  package mutating func next() -> Duration {
    var random = Chance()
    return next(using: &random)
  }

  /// After a stable period, never right after connecting.
  package mutating func reset() { attempt = 0 }
}

/// The system's random numbers.
///
/// `SystemRandomNumberGenerator` has no bytes, and so no address when it is passed on, which the thread sanitizer reads:
/// this has one.
package struct Chance: RandomNumberGenerator {
  private var system = SystemRandomNumberGenerator()
  private let place: UInt8 = 0

  package init() {}

  package mutating func next() -> UInt64 { system.next() }
}
