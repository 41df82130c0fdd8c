import FerryCore
import FerryHistory
import FerryRuntime
import FerryTestKit
import FoundationEssentials

/// Writing, reading, folding, checking and packing an archive of a million messages, each by itself, in this process.
enum HistoryArchive {
  static func run(messages: Int) async throws {
    let folder = try TemporaryFolder()
    let path = folder.file("bench.ferry")
    let (tar, clock) = (folder.file("bench.tar"), ContinuousClock())
    var results: [(String, Double)] = []
    func measure(_ name: String, _ body: () async throws -> Void) async throws {
      let start = clock.now
      try await body()
      results.append((name, Double(messages) / ((clock.now - start) / .seconds(1))))
    }
    try await measure("write") { try await write(messages, to: path) }
    try await measure("read") { try await read(try ArchiveReader(path), messages) }
    try await measure("fold") { try await read(try await FoldedRecords(path), messages) }
    try await measure("check") {
      let report = try await ArchiveCheck.run(path)
      guard report.exitCode == 0 else { throw FerryError(.badData, report.fault ?? "The archive is incomplete.") }
    }
    try await measure("pack") { try await ArchiveTar.pack(path, into: tar) }
    try await measure("read_tar") { try await read(try ArchiveReader(tar), messages) }
    let figures = results.map { "\"\($0)_per_s\":\(Int($1))" }.joined(separator: ",")
    print("{\"benchmark\":\"history-archive\",\"messages\":\(messages),\(figures),\"peak_mb\":\(peakMB)}")
  }

  private static func write(_ messages: Int, to path: String) async throws {
    let header = ArchiveHeader(created: SystemClock().now(), source: "bench:lobby")
    let writer = try ArchiveWriter(folder: path, header: header)
    for start in stride(from: 0, to: messages, by: 500) {
      try await writer.append((start..<min(start + 500, messages)).map(message))
      if start % 5000 == 0 { try await writer.commit("\(start)", of: "lobby") }
    }
    try await writer.append([.end(EndRecord(channel: "lobby", isComplete: true, messages: messages))])
    try await writer.finish()
  }

  private static func message(_ number: Int) -> Record {
    let author = Author(id: UserID("U\(number % 500)"), name: "somebody \(number % 500)")
    let stamp = Stamp(bridge: "lobby", origin: Address(account: "here", channel: "lobby"), id: MessageID("o\(number)"))
    let message = Message(
      id: MessageID("\(1_700_000_000 + number / 10).\(number % 10)"), author: author,
      text: "message \(number): the quick brown fox jumps over the lazy dog, \"again\" and again, ü",
      time: Timestamp(milliseconds: 1_700_000_000_000 + Int64(number) * 100), stamp: stamp)
    return .message(MessageRecord(channel: "lobby", message: message))
  }

  private static func read(_ source: any RecordSource, _ messages: Int) async throws {
    var count = -1
    while true {
      let records = try await source.next(limit: 500)
      if records.isEmpty { break }
      count += records.count
    }
    guard count == messages else { throw FerryError(.badData, "\(count) of \(messages) messages came back.") }
  }

  private static var peakMB: Int {
    let status = FileManager.default.contents(atPath: "/proc/self/status").map { String(decoding: $0, as: UTF8.self) }
    let line = status?.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
    return (line?.split(whereSeparator: \.isWhitespace).dropFirst().first).flatMap { Int($0) }.map { $0 / 1024 } ?? 0
  }
}
