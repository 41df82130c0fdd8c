package import FerryCore
import FerryRuntime

/// The three ways in which Twilio writes a moment. Parsing takes any of them.
package enum TwilioDate {
  /// REST: `2026-01-02T03:04:05Z`. Milliseconds are cut off.
  package static func seconds(_ time: Timestamp) -> String { "\(time.iso8601.dropLast(5))Z" }

  /// Webhooks: `2026-01-02T03:04:05.678Z`.
  package static func milliseconds(_ time: Timestamp) -> String { time.iso8601 }

  /// Media: `2026-01-02T03:04:05.678000+00:00`.
  package static func microseconds(_ time: Timestamp) -> String { "\(time.iso8601.dropLast())000+00:00" }

  /// Nil for anything else. Fractions may have any length, the zone be `Z`, an offset or missing (then it is UTC), and
  /// the time of day be missing (then it is midnight). The years are 0001 to 9999.
  package static func parse(_ text: String) -> Timestamp? {
    var rest = Array(text.utf8)[...]
    guard let year = number(&rest, 4, in: 1...9999), take(&rest, "-"), let month = number(&rest, 2, in: 1...12),
      take(&rest, "-"), let day = number(&rest, 2, in: 1...31), day <= length(ofMonth: month, year)
    else { return nil }
    var milliseconds = days(year, month, day) * 86_400_000
    if rest.isEmpty { return Timestamp(milliseconds: milliseconds) }
    guard take(&rest, "T") || take(&rest, "t") || take(&rest, " "), let hour = number(&rest, 2, in: 0...23),
      take(&rest, ":"), let minute = number(&rest, 2, in: 0...59), take(&rest, ":"),
      let second = number(&rest, 2, in: 0...60)
    else { return nil }
    milliseconds += ((hour * 60 + minute) * 60 + second) * 1000
    if take(&rest, ".") {
      guard let part = fraction(&rest) else { return nil }
      milliseconds += part
    }
    guard let offset = zone(&rest), rest.isEmpty else { return nil }
    return Timestamp(milliseconds: milliseconds - offset * 60_000)
  }

  /// Minutes east of UTC.
  private static func zone(_ rest: inout ArraySlice<UInt8>) -> Int64? {
    if rest.isEmpty || take(&rest, "Z") || take(&rest, "z") { return 0 }
    let isWest = rest.first == UInt8(ascii: "-")
    guard take(&rest, "+") || take(&rest, "-"), let hours = number(&rest, 2, in: 0...23) else { return nil }
    _ = take(&rest, ":")
    guard let minutes = rest.isEmpty ? 0 : number(&rest, 2, in: 0...59) else { return nil }
    return (isWest ? -1 : 1) * (hours * 60 + minutes)
  }

  /// The first three digits of a fraction, as milliseconds.
  private static func fraction(_ rest: inout ArraySlice<UInt8>) -> Int64? {
    let digits = rest.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    guard !digits.isEmpty else { return nil }
    rest = rest.dropFirst(digits.count)
    let padded = Array(digits.prefix(3)) + Array(repeating: UInt8(ascii: "0"), count: max(3 - digits.count, 0))
    return padded.reduce(0) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
  }

  private static func number(_ rest: inout ArraySlice<UInt8>, _ count: Int, in range: ClosedRange<Int64>) -> Int64? {
    let digits = rest.prefix(count)
    guard digits.count == count, digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
      return nil
    }
    let value = digits.reduce(0) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
    guard range.contains(value) else { return nil }
    rest = rest.dropFirst(count)
    return value
  }

  private static func take(_ rest: inout ArraySlice<UInt8>, _ sign: Unicode.Scalar) -> Bool {
    guard rest.first == UInt8(ascii: sign) else { return false }
    rest = rest.dropFirst()
    return true
  }

  private static func length(ofMonth month: Int64, _ year: Int64) -> Int64 {
    switch month {
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  /// Since 1970-01-01. Years are counted from March, so that a leap day ends its year.
  private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
    let shifted = month <= 2 ? year - 1 : year
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + dayOfYear - 719_468
  }
}
