import FerryCore

/// How an archive's files are called. Paths are relative to its folder.
enum ArchiveLayout {
  static let header = "data/archive.json"
  static let log = "data/log"
  static let blobs = "data/blobs"
  static let checkpoint = "checkpoint.json"
  /// Where exports stand, kept when the archive is closed.
  static let places = "places.json"
  static let bag = "bagit.txt"
  static let bagInfo = "bag-info.txt"
  static let manifest = "manifest-sha256.txt"
  static let tagManifest = "tagmanifest-sha256.txt"
  /// Blobs that are still arriving.
  static let incoming = "incoming"

  static let format = "ferry-archive"
  static let version = "1.0"

  static func segment(_ number: Int) -> String {
    let digits = String(number)
    return "\(log)/\(String(repeating: "0", count: max(6 - digits.utf8.count, 0)))\(digits).jsonl"
  }

  static func blob(_ sha256: String) -> String { "\(blobs)/\(sha256.prefix(2))/\(sha256)" }

  /// 64 lower-case hexadecimal digits: nothing else becomes part of a path.
  static func isDigest(_ text: String) -> Bool {
    text.utf8.count == 64
      && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
  }
}

/// Where a part of the log ends and the next begins: at whichever comes first.
package struct SegmentLimits: Sendable {
  package var bytes: Int64
  package var records: Int

  package init(bytes: Int64 = 64 << 20, records: Int = 100_000) {
    self.bytes = bytes
    self.records = records
  }
}
