import FerryCore

/// Tables, by whole seconds.
extension BackendlessAPI {
  /// Of more rows in one second than this the order is not asked for.
  private static let mostOrdered = 5000

  /// The next seconds along the way, and the way from there. None of a table or column that is not there.
  func seconds(
    of table: String, where scope: [String?], along walk: RowWalk, doing: String
  ) async throws(FerryError) -> (seconds: [RowWalk.Second], walk: RowWalk) {
    var walk = walk
    do throws(FerryError) {
      if let stop = walk.stop {
        let rows = try await whole(stop.time, of: table, where: scope, by: walk.column, doing)
        let second = walk.rest(of: RowWalk.Second(stop.time, rows, finer: walk.finer), after: stop)
        walk.pass(stop.time)
        return ([second], walk)
      }
      let page = try await rows(
        of: table, where: Condition.all(scope + [walk.condition]), sortBy: walk.sort, doing: doing)
      switch walk.take(page, isFull: page.count >= Self.pageSize) {
      case .seconds(let seconds): return (seconds, walk)
      case .crowded(let time):
        let rows = try await whole(time, of: table, where: scope, by: walk.column, doing)
        walk.pass(time)
        return ([RowWalk.Second(time, rows, finer: walk.finer)], walk)
      }
    } catch  where error.code == .notFound {
      walk.end()
      return ([], walk)
    }
  }

  /// All rows of one second, as the service lists them.
  ///
  /// Where they are more than an answer holds they are asked for twice: by their places in the list, which tells their
  /// order but may pass over a row when another goes meanwhile, or when the list is not the same each time; then by
  /// their ids, which passes over none.
  private func whole(
    _ time: Int64, of table: String, where scope: [String?], by column: String, _ doing: String
  ) async throws(FerryError) -> [JSONValue] {
    let condition = Condition.all(scope + ["\(column) = \(time)"])
    var found: [JSONValue] = []
    var seen: Set<String> = []
    for offset in stride(from: 0, to: Self.mostOrdered, by: Self.pageSize) {
      let page = try await rows(
        of: table, where: condition, sortBy: "\(column) asc", offset: offset, doing: doing)
      for row in page { if let id = row["objectId"]?.text, seen.insert(id).inserted { found.append(row) } }
      if page.count < Self.pageSize {
        if offset == 0 { return found }
        break
      }
    }
    var after: String?
    repeat {
      let (page, next) = try await byID(time, after: after, of: table, where: scope, by: column, doing: doing)
      for row in page { if let id = row["objectId"]?.text, seen.insert(id).inserted { found.append(row) } }
      after = next
    } while after != nil
    return found
  }

  /// A page of one second's rows in the order of their ids, and the id to go on from; nil at the end.
  func byID(
    _ time: Int64, after: String?, of table: String, where scope: [String?], by column: String, doing: String
  ) async throws(FerryError) -> (rows: [JSONValue], next: String?) {
    let further = after.flatMap { Condition.quoted($0) }.map { "objectId > \($0)" }
    let page = try await rows(
      of: table, where: Condition.all(scope + ["\(column) = \(time)", further]), sortBy: "objectId asc", doing: doing)
    let last = page.last { $0["objectId"]?.text.map { Condition.isPlain($0) } ?? false }?["objectId"]?.text
    // A service that compares in another way than it sorts would go round for ever.
    return (page, page.count < Self.pageSize || last == after ? nil : last)
  }
}
