import FerryCore
import FerryHistory
import FerryTestKit
import Testing

/// What was changed in an archive, and what the check says of it.
@Suite(.timeLimit(.minutes(5))) struct ArchiveCheckTests {
  private let folder: TemporaryFolder
  private let path: String

  init() async throws {
    folder = try TemporaryFolder()
    path = folder.file("lobby.ferry")
    try await ArchiveFixture.finished(25, in: path)
  }

  private func segment(_ number: Int) -> String { path + "/data/log/00000\(number).jsonl" }

  private func change(_ file: String, _ from: String, _ to: String) throws {
    var text = String(decoding: try ArchiveFixture.bytes(file), as: UTF8.self)
    let range = try #require(text.firstRange(of: from))
    text.replaceSubrange(range, with: to)
    try ArchiveFixture.write(Array(text.utf8), to: file)
  }

  private func expect(_ fault: String) async throws {
    let report = try await ArchiveCheck.run(path)
    #expect(report.fault?.contains(fault) == true, "\(report.fault ?? "nothing was found")")
    #expect(report.exitCode == 65)
  }

  @Test("a flipped byte in a sealed segment is found by its seal, and reading ends there")
  func flippedByte() async throws {
    try change(segment(2), "message 12", "message 13")
    try await expect("data/log/000002.jsonl, line 11 (byte ")
    await #expect(throws: FerryError.self) { try await ArchiveFixture.all(try ArchiveReader(path)) }
  }

  @Test("a segment that was lost, or put into another's place")
  func lostSegment() async throws {
    let second = try ArchiveFixture.bytes(segment(2))
    try ArchiveFixture.remove(segment(2))
    try await expect("data/log/000002.jsonl, line 1 (byte 0): The file is missing")
    try ArchiveFixture.write(try ArchiveFixture.bytes(segment(1)), to: segment(2))
    try await expect("data/log/000002.jsonl, line 1 (byte 0): It is not the segment 2")
    try ArchiveFixture.write(second, to: segment(2))
    #expect(try await ArchiveCheck.run(path).exitCode == 0)
  }

  @Test("segments missing at the end")
  func lostEnd() async throws {
    let report = try await ArchiveCheck.run(path)
    try ArchiveFixture.remove(path + "/data/log/00000\(report.segments).jsonl")
    try await expect("data/log/00000\(report.segments).jsonl: The file is missing")
  }

  @Test("lines that are missing, exchanged, cut off or no JSON")
  func lines() async throws {
    let whole = try ArchiveFixture.bytes(segment(1))
    let lines = whole.split(separator: 0x0a).map(Array.init)
    func write(_ lines: [[UInt8]]) throws { try ArchiveFixture.write(lines.flatMap { $0 + [0x0a] }, to: segment(1)) }
    var changed = lines
    changed.swapAt(3, 4)
    try write(changed)
    try await expect("data/log/000001.jsonl, line 4 (byte ")
    changed = lines
    changed.remove(at: 2)
    try write(changed)
    try await expect("line 3 (byte ")
    try write(Array(lines.dropLast()))
    try await expect("ends without its seal")
    try ArchiveFixture.write(whole.dropLast(20), to: segment(1))
    try await expect("The line is cut off")
    changed = lines
    changed[1] = Array("{\"seq\":2,\"kind\":\"message\",\"id\":1}".utf8)
    try write(changed)
    try await expect("line 2 (byte 45): The field \"channel\" is missing")
  }

  @Test("files beside the listed ones, and manifests that are gone")
  func manifests() async throws {
    try ArchiveFixture.write([1], to: path + "/data/more")
    try await expect("data/more: The file is not in manifest-sha256.txt")
    try ArchiveFixture.remove(path + "/data/more")
    try change(path + "/bag-info.txt", "Bagging-Date", "Bagging-Data")
    try await expect("bag-info.txt: The file was changed")
    try ArchiveFixture.remove(path + "/tagmanifest-sha256.txt")
    try await expect("tagmanifest-sha256.txt: The file is missing")
  }

  @Test("an end that counts other messages than there are")
  func wrongCount() async throws {
    let writer = try ArchiveWriter(folder: path, header: ArchiveFixture.header)
    try await writer.append([ArchiveFixture.end(24)])
    try await writer.finish()
    try await expect("The channel lobby has 25 messages; its end says 24")
  }

  @Test("an archive that is open, or without an end, is incomplete and no worse")
  func incomplete() async throws {
    let writer = try ArchiveWriter(folder: path, header: ArchiveFixture.header)
    try await writer.append([ArchiveFixture.message(99, channel: "other")])
    try await writer.commit("x", of: "other")
    var report = try await ArchiveCheck.run(path)
    #expect(report.fault == nil)
    #expect(report.isOpen)
    #expect(report.exitCode == 65)
    try await writer.finish()
    report = try await ArchiveCheck.run(path)
    #expect(report.fault == nil)
    #expect(report.notes.contains("The channel other was not taken to its end."))
    #expect(report.exitCode == 65)
  }

  @Test("fields and kinds of a newer minor version are kept and counted; a newer major version is refused")
  func versions() async throws {
    let other = folder.file("newer")
    let line = "{\"kind\":\"poll\",\"question\":\"?\"}"
    let writer = try ArchiveWriter(folder: other, header: ArchiveFixture.header)
    try await writer.append([try Record(line: Array(line.utf8)), ArchiveFixture.message(0), ArchiveFixture.end(1)])
    try await writer.finish()
    #expect(try await ArchiveCheck.run(other).unknown == 1)
    let records = try await ArchiveFixture.all(try ArchiveReader(other))
    #expect(String(decoding: records.first?.line() ?? [], as: UTF8.self) == line)

    try change(other + "/data/archive.json", "\"1.0\"", "\"1.7\"")
    #expect(try ArchiveReader(other).header.version == "1.7")
    try change(other + "/data/archive.json", "\"1.7\"", "\"2.0\"")
    #expect(throws: FerryError.self) { try ArchiveReader(other) }
    try change(other + "/data/archive.json", "\"2.0\"", "\"1.0\"")
    try change(other + "/data/archive.json", "\"requires\":[]", "\"requires\":[\"magic\"]")
    let error = #expect(throws: FerryError.self) { try ArchiveReader(other) }
    #expect(error?.code == .unsupported)
    #expect(error?.message.contains("magic") == true)
  }

  @Test("replies and authors that nothing explains are noted")
  func notes() async throws {
    let writer = try ArchiveWriter(folder: path, header: ArchiveFixture.header)
    guard case .message(var message) = ArchiveFixture.message(40) else { return }
    message.message.replyTo = "nowhere"
    try await writer.append([
      .message(message), .person(PersonRecord(id: "U1", name: "ada")), ArchiveFixture.end(26),
    ])
    try await writer.finish()
    let report = try await ArchiveCheck.run(path)
    #expect(report.exitCode == 0)
    #expect(report.notes.count == 2)
    #expect(report.notes.first?.contains("1 messages that are answered are not in the archive") == true)
  }

  @Test("what is no archive")
  func noArchive() async throws {
    for path in [folder.path, folder.file("nothing"), segment(1), "/dev/null"] {
      await #expect(throws: FerryError.self) { try await ArchiveCheck.run(path) }
    }
  }
}
