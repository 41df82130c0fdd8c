import FerryCore
import FerryHistory
import FerryTestKit
import Testing

/// Other people's programs check an archive.
@Suite(.timeLimit(.minutes(5))) struct BagTests {
  @Test("sha256sum accepts a finished archive, and a packed one that tar unpacks, and notices one changed byte")
  func sha256sum() async throws {
    let folder = try TemporaryFolder()
    let path = folder.file("lobby.ferry")
    let writer = try ArchiveWriter(folder: path, header: ArchiveFixture.header, limits: SegmentLimits(records: 10))
    let (digest, _) = try await writer.addBlob(ArchiveFixture.stream([1, 2, 3]), limit: 5)
    try await writer.append(ArchiveFixture.messages(0..<25))
    try await writer.append([ArchiveTests.withFile(digest, size: 3), ArchiveFixture.end(26)])
    try await writer.finish()
    let check = "sha256sum -c --quiet manifest-sha256.txt tagmanifest-sha256.txt"
    #expect(try await ChildProcess.run("/bin/sh", ["-c", "cd '\(path)' && \(check)"]).code == 0)

    try await ArchiveTar.pack(path, into: folder.file("x.tar"))
    let unpack = "cd '\(folder.path)' && tar xf x.tar && diff -r x lobby.ferry && cd x && \(check)"
    let outcome = try await ChildProcess.run("/bin/sh", ["-c", unpack])
    #expect(outcome.code == 0, "\(outcome.errors)\(outcome.output)")

    let blob = path + "/data/blobs/\(digest.prefix(2))/\(digest)"
    try ArchiveFixture.write([1, 2, 4], to: blob)
    #expect(try await ChildProcess.run("/bin/sh", ["-c", "cd '\(path)' && \(check)"]).code != 0)
  }
}
