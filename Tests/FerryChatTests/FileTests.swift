import FerryChat
import FerryCore
import FerryRuntime
import FoundationEssentials
import Testing

@Suite(.timeLimit(.minutes(1))) struct FileTests {
  private static let pngHead: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]

  @Test func aFileComesBackByteForByte() async throws {
    try await withChat { chat, folder async throws in
      let piece = Crypto.randomBytes(64 * 1024)
      let pieces = [Self.pngHead] + Array(repeating: piece, count: 80)
      let whole = pieces.flatMap { $0 }
      let file = try await chat.store(
        stream(pieces, size: Int64(whole.count)), name: "big.png", mediaType: "application/x-whatever")
      #expect(file.sha256 == Crypto.hex(Crypto.digest(.sha256, of: whole)))
      #expect(file.size == Int64(whole.count) && file.mediaType == "image/png" && file.name == "big.png")
      let bytes = try await chat.bytes(of: file)
      #expect(bytes.size == file.size)
      #expect(try await bytes.collect(upTo: whole.count) == whole)
      #expect(try await chat.store(stream(pieces), name: "again.png", mediaType: "") == file)
      #expect(try folder.fileNames() == [file.sha256])
      #expect(try folder.unfinished().isEmpty)
      let message = Draft(
        author: ada, text: "", attachments: [Attachment(name: "b", mediaType: "", reference: .provider(file.sha256))])
      let posted = try await chat.post(message, to: lobby, by: .owner).message.message.attachments[0]
      #expect(posted.mediaType == "image/png" && posted.size == file.size && posted.sha256 == file.sha256)
    }
  }

  @Test func aMessageSaysHowLargeItsPictureIs() async throws {
    try await withChat { chat, _ async throws in
      let png = Self.pngHead + [0, 0, 0, 13] + Array("IHDR".utf8) + [0, 0, 1, 0, 0, 0, 0, 64]
      let file = try await chat.store(stream([Array(png[..<11]), Array(png[11...])]), name: "a.png", mediaType: "")
      #expect(file.pixels == Attachment.Pixels(width: 256, height: 64))
      let claimed = Attachment(
        name: "b", mediaType: "", reference: .provider(file.sha256), pixels: .init(width: 1, height: 1))
      let posted = try await chat.post(Draft(author: ada, text: "", attachments: [claimed]), to: lobby, by: .owner)
      #expect(posted.message.message.attachments[0].pixels == file.pixels)
      let read = try await chat.history(of: lobby, order: .newestFirst, limit: 1).messages[0]
      #expect(read.message.attachments[0].pixels == file.pixels)
    }
  }

  @Test func aRefusedOrCutUploadLeavesNoFile() async throws {
    var limits = ChatLimits()
    limits.fileBytes = 1000
    try await withChat(limits: limits) { chat, folder async throws in
      let piece = [UInt8](repeating: 7, count: 400)
      await expect(.tooLarge) {
        _ = try await chat.store(stream(Array(repeating: piece, count: 3)), name: "a", mediaType: "")
      }
      await expect(.tooLarge) { _ = try await chat.store(stream([], size: 1001), name: "a", mediaType: "") }
      await expect(.badRequest) { _ = try await chat.store(stream([piece], size: 401), name: "a", mediaType: "") }
      await expect(.badRequest) {
        _ = try await chat.store(
          stream([piece]), name: "a", mediaType: "", expectedSHA256: String(repeating: "0", count: 64))
      }
      await expect(.unavailable) {
        _ = try await chat.store(stream([piece], failsAtEnd: true), name: "a", mediaType: "")
      }
      #expect(try folder.fileNames().isEmpty)
      #expect(try folder.unfinished().isEmpty)
      #expect(try await chat.store(stream([piece, piece]), name: "a", mediaType: "").size == 800)
    }
  }

  @Test func whatAKilledProcessLeftUnfinishedIsThrownAway() async throws {
    let folder = try ChatFolder()
    defer { folder.remove() }
    try folder.open().close()
    _ = FileManager.default.createFile(atPath: folder.path + "/files/unfinished/x", contents: nil)
    try folder.open().close()
    #expect(try folder.unfinished().isEmpty)
  }

  @Test(
    arguments: [
      (pngHead, "text/html", "image/png"), ([0xff, 0xd8, 0xff, 0xe0], "image/png", "image/jpeg"),
      (Array("GIF89a".utf8), "", "image/gif"), (Array("RIFF1234WEBPVP8 ".utf8), "x", "image/webp"),
      (Array("<html>".utf8), "image/png", "application/octet-stream"),
      (Array("<html>".utf8), "text/HTML; charset=utf-8", "text/html"),
      (Array("x".utf8), "text/\u{0}html", "application/octet-stream"),
      (Array("x".utf8), "a/b/c", "application/octet-stream"),
      (Array("x".utf8), "video/mp4", "video/mp4"), ([], "", "application/octet-stream"),
    ] as [([UInt8], String, String)])
  func theTypeOfAnImageIsToldByItsBytes(_ head: [UInt8], _ declared: String, _ type: String) async throws {
    try await withChat { chat, _ async throws in
      #expect(try await chat.store(stream([head]), name: "f", mediaType: declared).mediaType == type)
    }
  }

  @Test(arguments: [
    ("../../etc/passwd", "passwd"), ("C:\\x\\y.png", "y.png"), ("..", "file"), ("", "file"), ("a\r\nb", "ab"),
    ("/", "file"), ("日本語 😀.png", "日本語 😀.png"),
  ])
  func aFileNameIsNoPath(_ given: String, _ plain: String) async throws {
    try await withChat { chat, _ async throws in
      #expect(try await chat.store(stream([[1]]), name: given, mediaType: "").name == plain)
    }
  }

  @Test func onlySumsNameFiles() async throws {
    try await withChat { chat, _ async throws in
      for name in ["../chat.db", "", String(repeating: "A", count: 64), String(repeating: "a", count: 64)] {
        await expect(.notFound) { _ = try await chat.file(name) }
      }
    }
  }
}
