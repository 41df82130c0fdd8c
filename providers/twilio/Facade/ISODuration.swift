/// Durations such as `PT1M` or `P1DT2H`. Years and months, whose length varies, are refused.
enum ISODuration {
  static func milliseconds(_ text: String) -> Int64? {
    var rest = text.uppercased()[...]
    guard rest.popFirst() == "P", !rest.isEmpty else { return nil }
    var total: Int64 = 0
    var isTime = false
    while !rest.isEmpty {
      if rest.first == "T", !isTime {
        isTime = true
        rest.removeFirst()
        guard !rest.isEmpty else { return nil }
        continue
      }
      let digits = rest.prefix { $0.isASCII && $0.isNumber }
      guard let number = Int64(digits), digits.count <= 9, let unit = rest.dropFirst(digits.count).first else {
        return nil
      }
      rest = rest.dropFirst(digits.count + 1)
      let factor: Int64
      switch (unit, isTime) {
      case ("W", false): factor = 604_800_000
      case ("D", false): factor = 86_400_000
      case ("H", true): factor = 3_600_000
      case ("M", true): factor = 60_000
      case ("S", true): factor = 1000
      default: return nil
      }
      total += number * factor
    }
    return total
  }
}
