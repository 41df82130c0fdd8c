import FerryCore
import FerryRuntime

/// A way through a table's rows along a column of times, by whole seconds. A pure value, also as text.
///
/// This is the one order of a channel's messages, whoever reads them: by the second in which the service says that a
/// row was saved; within a second by the rows' own times where all of that second have one, else as the service lists
/// them. It needs a second's rows all together, so one that a page's end may have cut is left for the next page, and
/// one that fills a page by itself is read by itself.
struct RowWalk: Hashable, Sendable {
  /// All rows of one second, in order.
  struct Second: Hashable, Sendable {
    let time: Int64
    let rows: [JSONValue]
    /// Rows of the second that were taken before these, another day.
    let before: Stop?

    init(_ time: Int64, _ rows: [JSONValue], finer: String, before: Stop? = nil) {
      self.time = time
      self.before = before
      let times = rows.compactMap { $0[finer]?.integer }
      guard times.count == rows.count else {
        self.rows = rows
        return
      }
      self.rows = zip(rows, times).enumerated().sorted { left, right in
        let (one, two) = (left.element.1, right.element.1)
        return one == two ? left.offset < right.offset : one < two
      }.map(\.element.0)
    }
  }

  /// What a page has.
  enum Step: Hashable, Sendable {
    /// In the way's direction; the rows of each are oldest first all the same.
    case seconds([Second])
    /// One second alone fills the page.
    case crowded(Int64)
  }

  /// The second in which a reader stopped.
  struct Stop: Hashable, Sendable {
    /// Of the rows that were taken, the last so many are remembered: a page's.
    static let memory = BackendlessAPI.pageSize

    let time: Int64
    /// The last rows that were taken, in the way's direction.
    private(set) var taken: [String]
    /// No row was taken before those.
    private(set) var isWhole: Bool

    init(_ time: Int64, _ taken: [String], isWhole: Bool) {
      self.time = time
      self.taken = taken.suffix(Self.memory)
      self.isWhole = isWhole && taken.count <= Self.memory
    }
  }

  let column: String
  /// The column of finer times, in milliseconds.
  let finer: String
  let isAscending: Bool
  /// The last second that was taken whole; nil at the beginning.
  private(set) var passed: Int64?
  private(set) var stop: Stop?
  /// Nothing is left.
  private(set) var isDone = false

  init(by column: String, finer: String, ascending: Bool) {
    self.column = column
    self.finer = finer
    isAscending = ascending
  }

  // MARK: Asking

  /// What the next page is asked for by; nil at the beginning.
  var condition: String? { passed.map { "\(column) \(isAscending ? ">" : "<") \($0)" } }

  var sort: String { "\(column) \(isAscending ? "asc" : "desc")" }

  // MARK: Answers

  /// Moves past the whole seconds of a page. `isFull`: it has as many rows as were asked for, so there may be more.
  mutating func take(_ page: [JSONValue], isFull: Bool) -> Step {
    var groups: [Int64: [JSONValue]] = [:]
    for row in page {
      // What is not beyond the last second was not asked for.
      guard let (time, _) = place(of: row), passed.map({ isAscending ? time > $0 : time < $0 }) ?? true else {
        continue
      }
      groups[time, default: []].append(row)
    }
    var times = groups.keys.sorted { isAscending ? $0 < $1 : $0 > $1 }
    guard isFull, let cut = times.last else {
      isDone = true
      passed = times.last ?? passed
      return .seconds(seconds(times, groups))
    }
    if times.count == 1 { return .crowded(cut) }
    times.removeLast()
    passed = times.last
    return .seconds(seconds(times, groups))
  }

  private func seconds(_ times: [Int64], _ groups: [Int64: [JSONValue]]) -> [Second] {
    times.map { time in
      let rows = groups[time] ?? []
      return Second(time, isAscending ? rows : rows.reversed(), finer: finer)
    }
  }

  /// A second has been taken that was read by itself.
  mutating func pass(_ time: Int64) {
    passed = time
    stop = nil
  }

  /// The table is not there, or nothing in it.
  mutating func end() { isDone = true }

  /// Goes on from the row at `index` of a second, in the way's direction, the next time. `self` is the way as it was
  /// before that second was read, or a second before it.
  func stopped(in second: Second, at index: Int, after earlier: Second?) -> RowWalk {
    var walk = self
    walk.isDone = false
    if let earlier { walk.pass(earlier.time) }
    let rows = inDirection(second)
    let taken = (second.before?.taken ?? []) + rows.prefix(index).compactMap { place(of: $0)?.id }
    if !taken.isEmpty { walk.stop = Stop(second.time, taken, isWhole: second.before?.isWhole ?? true) }
    return walk
  }

  /// A second's rows, in the way's direction.
  func inDirection(_ second: Second) -> [JSONValue] { isAscending ? second.rows : second.rows.reversed() }

  /// What is left of the second in which a reader stopped, read anew: rows that were not taken, whatever has gone
  /// meanwhile. Where more were taken than are remembered, it goes on from those that are; when all of these have gone, rows
  /// are rather told once more than not at all.
  func rest(of second: Second, after stop: Stop) -> Second {
    let rows = inDirection(second)
    let taken = Set(stop.taken)
    let isTaken = { (row: JSONValue) in place(of: row).map { taken.contains($0.id) } ?? false }
    let first = stop.isWhole ? 0 : rows.firstIndex(where: isTaken) ?? 0
    let rest = rows.dropFirst(first).filter { !isTaken($0) }
    // Their order is settled.
    return Second(second.time, isAscending ? rest : rest.reversed(), finer: "", before: stop)
  }

  /// The time and id of a row, if it has what the way goes by.
  func place(of row: JSONValue) -> (time: Int64, id: String)? {
    guard let time = row[column]?.integer, let id = row["objectId"]?.text else { return nil }
    return (time, id)
  }

  // MARK: Text

  /// At the beginning where the text is none of this kind.
  init(_ cursor: Cursor?, by column: String, finer: String, ascending: Bool) {
    self.init(by: column, finer: finer, ascending: ascending)
    let value = cursor.flatMap { JSONText.value($0.rawValue) }
    passed = value?["t"]?.integer
    if let stop = value?["in"], let time = stop["t"]?.integer, let taken = stop["ids"]?.array {
      self.stop = Stop(time, taken.compactMap(\.string), isWhole: stop["all"]?.bool ?? false)
    }
  }

  /// Nil when nothing is left.
  var cursor: Cursor? {
    if isDone { return nil }
    var value: [String: JSONValue] = [:]
    value["t"] = passed.map(JSONValue.integer)
    if let stop {
      value["in"] = [
        "t": .integer(stop.time), "ids": .array(stop.taken.map(JSONValue.string)), "all": .bool(stop.isWhole),
      ]
    }
    return Cursor(JSON.text(of: .object(value)))
  }
}
