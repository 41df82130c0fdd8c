import FerryCore
import Testing

@testable import FerryChat

@Suite struct ImageSizeTests {
  private static let png: [UInt8] =
    [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13] + Array("IHDR".utf8) + [0, 0, 1, 0x2c, 0, 0, 0, 0xc8]
  private static let gif: [UInt8] = Array("GIF89a".utf8) + [0x0a, 0x01, 0x05, 0x00]
  /// A thumbnail's segment, padding, and then the frame.
  private static let jpeg: [UInt8] =
    [
      0xff, 0xd8, 0xff, 0xe1, 0x00, 0x06, 0xff, 0xc0, 0x00, 0x01, 0xff, 0xff, 0xc2, 0x00, 0x11, 0x08, 0x02, 0x58, 0x03,
      0x20,
    ]
  private static func webp(_ kind: String, _ body: [UInt8]) -> [UInt8] {
    Array("RIFF".utf8) + [0, 0, 0, 0] + Array("WEBP\(kind)".utf8) + [0, 0, 0, 0] + body
  }
  private static let lossy = webp("VP8 ", [0, 0, 0, 0x9d, 0x01, 0x2a, 0x40, 0x41, 0xf0, 0x00])
  private static let lossless = webp("VP8L", [0x2f, 0x3f, 0xc1, 0x3b, 0x00])
  private static let extended = webp("VP8X", [0, 0, 0, 0, 0x3f, 0x01, 0, 0xef, 0, 0])

  @Test(
    arguments: [
      (png, 300, 200), (gif, 266, 5), (jpeg, 800, 600), (lossy, 320, 240), (lossless, 320, 240), (extended, 320, 240),
    ])
  func sizesAreRead(_ bytes: [UInt8], _ width: Int, _ height: Int) {
    #expect(ImageSize.of(bytes) == Attachment.Pixels(width: width, height: height))
  }

  @Test(arguments: [png, gif, jpeg, lossy, lossless, extended])
  func whatIsCutOffOrBrokenHasNoSize(_ bytes: [UInt8]) {
    for count in 0..<bytes.count { #expect(ImageSize.of(Array(bytes[..<count])) == nil, "\(count) bytes") }
    for index in bytes.indices {
      for value: UInt8 in [0, 1, 0x7f, 0xff] {
        var broken = bytes
        broken[index] = value
        if let size = ImageSize.of(broken) { #expect(size.width > 0 && size.height > 0) }
      }
    }
  }

  @Test func aJPEGOfMarkersOnlyEnds() {
    #expect(ImageSize.of([0xff, 0xd8, 0xff] + [UInt8](repeating: 0xff, count: 300_000)) == nil)
    #expect(ImageSize.of([0xff, 0xd8, 0xff, 0xe0, 0, 0, 0xff, 0xc0]) == nil, "a segment of no length")
  }
}
