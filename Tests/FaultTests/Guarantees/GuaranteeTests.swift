import FerryCore
import FerryRuntime
import FoundationEssentials
import Testing

/// G1 to G10, for every service and under every fault: two services and a relay, people who talk at both, faults, and a
/// comparison of what is there in the end with what was said.
///
/// `make test` plays a part. `make fault` plays all (`FERRY_ROUNDS` seeds, for `FERRY_MINUTES` at most), with
/// `FERRY_GUARANTEES` naming the document whose table it writes. To play a failed run again:
/// `FERRY_FAULT="its fault" FERRY_PAIR="local and pusher" FERRY_SEED=its seed`.
@Suite(.timeLimit(.minutes(240))) struct GuaranteeTests {
  private static let environment = ProcessInfo.processInfo.environment
  private static var isWhole: Bool { environment["FERRY_GUARANTEES"] != nil }

  /// Every two services, those of one kind included.
  private static let pairs: [[PlaceKind]] = PlaceKind.allCases.enumerated().flatMap { index, first in
    PlaceKind.allCases[index...].map { [first, $0] }
  }

  /// Every kind once with every fault; every pair sooner or later.
  private static func part(_ index: Int) -> [[PlaceKind]] {
    let turns: [[[PlaceKind]]] = [
      [[.local, .twilio], [.pusher, .backendless], [.memory, .local]],
      [[.local, .pusher], [.twilio, .backendless], [.memory, .memory]],
      [[.local, .backendless], [.pusher, .twilio], [.memory, .pusher]],
    ]
    return turns[index % turns.count]
  }

  private static var trials: [Trial] {
    if let name = environment["FERRY_FAULT"] {
      let faults = Fault.allCases.filter { $0.rawValue == name || "\($0)" == name || name == "all" }
      let seeds: [UInt64] = environment["FERRY_SEED"].flatMap { UInt64($0) }.map { [$0] } ?? [1, 2]
      let chosen = pairs.filter { pair in
        environment["FERRY_PAIR"].map { $0 == pair.map(\.rawValue).joined(separator: " and ") } ?? true
      }
      return faults.flatMap { fault in
        chosen.flatMap { pair in seeds.map { Trial(kinds: pair, fault: fault, seed: $0) } }
      }.filter(isPossible)
    }
    // The long ones first, so that nothing waits for them in the end.
    let faults = Fault.allCases.sorted { $0.isLong && !$1.isLong }
    if isWhole {
      let seeds: ClosedRange<UInt64> = 1...(environment["FERRY_ROUNDS"].flatMap { UInt64($0) } ?? 3)
      return seeds.flatMap { seed in
        faults.filter { seed == 1 || !$0.isLong }.flatMap { fault in
          pairs.map { Trial(kinds: $0, fault: fault, seed: seed) }
        }
      }.filter(isPossible)
    }
    return faults.filter { !$0.isLong }.enumerated().flatMap { index, fault in
      part(index).map { Trial(kinds: $0, fault: fault, seed: 1) }
    }.filter(isPossible)
  }

  private static func isPossible(_ trial: Trial) -> Bool {
    trial.fault.isForMemory || !trial.kinds.contains(.memory)
  }

  @Test("nothing is lost, doubled or out of order, whatever fails at whichever service")
  func everything() async throws {
    let table = try await play(Self.trials)
    for remark in table.remarks.prefix(60) { Issue.record("\(remark)") }
    #expect(table.total.broken.allSatisfy { $0 == 0 }, "\(table.markdown)")
    if let path = Self.environment["FERRY_GUARANTEES"] {
      #expect(table.total.faults >= 10_000 || Self.environment["FERRY_MINUTES"] != nil)
      let document = GuaranteeDocument.text(table)
      try Data(document.utf8).write(to: URL(fileURLWithPath: path))
    }
  }

  /// Most of a run is waiting.
  private func play(_ trials: [Trial]) async throws -> GuaranteeTable {
    let turns = Locked(Array(trials.reversed()))
    let table = Locked(GuaranteeTable())
    // Of a run that takes too long, what was done counts.
    let minutes = Self.environment["FERRY_MINUTES"].flatMap { Int($0) } ?? 600
    let end = ContinuousClock.now.advanced(by: .seconds(60 * minutes))
    let width = Self.environment["FERRY_WIDTH"].flatMap { Int($0) } ?? 8
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<width {
        group.addTask {
          while ContinuousClock.now < end, let trial = turns.withLock({ $0.popLast() }) {
            let outcome = try await trial.play()
            table.withLock { $0.add(outcome, of: trial) }
          }
        }
      }
      try await group.waitForAll()
    }
    return table.withLock { $0 }
  }

  @Test(
    "the table in the repository is of all services and faults, and all zero",
    .enabled(if: FileManager.default.fileExists(atPath: GuaranteeDocument.path), "make fault writes it"))
  func document() throws {
    let text = try String(decoding: Data(contentsOf: URL(fileURLWithPath: GuaranteeDocument.path)), as: UTF8.self)
    let rows = GuaranteeTable.rows(in: text)
    for kind in PlaceKind.allCases {
      for fault in Fault.allCases where kind != .memory || fault.isForMemory {
        let row = rows.first { $0.service == kind.rawValue && $0.fault == fault.rawValue }
        #expect((row?.numbers.first ?? 0) > 0, "run make fault: no row of \(kind.rawValue), \(fault.rawValue)")
      }
    }
    for row in rows { #expect(row.numbers.dropFirst(3).allSatisfy { $0 == 0 }, "\(row)") }
    #expect(rows.contains { $0.service == "all" })
  }
}

/// `Guarantees.md`.
enum GuaranteeDocument {
  static var path: String {
    // This file is Tests/FaultTests/Guarantees/GuaranteeTests.swift.
    let parts = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(4)
    return parts.joined(separator: "/") + "/Guarantees.md"
  }

  static func text(_ table: GuaranteeTable) -> String {
    """
    # The relay's guarantees, measured

    Written by `make fault`. Every run has two services, the relay, and people who talk at both: they post, edit, delete, type,
    send pictures and texts that are too long for one Pusher event. One kind of fault strikes again and again; then what
    is there in the end is compared with what was said, both ways. A row counts what happened at the service that was
    written to. The services are Ferry's own facades, over real sockets and with a proxy before each that breaks
    connections; `memory` is a service in the process. `kill -9`, the full disk and the torn log strike the built program in a
    process of its own, whose typing and limits are not watched. `make test` plays a part and checks this table.

    G1 counts messages that are missing and are neither dead letters nor in a gap that was reported (Pusher keeps no
    history); G2 messages, parts or pictures that are there twice; G3 messages after later ones; G4 edits and deletions
    that did not arrive; G5 messages that came back or changed where they were written; G6 typing that never ended, or was sent
    again within 400 ms without a message in between (the relay lets a second pass, of which a busy machine may show less);
    G7 pictures that are missing, differ or are a note; G8 requests with wrong credentials or signatures that were not
    refused; G9 texts over a limit, parts that do not make up the whole, and requests before the time that Retry-After
    gave; G10 losses that no dead letter tells of.

    \(table.markdown)
    """
  }
}
