import FerryChat
import FerryCore

/// Goes through the rows of a table in the order of their making, either way, a page at a time: the memory it takes
/// does not grow with the table.
struct RowScan {
  private static let pageSize = 200

  let collection: String
  let condition: SQLCondition?
  private var query: DocumentQuery
  private var isBegun = false
  private var isDone = false

  init(_ table: String, where condition: SQLCondition?, order: HistoryOrder = .oldestFirst) {
    collection = TableWriter.collection(table)
    self.condition = condition
    query = DocumentQuery(order: order, limit: Self.pageSize)
    // One comparison can be left to the database. Texts only: of numbers it would find fewer.
    for part in condition?.required ?? [] where part.comparison == .equal && TableName.isValid(part.name) {
      if case .string = part.value { query.filter = ("$.values.\(part.name)", part.value) }
    }
  }

  /// The next rows of which the condition is true, or nil at the end. May be empty before.
  mutating func next(_ transaction: ChatTransaction) throws -> [Row]? {
    if isDone { return nil }
    if !isBegun {
      isBegun = true
      try narrow(transaction)
    }
    let documents = try transaction.documents(in: collection, query)
    isDone = documents.count < Self.pageSize
    if query.order == .oldestFirst {
      query.after = documents.last?.sequence ?? query.after
    } else {
      query.before = documents.last?.sequence ?? query.before
    }
    return try documents.compactMap { document in
      let row = try document.value(Row.self)
      return condition?.matches(row.values) ?? true ? row : nil
    }
  }

  // MARK: Narrowing

  /// Rows are made in the order of `created`. So conditions on it bound the part of the table that is looked at.
  private mutating func narrow(_ transaction: ChatTransaction) throws {
    for part in condition?.required ?? [] where part.name == "created" {
      let time: Int64
      switch part.value {
      case .integer(let value): time = value
      // Rounded to the side on which nothing is lost.
      case .number(let value) where abs(value) < 1e15: time = Int64(value.rounded(.down))
      default: continue
      }
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
    func row(_ order: HistoryOrder, after: Int64? = nil) throws -> (sequence: Int64, created: Int64)? {
      let query = DocumentQuery(order: order, after: after, limit: 1)
      guard let document = try transaction.documents(in: collection, query).first else { return nil }
      return (document.sequence, try document.value(Row.self).created)
    }
    guard let last = try row(.newestFirst), last.created >= time, let first = try row(.oldestFirst) else { return nil }
    // Everything up to `low` is older; the row at `high` is not.
    var (low, high) = (first.sequence - 1, last.sequence)
    while low + 1 < high {
      let middle = low + (high - low) / 2
      guard let found = try row(.oldestFirst, after: middle - 1) else { break }
      if found.created >= time {
        // The rows from `middle` to it, if any, are not there.
        high = min(middle, found.sequence)
      } else {
        low = found.sequence
      }
    }
    return high
  }
}
