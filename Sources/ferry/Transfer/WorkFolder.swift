import FerryCore
import FerryHistory
import FerryRuntime

/// Where a transfer keeps what makes it resumable: `--state DIR`, else a folder beside the archive, else `ferry-state`
/// here. It is made when something is to be put into it.
struct WorkFolder: Sendable {
  let path: String

  init(_ arguments: Arguments, beside archive: String? = nil) {
    path = arguments["state"] ?? archive.map { Self.trimmed($0) + ".work" } ?? "ferry-state"
  }

  /// Throws `storage` when it cannot be.
  func make() throws(FerryError) {
    try DiskFile.makeFolder(path) { path in
      var error = DiskFile.folderFailure(path)
      error.message += " Name another with --state."
      return error
    }
  }

  /// The book of one kind of work between these ends.
  func book(_ kind: String, _ ends: String...) throws(FerryError) -> WorkBook {
    try make()
    return try WorkBook(path: file(kind, ends))
  }

  /// The same, or the one that was begun elsewhere, where this one knows of nothing.
  func book(_ kind: String, _ ends: String..., orEarlier earlier: String) async throws(FerryError) -> WorkBook {
    let path = file(kind, ends)
    if DiskFile.exists(earlier) {
      guard DiskFile.exists(path) else { return try WorkBook(path: earlier) }
      let book = try WorkBook(path: path)
      if try await book.messageCount() > 0 { return book }
      book.close()
      return try WorkBook(path: earlier)
    }
    try make()
    return try WorkBook(path: path)
  }

  private func file(_ kind: String, _ ends: [String]) -> String {
    let digest = Crypto.hex(Crypto.digest(.sha256, of: ends.joined(separator: "\n").utf8).prefix(6))
    return "\(path)/\(kind)-\(digest).db"
  }

  private static func trimmed(_ path: String) -> String {
    var path = path
    while path.count > 1, path.hasSuffix("/") { path.removeLast() }
    return path
  }

  static let option = Command.Option("state", "DIR", "where to keep what makes the work resumable")
}
