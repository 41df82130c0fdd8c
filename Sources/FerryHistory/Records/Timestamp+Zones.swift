package import FerryCore

extension Timestamp {
  /// `2024-02-02T08:00:00Z`, with a fraction of any length (what is finer than a millisecond is cut off) and any zone.
  ///
  /// Source: RFC 3339, 5.6. Nil for anything else. By hand because every record has one or more.
  package init?(rfc3339 text: String) {
    var text = text
    guard let milliseconds = text.withUTF8({ Self.milliseconds(rfc3339: $0) }) else { return nil }
    self.init(milliseconds: milliseconds)
  }

  private static func milliseconds(rfc3339 text: UnsafeBufferPointer<UInt8>) -> Int64? {
    guard text.count >= 20, text[4] == UInt8(ascii: "-"), text[7] == UInt8(ascii: "-"),
      [UInt8(ascii: "T"), UInt8(ascii: "t"), UInt8(ascii: " ")].contains(text[10]),
      text[13] == UInt8(ascii: ":"), text[16] == UInt8(ascii: ":"),
      let year = number(text[0..<4]), let month = number(text[5..<7]), let day = number(text[8..<10]),
      let hour = number(text[11..<13]), let minute = number(text[14..<16]), let second = number(text[17..<19]),
      let days = days(year: year, month: month, day: day), hour < 24, minute < 60, second < 61
    else { return nil }
    var position = 19
    var fraction: Int64 = 0
    if text[position] == UInt8(ascii: ".") || text[position] == UInt8(ascii: ",") {
      position += 1
      let start = position
      while position < text.count, let digit = number(text[position..<position + 1]) {
        if position < start + 3 { fraction = fraction * 10 + digit }
        position += 1
      }
      guard position > start else { return nil }
      for _ in position..<max(position, start + 3) { fraction *= 10 }
    }
    guard let zone = zoneMinutes(text[position...]) else { return nil }
    return ((days * 24 + hour) * 60 + minute - zone) * 60_000 + second * 1000 + fraction
  }

  private static func zoneMinutes(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> Int64? {
    let text = Array(text)
    if text == [UInt8(ascii: "Z")] || text == [UInt8(ascii: "z")] { return 0 }
    guard text.count == 5 || text.count == 6 && text[3] == UInt8(ascii: ":"),
      text[0] == UInt8(ascii: "+") || text[0] == UInt8(ascii: "-"),
      let hours = number(text[1..<3]), let minutes = number(text.suffix(2)), hours < 24, minutes < 60
    else { return nil }
    return (hours * 60 + minutes) * (text[0] == UInt8(ascii: "-") ? -1 : 1)
  }

  /// Of a few digits; nil when there is anything else.
  private static func number(_ digits: some Collection<UInt8>) -> Int64? {
    var number: Int64 = 0
    for digit in digits {
      guard digit >= UInt8(ascii: "0"), digit <= UInt8(ascii: "9") else { return nil }
      number = number * 10 + Int64(digit - UInt8(ascii: "0"))
    }
    return number
  }

  /// Days since 1970-01-01 of a day of the calendar; nil when there is no such day.
  package static func days(year: Int64, month: Int64, day: Int64) -> Int64? {
    guard (0...9999).contains(year), (1...12).contains(month), day >= 1 else { return nil }
    let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    let length: Int64 =
      switch month {
      case 2: isLeap ? 29 : 28
      case 4, 6, 9, 11: 30
      default: 31
      }
    guard day <= length else { return nil }
    // Counted from March, so that leap days end a year; the calendar repeats after 146,097 days.
    let shifted = month > 2 ? month - 3 : month + 9
    let years = (month > 2 ? year : year - 1) + 400
    let dayOfYear = (153 * shifted + 2) / 5 + day - 1
    return 365 * years + years / 4 - years / 100 + years / 400 + dayOfYear - 719_468 - 146_097
  }
}
