import FerryCore
import FerryHistory
import FerryRuntime

/// Where an archive is written: a folder, or one file that is made from a folder among the work files: a tar, or another
/// service's format. That folder stays, so that the next export can add to it.
struct ArchivePlace: Sendable {
  private let path: String
  private let work: String?
  private let isSlack: Bool

  init(_ path: String, in folder: WorkFolder, _ arguments: Arguments) throws {
    self.path = path
    let format = arguments["format"] ?? "archive"
    guard ["archive", "slack"].contains(format) else { throw arguments.fail("--format is archive or slack") }
    isSlack = format == "slack"
    if !isSlack, path.lowercased().hasSuffix(".zip") {
      throw arguments.fail("an archive is a folder or a .tar; for Slack's export as a zip say --format slack")
    }
    work = isSlack || path.lowercased().hasSuffix(".tar") ? folder.path + "/archive" : nil
  }

  /// Throws `badRequest` when there is an archive of something else, which stays as it is.
  func open(_ header: ArchiveHeader) throws(FerryError) -> ArchiveWriter {
    let folder = work ?? path
    if DiskFile.exists(folder) {
      // What cannot be read is for the writer to judge.
      if case .success(let reader) = Result(catching: { () throws(FerryError) in try ArchiveReader(folder) }) {
        try check(reader.header, against: header)
      }
    }
    return try ArchiveWriter(folder: folder, header: header)
  }

  private func check(_ old: ArchiveHeader, against new: ArchiveHeader) throws(FerryError) {
    var differences: [String] = []
    func compare(_ old: String?, _ new: String?, _ what: String) {
      if old != new { differences.append("\(what) \(old ?? "none") and not \(new ?? "none")") }
    }
    compare(old.source, new.source, "the history of")
    compare(old.since?.iso8601, new.since?.iso8601, "--since")
    compare(old.until?.iso8601, new.until?.iso8601, "--until")
    compare(Self.words(old.include), Self.words(new.include), "--include")
    guard !differences.isEmpty else { return }
    throw FerryError(
      .badRequest,
      "\(path) was begun with \(differences.joined(separator: ", ")). Ask for the same to add to it, or write a new archive."
    )
  }

  private static func words(_ list: [String]) -> String? {
    list.isEmpty ? nil : list.sorted().joined(separator: ",")
  }

  /// Once the archive is finished.
  func close() async throws(FerryError) {
    guard let work else { return }
    if isSlack {
      _ = try await SlackExport.write(try await FoldedRecords(work), to: path)
    } else {
      try await ArchiveTar.pack(work, into: path)
    }
  }
}
