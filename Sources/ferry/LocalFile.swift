import FerryCore
import FerryRuntime
import Glibc

/// A file of the user's, read in pieces.
final class LocalFile: Sendable {
  let path: String
  let size: Int64
  private let descriptor: Int32

  init(path: String) throws(FerryError) {
    self.path = path
    descriptor = open(path, O_RDONLY | O_CLOEXEC)
    var status = stat()
    guard descriptor >= 0, fstat(descriptor, &status) == 0 else {
      throw FerryError(.badData, "\(path) cannot be read: \(String(cString: strerror(errno))).")
    }
    guard status.st_mode & S_IFMT == S_IFREG else {
      close(descriptor)
      throw FerryError(.badData, "\(path) is not a file.")
    }
    size = Int64(status.st_size)
  }

  deinit { close(descriptor) }

  /// Its digest, and a stream of its bytes from the start.
  func contents(_ mediaType: String) throws(FerryError) -> (sha256: String, bytes: ByteStream) {
    var digest = IncrementalDigest(.sha256)
    while let piece = try next() { digest.update(piece) }
    lseek(descriptor, 0, SEEK_SET)
    let stream = ByteStream(size: size, mediaType: mediaType) { () throws(FerryError) in try self.next() }
    return (Crypto.hex(digest.finish()), stream)
  }

  private func next() throws(FerryError) -> [UInt8]? {
    while true {
      var count = 0
      let piece = [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, initialized in
        count = read(descriptor, buffer.baseAddress, buffer.count)
        initialized = max(count, 0)
      }
      if count > 0 { return piece }
      if count == 0 { return nil }
      guard errno == EINTR else {
        throw FerryError(.badData, "\(path) cannot be read: \(String(cString: strerror(errno))).")
      }
    }
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
