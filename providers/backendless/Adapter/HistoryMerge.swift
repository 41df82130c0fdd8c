import FerryCore

/// Two ways through the chat table, made into one page after another: that of the rows that have a time of their own,
/// and that of the others, which have the service's.
struct HistoryMerge: Sendable {
  private(set) var timed: RowWalk
  private(set) var plain: RowWalk

  /// Begins anew where the cursor is none, or not understood.
  init(_ cursor: Cursor?, time: String, ascending: Bool) {
    let value = cursor.flatMap { JSONText.value($0.rawValue) }
    timed = RowWalk(value?["own"], by: time, ascending: ascending) ?? RowWalk(by: time, ascending: ascending)
    plain =
      RowWalk(value?["plain"], by: "created", ascending: ascending) ?? RowWalk(by: "created", ascending: ascending)
  }

  /// Nil when there is no more.
  var next: Cursor? {
    if timed.isDone, plain.isDone { return nil }
    return Cursor(JSONText.text(of: ["own": timed.value, "plain": plain.value]))
  }

  /// At most `limit` rows in the order of their times, of two pages of which each was asked for with that limit.
  mutating func merge(_ own: [JSONValue], _ others: [JSONValue], limit: Int) -> [JSONValue] {
    var (first, second) = (timed.new(own)[...], plain.new(others)[...])
    let (isFirstIdle, isSecondIdle) = (first.isEmpty, second.isEmpty)
    var page: [JSONValue] = []
    while page.count < limit {
      let (left, right) = (first.first.flatMap(timed.place), second.first.flatMap(plain.place))
      guard left != nil || right != nil else { break }
      if let left, right.map({ timed.isAscending ? left.time <= $0.time : left.time >= $0.time }) ?? true {
        let row = first.removeFirst()
        timed.pass(row)
        page.append(row)
      } else {
        let row = second.removeFirst()
        plain.pass(row)
        page.append(row)
      }
    }
    if first.isEmpty, !timed.isDone { timed.endPage(isLast: own.count < limit, isIdle: isFirstIdle) }
    if second.isEmpty, !plain.isDone { plain.endPage(isLast: others.count < limit, isIdle: isSecondIdle) }
    return page
  }
}
