import FerryRuntime
import Testing

@testable import FerryRelay

private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

@Suite struct ImageStripperTests {
  private func segment(_ marker: UInt8, _ payload: [UInt8]) -> [UInt8] {
    let length = payload.count + 2
    return [0xff, marker, UInt8(length >> 8), UInt8(length & 0xff)] + payload
  }

  /// An Exif segment that says how the image is turned, and where it was made.
  private func exif(orientation: UInt8, bigEndian: Bool) -> [UInt8] {
    let tiff: [UInt8] =
      bigEndian
      ? [0x4d, 0x4d, 0, 0x2a, 0, 0, 0, 8, 0, 2, 0x01, 0x0f, 0, 2, 0, 0, 0, 4, 65, 66, 67, 0]
        + [0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0, 0, 0, 0, 0]
      : [0x49, 0x49, 0x2a, 0, 8, 0, 0, 0, 1, 0, 0x12, 0x01, 3, 0, 1, 0, 0, 0, orientation, 0, 0, 0, 0, 0, 0, 0]
    return segment(0xe1, bytes("Exif\0\0") + tiff + bytes("PLACE 48.2 N"))
  }

  /// The result, the same however the bytes are cut into pieces.
  private func strip(_ image: [UInt8], _ type: String) throws -> [UInt8]? {
    var results: [[UInt8]?] = []
    for size in [1, 2, 3, 7, 64, image.count + 1] {
      var stripper = ImageStripper(type)
      var output: [UInt8]? = []
      for start in stride(from: 0, to: image.count, by: size) {
        guard let piece = stripper.feed(Array(image[start..<min(start + size, image.count)])) else {
          output = nil
          break
        }
        output? += piece
      }
      if let rest = stripper.finish() { output? += rest } else { output = nil }
      results.append(output)
    }
    for result in results { #expect(result == results[0]) }
    return results[0]
  }

  private let scan: [UInt8] = [1, 2, 0xff, 0, 3, 0xff, 0xd0, 4, 0xff, 0xff, 0xd7, 5]

  @Test("a JPEG keeps what is shown, its colours and its orientation", arguments: [true, false])
  func jpeg(bigEndian: Bool) throws {
    let start: [UInt8] = [0xff, 0xd8]
    let kept = segment(0xe0, bytes("JFIF\0rest")) + segment(0xe2, bytes("ICC_PROFILE\0colours"))
    let tables = segment(0xdb, [UInt8](repeating: 9, count: 300)) + segment(0xc0, [8, 0, 1, 0, 1, 1, 1, 17, 0])
    let image = segment(0xda, [1, 1, 0, 0, 63, 0]) + scan + [0xff, 0xc4, 0, 4, 7, 7] + segment(0xda, [1]) + scan
    let input =
      start + exif(orientation: 6, bigEndian: bigEndian) + kept
      + segment(0xe1, bytes("http://ns.adobe.com/xap/1.0/\0PLACE"))
      + segment(0xed, bytes("Photoshop 3.0\0PLACE")) + segment(0xe2, bytes("MPF\0PLACE"))
      + segment(0xfe, bytes("PLACE"))
      + tables + image + [0xff, 0xd9] + start + exif(orientation: 1, bigEndian: true) + [0xff, 0xd9]
    let output = try #require(try strip(input, "image/jpeg"))
    #expect(!String(decoding: output, as: UTF8.self).contains("PLACE"))
    let turned = segment(
      0xe1,
      bytes("Exif\0\0") + [0x4d, 0x4d, 0, 0x2a, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0])
    #expect(output == start + turned + kept + tables + image + [0xff, 0xd9])
  }

  @Test func aJPEGWithoutAnythingToTakeOutIsUnchanged() throws {
    let image = [0xff, 0xd8] + segment(0xe0, bytes("JFIF\0")) + segment(0xda, [1]) + scan + [0xff, 0xd9]
    #expect(try strip(image, "image/jpeg") == image)
    // Without its end, and with an orientation that says nothing.
    #expect(try strip(Array(image.dropLast(2)), "image/jpeg") == Array(image.dropLast(2)))
    let upright = [0xff, 0xd8] + exif(orientation: 1, bigEndian: true) + segment(0xda, [1]) + scan + [0xff, 0xd9]
    #expect(try strip(upright, "image/jpeg") == [0xff, 0xd8] + segment(0xda, [1]) + scan + [0xff, 0xd9])
  }

  private func chunk(_ type: String, _ data: [UInt8]) -> [UInt8] {
    [0, 0, UInt8(data.count >> 8), UInt8(data.count & 0xff)] + bytes(type) + data + [1, 2, 3, 4]
  }

  @Test func aPNGKeepsAllButTexts() throws {
    let signature: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]
    let head = signature + chunk("IHDR", [UInt8](repeating: 1, count: 13))
    let data = chunk("gAMA", [0, 0, 1, 1]) + chunk("IDAT", [UInt8](repeating: 7, count: 500)) + chunk("IEND", [])
    let secrets =
      chunk("eXIf", bytes("PLACE")) + chunk("iTXt", bytes("XML:com.adobe.xmp\0PLACE")) + chunk("tEXt", bytes("PLACE"))
      + chunk("zTXt", bytes("PLACE"))
    #expect(try strip(head + secrets + data + bytes("PLACE"), "image/png") == head + data)
    #expect(try strip(head + data, "image/png") == head + data)
  }

