import FerryCore
import FerryHistory
import FerryRuntime
import FerryTestKit
import Testing

/// A batch is prepared while the one before it is written: what changes a message that is on its way finds it all the
/// same, and a run that ends in between loses nothing.
@Suite(.timeLimit(.minutes(5))) struct ImportOverlapTests {
  /// Messages, edits and deletions of what was said shortly before, in this page or the last, and what must be there in
  /// the end.
  private static func story(_ random: inout SeededGenerator, count: Int) -> (records: [Record], texts: [String]) {
    var records: [Record] = []
    var texts: [(number: Int, text: String)] = []
    for number in 0..<count {
      records.append(ImportRig.message(number))
      texts.append((number, "message \(number)"))
      let index = texts.indices.suffix(Int.random(in: 1...40, using: &random)).first ?? 0
      switch Int.random(in: 0..<10, using: &random) {
      case 0:
        records.append(ImportRig.edit(texts[index].number, "changed \(number)", revision: number + 1))
        texts[index].text = "changed \(number)"
      case 1:
        records.append(ImportRig.delete(texts[index].number))
        texts.remove(at: index)
      default: break
      }
    }
    return (records, texts.map(\.text))
  }

  @Test("a message that was changed where a batch ended is found again, and can be deleted", arguments: 1...9)
  func batchEnds(batch: Int) async throws {
    let rig = try ImportRig(MemoryProvider { $0.importing?.batch = batch })
    var records: [Record] = []
    for number in 0..<40 {
      records.append(ImportRig.message(number))
      records.append(ImportRig.edit(number, "changed \(number)"))
    }
    try await rig.run(ListSource(records))
    #expect(rig.messages.map(\.text) == (0..<40).map { "changed \($0)" })
    let counts = try await rig.run(ListSource((0..<40).map { ImportRig.delete($0) }))
    #expect(counts.deletes == 40)
    #expect(rig.messages.isEmpty)
  }

  @Test("what names a message that was refused is reported, in its batch and in the next", arguments: [2, 3, 4, 100])
  func refused(batch: Int) async throws {
    let rig = try ImportRig(MemoryProvider { $0.importing?.batch = batch })
    // The whole batch, then the first of it by itself.
    rig.provider.failNext(2, .past, with: FerryError(.tooLarge, "Too large."))
    let reply = ImportRig.message(2) { $0.message.replyTo = "s0" }
    let reaction = Reaction(message: "s0", by: Author(id: "cid", name: "cid"), emoji: "👍", added: true)
    let reacted = Record.reaction(
      ReactionRecord(channel: "lobby", reaction: reaction, time: Timestamp(milliseconds: ImportRig.start + 2500)))
    let late = ImportRig.message(9) { $0.message.replyTo = "s0" }
    let others = (3..<9).map { ImportRig.message($0) }
    let counts = try await rig.run(
      ListSource([ImportRig.message(0), ImportRig.message(1), reply, reacted] + others + [late]))
    #expect(rig.messages.map(\.text) == (1..<10).map { "message \($0)" })
    #expect(
      Set(rig.report.counts.map { "\($0.count) \($0.reason)" }) == [
        "1 message: refused: too_large", "2 reply: the message replied to is not there",
        "1 reaction: its message is not there",
      ])
    #expect(counts.others == 0)
    // Nothing of it is taken for known.
    try await rig.run(ListSource([ImportRig.message(0), reacted]))
    #expect(rig.messages.map(\.text) == (1..<10).map { "message \($0)" } + ["message 0"])
  }

  @Test("a change that goes with a message that is refused is reported, and does not make it known")
  func refusedChange() async throws {
    let rig = try ImportRig(MemoryProvider { $0.importing?.batch = 100 })
    rig.provider.failNext(2, .past, with: FerryError(.tooLarge, "Too large."))
    let records = [ImportRig.message(0), ImportRig.edit(0, "changed"), ImportRig.message(1)]
    try await rig.run(ListSource(records))
    #expect(rig.messages.map(\.text) == ["message 1"])
    #expect(
      Set(rig.report.counts.map(\.reason)) == ["message: refused: too_large", "edit: its message was refused"])
    try await rig.run(ListSource(records))
    #expect(rig.messages.map(\.text) == ["message 1", "changed"])
  }

  @Test("runs that are ended at any write, and gone on with, write all of it once", arguments: 0..<8 as Range<UInt64>)
  func interrupted(seed: UInt64) async throws {
    var random = SeededGenerator(seed: seed)
    let (records, texts) = Self.story(&random, count: 700)
    let batch = [3, 16, 100, 500][Int(seed % 4)]
    let rig = try ImportRig(MemoryProvider { $0.importing?.batch = batch })
    let linked = Locked<[MessageID: Set<MessageID>]>([:])
    var runs = 0
    while true {
      runs += 1
      rig.provider.failNoMore()
      let source = ListSource(records)
      let isLast = runs > 6
      if !isLast {
        let hurdle = Int.random(in: 0..<max(700 / batch, 2), using: &random)
        rig.provider.failNext(
          1, .past, with: FerryError(.badCredentials, "No."), afterActing: hurdle % 2 == 0, after: hurdle)
      }
      do {
        try await rig.run(
          source,
          linking: { written in
            linked.withLock { linked in
              for message in written { linked[message.id, default: []].formUnion(message.parts.map(\.id)) }
            }
          })
        break
      } catch let error as FerryError {
        #expect(error.code == .badCredentials && !isLast)
        // A page counts as done only once all of it is written.
        let pages = source.settledCount.withLock { $0 }
        #expect(pages * 500 <= rig.provider.events(in: ImportRig.room).count)
      }
    }
    #expect(rig.messages.map(\.text) == texts)
    let posted = rig.provider.events(in: ImportRig.room).count { if case .posted = $0.kind { true } else { false } }
    #expect(posted == 700)
    // The book knows every copy: all of it can be taken back.
    rig.provider.failNoMore()
    try await rig.run(ListSource((0..<700).map { ImportRig.delete($0) }))
    #expect(rig.messages.isEmpty)
    // The relay's links know every copy, also of what was changed while it was on its way.
    #expect(linked.withLock { $0.count } == 700)
    #expect(linked.withLock { $0.values.allSatisfy { $0.count == 1 } })
  }
}
