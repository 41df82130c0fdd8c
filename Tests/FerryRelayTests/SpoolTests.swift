import FerryCore
import FerryRelay
import FerryRuntime
import FerryTestKit
import FerryTransport
import FoundationEssentials
import Testing

private func stream(_ bytes: [UInt8]) -> ByteStream { .bytes(bytes) }

@Suite struct SpoolTests {
  private func age(_ file: Spool.File, _ spool: Spool, seconds: Int) throws {
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSinceNow: -Double(seconds))], ofItemAtPath: spool.path(of: file.sha256))
  }

  private func isThere(_ file: Spool.File, _ spool: Spool) -> Bool {
    FileManager.default.fileExists(atPath: spool.path(of: file.sha256))
  }

  @Test func theBudgetIsKeptAndTheOldestGoFirst() async throws {
    let folder = try TemporaryFolder()
    let spool = try Spool(folder: folder.file("spool"), limit: 1000, budget: 250)
    var files: [Spool.File] = []
    for number in 0..<4 {
      files.append(
        try await spool.store(stream([UInt8](repeating: UInt8(number), count: 100)), declaredType: "x/y"))
    }
    #expect(spool.bytes == 400)
    // What was just stored is about to be sent.
    try await spool.trim { _ async throws(FerryError) in false }
    #expect(spool.bytes == 400)
    for (index, file) in files.enumerated() { try age(file, spool, seconds: 1000 - index) }
    // A link to the oldest was given out; the next is wanted again.
    let oldest = files[0].sha256
    _ = try await spool.store(stream([UInt8](repeating: 1, count: 100)), declaredType: "x/y")
    #expect(spool.bytes == 400)
    // It was found a moment ago that nothing can go; a relay that starts looks at once.
    try await spool.trim { _ async throws(FerryError) in false }
    #expect(spool.bytes == 400)
    let next = try Spool(folder: folder.file("spool"), limit: 1000, budget: 250)
    try await next.trim { sha256 async throws(FerryError) in sha256 == oldest }
    #expect(files.map { isThere($0, spool) } == [true, true, false, false])
    #expect(next.bytes == 200)
    // Counted again at the next start; what was half written is gone.
    try Data([1]).write(to: URL(fileURLWithPath: folder.file("spool/incoming-1")))
    let again = try Spool(folder: folder.file("spool"), limit: 1000, budget: 250)
    #expect(again.bytes == 200)
    #expect(!FileManager.default.fileExists(atPath: folder.file("spool/incoming-1")))
  }

  @Test func whatIsStoredAgainWhileItIsLookedAtStays() async throws {
    let folder = try TemporaryFolder()
    let spool = try Spool(folder: folder.file("spool"), limit: 1000, budget: 50)
    let content = [UInt8](repeating: 7, count: 100)
    let file = try await spool.store(stream(content), declaredType: "x/y")
    try age(file, spool, seconds: 1000)
    // Between the question whether it is needed and its answer a lane stores the same.
    try await spool.trim { _ async throws(FerryError) in
      _ = try await spool.store(stream(content), declaredType: "x/y")
      return false
    }
    #expect(isThere(file, spool))
    #expect(spool.bytes == 100)
  }

  @Test func bytesAreCountedOnceHoweverManyStoreTheSame() async throws {
    let folder = try TemporaryFolder()
    let spool = try Spool(folder: folder.file("spool"), limit: 1000)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<200 {
        group.addTask {
          _ = try await spool.store(stream([UInt8](repeating: UInt8(number % 10), count: 100)), declaredType: "x/y")
        }
      }
      try await group.waitForAll()
    }
    #expect(spool.bytes == 1000)
  }

  @Test func declaredSizesAreCheckedFirstAndRealOnesMeanwhile() async throws {
    let folder = try TemporaryFolder()
    let spool = try Spool(folder: folder.file("spool"), limit: 100)
    let asked = Locked(0)
    func endless(_ declared: Int64?) -> ByteStream {
      ByteStream(size: declared) { () async throws(FerryError) -> [UInt8]? in
        asked.withLock { $0 += 1 }
        return [UInt8](repeating: 0, count: 40)
      }
    }
    let declared = await #expect(throws: FerryError.self) { try await spool.store(endless(101), declaredType: "a/b") }
    #expect(declared?.code == .tooLarge)
    #expect(asked.withLock { $0 } == 0)
    let real = await #expect(throws: FerryError.self) { try await spool.store(endless(nil), declaredType: "a/b") }
    #expect(real?.code == .tooLarge)
    #expect(asked.withLock { $0 } == 3)
    #expect(spool.bytes == 0)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.file("spool")).isEmpty)
  }

  @Test func imagesLoseTheirPlaceOnlyWhenAsked() async throws {
    let folder = try TemporaryFolder()
    let image: [UInt8] =
      [0xff, 0xd8, 0xff, 0xe1, 0, 13] + Array("Exif\0\0PLACE".utf8) + [0xff, 0xda, 0, 3, 1, 5, 5, 0xff, 0xd9]
    let plain = try Spool(folder: folder.file("spool"), limit: 1000)
    let kept = try await plain.store(stream(image), declaredType: "text/plain")
    #expect(kept.size == Int64(image.count))
    #expect(kept.mediaType == "image/jpeg")
    let stripping = plain.with(limit: 1000, budget: 1000, stripsLocation: true)
    let stripped = try await stripping.store(stream(image), declaredType: "text/plain")
    let content = try await stripping.read(stripped).collect(upTo: 1000)
    #expect(!String(decoding: content, as: UTF8.self).contains("PLACE"))
    #expect(Int64(content.count) == stripped.size)
    #expect(Crypto.hex(Crypto.digest(.sha256, of: content)) == stripped.sha256)
    let damaged = await #expect(throws: FerryError.self) {
      try await stripping.store(stream(Array(image.prefix(16))), declaredType: "text/plain")
    }
    #expect(damaged?.code == .badData)
    #expect(stripping.bytes == kept.size + stripped.size)
    // No image at all, and shorter than any.
    let short = try await stripping.store(stream([1, 2]), declaredType: "a/b")
    #expect(short.size == 2 && short.mediaType == "a/b")
  }
}
