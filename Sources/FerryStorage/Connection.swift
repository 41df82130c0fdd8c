import CSQLite
package import FerryCore

/// One SQLite connection, used by one thread. Obtained inside `Database.write` and `Database.read` only, and not to
/// be kept beyond them.
package final class Connection {
  private let handle: OpaquePointer
  private var statements: [String: OpaquePointer] = [:]
  /// Set by `Database` for the length of one write.
  var afterCommitActions: [@Sendable () -> Void] = []

  /// SQLITE_TRANSIENT, a cast that Swift does not import: SQLite copies the bytes during the call.
  private static let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

  init(path: String, readOnly: Bool) throws(FerryError) {
    var handle: OpaquePointer?
    let flags = (readOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) | SQLITE_OPEN_NOMUTEX
    let status = sqlite3_open_v2(path, &handle, flags, nil)
    guard status == SQLITE_OK, let handle else {
      let cause = handle.map { String(cString: sqlite3_errmsg($0)) } ?? "out of memory"
      sqlite3_close_v2(handle)
      throw FerryError(
        .storage, "The database \(path) cannot be opened. Check that its folder exists and may be written.",
        cause: cause)
    }
    self.handle = handle
    sqlite3_busy_timeout(handle, 5000)
    sqlite3_extended_result_codes(handle, 1)
  }

  /// A database of its own, empty, for work that needs more room than memory: kept in memory up to `cache` bytes and
  /// beyond that in files that nobody else sees and that end with the process. Nothing in it is durable.
  package static func scratch(cache: Int) throws(FerryError) -> Connection {
    // An empty name is SQLite's own temporary database. Source: https://sqlite.org/inmemorydb.html
    let connection = try Connection(path: "", readOnly: false)
    try connection.script(
      "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE; PRAGMA temp_store=FILE; "
        + "PRAGMA cache_size=-\(cache / 1024);")
    return connection
  }

  deinit {
    for statement in statements.values { sqlite3_finalize(statement) }
    sqlite3_close_v2(handle)
  }

  /// Runs one statement and throws away its rows.
  package func execute(_ sql: String, _ values: SQLValue...) throws(FerryError) {
    try execute(sql, values: values)
  }

  package func execute(_ sql: String, values: [SQLValue]) throws(FerryError) {
    let statement = try prepare(sql, values)
    defer { sqlite3_reset(statement) }
    while try step(statement, sql) {}
  }

  /// Runs one statement and returns its rows, each turned into a value by `map`.
  package func rows<T>(_ sql: String, _ values: SQLValue..., map: (Row) throws -> T) throws -> [T] {
    let statement = try prepare(sql, values)
    defer { sqlite3_reset(statement) }
    var rows: [T] = []
    while try step(statement, sql) { rows.append(try map(Row(statement: statement))) }
    return rows
  }

  /// The first row, or nil when there is none.
  package func first<T>(_ sql: String, _ values: SQLValue..., map: (Row) throws -> T) throws -> T? {
    let statement = try prepare(sql, values)
    defer { sqlite3_reset(statement) }
    return try step(statement, sql) ? try map(Row(statement: statement)) : nil
  }

  /// The rows of one statement, one at a time: for more of them than fit into memory. The rows may be read while other
  /// statements write to other tables.
  package func cursor(_ sql: String, _ values: SQLValue...) throws(FerryError) -> RowCursor {
    var prepared: OpaquePointer?
    let status = sqlite3_prepare_v2(handle, sql, -1, &prepared, nil)
    guard status == SQLITE_OK, let prepared else { throw failure(status, sql) }
    let cursor = RowCursor(connection: self, statement: prepared, sql: sql)
    for (index, value) in values.enumerated() {
      let status = bind(value, to: prepared, at: Int32(index + 1))
      guard status == SQLITE_OK else { throw failure(status, sql) }
    }
    return cursor
  }

  /// Several statements without values, as in a schema step.
  package func script(_ sql: String) throws(FerryError) {
    let status = sqlite3_exec(handle, sql, nil, nil, nil)
    guard status == SQLITE_OK else { throw failure(status, sql) }
  }

  /// Rows changed by the last statement.
  package var changes: Int { Int(sqlite3_changes(handle)) }
  package var lastInsertedID: Int64 { sqlite3_last_insert_rowid(handle) }

  /// Runs `body` once this write is durable: in commit order, by the writer's thread, before the writers are resumed.
  /// It must be quick. Not run when the write fails.
  package func afterCommit(_ body: @escaping @Sendable () -> Void) { afterCommitActions.append(body) }

  /// False inside a transaction. SQLite ends a transaction by itself on some errors, a full disk among them.
  var isAutocommitting: Bool { sqlite3_get_autocommit(handle) != 0 }

  private func prepare(_ sql: String, _ values: [SQLValue]) throws(FerryError) -> OpaquePointer {
    let statement: OpaquePointer
    if let cached = statements[sql] {
      statement = cached
    } else {
      var prepared: OpaquePointer?
      let status = sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, nil)
      guard status == SQLITE_OK, let prepared else { throw failure(status, sql) }
      statements[sql] = prepared
      statement = prepared
    }
    precondition(Int(sqlite3_bind_parameter_count(statement)) == values.count, "values do not fit \(sql)")
    for (index, value) in values.enumerated() {
      let status = bind(value, to: statement, at: Int32(index + 1))
      guard status == SQLITE_OK else { throw failure(status, sql) }
    }
    return statement
  }

  private func bind(_ value: SQLValue, to statement: OpaquePointer, at index: Int32) -> Int32 {
    switch value {
    case .null: sqlite3_bind_null(statement, index)
    case .integer(let value): sqlite3_bind_int64(statement, index, value)
    case .real(let value): sqlite3_bind_double(statement, index, value)
    case .text(var value):
      value.withUTF8 { utf8 in
        utf8.withMemoryRebound(to: CChar.self) {
          sqlite3_bind_text(statement, index, $0.baseAddress, Int32($0.count), Self.transient)
        }
      }
    case .blob(let value): sqlite3_bind_blob(statement, index, value, Int32(value.count), Self.transient)
    }
  }

  /// True when there is a row.
  fileprivate func step(_ statement: OpaquePointer, _ sql: String) throws(FerryError) -> Bool {
    switch sqlite3_step(statement) {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    case let status:
      sqlite3_reset(statement)
      throw failure(status, sql)
    }
  }

  private func failure(_ status: Int32, _ sql: String) -> FerryError {
    let cause = "SQLite \(status): \(String(cString: sqlite3_errmsg(handle)))"
    switch status & 0xff {
    case SQLITE_FULL:
      return FerryError(.storage, "The disk is full. Make room: work goes on by itself.", retry: .now, cause: cause)
    case SQLITE_BUSY, SQLITE_LOCKED, SQLITE_IOERR, SQLITE_NOMEM:
      return FerryError(.storage, "The database cannot be written now.", retry: .now, cause: cause)
    case SQLITE_CONSTRAINT:
      return FerryError(.conflict, "The database refuses a row that contradicts another.", cause: cause)
    case SQLITE_CORRUPT, SQLITE_NOTADB:
      return FerryError(.storage, "The database file is damaged. Restore it from a backup.", cause: cause)
    default:
      return FerryError(.storage, "A database statement failed.", cause: "\(cause) in \(sql.prefix(60))")
    }
  }
}

