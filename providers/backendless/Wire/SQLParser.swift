import FerryCore

/// A word or sign of a condition, and where it stands.
struct SQLToken: Sendable {
  enum Kind: Hashable, Sendable {
    /// In upper case when it is a word of the language's.
    case keyword(String)
    case name(String)
    case string(String)
    case number(JSONValue)
    case sign(String)
    case end
  }

  let kind: Kind
  /// In characters, from 1.
  let place: Int

  private static let keywords: Set<String> = [
    "AND", "OR", "NOT", "LIKE", "IN", "BETWEEN", "IS", "NULL", "TRUE", "FALSE",
  ]

  static func list(_ text: String) throws(FerryError) -> [SQLToken] {
    let scalars = Array(text.unicodeScalars)
    var tokens: [SQLToken] = []
    var index = 0
    while index < scalars.count {
      let scalar = scalars[index]
      let start = index
      func add(_ kind: Kind) { tokens.append(SQLToken(kind: kind, place: start + 1)) }
      switch scalar {
      case " ", "\t", "\n", "\r": index += 1
      case "'": add(.string(try quoted(scalars, &index, by: "'")))
      case "`": add(.name(try quoted(scalars, &index, by: "`")))
      case "(", ")", ",":
        add(.sign(String(scalar)))
        index += 1
      case "=", "<", ">", "!":
        index += 1
        if index < scalars.count, scalars[index] == "=" || (scalar == "<" && scalars[index] == ">") { index += 1 }
        let sign = word(scalars[start..<index])
        guard sign != "!", sign != "==" else { throw refusal("\"\(sign)\" is no comparison", at: start + 1) }
        add(.sign(sign == "!=" ? "<>" : sign))
      case "-", "0"..."9", ".": add(.number(try number(scalars, &index)))
      case _ where isLetter(scalar):
        while index < scalars.count, isLetter(scalars[index]) || isDigit(scalars[index]) || scalars[index] == "." {
          index += 1
        }
        let word = word(scalars[start..<index])
        add(keywords.contains(word.uppercased()) ? .keyword(word.uppercased()) : .name(word))
      default: throw refusal("\"\(scalar)\" is not understood", at: start + 1)
      }
    }
    tokens.append(SQLToken(kind: .end, place: scalars.count + 1))
    return tokens
  }

  static func refusal(_ what: String, at place: Int) -> FerryError {
    FerryError(.badRequest, "The condition is not valid: \(what), at character \(place).")
  }

  /// A quote within is written twice.
  private static func quoted(
    _ scalars: [Unicode.Scalar], _ index: inout Int, by quote: Unicode.Scalar
  ) throws(FerryError) -> String {
    let start = index
    var content = String.UnicodeScalarView()
    index += 1
    while index < scalars.count {
      let scalar = scalars[index]
      index += 1
      if scalar == quote {
        guard index < scalars.count, scalars[index] == quote else { return String(content) }
        index += 1
      }
      content.append(scalar)
    }
    throw refusal("a text has no end", at: start + 1)
  }

  private static func number(_ scalars: [Unicode.Scalar], _ index: inout Int) throws(FerryError) -> JSONValue {
    let start = index
    while index < scalars.count, isDigit(scalars[index]) || "+-.eE".unicodeScalars.contains(scalars[index]) {
      index += 1
    }
    let digits = word(scalars[start..<index])
    if let whole = Int64(digits) { return .integer(whole) }
    guard let number = Double(digits), number.isFinite else {
      throw refusal("\"\(digits)\" is no number", at: start + 1)
    }
    return .number(number)
  }

  private static func word(_ scalars: ArraySlice<Unicode.Scalar>) -> String {
    String(String.UnicodeScalarView(scalars))
  }

  private static func isDigit(_ scalar: Unicode.Scalar) -> Bool { ("0"..."9").contains(scalar) }

  private static func isLetter(_ scalar: Unicode.Scalar) -> Bool {
    scalar == "_" || scalar == "$" || scalar.properties.isAlphabetic
  }
}

/// Descends through `OR`, `AND`, `NOT` and single comparisons.
struct SQLParser {
  private static let deepest = 50
  private static let longestList = 1000

  private let tokens: [SQLToken]
  private var index = 0
  private var depth = 0

