import FerryCore
import FerryRuntime

/// What becomes of an attachment's bytes on their way to the disk: measured, recognised, and rid of what tells where an
/// image was made, when that is wanted.
struct SpoolWriter: ~Copyable {
  private(set) var received: Int64 = 0
  private(set) var written: Int64 = 0
  /// Proven by the first bytes, for the common image types.
  private(set) var mediaType: String?

  private let stripsLocation: Bool
  private var digest = IncrementalDigest(.sha256)
  private var head: [UInt8]? = []
  private var stripper = ImageStripper(nil)

  /// So many bytes tell all types.
  private static let headLength = 16

  init(stripsLocation: Bool) { self.stripsLocation = stripsLocation }

  /// After `finish`.
  var sha256: String {
    mutating get { Crypto.hex(digest.finish()) }
  }

  /// The bytes to be written for these. Throws `badData` for an image that is not what it seems to be.
  mutating func feed(_ piece: [UInt8]) throws(FerryError) -> [UInt8] {
    received += Int64(piece.count)
    guard let early = head else { return try pass(stripper.feed(piece)) }
    let start = early + piece
    guard start.count >= Self.headLength else {
      head = start
      return []
    }
    recognise(start)
    return try pass(stripper.feed(start))
  }

  /// What is left to be written.
  mutating func finish() throws(FerryError) -> [UInt8] {
    var rest: [UInt8] = []
    if let start = head {
      recognise(start)
      rest = try pass(stripper.feed(start))
    }
    return rest + (try pass(stripper.finish()))
  }

  private mutating func recognise(_ start: [UInt8]) {
    head = nil
    mediaType = Self.mediaType(of: start)
    if stripsLocation { stripper = ImageStripper(mediaType) }
  }

  private mutating func pass(_ bytes: [UInt8]?) throws(FerryError) -> [UInt8] {
    guard let bytes else {
      throw FerryError(
        .badData, "The image is damaged, so that it cannot be said whether it tells where it was made (strip_location)."
      )
    }
    written += Int64(bytes.count)
    digest.update(bytes)
    return bytes
  }

  /// The type that the first bytes prove, or nil.
  static func mediaType(of head: [UInt8]) -> String? {
    if head.starts(with: [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]) { return "image/png" }
    if head.starts(with: [0xff, 0xd8, 0xff]) { return "image/jpeg" }
    if head.starts(with: Array("GIF8".utf8)) { return "image/gif" }
    if head.starts(with: Array("RIFF".utf8)), head.dropFirst(8).starts(with: Array("WEBP".utf8)) {
      return "image/webp"
    }
    return nil
  }
}
