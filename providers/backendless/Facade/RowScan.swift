import FerryChat
import FerryCore

/// Goes through the rows of a table in the order of their making, either way, a page at a time: the memory it takes
/// does not grow with the table. Where any order will do and only late changes are asked for, in the order of those.
struct RowScan {
  private static let pageSize = 200

  let table: String
  let condition: SQLCondition?
  private let isInAnyOrder: Bool
  /// Goes through the list of changes rather than the table.
  private var isByChanges = false
  private var query: DocumentQuery
  private var isBegun = false
  private var isDone = false

  init(_ table: String, where condition: SQLCondition?, order: HistoryOrder = .oldestFirst, inAnyOrder: Bool = false) {
    self.table = table
    self.condition = condition
    isInAnyOrder = inAnyOrder
    query = DocumentQuery(order: order, limit: Self.pageSize)
  }

  /// What is gone through: rows, or the times of changes under the rows' ids.
  private var listed: String {
    isByChanges ? TableWriter.changes(of: table) : TableWriter.collection(table)
  }

  /// The next rows of which the condition is true, or nil at the end. May be empty before.
  mutating func next(_ transaction: ChatTransaction) throws -> [Row]? {
    if isDone { return nil }
    if !isBegun {
      isBegun = true
      if let named = try named(transaction) {
        isDone = true
        return named
      }
      try narrow(transaction)
    }
    let documents = try transaction.documents(in: listed, query)
    isDone = documents.count < Self.pageSize
    if query.order == .oldestFirst {
      query.after = documents.last?.sequence ?? query.after
    } else {
      query.before = documents.last?.sequence ?? query.before
    }
    let rows = TableWriter.collection(table)
    return try documents.compactMap { document in
      let found = try isByChanges ? transaction.value(Row.self, of: document.id, in: rows) : document.value(Row.self)
      guard let row = found else { return nil }
      return condition?.matches(row.values) ?? true ? row : nil
    }
  }

  // MARK: Narrowing

  /// Where the condition names rows by their ids, these and no others.
  private func named(_ transaction: ChatTransaction) throws -> [Row]? {
    guard let ids = condition?.list(of: "objectId") else { return nil }
    let collection = TableWriter.collection(table)
    let documents = try Set(ids).compactMap { try transaction.document($0, in: collection) }
      .sorted { query.order == .oldestFirst ? $0.sequence < $1.sequence : $0.sequence > $1.sequence }
    return try documents.map { try $0.value(Row.self) }.filter { condition?.matches($0.values) == true }
  }

  /// Rows are made in the order of `created`, and changed in that of `updated`. So conditions on these bound the part of
  /// the table that is looked at.
  private mutating func narrow(_ transaction: ChatTransaction) throws {
    let required = condition?.required ?? []
    if isInAnyOrder, let since = try TableWriter.changesAreListed(of: table, transaction) {
      isByChanges = required.contains { part in
        guard part.name == "updated", let time = Self.time(part.value) else { return false }
        return [.greater, .greaterOrEqual, .equal].contains(part.comparison) && time >= since
      }
    }
    // One comparison can be left to the database. Texts only: of numbers it would find fewer.
    for part in required where part.comparison == .equal && TableName.isValid(part.name) && !isByChanges {
      if case .string = part.value { query.filter = ("$.values.\(part.name)", part.value) }
    }
    for part in required where part.name == (isByChanges ? "updated" : "created") {
      guard let time = Self.time(part.value) else { continue }
      switch part.comparison {
      case .less, .lessOrEqual: try end(atFirstFrom: time + 1, transaction)
      case .greater, .greaterOrEqual: try begin(atFirstFrom: time, transaction)
      case .equal:
        try begin(atFirstFrom: time, transaction)
        try end(atFirstFrom: time + 1, transaction)
      case .unequal: break
      }
    }
  }

  private static func time(_ value: JSONValue) -> Int64? {
    switch value {
    case .integer(let value) where value < .max: value
    // Rounded to the side on which nothing is lost.
    case .number(let value) where abs(value) < 1e15: Int64(value.rounded(.down))
    default: nil
    }
  }

  private mutating func begin(atFirstFrom time: Int64, _ transaction: ChatTransaction) throws {
    let first = try sequence(ofFirstFrom: time, transaction) ?? .max
    query.after = max(query.after ?? 0, first - 1)
  }

  private mutating func end(atFirstFrom time: Int64, _ transaction: ChatTransaction) throws {
    guard let first = try sequence(ofFirstFrom: time, transaction) else { return }
    query.before = min(query.before ?? .max, first)
  }

  /// By halving. Nil when all rows are older.
  private func sequence(ofFirstFrom time: Int64, _ transaction: ChatTransaction) throws -> Int64? {
    func entry(_ order: HistoryOrder, after: Int64? = nil) throws -> (sequence: Int64, time: Int64)? {
      let query = DocumentQuery(order: order, after: after, limit: 1)
      guard let document = try transaction.documents(in: listed, query).first else { return nil }
      let time = try isByChanges ? document.value(Int64.self) : document.value(Row.self).created
      return (document.sequence, time)
    }
    guard let last = try entry(.newestFirst), last.time >= time, let first = try entry(.oldestFirst) else { return nil }
    // Everything up to `low` is older; the row at `high` is not.
    var (low, high) = (first.sequence - 1, last.sequence)
    while low + 1 < high {
      let middle = low + (high - low) / 2
      guard let found = try entry(.oldestFirst, after: middle - 1) else { break }
      if found.time >= time {
        // The rows from `middle` to it, if any, are not there.
        high = min(middle, found.sequence)
      } else {
        low = found.sequence
      }
    }
    return high
  }
}