  init(_ tokens: [SQLToken]) { self.tokens = tokens }

  mutating func condition() throws(FerryError) -> SQLCondition.Node {
    let node = try anyOf()
    guard next.kind == .end else { throw unexpected() }
    return node
  }

  private mutating func anyOf() throws(FerryError) -> SQLCondition.Node {
    var nodes = [try allOf()]
    while take(.keyword("OR")) { nodes.append(try allOf()) }
    return nodes.count == 1 ? nodes[0] : .or(nodes)
  }

  private mutating func allOf() throws(FerryError) -> SQLCondition.Node {
    var nodes = [try term()]
    while take(.keyword("AND")) { nodes.append(try term()) }
    return nodes.count == 1 ? nodes[0] : .and(nodes)
  }

  private mutating func term() throws(FerryError) -> SQLCondition.Node {
    depth += 1
    defer { depth -= 1 }
    guard depth <= Self.deepest else { throw SQLToken.refusal("it is nested too deeply", at: next.place) }
    if take(.keyword("NOT")) { return .not(try term()) }
    if take(.sign("(")) {
      let node = try anyOf()
      try need(.sign(")"), "a closing parenthesis")
      return node
    }
    return try comparison()
  }

  private mutating func comparison() throws(FerryError) -> SQLCondition.Node {
    guard case .name(let name) = next.kind else { throw unexpected("a name") }
    index += 1
    if take(.keyword("IS")) {
      let isNegated = take(.keyword("NOT"))
      try need(.keyword("NULL"), "NULL")
      return isNegated ? .not(.isNull(name)) : .isNull(name)
    }
    let isNegated = take(.keyword("NOT"))
    let node: SQLCondition.Node
    if take(.keyword("LIKE")) {
      node = .like(name, try text())
    } else if take(.keyword("IN")) {
      node = .isIn(name, try list())
    } else if take(.keyword("BETWEEN")) {
      let low = try literal()
      try need(.keyword("AND"), "AND")
      node = .between(name, low, try literal())
    } else if !isNegated, case .sign(let sign) = next.kind, let comparison = SQLCondition.Comparison(rawValue: sign) {
      index += 1
      return .compare(name, comparison, try literal())
    } else {
      throw unexpected("a comparison")
    }
    return isNegated ? .not(node) : node
  }

  private mutating func list() throws(FerryError) -> [JSONValue] {
    try need(.sign("("), "a list in parentheses")
    var values = [try literal()]
    while take(.sign(",")) {
      values.append(try literal())
      guard values.count <= Self.longestList else {
        throw SQLToken.refusal("a list has more than \(Self.longestList) values", at: next.place)
      }
    }
    try need(.sign(")"), "a closing parenthesis")
    return values
  }

  private mutating func text() throws(FerryError) -> String {
    guard case .string(let text) = next.kind else { throw unexpected("a text in single quotes") }
    index += 1
    return text
  }

  private mutating func literal() throws(FerryError) -> JSONValue {
    let value: JSONValue
    switch next.kind {
    case .string(let text): value = .string(text)
    case .number(let number): value = number
    case .keyword("TRUE"): value = .bool(true)
    case .keyword("FALSE"): value = .bool(false)
    default: throw unexpected("a number, or a text in single quotes")
    }
    index += 1
    return value
  }

  // MARK: Tokens

  /// The last token is the end, which nothing takes.
  private var next: SQLToken { tokens[min(index, tokens.count - 1)] }

  private mutating func take(_ kind: SQLToken.Kind) -> Bool {
    guard next.kind == kind else { return false }
    index += 1
    return true
  }

  private mutating func need(_ kind: SQLToken.Kind, _ what: String) throws(FerryError) {
    guard take(kind) else { throw unexpected(what) }
  }

  private func unexpected(_ wanted: String? = nil) -> FerryError {
    let found =
      switch next.kind {
      case .end: "the end"
      case .keyword(let word), .name(let word), .sign(let word): "\"\(word.prefix(40))\""
      case .string: "a text"
      case .number: "a number"
      }
    let what = wanted.map { "\(found) stands where \($0) is expected" } ?? "\(found) is not expected"
    return SQLToken.refusal(what, at: next.place)
  }
}
