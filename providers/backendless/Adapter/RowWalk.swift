import FerryCore

/// A way through a table's rows in the order of a column of times, a page at a time. A pure value, also as text.
///
/// Times have whole seconds, so many rows may share one. What has been seen of the last one is excluded by id rather
/// than put in an order of ids, for as long as there are few: then rows of one time come as the service orders them,
/// which is most likely that of their making. Places in the list are never counted, since rows come and go.
struct RowWalk: Hashable, Sendable {
  let column: String
  let isAscending: Bool
  /// The time of the last row; nil at the beginning.
  private(set) var time: Int64?
  /// The rows of that time that have been seen.
  private var seen: [String] = []
  /// Too many share the time: they are gone through by their ids from here on.
  private var crowdAfter: String?
  /// Nothing is left.
  private(set) var isDone = false

  private static let mostExcluded = 150
  /// A condition that is much longer is refused.
  static let excludedBytes = 6000

  init(by column: String, ascending: Bool) {
    self.column = column
    isAscending = ascending
  }

  // MARK: Questions

  /// What the next page is asked for by; nil at the beginning.
  var condition: String? {
    guard let time else { return nil }
    if let crowdAfter {
      guard !crowdAfter.isEmpty, let id = Condition.quoted(crowdAfter) else { return "\(column) = \(time)" }
      return "\(column) = \(time) and objectId > \(id)"
    }
    let further = "\(column) \(isAscending ? ">" : "<") \(time)"
    let excluded = seen.compactMap { Condition.quoted($0) }
    // Empty after a crowd: of that time everything has been seen.
    guard !seen.isEmpty else { return further }
    return "\(further) or (\(column) = \(time)"
      + (excluded.isEmpty ? ")" : " and objectId not in (\(excluded.joined(separator: ","))))")
  }

  var sort: String { crowdAfter == nil ? "\(column) \(isAscending ? "asc" : "desc")" : "objectId asc" }

  // MARK: Answers

  /// The rows of a page that are new on this way, in its order.
  func new(_ page: [JSONValue]) -> [JSONValue] {
    page.filter { row in
      guard let (time, id) = place(of: row) else { return false }
      return time != self.time || !seen.contains(id)
    }
  }

  /// The time and id of a row, if it has what the way goes by.
  func place(of row: JSONValue) -> (time: Int64, id: String)? {
    guard let time = row[column]?.integer, let id = row["objectId"]?.text else { return nil }
    return (time, id)
  }

  /// A row has been taken.
  mutating func pass(_ row: JSONValue) {
    guard let (time, id) = place(of: row) else { return }
    if crowdAfter != nil {
      crowdAfter = id
      return
    }
    if time != self.time {
      self.time = time
      seen = []
    }
    seen.append(id)
  }

  /// A page has been taken whole; `isLast` when it had fewer rows than were asked for, `isIdle` when none was new.
  mutating func endPage(isLast: Bool, isIdle: Bool) {
    if crowdAfter != nil {
      guard isLast || isIdle else { return }
      crowdAfter = nil
      seen = []
    } else if isLast {
      isDone = true
    } else if seen.count > Self.mostExcluded || isIdle
      || seen.reduce(0, { $0 + $1.utf8.count + 3 }) > Self.excludedBytes
    {
      crowdAfter = ""
    }
  }

  // MARK: Text

  /// Nil for what is no place on this way.
  init?(_ value: JSONValue?, by column: String, ascending: Bool) {
    self.init(by: column, ascending: ascending)
    guard case .object(let value)? = value else { return nil }
    time = value["t"]?.integer
    seen = (value["s"]?.array ?? []).compactMap(\.string)
    crowdAfter = value["c"]?.string
    isDone = value["d"]?.bool ?? false
  }

  var value: JSONValue {
    var value: [String: JSONValue] = [:]
    if isDone { return ["d": true] }
    value["t"] = time.map(JSONValue.integer)
    if !seen.isEmpty { value["s"] = .array(seen.map(JSONValue.string)) }
    value["c"] = crowdAfter.map(JSONValue.string)
    return .object(value)
  }
}
