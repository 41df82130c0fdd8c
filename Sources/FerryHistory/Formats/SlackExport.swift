package import FerryCore
import FerryRuntime
import FerryStorage
import Glibc

/// Writes records as an export of Slack's, which the importers of Mattermost, Rocket.Chat and Zulip read.
///
/// Bytes of attachments lie in `__uploads/`, where Mattermost's importer looks for them. What the shape has no place for
/// (read marks, earlier texts, skeletons of deleted messages, unknown kinds) is counted.
///
/// Source: Slack's "How to read Slack data exports"; the importers of mmetl, Rocket.Chat and Zulip.
package struct SlackExport: Sendable {
  package struct Report: Hashable, Sendable {
    package var channels = 0
    package var people = 0
    package var messages = 0
    package var files = 0
    /// What was left out, by kind.
    package var dropped: [String: Int] = [:]
  }

  /// Takes everything from `source`: each message once, as `FoldedRecords` gives them. `path` is a new folder, or a file
  /// that ends with `.zip`, which may be there and is replaced; either appears when it is whole.
  package static func write(_ source: any RecordSource, to path: String) async throws(FerryError) -> Report {
    let isZip = path.hasSuffix(".zip")
    guard isZip || !DiskFile.exists(path) else {
      throw FerryError(.conflict, "\(path) is there already. Name a new folder.")
    }
    let work = path + ".part"
    try DiskFile.makeFolder(work)
    // Gone by then where it became the result.
    defer { try? FolderRemoval.remove(work) }
    let writer = try SlackExportWriter(work)
    while true {
      let records = try await source.next(limit: 500)
      if records.isEmpty { break }
      try await writer.take(records, from: source)
    }
    let report = try await writer.finish()
    if isZip {
      try ZipWriter.pack(work, into: path)
    } else {
      guard rename(work, path) == 0 else { throw DiskFile.failure(path) }
    }
    return report
  }
}

/// How things are called in Slack: by capital letters and digits.
enum SlackNames {
  /// The same for the same identifier; one that Slack could have made stays.
  static func id(_ text: String, prefix: Character) -> String {
    let isSlack =
      text.utf8.count >= 2 && text.utf8.count <= 20
      && text.allSatisfy { $0.isASCII && ($0.isNumber || $0.isUppercase) }
    if isSlack, text.first == prefix || prefix == "U" && (text.first == "W" || text.first == "B") { return text }
    let digest = Crypto.hex(Crypto.digest(.sha256, of: text.utf8).prefix(5)).uppercased()
    return "\(prefix)\(digest)"
  }

  /// Lower-case letters, digits, hyphens and underscores, at most 60 of them.
  static func plain(_ name: String, else fallback: String) -> String {
    let kept = name.lowercased().unicodeScalars.map { scalar -> Character in
      let isPlain = scalar.isASCII && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar) || scalar == "_")
      return isPlain ? Character(scalar) : "-"
    }
    let text = String(String(kept).split(separator: "-").joined(separator: "-").prefix(60))
    return text.isEmpty ? fallback.lowercased() : text
  }

  /// Mattermost takes nobody by these names.
  static let reserved: Set<String> = ["all", "channel", "here", "matterbot", "system"]

  /// Names that are used once each.
  struct Taken {
    private var names: Set<String>

    init(_ names: Set<String> = []) { self.names = names }

    mutating func take(_ name: String, _ id: String) -> String {
      var plain = SlackNames.plain(name, else: id)
      if names.contains(plain) { plain = "\(plain.prefix(59 - id.utf8.count))-\(id.lowercased())" }
      names.insert(plain)
      return plain
    }
  }

  /// Seconds and six digits.
  static func ts(microseconds: Int64) -> String {
    let fraction = String(microseconds % 1_000_000)
    return "\(microseconds / 1_000_000).\(String(repeating: "0", count: max(6 - fraction.utf8.count, 0)))\(fraction)"
  }
}

/// Removes a folder of ours and what is in it.
enum FolderRemoval {
  static func remove(_ path: String) throws(FerryError) {
    for (name, isFolder) in try DiskFile.names(in: path) {
      if isFolder == true { try remove("\(path)/\(name)") } else { unlink("\(path)/\(name)") }
    }
    rmdir(path)
  }
}
