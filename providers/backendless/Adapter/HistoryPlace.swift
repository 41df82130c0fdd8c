import FerryCore

/// How far a history has been read: in the list of the rows that have a time of their own, and in that of the others.
struct HistoryPlace: Hashable, Sendable {
  var timed: RowPlace?
  var plain: RowPlace?
  var isTimedDone = false
  var isPlainDone = false

  init() {}

  /// What is not understood is the beginning.
  init(_ cursor: Cursor) {
    let value = JSONText.value(cursor.rawValue) ?? .null
    timed = Self.place(value["t"])
    plain = Self.place(value["p"])
    isTimedDone = value["td"]?.bool ?? false
    isPlainDone = value["pd"]?.bool ?? false
  }

  private static func place(_ value: JSONValue?) -> RowPlace? {
    guard let list = value?.array, list.count == 2, let time = list[0].integer, let id = list[1].string else { return nil }
    return RowPlace(time: time, id: id)
  }

  var cursor: Cursor {
    var value: [String: JSONValue] = [:]
    value["t"] = timed.map { [.integer($0.time), .string($0.id)] }
    value["p"] = plain.map { [.integer($0.time), .string($0.id)] }
    if isTimedDone { value["td"] = true }
    if isPlainDone { value["pd"] = true }
    return Cursor(JSONText.text(of: .object(value)))
  }
}

/// Two lists of rows, each in its order, made into one page.
struct HistoryMerge: Sendable {
  /// Nil when there is no more.
  private(set) var next: HistoryPlace?
  private var place: HistoryPlace
  private let limit: Int
  private let isAscending: Bool
  private let time: String

  init(place: HistoryPlace, limit: Int, isAscending: Bool, time: String) {
    self.place = place
    self.limit = limit
    self.isAscending = isAscending
    self.time = time
  }

  mutating func merge(_ timed: [JSONValue], _ plain: [JSONValue]) -> [JSONValue] {
    var page: [JSONValue] = []
    var (first, second) = (timed[...], plain[...])
    while page.count < limit {
      let (left, right) = (Self.place(first.first, time), Self.place(second.first, "created"))
      // A row without the column it was sorted by cannot be gone on from.
      if left == nil, !first.isEmpty { first.removeFirst() }
      if right == nil, !second.isEmpty { second.removeFirst() }
      if left == nil, right == nil {
        if first.isEmpty, second.isEmpty { break }
        continue
      }
      if let left, right.map({ isAscending ? left.time <= $0.time : left.time >= $0.time }) ?? true {
        page.append(first.removeFirst())
        place.timed = left
      } else if let right {
        page.append(second.removeFirst())
        place.plain = right
      }
    }
    // What came short of the limit is all there is, once it is used up.
    place.isTimedDone = place.isTimedDone || (timed.count < limit && first.isEmpty)
    place.isPlainDone = place.isPlainDone || (plain.count < limit && second.isEmpty)
    next = place.isTimedDone && place.isPlainDone ? nil : place
    return page
  }

  private static func place(_ row: JSONValue?, _ column: String) -> RowPlace? {
    guard let row, let time = row[column]?.integer, let id = row["objectId"]?.text else { return nil }
    return RowPlace(time: time, id: id)
  }
}
