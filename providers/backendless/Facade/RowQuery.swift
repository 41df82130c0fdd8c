import FerryCore
import FerryTransport

/// Which rows a client asks for, in which order and how many.
struct RowQuery: Sendable {
  struct Order: Hashable, Sendable {
    let column: String
    let ascending: Bool
  }

  static let longestPage = 100

  var condition: SQLCondition?
  var order: [Order] = []
  var pageSize = 10
  var offset = 0
  var properties: Set<String> = []
  var excluded: Set<String> = []

  init() {}

  /// From a body or a query, whose values are texts, or lists of them.
  init(_ value: (String) -> JSONValue?) throws(Fault) {
    condition = try Self.condition(value("where"))
    for name in ["loadRelations", "relationsDepth"] where !Self.names(value(name)).isEmpty && value(name)?.text != "0" {
      throw .unsupported("Loading related objects (\(name))")
    }
    for name in ["groupBy", "having"] where !Self.names(value(name)).isEmpty {
      throw .unsupported("Grouping (\(name))")
    }
    for text in Self.names(value("sortBy")) {
      let words = text.split(separator: " ")
      let direction = words.dropFirst().first?.lowercased() ?? "asc"
      guard let column = words.first, TableName.isValid(String(column)), words.count <= 2,
        direction == "asc" || direction == "desc"
      else { throw .badRequest("sortBy is a list of columns, each with asc or desc: \"\(text.prefix(64))\"") }
      order.append(Order(column: String(column), ascending: direction == "asc"))
    }
    pageSize = try Self.number(value("pageSize"), "pageSize", 1...Int64(Self.longestPage)) ?? pageSize
    offset = try Self.number(value("offset"), "offset", 0...Int64(Int32.max)) ?? 0
    properties = Set(Self.names(value("props")) + Self.names(value("property")) + Self.names(value("properties")))
    if properties.contains("*") { properties = [] }
    excluded = Set(Self.names(value("excludeProps")))
  }

  static func condition(_ value: JSONValue?) throws(Fault) -> SQLCondition? {
    guard let text = value?.string, !text.utf8.allSatisfy({ $0 == 0x20 }) else { return nil }
    do throws(FerryError) { return try SQLCondition(text) } catch { throw .badCondition(error.message) }
  }

  private static func names(_ value: JSONValue?) -> [String] {
    let texts = value?.array?.compactMap(\.string) ?? value?.text.map { [$0] } ?? []
    return texts.flatMap { $0.split(separator: ",") }.map { text in
      let start = text.drop { $0 == " " }
      return String(start.reversed().drop { $0 == " " }.reversed())
    }.filter { !$0.isEmpty }
  }

  private static func number(_ value: JSONValue?, _ name: String, _ range: ClosedRange<Int64>) throws(Fault) -> Int? {
    guard let value, value != .null else { return nil }
    guard let number = value.text.flatMap({ Int64($0) }), range.contains(number) else {
      throw .badRequest("\"\(name)\" must be a whole number from \(range.lowerBound) to \(range.upperBound)")
    }
    return Int(number)
  }

  /// Nil when the two are equal in all columns that order.
  static func precedes(_ left: Row, _ right: Row, _ order: some Sequence<Order>) -> Bool? {
    for part in order {
      let (one, two) = (left.values[part.column] ?? .null, right.values[part.column] ?? .null)
      if let precedes = ColumnOrder.precedes(one, two) { return precedes == part.ascending }
    }
    return nil
  }
}

/// Puts rows that come one by one into the order asked for and keeps those of one page.
struct RowPage {
  /// Rows that are looked at in any other order than that of their making are kept up to the page's end.
  static let mostKept = 10_000

  private let query: RowQuery
  /// The rows come in the order of the first column already.
  let isOrdered: Bool
  private var rest: ArraySlice<RowQuery.Order>
  private var skipped = 0
  private var group: [Row] = []
  private(set) var rows: [Row] = []
  private(set) var isFull = false

  init(_ query: RowQuery) throws(Fault) {
    self.query = query
    isOrdered = query.order.first.map { $0.column == "created" } ?? true
    rest = isOrdered ? query.order.dropFirst() : query.order[...]
    guard isOrdered || query.offset + query.pageSize <= Self.mostKept else {
      throw .badRequest(
        "An offset of more than \(Self.mostKept) is possible only when sorted by \"created\" first: narrow the where clause"
      )
    }
  }

  static func scanOrder(_ query: RowQuery) -> HistoryOrder {
    guard let first = query.order.first, first.column == "created" else { return .oldestFirst }
    return first.ascending ? .oldestFirst : .newestFirst
  }

  mutating func add(_ row: Row) {
    guard isOrdered else { return keep(row) }
    guard !rest.isEmpty else { return append(row) }
    // Those of one second are put in order among themselves.
    if let last = group.last, last.created != row.created { flush() }
    if !isFull { group.append(row) }
  }

  mutating func finish() {
    if isOrdered { return flush() }
    sort(&group)
    rows = Array(group.dropFirst(query.offset).prefix(query.pageSize))
  }

  private mutating func flush() {
    sort(&group)
    for row in group { append(row) }
    group = []
  }

  private mutating func append(_ row: Row) {
    if skipped < query.offset {
      skipped += 1
    } else if rows.count < query.pageSize {
      rows.append(row)
    }
    isFull = rows.count == query.pageSize
  }

  private mutating func keep(_ row: Row) {
    let most = query.offset + query.pageSize
    group.append(row)
    guard group.count >= 2 * most + 100 else { return }
    sort(&group)
    group.removeLast(group.count - most)
  }

  /// Rows that are equal stay in the order in which they came.
  private func sort(_ rows: inout [Row]) {
    rows = rows.enumerated().sorted { left, right in
      RowQuery.precedes(left.element, right.element, rest) ?? (left.offset < right.offset)
    }.map(\.element)
  }
}
