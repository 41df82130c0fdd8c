package import FerryCore

extension ConfigNode {
  /// Text as written, variables put in. A number counts as text: ids are often digits.
  package func string() throws(FerryError) -> String {
    guard case .scalar(let text, let isPlain) = content, !isNull else { throw mismatch("text") }
    if isPlain, text == "true" || text == "false" {
      throw error("\"\(name)\" must be text; write \"\(text)\" in quotes if that is what you mean")
    }
    return try expanded(text)
  }

  /// Text that is not empty.
  package func nonEmptyString() throws(FerryError) -> String {
    let text = try string()
    guard !text.isEmpty else { throw error("\"\(name)\" must not be empty") }
    return text
  }

  package func integer(in range: ClosedRange<Int64> = .min ... .max) throws(FerryError) -> Int64 {
    let text = try plain("a whole number")
    guard let value = Int64(text) else { throw mismatch("a whole number") }
    guard range.contains(value) else {
      throw mismatch("a whole number from \(range.lowerBound) to \(range.upperBound)")
    }
    return value
  }

  package func number() throws(FerryError) -> Double {
    let text = try plain("a number")
    guard let first = text.first, first.isASCII, first.isNumber || "-.".contains(first), let value = Double(text),
      value.isFinite
    else { throw mismatch("a number") }
    return value
  }

  package func bool() throws(FerryError) -> Bool {
    switch try plain("true or false") {
    case "true": return true
    case "false": return false
    default: throw mismatch("true or false")
    }
  }

  /// A number and its unit: `500ms`, `5s`, `10m`, `2h`, `30d`. Not negative.
  package func duration() throws(FerryError) -> Duration {
    let wanted = "a time such as 500ms, 5s, 10m, 2h or 30d"
    let milliseconds: [String: Int64] = ["ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000]
    let value = try amount(wanted, units: milliseconds)
    return .milliseconds(value)
  }

  /// A number of bytes, with a unit or without: `1048576`, `500 kB`, `100 MiB`. Not negative.
  package func byteCount() throws(FerryError) -> Int64 {
    let wanted = "a number of bytes such as 1048576, 500 kB or 100 MiB"
    let units: [String: Int64] = [
      "": 1, "B": 1, "kB": 1000, "MB": 1_000_000, "GB": 1_000_000_000, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
    ]
    return try amount(wanted, units: units)
  }

  /// A file or folder; a relative one is relative to the configuration file's folder.
  package func path() throws(FerryError) -> String { source.resolve(try nonEmptyString()) }

  /// One of a few words.
  package func choice<Value: RawRepresentable & CaseIterable>(_ type: Value.Type) throws(FerryError) -> Value
  where Value.RawValue == String {
    guard case .scalar(let text, _) = content, !isNull else { throw mismatch("one word") }
    if let value = Value(rawValue: try expanded(text)) { return value }
    // The word as written, not as expanded: a variable may hold what nobody should see.
    throw error("\"\(text)\" is not valid here\(suggestion(text, among: Value.allCases.map(\.rawValue)))")
  }

  package func address() throws(FerryError) -> Address {
    guard let address = Address(try nonEmptyString()) else {
      throw error("an address is written account:channel")
    }
    return address
  }

  package func list() throws(FerryError) -> [ConfigNode] {
    guard case .list(let nodes) = content else { throw mismatch("a list") }
    return nodes
  }

  /// A list, or one value that stands for a list of one.
  package func oneOrMany() -> [ConfigNode] {
    if case .list(let nodes) = content { nodes } else { [self] }
  }

  /// Texts, written as a list or as one value.
  package func strings() throws(FerryError) -> [String] {
    var texts: [String] = []
    for node in oneOrMany() { texts.append(try node.nonEmptyString()) }
    guard !texts.isEmpty else { throw error("\"\(name)\" must not be empty") }
    return texts
  }

  package func mapping() throws(FerryError) -> ConfigMapping {
    guard case .mapping(let entries) = content else { throw mismatch("a mapping of keys to values") }
    return ConfigMapping(self, entries: entries)
  }

  package var isMapping: Bool { if case .mapping = content { true } else { false } }

  /// The text, or what is in the file that `file:` names, less its last line break.
  package func secret() throws(FerryError) -> Secret {
    guard case .scalar(let text, let isPlain) = content, !isNull, !(isPlain && (text == "true" || text == "false"))
    else { throw mismatch("text, ${VARIABLE} or file:PATH") }
    var value = try expanded(text)
    // Decided by what is written: a variable's value is never taken for the name of a file.
    if text.hasPrefix("file:") { value = try fileContent(source.resolve(String(value.dropFirst(5)))) }
    guard !value.isEmpty else { throw error("\"\(name)\" is empty") }
    return Secret(value)
  }

  /// A scalar without quotes, or one that holds a variable.
  private func plain(_ wanted: String) throws(FerryError) -> String {
    guard case .scalar(let text, let isPlain) = content, !isNull else { throw mismatch(wanted) }
    guard isPlain || text.contains("${") else { throw error("\"\(name)\" must be \(wanted), without quotes") }
    return try expanded(text)
  }

  private func amount(_ wanted: String, units: [String: Int64]) throws(FerryError) -> Int64 {
    guard case .scalar(let text, _) = content, !isNull else { throw mismatch(wanted) }
    let expanded = try expanded(text)
    let digits = expanded.prefix { $0.isASCII && $0.isNumber }
    let unit = expanded.dropFirst(digits.count).drop { $0 == " " }
    guard let value = Int64(digits), let factor = units[String(unit)] else { throw mismatch(wanted) }
    let (product, overflow) = value.multipliedReportingOverflow(by: factor)
    guard !overflow else { throw error("\"\(name)\" is too large") }
    return product
  }
}
