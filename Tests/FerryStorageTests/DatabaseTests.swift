import FerryCore
import FerryRuntime
import FerryStorage
import FoundationEssentials
import Testing

@Suite struct DatabaseTests {
  static let schema = ["CREATE TABLE numbers(id INTEGER PRIMARY KEY, value INTEGER UNIQUE)"]

  @Test func whatWasWrittenIsThereAfterReopening() async throws {
    try await withFolder { folder in
      let database = try Database(path: folder + "/a.db", migrations: Self.schema)
      try await database.write { try $0.execute("INSERT INTO numbers(value) VALUES (?)", 7) }
      database.close()
      let found = try await Database(path: folder + "/a.db", migrations: Self.schema).read { connection in
        try connection.rows("SELECT value FROM numbers") { $0.integer(0) }
      }
      #expect(found == [7])
    }
  }

  @Test func aWriteThatThrowsLeavesNothingAndDoesNotDisturbTheOthersOfItsGroup() async throws {
    try await withFolder { folder in
      let database = try Database(path: folder + "/a.db", migrations: Self.schema)
      let failures = await withTaskGroup(of: Bool.self) { group in
        for value in 0..<200 {
          group.addTask {
            do {
              try await database.write { connection in
                try connection.execute("INSERT INTO numbers(value) VALUES (?)", .integer(Int64(value)))
                if value % 10 == 3 { throw FerryError(.badRequest, "no threes") }
              }
              return false
            } catch { return true }
          }
        }
        return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      let kept = try await database.read { try $0.rows("SELECT value FROM numbers") { $0.integer(0) } }
      #expect(failures == 20)
      #expect(Set(kept) == Set((0..<200).filter { $0 % 10 != 3 }.map(Int64.init)))
    }
  }

  @Test func afterCommitRunsInCommitOrderAndOnlyForWritesThatHappened() async throws {
    try await withFolder { folder in
      let database = try Database(path: folder + "/a.db", migrations: Self.schema)
      let seen = Locked<[Int64]>([])
      await withTaskGroup(of: Void.self) { group in
        for value in 0..<100 {
          group.addTask {
            try? await database.write { connection in
              try connection.execute("INSERT INTO numbers(value) VALUES (?)", .integer(Int64(value)))
              let id = connection.lastInsertedID
              connection.afterCommit { seen.withLock { $0.append(id) } }
              if value == 50 { throw FerryError(.badRequest, "not this one") }
            }
          }
        }
      }
      let ids = try await database.read { try $0.rows("SELECT id FROM numbers ORDER BY id") { $0.integer(0) } }
      #expect(seen.withLock { $0 } == ids)
      #expect(ids.count == 99)
    }
  }

  @Test func aSecondProcessOrObjectIsRefusedTheSameFile() async throws {
    try await withFolder { folder in
      let first = try Database(path: folder + "/a.db", migrations: Self.schema)
      let error = #expect(throws: FerryError.self) {
        _ = try Database(path: folder + "/a.db", migrations: Self.schema)
      }
      #expect(error?.message.contains("is in use by another Ferry") == true)
      first.close()
    }
  }

  @Test func aFileOfANewerSchemaIsRefused() async throws {
    try await withFolder { folder in
      let newer = Self.schema + ["CREATE TABLE more(id INTEGER PRIMARY KEY)"]
      do { try Database(path: folder + "/a.db", migrations: newer).close() }
      let error = #expect(throws: FerryError.self) { _ = try Database(path: folder + "/a.db", migrations: Self.schema) }
      #expect(error?.message.contains("written by a newer version of Ferry") == true)
    }
  }

  @Test func aDamagedFileIsRefusedWithAReason() throws {
    try withFolderSync { folder in
      try Data(repeating: 0x5a, count: 8192).write(to: URL(fileURLWithPath: folder + "/a.db"))
      let error = #expect(throws: FerryError.self) {
        _ = try Database(path: folder + "/a.db", migrations: Self.schema)
      }
      #expect(error?.code == .storage)
    }
  }

  @Test func afterCloseWritesAreRefused() async throws {
    try await withFolder { folder in
      let database = try Database(path: folder + "/a.db", migrations: Self.schema)
      database.close()
      await #expect(throws: FerryError.self) { try await database.write { try $0.execute("DELETE FROM numbers") } }
    }
  }
}

func withFolder(_ body: (String) async throws -> Void) async throws {
  let folder = try makeFolder()
  defer { try? FileManager.default.removeItem(atPath: folder) }
  try await body(folder)
}

func withFolderSync(_ body: (String) throws -> Void) throws {
  let folder = try makeFolder()
  defer { try? FileManager.default.removeItem(atPath: folder) }
  try body(folder)
}

private func makeFolder() throws -> String {
  let folder = FileManager.default.temporaryDirectory.path + "/ferry-storage-\(UUID().uuidString)"
  try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
  return folder
}
