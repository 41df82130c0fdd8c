package import FerryCore
import FerryRuntime
import Glibc

/// One SQLite file with one writer that commits in groups and one reader.
///
/// While a commit is being synced, the next group of writes gathers, so the cost of durability falls as load rises.
/// `write` returns after the sync: what it returned survives `kill -9` and power loss. A write that throws leaves
/// nothing behind and does not disturb the others of its group.
package final class Database: Sendable {
  private let path: String
  /// Nil where the file is only read.
  private let writer: WorkerThread?
  private let reader: WorkerThread
  /// Nil once closed.
  private let lock: Locked<Int32?>

  /// One write or read on its way to a thread.
  struct Job: Sendable {
    /// Runs the caller's body; true when it succeeded.
    let perform: @Sendable (Connection) -> Bool
    /// Resumes the caller: with the body's outcome, or with `failure` when the commit failed.
    let complete: @Sendable (_ failure: FerryError?) -> Void
  }

  /// Opens or creates the file and brings its schema up to date: `migrations` are applied in order, each once and in
  /// its own transaction. Throws `storage` when the file is damaged, was written by a newer Ferry, or is in use by
  /// another process. A file that is made now gives back space with `PRAGMA incremental_vacuum` when it `shrinks`.
  package init(path: String, migrations: [String], shrinks: Bool = false) throws(FerryError) {
    self.path = path
    let descriptor = try Self.lockFile(at: path + "-lock", for: path)
    lock = Locked(descriptor)
    do throws(FerryError) {
      let writing = try Connection(path: path, readOnly: false)
      // Only heeded before the first table is made.
      if shrinks { try writing.script("PRAGMA auto_vacuum=INCREMENTAL;") }
      try writing.script(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; PRAGMA wal_autocheckpoint=4000;"
          + "PRAGMA journal_size_limit=33554432;")
      try Self.migrate(writing, migrations, path)
      let reading = try Connection(path: path, readOnly: true)
      writer = WorkerThread(name: "ferry-writer") { Self.commit($0, on: writing) }
      reader = Self.readerThread(reading)
    } catch {
      Glibc.close(descriptor)
      throw error
    }
  }

  /// Opens a file to read it, while another process may be writing it. `schema` is how many migrations it must have
  /// seen. Throws `notFound` when there is no such file.
  package init(reading path: String, schema: Int) throws(FerryError) {
    guard access(path, F_OK) == 0 else { throw FerryError(.notFound, "There is no file \(path).") }
    self.path = path
    lock = Locked(nil)
    writer = nil
    let reading = try Connection(path: path, readOnly: true)
    let version = try Self.version(of: reading)
    guard version == schema else {
      throw FerryError(
        .storage,
        "\(path) has schema \(version), and this version of Ferry reads schema \(schema). "
          + "Use the version that runs the relay.")
    }
    reader = Self.readerThread(reading)
  }

  private static func readerThread(_ connection: Connection) -> WorkerThread {
    WorkerThread(name: "ferry-reader") { jobs in
      for job in jobs {
        _ = job.perform(connection)
        job.complete(nil)
      }
    }
  }

  deinit { close() }

  /// Runs `body` in the next group's transaction and returns once that is on disk.
  ///
  /// `body` runs on the writer's thread, one after the other in the order of the calls. Not cancelled by the task's
  /// cancellation: when it throws, nothing was written.
  package func write<T: Sendable>(
    _ body: @escaping @Sendable (Connection) throws -> T
  ) async throws(FerryError) -> T {
    guard let writer else { throw FerryError(.storage, "\(path) was opened to be read only.") }
    return try await submit(body, to: writer)
  }

  /// Runs `body` on the reader's thread, over what was committed when it starts.
  package func read<T: Sendable>(
    _ body: @escaping @Sendable (Connection) throws -> T
  ) async throws(FerryError) -> T {
    try await submit(body, to: reader)
  }

  /// Ends both threads once they have done what was asked before, and lets go of the file. Later calls throw.
  package func close() {
    writer?.stop()
    reader.stop()
    let descriptor = lock.withLock { lock in
      defer { lock = nil }
      return lock
    }
    guard let descriptor else { return }
    // Said, because a child process that was just forked has the descriptor too until it runs its own program.
    flock(descriptor, LOCK_UN)
    Glibc.close(descriptor)
  }

  private func submit<T: Sendable>(
    _ body: @escaping @Sendable (Connection) throws -> T, to thread: WorkerThread
  ) async throws(FerryError) -> T {
    let outcome = Locked<Result<T, FerryError>?>(nil)
    let path = path
    let result: Result<T, FerryError> = await withCheckedContinuation { continuation in
      let job = Job(
        perform: { connection in
          let result: Result<T, FerryError>
          do { result = .success(try body(connection)) } catch { result = .failure(.wrap(error)) }
          outcome.withLock { $0 = result }
          if case .success = result { return true } else { return false }
        },
        complete: { failure in
          let result = outcome.withLock { $0 }
          switch (result, failure) {
          case (.failure(let error), _): continuation.resume(returning: .failure(error))
          case (_, .some(let failure)): continuation.resume(returning: .failure(failure))
          case (.some(let result), nil): continuation.resume(returning: result)
          case (nil, nil): preconditionFailure("a job was completed that was never performed")
          }
        })
      if !thread.submit(job) {
        continuation.resume(returning: .failure(FerryError(.storage, "The database \(path) is closed.")))
      }
    }
    return try result.get()
  }

  // MARK: The writer's thread

  private static let groupLimit = 512

  private static func commit(_ jobs: [Job], on connection: Connection) {
    var start = 0
    while start < jobs.count {
      let end = min(start + groupLimit, jobs.count)
      commitGroup(jobs[start..<end], on: connection)
      start = end
    }
  }

  private static func commitGroup(_ jobs: ArraySlice<Job>, on connection: Connection) {
    var actions: [@Sendable () -> Void] = []
    do throws(FerryError) {
      try connection.execute("BEGIN IMMEDIATE")
      for job in jobs {
        try connection.execute("SAVEPOINT job")
        connection.afterCommitActions = []
        if job.perform(connection) {
          actions += connection.afterCommitActions
        } else if !connection.isAutocommitting {
          try connection.execute("ROLLBACK TO job")
        }
        guard !connection.isAutocommitting else {
          // A full disk makes SQLite roll back the whole transaction, the earlier jobs of the group included.
          throw FerryError(.storage, "The disk is full. Make room: work goes on by itself.", retry: .now)
        }
        try connection.execute("RELEASE job")
      }
      Failpoint.beforeCommit.pass()
      try connection.execute("COMMIT")
      Failpoint.afterCommit.pass()
    } catch {
      if !connection.isAutocommitting { try? connection.execute("ROLLBACK") }
      for job in jobs { job.complete(error) }
      return
    }
    for action in actions { action() }
    for job in jobs { job.complete(nil) }
  }

  // MARK: Opening

  private static func migrate(_ connection: Connection, _ migrations: [String], _ path: String) throws(FerryError) {
    let version = try version(of: connection)
    guard version <= migrations.count else {
      throw FerryError(
        .storage,
        "\(path) was written by a newer version of Ferry (schema \(version), this one knows \(migrations.count)). "
          + "Use that version.")
    }
    for (index, step) in migrations.enumerated().dropFirst(version) {
      try connection.script("BEGIN IMMEDIATE; \(step); PRAGMA user_version = \(index + 1); COMMIT;")
    }
  }

  private static func version(of connection: Connection) throws(FerryError) -> Int {
    do { return try connection.first("PRAGMA user_version") { Int($0.integer(0)) } ?? 0 } catch { throw .wrap(error) }
  }

  private static func lockFile(at lockPath: String, for path: String) throws(FerryError) -> Int32 {
    let descriptor = open(lockPath, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw FerryError(
        .storage, "\(path) cannot be created. Check that its folder exists and may be written.",
        cause: String(cString: strerror(errno)))
    }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      Glibc.close(descriptor)
      throw FerryError(
        .storage, "\(path) is in use by another Ferry. Stop that one, or give this one a file of its own.")
    }
    return descriptor
  }
}
