import FerryChat
import FerryCore

/// Changes rows in one transaction, and the chat with them; tells the listeners once all is durable.
final class TableWriter {
  let transaction: ChatTransaction
  let rows: ChatRows
  private(set) var changes: [TableChange] = []

  static let users = "Users"

  init(_ transaction: ChatTransaction, _ rows: ChatRows) {
    self.transaction = transaction
    self.rows = rows
  }

  static func collection(_ table: String) -> String { "table/\(table)" }

  /// When each row was last changed, under the rows' ids, in the order of the changes.
  static func changes(of table: String) -> String { "changed/\(table)" }

  static let listings = "changes"

  /// Since when every change of the table is in that list; nil when none is.
  static func changesAreListed(of table: String, _ transaction: ChatTransaction) throws -> Int64? {
    try transaction.value(Int64.self, of: table, in: listings)
  }

  /// Notes a change, and returns its time: whole seconds, and never less than the last one's, as rows are looked for by
  /// it.
  private func change(_ row: Row, in table: String) throws -> Int64 {
    let now = transaction.now.milliseconds / 1000 * 1000
    // A table that is older than the list has changes of this second, or none at all, that are not in it.
    _ = try transaction.insert(now + 1000, as: table, in: Self.listings)
    let list = Self.changes(of: table)
    let last = try transaction.documents(in: list, DocumentQuery(order: .newestFirst, limit: 1)).first?
      .value(Int64.self)
    let time = max(now, last ?? 0)
    try transaction.remove(row.id, from: list)
    try transaction.put(time, as: row.id, in: list)
    return time
  }

  /// Some tables are there from the beginning, the others from their first row.
  static func hasTable(_ table: String, _ fields: ChatFields, _ transaction: ChatTransaction) throws -> Bool {
    try table == fields.table || table == users || transaction.document(table, in: "tables") != nil
  }

  func row(_ id: String, in table: String) throws -> Row? {
    try transaction.value(Row.self, of: id, in: Self.collection(table))
  }

  func existingRow(_ id: String, in table: String) throws -> Row {
    guard let row = try row(id, in: table) else { throw Fault.noEntity(id) }
    return row
  }

  // MARK: Changing

  /// `event` is nil where the change is told in bulk. `place`: the row's message is there already.
  func create(
    _ columns: [String: JSONValue], as id: String? = nil, in table: String, owner: String?,
    picture: Publication.Picture? = nil,
    place: Row.Place? = nil, event: String? = "created"
  ) throws -> Row {
    if table != rows.fields.table, table != Self.users {
      _ = try transaction.insert(true, as: table, in: "tables")
    }
    var row = Row(values: columns, picture: picture, place: place)
    row.values["objectId"] = .string(id ?? GUID.new())
    // The service counts whole seconds. Never less than the last row's, though the clock were set back: rows are
    // looked for by it.
    let last = try transaction.documents(
      in: Self.collection(table), DocumentQuery(order: .newestFirst, limit: 1)
    ).first?.value(Row.self).created
    row.values["created"] = .integer(max(transaction.now.milliseconds / 1000 * 1000, last ?? 0))
    // Of a table that begins here every change will be listed.
    if last == nil { _ = try transaction.insert(Int64.min, as: table, in: Self.listings) }
    row.values["updated"] = .null
    row.values["ownerId"] = owner.map(JSONValue.string) ?? .null
    if place == nil, table == rows.fields.table { try rows.saved(&row, transaction) }
    try transaction.put(row, as: row.id, in: Self.collection(table))
    if let event { changes.append(TableChange(event, of: table, .row(row))) }
    return row
  }

  func update(
    _ old: Row, with columns: [String: JSONValue], in table: String, tellsChat: Bool = true, event: String? = "updated"
  ) throws -> Row {
    var row = old
    for (name, value) in columns { row.values[name] = value }
    if let picture = row.picture, columns[picture.field] != nil { row.picture = nil }
    row.values["updated"] = .integer(try change(row, in: table))
    if tellsChat, table == rows.fields.table { try rows.saved(&row, transaction) }
    try transaction.put(row, as: row.id, in: Self.collection(table))
    if let event { changes.append(TableChange(event, of: table, .row(row))) }
    return row
  }

  func upsert(
    _ columns: [String: JSONValue], as id: String?, in table: String, owner: String?, event: String? = "upserted"
  ) throws -> Row {
    if let id, let old = try row(id, in: table) {
      return try update(old, with: columns, in: table, event: event)
    }
    return try create(columns, as: id, in: table, owner: owner, event: event)
  }

  func delete(_ row: Row, from table: String, tellsChat: Bool = true, event: String? = "deleted") throws {
    if tellsChat, table == rows.fields.table { try rows.deleted(row, transaction) }
    try transaction.remove(row.id, from: Self.collection(table))
    try transaction.remove(row.id, from: Self.changes(of: table))
    if let event { changes.append(TableChange(event, of: table, .deleted(row))) }
  }

  /// What was done to many at once.
  func tell(_ event: String, of table: String, _ data: TableChange.Data) {
    changes.append(TableChange(event, of: table, data))
  }
}
