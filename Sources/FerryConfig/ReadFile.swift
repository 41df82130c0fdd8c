import Glibc

struct UnreadableFile: Error {
  /// Goes after the file's name: `cannot be read: Permission denied`.
  let reason: String
}

/// The whole file, of whatever kind, as long as it ends within `limit` bytes.
func readFile(_ path: String, limit: Int) throws(UnreadableFile) -> [UInt8] {
  let descriptor = open(path, O_RDONLY | O_CLOEXEC)
  guard descriptor >= 0 else { throw unreadable() }
  defer { close(descriptor) }
  var bytes: [UInt8] = []
  var buffer = [UInt8](repeating: 0, count: 64 << 10)
  while true {
    let count = read(descriptor, &buffer, buffer.count)
    if count < 0, errno == EINTR { continue }
    guard count >= 0 else { throw unreadable() }
    if count == 0 { return bytes }
    bytes += buffer[..<count]
    guard bytes.count <= limit else { throw UnreadableFile(reason: "is larger than \(limit) bytes") }
  }
}

private func unreadable() -> UnreadableFile {
  UnreadableFile(reason: "cannot be read: \(String(cString: strerror(errno)))")
}
