import FerryCore

/// A time in any of the forms in which logs write it.
struct LooseTime: Hashable, Sendable {
  var time: Timestamp
  var precision: TimePrecision
  /// As written, where that says more than `time` or says it otherwise.
  var raw: String?

  /// RFC 3339; seconds with or without a fraction, as Slack's `ts`; milliseconds. Nil for anything else.
  init?(_ value: JSONValue) {
    guard let text = value.text else { return nil }
    if let time = Timestamp(rfc3339: text) {
      self.time = time
      let fraction = text.utf8.drop { $0 != UInt8(ascii: ".") }.dropFirst().prefix { (0x30...0x39).contains($0) }.count
      precision = fraction == 0 ? .seconds : fraction <= 3 ? .milliseconds : .microseconds
      raw = fraction > 3 || !text.hasSuffix("Z") ? text : nil
      return
    }
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard let first = parts.first, parts.count <= 2, let whole = Int64(first), whole.magnitude < 1 << 53
    else { return nil }
    // Seconds reach this number in the year 5138, milliseconds in 1973.
    if whole.magnitude >= 100_000_000_000 {
      time = Timestamp(milliseconds: whole)
      precision = .milliseconds
      raw = parts.count == 2 ? text : nil
      return
    }
    let fraction = parts.count == 2 ? Array(parts[1].utf8) : []
    guard fraction.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    let digits = fraction.prefix(3) + Array(repeating: 0x30, count: max(3 - fraction.count, 0))
    let part = digits.reduce(Int64(0)) { $0 * 10 + Int64($1 - 0x30) }
    time = Timestamp(milliseconds: whole * 1000 + (text.hasPrefix("-") ? -part : part))
    precision = fraction.isEmpty ? .seconds : fraction.count <= 3 ? .milliseconds : .microseconds
    raw = fraction.count > 3 ? text : nil
  }
}
