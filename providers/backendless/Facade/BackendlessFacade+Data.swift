import FerryChat
import FerryCore
import FerryRuntime
import FerryTransport

/// `/data`: tables.
extension BackendlessFacade {
  func data(_ context: RequestContext) async throws(Fault) -> HTTPResponse {
    let path = context.path.filter { !$0.isEmpty }
    guard let first = path.first else { throw .nothingHere }
    let method = context.request.method
    if first == "bulk" || first == "bulkupsert" {
      guard path.count >= 2 else { throw .nothingHere }
      return try await bulk(method, first, table: try Self.table(path[1]), path.dropFirst(2).first, context)
    }
    let table = try Self.table(first)
    switch (method, path.count, path.dropFirst().first) {
    case ("POST", 1, _): return try await save(context, in: table)
    case ("PUT", 1, _): return try await save(context, in: table)
    case ("PUT", 2, "upsert"): return try await upsert(context, in: table)
    case ("POST", 2, "find"):
      let body = try await context.object()
      return try await find(try RowQuery { body[$0] }, in: table, context)
    case ("GET", 1, _):
      return try await find(try RowQuery { context.request.query($0).map(JSONValue.string) }, in: table, context)
    case ("POST", 2, "count"): return try await count(try await context.object()["where"], in: table)
    case ("GET", 2, "count"): return try await count(context.request.query("where").map(JSONValue.string), in: table)
    case ("GET", 2, "first"), ("GET", 2, "last"): return try await edge(isFirst: path[1] == "first", of: table, context)
    case ("GET", 2, .some(let id)): return try await row(id, in: table, context)
    case ("PUT", 2, .some(let id)): return try await update(id, try await context.object(), in: table, context)
    case ("DELETE", 2, .some(let id)): return try await delete(id, from: table)
    case (_, 3..., _): throw .unsupported("A relation between tables")
    default: throw .nothingHere
    }
  }

  private static func table(_ name: String) throws(Fault) -> String {
    guard TableName.isValid(name) else { throw .noTable(name) }
    return name
  }

  // MARK: One row

  private func save(_ context: RequestContext, in table: String) async throws(Fault) -> HTTPResponse {
    let body = try await context.object()
    guard let id = try Row.id(in: body) else {
      guard table != TableWriter.users else { throw .unsupported("Making users in the table; register them instead:") }
      let columns = try Row.writable(body)
      let owner = context.user?.id
      let row = try await change { try $0.create(columns, in: table, owner: owner) }
      return .value(row.shown(as: table, files: context.files))
    }
    return try await update(id, body, in: table, context)
  }

  private func update(
    _ id: String, _ body: [String: JSONValue], in table: String, _ context: RequestContext
  ) async throws(Fault) -> HTTPResponse {
    if table == TableWriter.users { return try await updateUser(id, body, context) }
    let columns = try Row.writable(body)
    let fields = settings.fields
    let row = try await change { writer in
      guard try TableWriter.hasTable(table, fields, writer.transaction) else { throw Fault.noTable(table) }
      return try writer.update(try writer.existingRow(id, in: table), with: columns, in: table)
    }
    return .value(row.shown(as: table, files: context.files))
  }

  private func upsert(_ context: RequestContext, in table: String) async throws(Fault) -> HTTPResponse {
    guard table != TableWriter.users else { throw .notYours }
    let body = try await context.object()
    let id = try Row.id(in: body)
    let columns = try Row.writable(body)
    let owner = context.user?.id
    let row = try await change { try $0.upsert(columns, as: id, in: table, owner: owner) }
    return .value(row.shown(as: table, files: context.files))
  }

  private func row(_ id: String, in table: String, _ context: RequestContext) async throws(Fault) -> HTTPResponse {
    let query = try RowQuery { context.request.query($0).map(JSONValue.string) }
    let fields = settings.fields
    let row = try await read { transaction in
      guard try TableWriter.hasTable(table, fields, transaction) else { throw Fault.noTable(table) }
      return try transaction.value(Row.self, of: id, in: TableWriter.collection(table))
    }
    guard let row else { throw .noEntity(id) }
    return .value(row.shown(as: table, files: context.files, only: query.properties, without: query.excluded))
  }

  private func delete(_ id: String, from table: String) async throws(Fault) -> HTTPResponse {
    guard table != TableWriter.users else { throw .notYours }
    let fields = settings.fields
    let time = try await change { writer in
      guard try TableWriter.hasTable(table, fields, writer.transaction) else { throw Fault.noTable(table) }
      try writer.delete(try writer.existingRow(id, in: table), from: table)
      return writer.transaction.now
    }
    return .value(["deletionTime": .integer(time.milliseconds)])
  }

  // MARK: Many rows

  private func find(
    _ query: RowQuery, in table: String, _ context: RequestContext
  ) async throws(Fault) -> HTTPResponse {
    let rows = try await rows(query, in: table)
    return .value(
      .array(
        rows.map {
          $0.shown(as: table, files: context.files, only: query.properties, without: query.excluded)
        }))
  }

