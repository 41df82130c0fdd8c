import FerryCore
import FerryHistory
import FerryRuntime
import FoundationEssentials

/// Where a transfer keeps what makes it resumable: `--state DIR`, else a folder beside the archive, else `ferry-state`
/// here.
struct WorkFolder: Sendable {
  let path: String

  init(_ arguments: Arguments, beside archive: String? = nil) throws(FerryError) {
    path = arguments["state"] ?? archive.map { Self.trimmed($0) + ".work" } ?? "ferry-state"
    do { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true) } catch {
      throw FerryError(.storage, "The folder \(path) cannot be made. Name another with --state.", cause: "\(error)")
    }
  }

  /// The book of one kind of work between these ends.
  func book(_ kind: String, _ ends: String...) throws(FerryError) -> WorkBook {
    let digest = Crypto.hex(Crypto.digest(.sha256, of: ends.joined(separator: "\n").utf8).prefix(6))
    return try WorkBook(path: "\(path)/\(kind)-\(digest).db")
  }

  private static func trimmed(_ path: String) -> String {
    var path = path
    while path.count > 1, path.hasSuffix("/") { path.removeLast() }
    return path
  }

  static let option = Command.Option("state", "DIR", "where to keep what makes the work resumable")
}
