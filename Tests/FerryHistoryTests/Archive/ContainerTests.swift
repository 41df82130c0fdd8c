import FerryCore
import FerryTestKit
import Testing

@testable import FerryHistory

@Suite(.timeLimit(.minutes(5))) struct ContainerTests {
  private let folder: TemporaryFolder
  private let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = folder.file("lobby.tar")
  }

  @Test("an archive in a tar is the same archive")
  func tar() async throws {
    let archive = folder.file("lobby.ferry")
    let writer = try ArchiveWriter(folder: archive, header: ArchiveFixture.header, limits: SegmentLimits(records: 10))
    try await writer.append(ArchiveFixture.messages(0..<25))
    await #expect(throws: FerryError.self) { try await ArchiveTar.pack(archive, into: path) }
    let hello = Array("hello".utf8)
    let (digest, _) = try await writer.addBlob(ArchiveFixture.stream(hello), limit: 5)
    try await writer.append([ArchiveTests.withFile(digest, size: 5), ArchiveFixture.end(26)])
    try await writer.finish()
    try await ArchiveTar.pack(archive, into: path)
    let reader = try ArchiveReader(path)
    let records = try await ArchiveFixture.all(try ArchiveReader(archive))
    #expect(try await ArchiveFixture.all(reader) == records)
    #expect(try await reader.blob(digest)?.collect(upTo: 10) == hello)
    let report = try await ArchiveCheck.run(path)
    let original = try await ArchiveCheck.run(archive)
    #expect(report == original)
    #expect(report.exitCode == 0)
    #expect(try await ArchiveFixture.all(try await FoldedRecords(path)) == records)
    // Every blob before the segment that names it, and the manifests last.
    let names = try Container(path).entries.map(\.name)
    #expect(names.first == "lobby/data/archive.json")
    let blob = try #require(names.firstIndex(of: "lobby/data/blobs/2c/\(digest)"))
    #expect(names[blob + 1].hasPrefix("lobby/data/log/"))
    #expect(names.last == "lobby/tagmanifest-sha256.txt")
    #expect(!ArchiveFixture.exists(path + ".part"))

    var bytes = try ArchiveFixture.bytes(path)
    bytes.removeLast(bytes.count / 2)
    try ArchiveFixture.write(bytes, to: path)
    #expect((try? await ArchiveCheck.run(path))?.exitCode != 0)
  }

  /// A tar of one entry, or of several.
  private static func tar(_ entries: [(name: String, kind: Character, size: Int)]) -> [UInt8] {
    var tar: [UInt8] = []
    for entry in entries {
      var header = [UInt8](repeating: 0, count: 512)
      func put(_ text: String, at offset: Int) {
        for (index, byte) in text.utf8.enumerated() { header[offset + index] = byte }
      }
      func octal(_ number: Int, _ width: Int) -> String {
        let digits = String(number, radix: 8)
        return String(repeating: "0", count: width - digits.utf8.count) + digits
      }
      put(entry.name, at: 0)
      put("0000644", at: 100)
      put("0000000", at: 108)
      put("0000000", at: 116)
      put(octal(entry.size, 11), at: 124)
      put("00000000000", at: 136)
      put("        ", at: 148)
      put(String(entry.kind), at: 156)
      if entry.kind == "1" || entry.kind == "2" { put("target", at: 157) }
      put("ustar", at: 257)
      put("00", at: 263)
      put(octal(header.reduce(0) { $0 + Int($1) }, 6), at: 148)
      header[154] = 0
      tar += header
      if entry.size < 100_000 { tar += [UInt8](repeating: 0, count: (entry.size + 511) / 512 * 512) }
    }
    return tar + [UInt8](repeating: 0, count: 1024)
  }

  @Test(
    "names that lead elsewhere, links and devices are refused, and nothing is written",
    arguments: [
      ("../x", "0"), ("/x", "0"), ("C:\\x", "0"), ("c:x", "0"), ("a/../../x", "0"), ("a\\b", "0"), ("a//b", "0"),
      ("a/./b", "0"), ("a\u{1}b", "0"), ("link", "2"), ("hard", "1"), ("device", "3"), ("pipe", "6"), ("..", "5"),
    ] as [(String, Character)])
  func traversal(name: String, kind: Character) throws {
    try ArchiveFixture.write(Self.tar([("first", "0", 0), (name, kind, 0)]), to: path)
    let error = try #require(throws: FerryError.self) { try Container(path) }
    #expect(error.code == .badData)
    #expect(error.message.contains("is refused"), "\(error)")
  }

  @Test("plain names are taken as they are")
  func plainNames() throws {
    try ArchiveFixture.write(
      Self.tar([("./a/b c.json", "0", 3), ("a", "5", 0), ("ü", "0", 0), ("F:C", "5", 0), ("FC:1/x", "0", 0)]), to: path)
    #expect(throws: FerryError.self) { try Container(path) }
    try ArchiveFixture.write(
      Self.tar([("./a/b c.json", "0", 3), ("a/", "5", 0), ("ü", "0", 0), ("FC:1/x", "0", 0)]), to: path)
    #expect(try Container(path).entries.map(\.name) == ["a/b c.json", "ü", "FC:1/x"])
  }

  @Test("one name twice, however it is written, is refused", arguments: ["A.txt", "a.txt", "./a.txt"])
  func duplicates(name: String) throws {
    try ArchiveFixture.write(Self.tar([("a.txt", "0", 0), (name, "0", 0)]), to: path)
    #expect(throws: FerryError.self) { try Container(path) }
    try ArchiveFixture.write(Self.tar([("e\u{301}", "0", 0), ("\u{e9}", "0", 0)]), to: path)
    #expect(throws: FerryError.self) { try Container(path) }
  }

  @Test("what is small and says that it is huge is refused")
  func bomb() throws {
    try ArchiveFixture.write(Self.tar([("zeros", "0", 8_000_000_000)]), to: path)
    let error = try #require(throws: FerryError.self) { try Container(path) }
    #expect(error.code == .tooLarge || error.code == .badData)
    let entries = (0..<20).map { (name: "\($0)", kind: Character("0"), size: 0) }
    try ArchiveFixture.write(Self.tar(entries), to: path)
    #expect(throws: FerryError.self) { try Container(path, limits: .init(entries: 19)) }
    #expect(try Container(path, limits: .init(entries: 20)).entries.count == 20)
  }

  @Test("what is no container says what can be read")
  func noContainer() throws {
    for bytes in [[], [1, 2, 3], Array("hello".utf8), [0x50, 0x4b, 3, 4, 9]] as [[UInt8]] {
      try ArchiveFixture.write(bytes, to: path)
      #expect(throws: FerryError.self) { try Container(path) }
    }
  }

  @Test("names of old zip files are read in their code page")
  func codePage() throws {
    #expect(try Container.name([0x6d, 0x81, 0x6c, 0x6c], in: "x") == "müll")
    #expect(try Container.name(Array("müll".utf8), in: "x") == "müll")
    #expect(CodePage437.text([0xff, 0xe1, 0x41]) == "\u{a0}ßA")
  }
}
