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

  /// Where the notes on an archive's messages were kept before there was a folder for them.
  var earlierBook: String {
    var path = path
    while path.count > 1, path.hasSuffix("/") { path.removeLast() }
    return path + ".db"
  }

  /// Where the export of a channel into the archive that is there stands; nil where there is none.
  func place(of channel: ChannelID) -> String? {
    let folder = work ?? path
    guard DiskFile.exists(folder) else { return nil }
    // What cannot be read is for the writer to judge.
    return try? ArchiveReader(folder).place(of: channel)
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
  func close(_ report: TransferReport) async throws(FerryError) {
    guard let work else { return }
    if isSlack {
      let written = try await SlackExport.write(try await FoldedRecords(work), to: path)
      for (what, count) in written.dropped.sorted(by: { $0.key < $1.key }) {
        let reason =
          what == "reply" ? "the message replied to is not there" : "there is no place for it in Slack's exports"
        report.add(.init(what: what, reason: reason, count: count))
      }
    } else {
      try await ArchiveTar.pack(work, into: path)
    }
  }
}