  private func edge(isFirst: Bool, of table: String, _ context: RequestContext) async throws(Fault) -> HTTPResponse {
    var query = RowQuery()
    query.order = [RowQuery.Order(column: "created", ascending: isFirst)]
    query.pageSize = 1
    guard let row = try await rows(query, in: table).first else {
      throw Fault(404, 1010, "Unable to find a row: the table '\(table)' is empty")
    }
    return .value(row.shown(as: table, files: context.files))
  }

  /// A page of the table at a time, so that others read in between.
  private func rows(_ query: RowQuery, in table: String) async throws(Fault) -> [Row] {
    try await needTable(table)
    var page = try RowPage(query)
    var scan = RowScan(
      table, where: query.condition, order: RowPage.scanOrder(query), inAnyOrder: !page.isOrdered)
    while !page.isFull {
      let (rows, next) = try await step(scan)
      scan = next
      guard let rows else { break }
      for row in rows { page.add(row) }
    }
    page.finish()
    return page.rows
  }

  private func step(_ scan: RowScan) async throws(Fault) -> ([Row]?, RowScan) {
    try await read { transaction in
      var scan = scan
      let rows = try scan.next(transaction)
      return (rows, scan)
    }
  }

  private func needTable(_ table: String) async throws(Fault) {
    let fields = settings.fields
    guard try await read({ try TableWriter.hasTable(table, fields, $0) }) else { throw .noTable(table) }
  }

  private func count(_ clause: JSONValue?, in table: String) async throws(Fault) -> HTTPResponse {
    try await needTable(table)
    guard let condition = try RowQuery.condition(clause) else {
      let count = try await read { try $0.count(in: TableWriter.collection(table)) }
      return .value(.integer(Int64(count)))
    }
    var count = 0
    var scan = RowScan(table, where: condition, inAnyOrder: true)
    while true {
      let (rows, next) = try await step(scan)
      scan = next
      guard let rows else { break }
      count += rows.count
    }
    return .value(.integer(Int64(count)))
  }

  // MARK: Bulk

  private func bulk(
    _ method: String, _ kind: String, table: String, _ action: String?, _ context: RequestContext
  ) async throws(Fault) -> HTTPResponse {
    guard table != TableWriter.users else { throw .notYours }
    switch (method, kind, action) {
    case ("POST", "bulk", nil): return try await bulkSave(context, table, isUpsert: false)
    case ("PUT", "bulkupsert", nil): return try await bulkSave(context, table, isUpsert: true)
    case ("PUT", "bulk", nil):
      let clause = context.request.query("where") ?? ""
      let columns = try Row.writable(try await context.object())
      return try await bulkChange("bulk-updated", table, clause) { writer, row in
        _ = try writer.update(row, with: columns, in: table, event: nil)
      }
    case ("POST", "bulk", "delete"):
      let clause = try await context.object()["where"]?.string ?? ""
      return try await bulkChange("bulk-deleted", table, clause) { writer, row in
        try writer.delete(row, from: table, event: nil)
      }
    case ("DELETE", "bulk", nil):
      return try await bulkChange("bulk-deleted", table, context.request.query("where") ?? "") { writer, row in
        try writer.delete(row, from: table, event: nil)
      }
    default: throw .nothingHere
    }
  }

  private func bulkSave(
    _ context: RequestContext, _ table: String, isUpsert: Bool
  ) async throws(Fault) -> HTTPResponse {
    var items: [(id: String?, columns: [String: JSONValue])] = []
    for object in try await context.objects() {
      items.append((try Row.id(in: object), try Row.writable(object)))
    }
    let ready = items
    let owner = context.user?.id
    let ids = try await change { writer in
      let ids = try ready.map { item in
        if isUpsert {
          return try writer.upsert(item.columns, as: item.id, in: table, owner: owner, event: nil).id
        }
        if let id = item.id, try writer.row(id, in: table) != nil {
          throw Fault(409, 1101, "An object with the objectId '\(id)' exists already")
        }
        return try writer.create(item.columns, as: item.id, in: table, owner: owner, event: nil).id
      }
      writer.tell(isUpsert ? "bulk-upserted" : "bulk-created", of: table, .ids(ids))
      return ids
    }
    return .value(.array(ids.map(JSONValue.string)))
  }

  /// All in one transaction, a page of rows in memory at a time.
  private func bulkChange(
    _ event: String, _ table: String, _ clause: String,
    _ body: @escaping @Sendable (TableWriter, Row) throws -> Void
  ) async throws(Fault) -> HTTPResponse {
    guard let condition = try RowQuery.condition(.string(clause)) else { throw .missing("where") }
    let fields = settings.fields
    let count = try await change { writer in
      guard try TableWriter.hasTable(table, fields, writer.transaction) else { throw Fault.noTable(table) }
      var scan = RowScan(table, where: condition)
      var count = 0
      while let rows = try scan.next(writer.transaction) {
        for row in rows { try body(writer, row) }
        count += rows.count
      }
      writer.tell(event, of: table, .count(count, whereClause: clause))
      return count
    }
    return .value(.integer(Int64(count)))
  }
}