  private func riff(_ type: String, _ data: [UInt8]) -> [UInt8] {
    bytes(type) + [UInt8(data.count & 0xff), UInt8(data.count >> 8), 0, 0] + data + (data.count % 2 == 1 ? [0] : [])
  }

  @Test func aWebPKeepsItsSizeAndLosesItsSecrets() throws {
    func webp(_ flags: UInt8, _ last: [UInt8]) -> [UInt8] {
      let content =
        bytes("WEBP") + riff("VP8X", [flags, 0, 0, 0, 1, 0, 0, 1, 0, 0]) + riff("VP8 ", [1, 2, 3]) + last
      return bytes("RIFF") + [UInt8(content.count & 0xff), UInt8(content.count >> 8), 0, 0] + content
    }
    let input = webp(0x3c, riff("EXIF", bytes("PLACE")) + riff("XMP ", bytes("PLACE!")))
    let blank = riff("JUNK", [0, 0, 0, 0, 0]) + riff("JUNK", [0, 0, 0, 0, 0, 0])
    #expect(try strip(input + bytes("PLACE"), "image/webp") == webp(0x30, blank))
  }

  @Test("what is not built as it should be is refused", arguments: ["image/jpeg", "image/png", "image/webp"])
  func damaged(type: String) throws {
    let starts: [String: [UInt8]] = [
      "image/jpeg": [0xff, 0xd8, 0xff, 0xe0, 0, 9, 1],
      "image/png": [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 9, 0x49, 0x44],
      "image/webp": bytes("RIFF") + [99, 0, 0, 0] + bytes("WEBPVP8 ") + [200, 0, 0, 0],
    ]
    let start = try #require(starts[type])
    #expect(try strip(start, type) == nil)
    #expect(try strip([], type) == nil)
    #expect(try strip(start + [UInt8](repeating: 0, count: 3), type) == nil)
  }

  @Test("noise never crashes it", arguments: ["image/jpeg", "image/png", "image/webp"])
  func noise(type: String) throws {
    var random = SystemRandomNumberGenerator()
    let starts: [String: [UInt8]] = [
      "image/jpeg": [0xff, 0xd8], "image/png": [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a],
      "image/webp": bytes("RIFF") + [0xff, 0xff, 0, 0] + bytes("WEBP"),
    ]
    for _ in 0..<2000 {
      var stripper = ImageStripper(type)
      var noise = starts[type] ?? []
      for _ in 0..<Int.random(in: 0...200, using: &random) {
        noise.append([0xff, 0xe1, 0, UInt8.random(in: 0...255, using: &random)].randomElement(using: &random) ?? 0)
      }
      if stripper.feed(noise) != nil { _ = stripper.finish() }
    }
    #expect(ImageStripper("text/plain").passes([1, 2, 3]))
  }
}

extension ImageStripper {
  fileprivate func passes(_ bytes: [UInt8]) -> Bool {
    var copy = self
    return copy.feed(bytes) == bytes && copy.finish() == []
  }
}
