import FerryChat
import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import Testing

@testable import BackendlessProvider

/// The shorter ways through a table find what going through all of it finds.
@Suite(.timeLimit(.minutes(2))) struct FacadeScanTests {
  private static let table = "Notes"
  private static let count = 250

  /// What a condition finds, and in how many pages it was looked for.
  private struct Found: Equatable {
    var ids: Set<String> = []
    var pages = 0
  }

  /// A table with changes in many seconds, some of which have several.
  private func table(
    isOlderThanList: Bool, _ body: @Sendable @escaping (ChatService) async throws -> Void
  ) async throws {
    let folder = try TemporaryFolder()
    let clock = ManualClock()
    let chat = try ChatService(
      path: folder.file("chat.db"), files: folder.file("files"), clock: clock, logger: .silent)
    defer { chat.close() }
    let settings = BackendlessFacade.Settings(appID: "APPID", apiKey: Secret("KEY"))
    let rows = ChatRows(fields: settings.fields, appID: settings.appID)
    func change(_ numbers: Range<Int>) async throws {
      try await chat.write { transaction in
        let writer = TableWriter(transaction, rows)
        for number in numbers {
          let row = try writer.existingRow("r\(number)", in: Self.table)
          _ = try writer.update(row, with: ["n": .integer(Int64(number % 3))], in: Self.table)
        }
      }
    }
    try await chat.write { transaction in
      let writer = TableWriter(transaction, rows)
      for number in 0..<Self.count { _ = try writer.create([:], as: "r\(number)", in: Self.table, owner: nil) }
    }
    for start in [0, 3, 30] {
      clock.advance(by: .milliseconds(1300))
      try await change(start..<start + 3)
    }
    if isOlderThanList {
      try await chat.write { transaction in
        try transaction.removeAll(from: TableWriter.changes(of: Self.table))
        try transaction.removeAll(from: TableWriter.listings)
      }
      #expect(try await chat.read { try TableWriter.changesAreListed(of: Self.table, $0) } == nil)
    }
    // Within the second of the last change, and later.
    for start in [6, 2, 20, 21] {
      try await change(start..<start + 4)
      clock.advance(by: .milliseconds(700))
    }
    try await chat.write { transaction in
      let writer = TableWriter(transaction, rows)
      try writer.delete(writer.existingRow("r22", in: Self.table), from: Self.table)
    }
    try await body(chat)
  }

  private func search(_ condition: String, in chat: ChatService) async throws -> Found {
    let condition = try SQLCondition(condition)
    return try await chat.read { transaction in
      var scan = RowScan(Self.table, where: condition, inAnyOrder: true)
      var found = Found()
      while let rows = try scan.next(transaction) {
        found.pages += 1
        found.ids.formUnion(rows.map(\.id))
      }
      return found
    }
  }

  private func all(_ chat: ChatService) async throws -> [Row] {
    try await chat.read { transaction in
      var scan = RowScan(Self.table, where: nil)
      var all: [Row] = []
      while let rows = try scan.next(transaction) { all += rows }
      return all
    }
  }

  @Test(arguments: [false, true])
  func `late changes are found by their list, and where it is younger than they are, without it`(
    isOlderThanList: Bool
  ) async throws {
    try await table(isOlderThanList: isOlderThanList) { chat async throws in
      let rows = try await all(chat)
      #expect(rows.count == Self.count - 1)
      let listed = try #require(try await chat.read { try TableWriter.changesAreListed(of: Self.table, $0) })
      let seconds = Set(rows.compactMap { $0.values["updated"]?.integer }).sorted()
      #expect(seconds.count > 4 && seconds.contains { $0 >= listed })
      #expect(seconds.contains { $0 < listed } == isOlderThanList)
      for time in Set(seconds.flatMap { [$0 - 1000, $0 - 1, $0, $0 + 1000] } + [listed]).filter({ $0 > 0 }) {
        for text in [
          "updated >= \(time)", "updated > \(time)", "updated = \(time)", "updated < \(time)",
          "updated >= \(time) AND n = 1", "updated >= \(time) AND updated <= \(time + 1000)",
        ] {
          let condition = try SQLCondition(text)
          let found = try await search(text, in: chat)
          #expect(found.ids == Set(rows.filter { condition.matches($0.values) }.map(\.id)), "\(text)")
          // The table has two pages, the list of changes one.
          let isByList = time >= listed && !text.hasPrefix("updated <")
          #expect(isByList == (found.pages == 1), "\(text): \(found.pages) pages")
        }
      }
    }
  }

  @Test func `rows that a condition names are looked up, and no others`() async throws {
    try await table(isOlderThanList: false) { chat async throws in
      let rows = try await all(chat)
      let times = rows.compactMap { $0.values["updated"]?.integer }
      let time = try #require(times.max())
      for text in [
        "objectId = 'r7'", "objectId IN ('r7', 'r2', 'r2', 'r22', 'none')", "objectId IN ('r7', 'r23') AND n = 2",
        "objectId IN ('r7', 'r23') AND updated >= \(time)", "objectId = 'r7' AND objectId = 'r8'",
        "objectId IN ('r7') AND objectId IN ('r7', 'r8')", "objectId IN ('r7', 7)", "objectId = 'r7' OR n = 2",
        "NOT objectId = 'r7'", "objectId IN ('none')",
      ] {
        let condition = try SQLCondition(text)
        let found = try await search(text, in: chat)
        #expect(found.ids == Set(rows.filter { condition.matches($0.values) }.map(\.id)), "\(text)")
        let isNamed = text.hasPrefix("objectId") && !text.contains("OR") && !text.contains(", 7")
        #expect((found.pages == 1) == isNamed, "\(text): \(found.pages) pages")
      }
    }
  }
}