/// The rows of a statement, one at a time. Used by the thread that uses its connection.
package final class RowCursor {
  private let connection: Connection
  private let statement: OpaquePointer
  private let sql: String
  private var isAtEnd = false

  fileprivate init(connection: Connection, statement: OpaquePointer, sql: String) {
    self.connection = connection
    self.statement = statement
    self.sql = sql
  }

  deinit { sqlite3_finalize(statement) }

  /// The next row, good until the next call; nil at the end and ever after.
  package func next() throws(FerryError) -> Row? {
    guard !isAtEnd else { return nil }
    guard try connection.step(statement, sql) else {
      isAtEnd = true
      return nil
    }
    return Row(statement: statement)
  }
}

/// The current row of a statement. Columns are counted from zero.
package struct Row {
  fileprivate let statement: OpaquePointer

  package func text(_ index: Int32) -> String { optionalText(index) ?? "" }

  package func optionalText(_ index: Int32) -> String? {
    guard let text = sqlite3_column_text(statement, index) else { return nil }
    let count = Int(sqlite3_column_bytes(statement, index))
    return String(decoding: UnsafeBufferPointer(start: text, count: count), as: UTF8.self)
  }

  package func integer(_ index: Int32) -> Int64 { sqlite3_column_int64(statement, index) }

  package func optionalInteger(_ index: Int32) -> Int64? {
    sqlite3_column_type(statement, index) == SQLITE_NULL ? nil : sqlite3_column_int64(statement, index)
  }

  package func real(_ index: Int32) -> Double { sqlite3_column_double(statement, index) }

  package func blob(_ index: Int32) -> [UInt8] {
    guard let bytes = sqlite3_column_blob(statement, index) else { return [] }
    return Array(UnsafeRawBufferPointer(start: bytes, count: Int(sqlite3_column_bytes(statement, index))))
  }
}
