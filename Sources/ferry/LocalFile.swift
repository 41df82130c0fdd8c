import FerryCore
import FerryRuntime
import Glibc

/// A file of the user's, read in pieces.
final class LocalFile: Sendable {
  let size: Int64
  private let file: DiskFile

  init(path: String) throws(FerryError) {
    file = try DiskFile(path, followsLinks: true) { path in
      FerryError(.badData, "\(path) cannot be read: \(String(cString: strerror(errno))).")
    }
    guard try file.isRegular() else { throw FerryError(.badData, "\(path) is not a file.") }
    size = try file.size()
  }

  /// Its digest, and a stream of its bytes from the start.
  func contents(_ mediaType: String) throws(FerryError) -> (sha256: String, bytes: ByteStream) {
    var digest = IncrementalDigest(.sha256)
    while let piece = try file.read(upTo: 65_536) { digest.update(piece) }
    try file.rewind()
    let stream = ByteStream(size: size, mediaType: mediaType) { [file] () throws(FerryError) in
      try file.read(upTo: 65_536)
    }
    return (Crypto.hex(digest.finish()), stream)
  }
}

enum MediaType {
  private static let byExtension = [
    "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp",
    "pdf": "application/pdf", "txt": "text/plain", "mp4": "video/mp4", "mp3": "audio/mpeg",
  ]

  /// The receiver goes by content where it can; this is only a hint.
  static func guess(fromName name: String) -> String {
    let path = name.prefix { $0 != "?" }
    return byExtension[String(path.split(separator: ".").last ?? "").lowercased()] ?? "application/octet-stream"
  }
}
