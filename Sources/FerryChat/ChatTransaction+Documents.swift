package import FerryCore
import FerryStorage

/// A JSON value kept beside the chat, for what the chat has no notion of.
package struct Document: Hashable, Sendable {
  /// Grows with every document that is put for the first time; the same through all its later versions.
  package var sequence: Int64
  /// Unique in its collection.
  package var id: String
  package var json: String

  /// The JSON as a value of a type. Throws `badData` that names the place.
  package func value<T: Decodable>(_ type: T.Type = T.self) throws(FerryError) -> T {
    try Wire.value(type, from: json.utf8)
  }
}

/// Which documents of a collection are asked for.
package struct DocumentQuery: Hashable, Sendable {
  package var order = HistoryOrder.oldestFirst
  /// Sequences, exclusive.
  package var after: Int64?
  package var before: Int64?
  package var limit = 100
  /// Only documents in which the value at a path equals this scalar. The path is SQLite's: `$.name.inner`, `$.list[0]`.
  package var filter: (path: String, value: JSONValue)? {
    get { path.map { ($0, wanted) } }
    set {
      path = newValue?.path
      wanted = newValue?.value ?? .null
    }
  }
  private var path: String?
  private var wanted = JSONValue.null

  package init(
    order: HistoryOrder = .oldestFirst, after: Int64? = nil, before: Int64? = nil, limit: Int = 100,
    where filter: (path: String, value: JSONValue)? = nil
  ) {
    self.order = order
    self.after = after
    self.before = before
    self.limit = limit
    path = filter?.path
    wanted = filter?.value ?? .null
  }
}

/// Collections of JSON documents, each with an id and its place in the order of their making.
///
/// A collection exists while it has documents. Names of collections and ids are compared byte by byte.
extension ChatTransaction {
  package func document(_ id: String, in collection: String) throws -> Document? {
    try connection.first(
      "SELECT sequence, id, json FROM documents WHERE collection = ? AND id = ?", .text(collection), .text(id),
      map: Self.document)
  }

  /// The document's value; nil when there is none.
  package func value<T: Decodable>(_ type: T.Type = T.self, of id: String, in collection: String) throws -> T? {
    try document(id, in: collection)?.value(type)
  }

  /// Makes the document or replaces it, keeping its place. Returns its sequence.
  @discardableResult
  package func put(_ value: some Encodable, as id: String, in collection: String) throws -> Int64 {
    try connection.first(
      """
      INSERT INTO documents(collection, id, json) VALUES (?, ?, ?)
      ON CONFLICT(collection, id) DO UPDATE SET json = excluded.json RETURNING sequence
      """, .text(collection), .text(id), .text(try Wire.json(value))
    ) { $0.integer(0) } ?? 0
  }

  /// Makes the document unless there is one. False when there is.
  package func insert(_ value: some Encodable, as id: String, in collection: String) throws -> Bool {
    try connection.execute(
      "INSERT INTO documents(collection, id, json) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", .text(collection),
      .text(id), .text(try Wire.json(value)))
    return connection.changes > 0
  }

  /// False when there was none.
  @discardableResult
  package func remove(_ id: String, from collection: String) throws -> Bool {
    try connection.execute(
      "DELETE FROM documents WHERE collection = ? AND id = ?", .text(collection), .text(id))
    return connection.changes > 0
  }

  /// Returns how many there were.
  @discardableResult
  package func removeAll(from collection: String) throws -> Int {
    try connection.execute("DELETE FROM documents WHERE collection = ?", .text(collection))
    return connection.changes
  }

  package func documents(in collection: String, _ query: DocumentQuery = DocumentQuery()) throws -> [Document] {
    let condition = query.filter == nil ? "" : "AND json_extract(json, ?) IS ?"
    let direction = query.order == .oldestFirst ? "ASC" : "DESC"
    let sql = """
      SELECT sequence, id, json FROM documents
      WHERE collection = ? AND sequence > ? AND sequence < ? \(condition) ORDER BY sequence \(direction) LIMIT ?
      """
    let after = SQLValue(query.after ?? 0)
    let before = SQLValue(query.before ?? .max)
    let limit = SQLValue(max(query.limit, 0))
    guard let filter = query.filter else {
      return try connection.rows(sql, .text(collection), after, before, limit, map: Self.document)
    }
    return try connection.rows(
      sql, .text(collection), after, before, .text(filter.path), try Self.scalar(filter.value), limit,
      map: Self.document)
  }

  /// How many documents there are, of those that match.
  package func count(
    in collection: String, where filter: (path: String, value: JSONValue)? = nil
  ) throws -> Int {
    let all = "SELECT COUNT(*) FROM documents WHERE collection = ?"
    guard let filter else { return try connection.first(all, .text(collection)) { Int($0.integer(0)) } ?? 0 }
    return try connection.first(
      "\(all) AND json_extract(json, ?) IS ?", .text(collection), .text(filter.path), try Self.scalar(filter.value)
    ) { Int($0.integer(0)) } ?? 0
  }

  /// The names of collections that begin with a text, in order.
  package func collections(beginningWith prefix: String) throws -> [String] {
    try connection.rows(
      "SELECT DISTINCT collection FROM documents WHERE collection >= ? AND substr(collection, 1, length(?)) = ?",
      .text(prefix), .text(prefix), .text(prefix)
    ) { $0.text(0) }
  }

  private static func document(_ row: Row) -> Document {
    Document(sequence: row.integer(0), id: row.text(1), json: row.text(2))
  }

  /// As `json_extract` gives it.
  private static func scalar(_ value: JSONValue) throws(FerryError) -> SQLValue {
    switch value {
    case .null: return .null
    case .bool(let value): return SQLValue(value)
    case .integer(let value): return .integer(value)
    case .number(let value): return .real(value)
    case .string(let value): return .text(value)
    case .array, .object:
      throw FerryError(.badRequest, "Documents are found by a text, a number, true, false or null, not by a structure.")
    }
  }
}
