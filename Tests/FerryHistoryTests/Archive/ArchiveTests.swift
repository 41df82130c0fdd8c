import FerryCore
import FerryHistory
import FerryTestKit
import Testing

@Suite(.timeLimit(.minutes(5))) struct ArchiveTests {
  private let folder: TemporaryFolder
  private let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = folder.file("lobby.ferry")
  }

  @Test("what is written is read, over many segments, and the check finds nothing")
  func roundTrip() async throws {
    let records = ArchiveFixture.messages(0..<10_000) + [ArchiveFixture.end(10_000)]
    let writer = try ArchiveWriter(
      folder: path, header: ArchiveFixture.header, limits: SegmentLimits(bytes: 100_000, records: 1000))
    for start in stride(from: 0, to: records.count, by: 333) {
      try await writer.append(Array(records[start..<min(start + 333, records.count)]))
    }
    let head = try await writer.finish()
    let reader = try ArchiveReader(path)
    #expect(try await ArchiveFixture.all(reader) == records)
    #expect(reader.header == ArchiveFixture.header)
    #expect(!reader.isOpen)
    let report = try await ArchiveCheck.run(path)
    #expect(report.fault == nil)
    #expect(report.exitCode == 0)
    #expect(report.notes == [])
    #expect(report.messages == 10_000)
    #expect(report.segments > 10)
    #expect(report.chainHead == head)
    #expect(report.records == ["message": 10_000, "end": 1])
    #expect(!ArchiveFixture.exists(path + "/checkpoint.json"))
    #expect(!ArchiveFixture.exists(path + "/incoming"))
  }

  @Test("a finished archive goes on with the next segment, and knows where its exports stood")
  func continued() async throws {
    try await ArchiveFixture.finished(25, in: path)
    let first = try ArchiveFixture.bytes(path + "/data/log/000003.jsonl")
    var writer = try ArchiveWriter(
      folder: path, header: ArchiveHeader(created: ArchiveFixture.start, source: "other:x"))
    #expect(writer.header == ArchiveFixture.header)
    try await writer.append(ArchiveFixture.messages(25..<30) + [ArchiveFixture.end(30)])
    try await writer.commit("behind 30", of: "lobby")
    try await writer.finish()
    #expect(try ArchiveFixture.bytes(path + "/data/log/000003.jsonl") == first)
    #expect(try await ArchiveCheck.run(path).exitCode == 0)
    writer = try ArchiveWriter(folder: path, header: ArchiveFixture.header)
    #expect(await writer.place(of: "lobby") == "behind 30")
    #expect(await writer.place(of: "other") == nil)
    try await writer.finish()
    #expect(try await ArchiveCheck.run(path).messages == 30)
  }

  @Test("only one process writes")
  func locked() async throws {
    let writer = try ArchiveWriter(folder: path, header: ArchiveFixture.header)
    let error = #expect(throws: FerryError.self) { try ArchiveWriter(folder: path, header: ArchiveFixture.header) }
    #expect(error?.code == .conflict)
    try await writer.finish()
    _ = try ArchiveWriter(folder: path, header: ArchiveFixture.header)
  }

  @Test("a folder with something else in it is left alone")
  func strangers() throws {
    try ArchiveFixture.write([1], to: folder.file("mine"))
    #expect(throws: FerryError.self) { try ArchiveWriter(folder: folder.path, header: ArchiveFixture.header) }
    #expect(!ArchiveFixture.exists(folder.file("data")))
  }

  @Test("whatever the moment at which writing ends, it is taken up again without loss or double")
  func interrupted() async throws {
    // A copy of the folder is what is left when the process is killed: nothing is held back but what was not written.
    let limits = SegmentLimits(records: 7)
    let writer = try ArchiveWriter(folder: path, header: ArchiveFixture.header, limits: limits)
    var copies: [String] = []
    func copy() throws {
      let copy = folder.file("copy\(copies.count)")
      try ArchiveFixture.copy(path, to: copy)
      copies.append(copy)
    }
    for page in 0..<12 {
      try await writer.append(ArchiveFixture.messages(page * 5..<page * 5 + 3))
      try copy()
      _ = try await writer.addBlob(ArchiveFixture.stream([UInt8(page)]), limit: 10)
      try await writer.append(ArchiveFixture.messages(page * 5 + 3..<page * 5 + 5))
      try copy()
      try await writer.commit("\(page + 1)", of: "lobby")
      try copy()
    }
    for copy in copies {
      // The page that was being written may be torn anywhere.
      let resumed = try ArchiveWriter(folder: copy, header: ArchiveFixture.header, limits: limits)
      let page = Int(await resumed.place(of: "lobby") ?? "0") ?? 0
      try await resumed.append(ArchiveFixture.messages(page * 5..<60) + [ArchiveFixture.end(60)])
      try await resumed.finish()
      let records = try await ArchiveFixture.all(try ArchiveReader(copy))
      #expect(records == ArchiveFixture.messages(0..<60) + [ArchiveFixture.end(60)])
      #expect(try await ArchiveCheck.run(copy).exitCode == 0)
    }
  }

  @Test("a torn tail is cut, at whichever byte it is torn")
  func tornTail() async throws {
    let writer = try ArchiveWriter(folder: path, header: ArchiveFixture.header)
    try await writer.append(ArchiveFixture.messages(0..<3))
    try await writer.commit("3", of: "lobby")
    let segment = "/data/log/000001.jsonl"
    let committed = try ArchiveFixture.bytes(path + segment)
    let next = ArchiveFixture.message(3).line(seq: 5) + [0x0a]
    for length in stride(from: 1, through: next.count, by: 13) {
      let copy = folder.file("torn\(length)")
      try ArchiveFixture.copy(path, to: copy)
      try ArchiveFixture.write(committed + next.prefix(length), to: copy + segment)
      #expect(try await ArchiveFixture.all(try ArchiveReader(copy)) == ArchiveFixture.messages(0..<3))
      let resumed = try ArchiveWriter(folder: copy, header: ArchiveFixture.header)
      try await resumed.append(ArchiveFixture.messages(3..<4) + [ArchiveFixture.end(4)])
      try await resumed.finish()
      #expect(try await ArchiveCheck.run(copy).exitCode == 0)
    }
  }

  @Test("blobs are kept once, under their digest, and verified on the way out")
  func blobs() async throws {
    let writer = try ArchiveWriter(folder: path, header: ArchiveFixture.header)
    let hello = Array("hello".utf8)
    let digest = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    for _ in 0..<2 {
      let kept = try await writer.addBlob(ArchiveFixture.stream(hello), limit: 5)
      #expect(kept.sha256 == digest)
      #expect(kept.size == 5)
    }
    #expect(await writer.hasBlob(digest))
    #expect(await writer.hasBlob("../../data/archive.json") == false)
    let error = await #expect(throws: FerryError.self) {
      try await writer.addBlob(ArchiveFixture.stream(hello), limit: 4)
    }
    #expect(error?.code == .tooLarge)
    try await writer.append([Self.withFile(digest, size: 5), ArchiveFixture.end(1)])
    try await writer.finish()
    let reader = try ArchiveReader(path)
    #expect(try await reader.blob(digest)?.collect(upTo: 10) == hello)
    #expect(try reader.blob(String(digest.reversed())) == nil)
    #expect(try reader.blob("../archive.json") == nil)
    #expect(try await ArchiveCheck.run(path).blobs == 1)

    try ArchiveFixture.write(Array("hallo".utf8), to: path + "/data/blobs/2c/\(digest)")
    await #expect(throws: FerryError.self) { try await ArchiveReader(path).blob(digest)?.collect(upTo: 10) }
    #expect(try await ArchiveCheck.run(path).fault?.hasPrefix("data/blobs/2c/\(digest)") == true)
    try ArchiveFixture.remove(path + "/data/blobs/2c/\(digest)")
    #expect(try await ArchiveCheck.run(path).fault?.contains("is missing") == true)
  }

  static func withFile(_ sha256: String, size: Int64) -> Record {
    let attachment = Attachment(
      name: "a.txt", mediaType: "text/plain", size: size, sha256: sha256, reference: .provider(""))
    let message = Message(
      id: "f", author: Author(id: "U1", name: "ada"), text: "", time: ArchiveFixture.start, attachments: [attachment])
    return .message(MessageRecord(channel: "lobby", message: message, files: [FileState(status: .present)]))
  }

  @Test("a message that was taken again counts as it last was, with what came after it")
  func folded() async throws {
    let writer = try ArchiveWriter(folder: path, header: ArchiveFixture.header)
    guard case .message(let edit) = ArchiveFixture.message(1, text: "edited") else { return }
    let gone = Record.delete(DeleteRecord(channel: "lobby", id: "m2"))
    let again = ArchiveFixture.message(1, text: "taken again")
    try await writer.append(
      ArchiveFixture.messages(0..<3) + [.edit(edit), ArchiveFixture.end(3), again, gone, ArchiveFixture.end(3)])
    try await writer.finish()
    let folded = try await FoldedRecords(path)
    #expect(
      try await ArchiveFixture.all(folded)
        == [ArchiveFixture.message(0), ArchiveFixture.message(2), again, gone, ArchiveFixture.end(3)])
    #expect(folded.header == ArchiveFixture.header)
  }

  @Test("a full disk is told, and after it there is room the archive goes on")
  func fullDisk() async throws {
    guard let disk = try? SmallDisk(folder.file("disk"), bytes: 400_000) else { return }
    let path = disk.path + "/lobby.ferry"
    let writer = try ArchiveWriter(folder: path, header: ArchiveFixture.header)
    try await writer.append(ArchiveFixture.messages(0..<100))
    try await writer.commit("100", of: "lobby")
    let error = await #expect(throws: FerryError.self) {
      for page in 0..<1000 {
        try await writer.append(ArchiveFixture.messages(100 + page * 100..<200 + page * 100))
        try await writer.commit("x", of: "lobby")
      }
    }
    #expect(error?.code == .storage)
    #expect(error?.message.contains("disk is full") == true)
    await #expect(throws: FerryError.self) { try await writer.append(ArchiveFixture.messages(0..<1)) }
    try disk.grow(to: 4_000_000)
    try ArchiveFixture.copy(path, to: self.path)
    let reader = try ArchiveReader(self.path)
    #expect(try await ArchiveFixture.all(reader).prefix(100) == ArchiveFixture.messages(0..<100)[...])
  }
}
